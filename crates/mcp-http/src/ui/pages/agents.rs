//! The section of the agents that the server supervises.

use super::super::viewer::PageViewer;
use super::layout::{self, PageEndButton, table};
use crate::state::App;
use maud::{Markup, html};

/// Renders the sessions of agents that the viewer sees: its own, or all.
pub(super) async fn section(app: App, viewer: &PageViewer) -> Markup {
    let content = match app.workspaces.agents.for_principal(viewer.shown_principal()).list(false).await {
        Err(error) => html! { p class="bad" { (error) } },
        Ok(list) => {
            let may_end = viewer.may_call(app, "end_session");
            let columns: &[&str] = match may_end {
                true => &["Caller", "Session", "Role", "State", "Since (UTC)", "Command", "End"],
                false => &["Caller", "Session", "Role", "State", "Since (UTC)", "Command"],
            };
            // A session that the server's own user started has no caller.
            let rows = list.sessions.iter().map(|agent| (agent.principal.as_deref(), agent)).map(|(owner, agent)| {
                html! {
                    tr {
                        td class="name" { (owner.unwrap_or("–")) }
                        td class="name" { code { (agent.session_id) } }
                        td { (agent.role) }
                        td {
                            (agent.state)
                            @if let Some(next) = &agent.next_action { ", " (next.action) " at " (next.at) }
                        }
                        td class="time" { (agent.since) }
                        td { code { (agent.command) } }
                        @if may_end {
                            td {
                                @if let Some(owner) = owner {
                                    (end_button(owner, &agent.session_id, &agent.command).render(viewer))
                                }
                            }
                        }
                    }
                }
            });
            table("agents", columns, &rows.collect::<Vec<_>>())
        }
    };
    layout::section("agents", "Agents’ sessions", &content)
}

fn end_button<'a>(owner: &'a str, id: &'a str, command: &'a str) -> PageEndButton<'a> {
    PageEndButton { owner, field: "session", id, word: "End", command }
}
