//! The page of calls: what runs, what ran and what was refused.

use super::super::html_response;
use super::super::viewer::PageViewer;
use super::layout::{NavigationPage, PageEndButton, bar, cell, page, path_text, said, section, table};
use super::overview::percent_encoded;
use super::query::{PageQuery, name_matches};
use super::{format, running};
use crate::app_state::App;
use crate::call_words::{explain_refusal, outcome_word};
use crate::recent_calls::FinishedCall;
use axum::extract::State;
use axum::response::Response;
use core_tools::mcp::{BackgroundProcess, CallDecision, Host, Outcome};
use http::{StatusCode, Uri};
use maud::{Markup, html};
use std::time::SystemTime;

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
            (refused_calls(&finished.not_run, &viewer, app.audit_source.is_some()))
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
        name_matches(self.caller, caller) && name_matches(self.tool, tool)
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
                cell(html! {
                    (path_text(&call.detail))
                    @if !call.error.is_empty() { " " span class="bad small" { (call.error) } }
                })
                .class("what"),
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

fn refused_calls(calls: &[FinishedCall], viewer: &PageViewer, has_audit: bool) -> Markup {
    // A client that tries again and again fills one row.
    let rows: Vec<_> = calls
        .chunk_by(is_repeated)
        .filter_map(|same| Some((same.first()?, same.last()?, same.len())))
        .map(|(call, first, times)| {
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
                    @if times > 1 { " " span class="faint" { "(" (times) " times since " (format::moment(first.at)) ")" } }
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
                cell(path_text(detail)).class("what"),
            ]
        })
        .collect();
    let columns = ["At (UTC)", "Caller", "Tool", "Why", "What"];
    let content = html! {
        @if viewer.sees_all && !calls.is_empty() { (sums(&refused_sums(calls), has_audit)) }
        (table("refused", &columns, &rows))
    };
    section("refused", "Not run", &content)
}

/// The refusals of one caller for one reason.
struct RefusedSum<'a> {
    caller: &'a str,
    reason: String,
    times: usize,
    first: SystemTime,
    last: SystemTime,
}

/// Sums calls, the latest first, by caller and reason: those that were refused most often come first.
fn refused_sums(calls: &[FinishedCall]) -> Vec<RefusedSum<'_>> {
    let mut sums: Vec<RefusedSum<'_>> = Vec::new();
    for call in calls {
        let reason = refusal_summary(call);
        match sums.iter_mut().find(|sum| sum.caller == call.principal && sum.reason == reason) {
            Some(sum) => (sum.times, sum.first) = (sum.times + 1, call.at),
            None => {
                sums.push(RefusedSum {
                    caller: &call.principal,
                    reason,
                    times: 1,
                    first: call.at,
                    last: call.at,
                });
            }
        }
    }
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.times));
    sums
}

/// Returns the reason of a refusal without what differs from one time to the next.
fn refusal_summary(call: &FinishedCall) -> String {
    let reason = explain_refusal(call.decision, &call.role, &call.rule);
    let reason = match call.rule.starts_with("http: ") {
        true => reason.split(" (").next().unwrap_or_default().to_owned(),
        false => reason,
    };
    if call.tool.is_empty() { reason } else { format!("{}: {reason}", call.tool) }
}

/// Renders the sums by caller and reason.
fn sums(sums: &[RefusedSum<'_>], has_audit: bool) -> Markup {
    let rows: Vec<_> = sums
        .iter()
        .map(|sum| {
            let history = format!("/ui/history?outcome=not-run&caller={}", percent_encoded(sum.caller));
            vec![
                cell(html! { @if has_audit { a href=(history) { (sum.caller) } } @else { (sum.caller) } })
                    .class("name"),
                cell(&sum.reason).class("what"),
                cell(sum.times).class("number"),
                cell(format::moment(sum.first)).class("time"),
                cell(format::moment(sum.last)).class("time"),
            ]
        })
        .collect();
    html! {
        h3 id="refused-sums-title" { "By caller and reason" }
        p class="faint small" { "Of the latest " (sums.iter().map(|sum| sum.times).sum::<usize>()) " that are listed below." @if has_audit { " The history has all." } }
        (table("refused-sums", &["Caller", "Reason", "Times", "First (UTC)", "Last (UTC)"], &rows))
        h3 { "One by one" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_were_refused_alike_are_told_from_others() {
        let call = FinishedCall {
            at: SystemTime::now(),
            principal: "stranger:127.0.0.1".to_owned(),
            role: "none".to_owned(),
            tool: String::new(),
            decision: CallDecision::Refused,
            rule: "http: bad_token".to_owned(),
            outcome: Outcome::NotRun,
            duration: std::time::Duration::ZERO,
            detail: String::new(),
            bytes_out: 0,
            error: String::new(),
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

    #[test]
    fn refusals_are_summed_by_caller_and_reason_with_the_first_and_the_last_time() {
        let at = |second| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(second);
        let call = |principal: &str, rule: &str, second| FinishedCall {
            at: at(second),
            principal: principal.to_owned(),
            role: "none".to_owned(),
            tool: String::new(),
            decision: CallDecision::Refused,
            rule: rule.to_owned(),
            outcome: Outcome::NotRun,
            duration: std::time::Duration::ZERO,
            detail: String::new(),
            bytes_out: 0,
            error: String::new(),
        };
        let bad = "http: bad_token: no such token";
        let calls = [
            call("x", "http: no_token", 9),
            call("y", bad, 8),
            call("x", bad, 7),
            call("y", &format!("{bad}, and 3 before"), 5),
        ];
        let sums: Vec<_> = refused_sums(&calls)
            .into_iter()
            .map(|sum| (sum.caller, sum.reason, sum.times, sum.first, sum.last))
            .collect();
        let unknown = "The token is unknown.".to_owned();
        assert_eq!(sums[0], ("y", unknown.clone(), 2, at(5), at(8)));
        assert_eq!(sums[1], ("x", "The request had no token.".to_owned(), 1, at(9), at(9)));
        assert_eq!(sums[2], ("x", unknown, 1, at(7), at(7)));
    }
}
