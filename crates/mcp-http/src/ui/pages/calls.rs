//! The page of calls: what runs, what ran and what was refused.

use super::super::html_response;
use super::super::viewer::PageViewer;
use super::layout::{NavigationPage, PageEndButton, bar, cell, page, said, section, table};
use super::query::PageQuery;
use super::{format, running};
use crate::app_state::App;
use crate::call_words::{explain_refusal, outcome_word};
use crate::recent_calls::FinishedCall;
use axum::extract::State;
use axum::response::Response;
use core_tools::mcp::{BackgroundProcess, CallDecision, Host, Outcome};
use http::{StatusCode, Uri};
use maud::{Markup, html};

/// Answers with the page.
pub(in super::super) async fn show(State(app): State<App>, viewer: PageViewer, uri: Uri) -> Response {
    let query = PageQuery::of(&uri);
    let filter = CallFilter::of(&query);
    let finished = app.recent_calls.finished(viewer.shown_principal(), |call| filter.shows_finished(call));
    let mut now = app.recent_calls.running(viewer.shown_principal());
    now.retain(|call| filter.shows(&call.principal, &call.tool));
    let whose = match viewer.sees_all {
        true => "Everybody’s calls at this server process.",
        false => "Your calls at this server process.",
    };
    let content = html! {
        (said(result_of_form(query.get("said"))))
        (bar(&html! { (whose) }))
        (filter.form(&viewer))
        @if filter.outcome.is_none() {
            (section("now", "Calls now", &running::list(app, &viewer, &now)))
            (programs(app, &viewer, &filter))
        }
        @if filter.outcome != Some(Outcome::NotRun) {
            (finished_calls(&finished.run))
        }
        @if filter.outcome.is_none_or(|outcome| outcome == Outcome::NotRun) {
            (refused_calls(&finished.not_run, &viewer))
        }
    };
    html_response::html(StatusCode::OK, page(NavigationPage::Calls, &viewer, &content))
}

/// Returns the result of a form, from the query of the address to which it led. The words are the server's, whatever a link
/// may contain.
fn result_of_form(said: &str) -> &'static str {
    match said {
        "stopped" => "The program was stopped.",
        "gone" => "There is no such program any more.",
        "refused" => "The program was not stopped: the policy does not let you.",
        "call-stopped" => "The call was stopped.",
        "call-over" => "The call was over already.",
        _ => "",
    }
}

/// The calls that are shown.
struct CallFilter<'a> {
    caller: &'a str,
    tool: &'a str,
    outcome: Option<Outcome>,
}

impl<'a> CallFilter<'a> {
    fn of(query: &'a PageQuery) -> Self {
        let outcome = match query.get("outcome") {
            "ok" => Some(Outcome::Ok),
            "failed" => Some(Outcome::Failed),
            "not-run" => Some(Outcome::NotRun),
            _ => None,
        };
        Self { caller: query.get("caller"), tool: query.get("tool"), outcome }
    }

    /// Returns true if both names have what was asked for, in capitals or not.
    fn shows(&self, caller: &str, tool: &str) -> bool {
        let has = |text: &str, part: &str| text.to_lowercase().contains(&part.to_lowercase());
        has(caller, self.caller) && has(tool, self.tool)
    }

    fn shows_finished(&self, call: &FinishedCall) -> bool {
        self.shows(&call.principal, &call.tool) && self.outcome.is_none_or(|outcome| call.outcome == outcome)
    }

    /// Renders the form of the filter.
    fn form(&self, viewer: &PageViewer) -> Markup {
        let outcomes = [
            ("", None),
            ("ok", Some(Outcome::Ok)),
            ("failed", Some(Outcome::Failed)),
            ("not-run", Some(Outcome::NotRun)),
        ];
        html! {
            form class="filter" method="get" action="/ui/calls" role="search" aria-label="Filter of calls" {
                @if viewer.sees_all {
                    div {
                        label for="caller" { "Caller" }
                        input id="caller" name="caller" value=(self.caller) maxlength="100" autocomplete="off";
                    }
                }
                div {
                    label for="tool" { "Tool" }
                    input id="tool" name="tool" value=(self.tool) maxlength="100" autocomplete="off";
                }
                div {
                    label for="outcome" { "Outcome" }
                    select id="outcome" name="outcome" {
                        @for (value, outcome) in outcomes {
                            option value=(value) selected[outcome == self.outcome] {
                                (outcome.map_or("any", outcome_word))
                            }
                        }
                    }
                }
                button { "Filter" }
                a href="/ui/calls" { "All calls" }
            }
        }
    }
}

fn programs(app: App, viewer: &PageViewer, filter: &CallFilter<'_>) -> Markup {
    let shown = viewer.shown_principal();
    let is_shown = |program: &BackgroundProcess| {
        shown.is_none_or(|shown| program.principal == shown) && filter.shows(&program.principal, filter.tool)
    };
    let mut programs: Vec<BackgroundProcess> =
        app.workspaces.hosts().iter().flat_map(Host::background_processes).filter(is_shown).collect();
    // Running ones first, and the newest at the top.
    programs.sort_by_key(|program| (!program.is_running(), program.duration));
    let may_stop = viewer.may_call(app, "stop_command");
    let content = html! {
        @if programs.is_empty() { p class="faint" { "None." } }
        @else {
            ul class="cards" {
                @for program in &programs {
                    @let id = program.id.to_string();
                    li class="card" {
                        div class="card-text" {
                            p class="card-head" {
                                strong { (program.principal) }
                                " " span class=[(!program.is_running()).then_some("faint")] { (program.state) }
                                " " span class="time" { (format::duration(program.duration)) }
                            }
                            p { code { (format::truncated(&program.command, 300)) } }
                        }
                        @if may_stop && program.is_running() {
                            (PageEndButton {
                                owner: &program.principal, field: "id", id: &id, word: "Stop", command: &program.command,
                            }.render(viewer))
                        }
                    }
                }
            }
        }
    };
    section("programs", "Background programs", &content)
}

fn finished_calls(calls: &[FinishedCall]) -> Markup {
    let rows: Vec<_> = calls
        .iter()
        .map(|call| {
            let class = if call.outcome == Outcome::Ok { "good" } else { "bad" };
            vec![
                cell(format::moment(call.at)).class("time"),
                cell(&call.principal).class("name"),
                cell(html! { code { (call.tool) } }).class("name"),
                cell(html! { code { (call.detail) } }).class("what"),
                cell(html! { span class=(class) { (outcome_word(call.outcome)) } }),
                cell(format::duration(call.duration)).class("time"),
                cell(format::bytes(call.bytes_out)).class("time"),
            ]
        })
        .collect();
    let columns = ["Ended (UTC)", "Caller", "Tool", "What", "Outcome", "Took", "Answer"];
    section("lately", "Calls lately", &table("lately", &columns, &rows))
}

/// Returns true if both calls were the same, and were not run for the same reason.
fn is_repeated(one: &FinishedCall, other: &FinishedCall) -> bool {
    one.decision == other.decision
        && one.principal == other.principal
        && one.role == other.role
        && one.tool == other.tool
        && one.rule == other.rule
        && one.detail == other.detail
}

fn refused_calls(calls: &[FinishedCall], viewer: &PageViewer) -> Markup {
    // A client that tries again and again fills one row.
    let rows: Vec<_> = calls
        .chunk_by(is_repeated)
        .filter_map(|same| Some((same.first()?, same.len())))
        .map(|(call, times)| {
            // A caller must not learn whether a tool that is hidden from it exists.
            let is_hidden =
                matches!(call.decision, CallDecision::Hidden | CallDecision::Unknown) && !viewer.sees_all;
            let (decision, rule, detail) = match is_hidden {
                true => (CallDecision::Unknown, "", ""),
                false => (call.decision, &*call.rule, &*call.detail),
            };
            // What the server itself refuses is explained whole, by its rule.
            let rule_shown = if rule.starts_with("http: ") { "" } else { rule };
            vec![
                cell(html! {
                    (format::moment(call.at))
                    @if times > 1 { " " span class="faint" { "(" (times) " times)" } }
                }),
                cell(html! {
                    (call.principal)
                    @if call.role != "none" { " " span class="faint" { "role " (call.role) } }
                }),
                cell(html! { @if !call.tool.is_empty() { code { (call.tool) } } }).class("name"),
                cell(html! {
                    span class="some" { (explain_refusal(decision, &call.role, rule)) }
                    @if !rule_shown.is_empty() { " " span class="faint small" { "Rule " code { (rule_shown) } } }
                })
                .class("what"),
                cell(html! { code { (detail) } }).class("what"),
            ]
        })
        .collect();
    let columns = ["At (UTC)", "Caller", "Tool", "Why", "What"];
    section("refused", "Not run", &table("refused", &columns, &rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_were_refused_alike_are_told_from_others() {
        let call = FinishedCall {
            at: std::time::SystemTime::now(),
            principal: "stranger:127.0.0.1".to_owned(),
            role: "none".to_owned(),
            tool: String::new(),
            decision: CallDecision::Refused,
            rule: "http: bad_token".to_owned(),
            outcome: Outcome::NotRun,
            duration: std::time::Duration::ZERO,
            detail: String::new(),
            bytes_out: 0,
        };
        let earlier = FinishedCall { at: std::time::UNIX_EPOCH, ..call.clone() };
        let other = FinishedCall { rule: "http: rate".to_owned(), ..call.clone() };
        assert!(is_repeated(&call, &earlier) && !is_repeated(&call, &other));
    }

    #[test]
    fn a_filter_finds_parts_of_names() {
        let filter = CallFilter { caller: "ADA", tool: "", outcome: Some(Outcome::Failed) };
        assert!(filter.shows("jwt:ada", "read_file") && !filter.shows("bob", "read_file"));
    }
}
