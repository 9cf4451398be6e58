//! Agents that are supervised here.

use super::Viewer;
use super::html::Html;
use super::page::{self, Ends};
use crate::route::App;

/// What `viewer` sees of them: its own, or all.
pub(super) async fn section(app: &App, viewer: &Viewer) -> Html {
    let own = (!viewer.sees_all).then_some(&*viewer.principal.name);
    let found = app.tenants.agents.of(own).list(false).await;
    let may_end = page::may_call(app, viewer, "end_session");
    let mut html = Html::default();
    page::section(&mut html, "agents", "Agents’ sessions", |html| {
        let agents = match found {
            Ok(list) => list.sessions,
            Err(error) => {
                html.raw("<p class=\"bad\">").text(error).raw("</p>");
                return;
            }
        };
        let columns = ["Caller", "Session", "Role", "State", "Since (UTC)", "Command", "End"];
        let columns = if may_end { &columns[..] } else { columns.get(..6).unwrap_or_default() };
        page::table(html, "agents", columns, agents.len(), |html| {
            for agent in &agents {
                // One of the server's own user has no caller.
                let owner = agent.principal.as_deref();
                html.raw("<tr><td class=\"name\">").text(owner.unwrap_or("–"));
                html.raw("</td><td class=\"name\"><code>").text(&agent.session_id).raw("</code></td><td>");
                html.text(&agent.role).raw("</td><td>").text(&agent.state);
                if let Some(next) = &agent.next_action {
                    html.raw(", ").text(&next.action).raw(" at ").text(&next.at);
                }
                html.raw("</td><td class=\"time\">").text(&agent.since).raw("</td><td><code>");
                html.text(&agent.command).raw("</code></td>");
                if may_end {
                    html.raw("<td>");
                    if let Some(owner) = owner {
                        let (id, command) = (&*agent.session_id, &*agent.command);
                        let ends = Ends { owner, field: "session", id, word: "End", command };
                        page::button(html, viewer, &ends);
                    }
                    html.raw("</td>");
                }
                html.raw("</tr>");
            }
        });
    });
    html
}
