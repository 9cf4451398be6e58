//! The section of the agents that the server supervises.

use super::super::viewer::PageViewer;
use super::layout::{self, PageEndButton, cell, table};
use crate::app_state::App;
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
            let rows: Vec<_> = list
                .sessions
                .iter()
                .map(|agent| {
                    let owner = agent.principal.as_deref();
                    let mut row = vec![
                        cell(owner.unwrap_or("–")).class("name"),
                        cell(html! { code { (agent.session_id) } }).class("name"),
                        cell(&agent.role),
                        cell(html! {
                            (agent.state)
                            @if let Some(next) = &agent.next_action { ", " (next.action) " at " (next.at) }
                        }),
                        cell(&agent.since).class("time"),
                        cell(html! { code { (agent.command) } }).class("what"),
                    ];
                    if may_end {
                        row.push(cell(html! {
                            @if let Some(owner) = owner {
                                (end_button(owner, &agent.session_id, &agent.command).render(viewer))
                            }
                        }));
                    }
                    row
                })
                .collect();
            table("agents", columns, &rows)
        }
    };
    layout::section("agents", "Agents’ sessions", &content)
}

fn end_button<'a>(owner: &'a str, id: &'a str, command: &'a str) -> PageEndButton<'a> {
    PageEndButton { owner, field: "session", id, word: "End", command }
}
