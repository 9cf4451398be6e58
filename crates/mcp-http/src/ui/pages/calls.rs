//! The page of calls: what runs, what ran and what was refused.

use super::super::html_response;
use super::super::viewer::PageViewer;
#[cfg(feature = "sessions")]
use super::agents;
use super::format;
use super::layout::{NavigationPage, PageEndButton, page, section, table};
use crate::recent_calls::FinishedCall;
use crate::state::App;
use axum::extract::State;
use axum::response::Response;
use core_tools::mcp::{BackgroundProcess, CallDecision, Host, Outcome};
use http::{StatusCode, Uri};
use maud::{Markup, html};

/// Answers with the page.
pub(in super::super) async fn show(State(app): State<App>, viewer: PageViewer, uri: Uri) -> Response {
    #[cfg(feature = "sessions")]
    let agents = agents::section(app, &viewer).await;
    #[cfg(not(feature = "sessions"))]
    let agents = Markup::default();
    let finished = app.recent_calls.finished(viewer.shown_principal());
    let content = html! {
        p class="said" role="status" { (result_of_form(uri.query().unwrap_or_default())) }
        p class="bar" id="bar" {
            span {
                @if viewer.sees_all { "Everybody’s calls at this server process." }
                @else { "Your calls at this server process." }
            }
        }
        (running_calls(app, &viewer))
        (programs(app, &viewer))
        (finished_calls(&finished.run))
        (refused_calls(&finished.not_run, &viewer))
        (agents)
        (sessions(app, &viewer))
    };
    html_response::html(StatusCode::OK, page(NavigationPage::Calls, &viewer, &content))
}

/// Returns the result of a form, from the query of the address to which it led. The words are the server's, whatever a link
/// may contain.
fn result_of_form(query: &str) -> &'static str {
    match query {
        "said=stopped" => "The program was stopped.",
        "said=gone" => "There is no such program any more.",
        "said=ended" => "The session was ended.",
        "said=not-ended" => "The session was not ended: it is over, or the policy does not let you.",
        "said=refused" => "The program was not stopped: the policy does not let you.",
        _ => "",
    }
}

fn running_calls(app: App, viewer: &PageViewer) -> Markup {
    let row = |call: &crate::recent_calls::RunningCall| {
        html! {
            tr {
                td class="name" { (call.principal) }
                td { (call.role) }
                td class="name" { code { (call.tool) } }
                td class="time" { (format::duration(call.since.elapsed())) }
            }
        }
    };
    let rows: Vec<Markup> = app.recent_calls.running(viewer.shown_principal()).iter().map(row).collect();
    section("now", "Calls now", &table("now", &["Caller", "Role", "Tool", "Running for"], &rows))
}

fn programs(app: App, viewer: &PageViewer) -> Markup {
    let shown = viewer.shown_principal();
    let is_shown = |program: &BackgroundProcess| shown.is_none_or(|shown| program.principal == shown);
    let mut programs: Vec<BackgroundProcess> =
        app.workspaces.hosts().iter().flat_map(Host::background_processes).filter(is_shown).collect();
    // Running ones first, and the newest at the top.
    programs.sort_by_key(|program| (!program.is_running(), program.duration));
    let may_stop = viewer.may_call(app, "stop_command");
    let row = |program: &BackgroundProcess| {
        let (id, owner) = (program.id.to_string(), &*program.principal);
        let button = PageEndButton { owner, field: "id", id: &id, word: "Stop", command: &program.command };
        html! {
            tr {
                td class="name" { (program.principal) }
                td { code { (format::truncated(&program.command, 300)) } }
                td { (program.state) }
                td class="time" { (format::duration(program.duration)) }
                @if may_stop {
                    td { @if program.is_running() { (button.render(viewer)) } }
                }
            }
        }
    };
    let rows: Vec<Markup> = programs.iter().map(row).collect();
    let columns: &[&str] = match may_stop {
        true => &["Caller", "Command", "State", "For", "Stop"],
        false => &["Caller", "Command", "State", "For"],
    };
    section("programs", "Background programs", &table("programs", columns, &rows))
}

fn finished_calls(calls: &[FinishedCall]) -> Markup {
    let row = |call: &FinishedCall| {
        html! {
            tr {
                td class="time" { (format::moment(call.at)) }
                td class="name" { (call.principal) }
                td class="name" { code { (call.tool) } }
                td {
                    @match call.outcome {
                        Outcome::Ok => span class="good" { "ok" },
                        Outcome::Failed => span class="bad" { "failed" },
                        Outcome::NotRun => "not run",
                    }
                }
                td class="time" { (format::duration(call.duration)) }
                td { code { (call.arguments) } }
                td class="time" { (format::bytes(call.bytes_out)) }
            }
        }
    };
    let rows: Vec<Markup> = calls.iter().map(row).collect();
    let columns = ["Ended (UTC)", "Caller", "Tool", "Outcome", "Took", "Arguments", "Answer"];
    section("lately", "Calls lately", &table("lately", &columns, &rows))
}

fn refused_calls(calls: &[FinishedCall], viewer: &PageViewer) -> Markup {
    let row = |call: &FinishedCall| {
        // A caller must not learn whether a tool that is hidden from it exists.
        let is_hidden =
            matches!(call.decision, CallDecision::Hidden | CallDecision::Unknown) && !viewer.sees_all;
        html! {
            tr {
                td class="time" { (format::moment(call.at)) }
                td class="name" { (call.principal) }
                td { (call.role) }
                td class="name" { code { (call.tool) } }
                @if is_hidden {
                    td class="some" { "no such tool" }
                    td { code {} }
                    td { code {} }
                } @else {
                    td class="some" { (call.decision.as_str()) }
                    td { code { (call.rule) } }
                    td { code { (call.arguments) } }
                }
            }
        }
    };
    let rows: Vec<Markup> = calls.iter().map(row).collect();
    let columns = ["At (UTC)", "Caller", "Role", "Tool", "Why", "Rule", "Arguments"];
    section("refused", "Not run", &table("refused", &columns, &rows))
}

fn sessions(app: App, viewer: &PageViewer) -> Markup {
    let mut sessions = app.sessions.list();
    sessions.retain(|session| viewer.shown_principal().is_none_or(|shown| &*session.principal == shown));
    let row = |session: &crate::sessions::ClientSessionSummary| {
        html! {
            tr {
                td class="name" { (session.principal) }
                td { (session.open) }
                td class="time" { (format::duration(session.idle)) " ago" }
            }
        }
    };
    let rows: Vec<Markup> = sessions.iter().map(row).collect();
    let content = html! {
        p class="faint" { "Of clients of the " code { "initialize" } " era; newer ones have none." }
        (table("sessions", &["Caller", "Open requests", "Last used"], &rows))
    };
    section("sessions", "Sessions", &content)
}
