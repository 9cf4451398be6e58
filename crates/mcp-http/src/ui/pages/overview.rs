//! The overview: what this server does, who does it, and what room there is.

use super::super::html_response;
use super::super::viewer::PageViewer;
use super::charts::{ChartLine, TimeChart, sparkline};
use super::layout::{NavigationPage, bar, cell, compact_table, page, section};
use super::query::PageQuery;
use super::{format, headroom, running, server_state};
use crate::activity::{ActivityView, NamedActivity, STRANGERS, TimeBucketView, TimeSpan, as_f64};
use crate::app_state::App;
use crate::recent_calls::STRANGER;
use axum::extract::State;
use axum::response::Response;
use http::{StatusCode, Uri};
use maud::{Markup, html};
use std::time::{Duration, SystemTime};

/// The rows of a table of callers or tools.
const MAX_ROWS: usize = 12;
/// The time from which on a call is among those that take long.
const LONG: Duration = Duration::from_secs(2);
/// The piece of time that is now counts for rates once so much of it is over: one refusal in its first seconds is no wave.
const MIN_SHARE: u32 = 3;

/// Answers with the page.
pub(in super::super) async fn show(State(app): State<App>, viewer: PageViewer, uri: Uri) -> Response {
    let query = PageQuery::of(&uri);
    let span = if query.get("span") == "day" { TimeSpan::Day } else { TimeSpan::Hour };
    let view = app.activity.view(span, viewer.shown_principal());
    let whose = match viewer.sees_all {
        true => "Everybody’s calls at this server process.",
        false => "Your calls at this server process.",
    };
    let has_audit = app.audit_source.is_some();
    let content = html! {
        (bar(&html! { (whose) }))
        @if viewer.sees_all { (server_state::line(app)) }
        (now(app, &viewer))
        (slow_calls(app, &viewer))
        (charts(&view, span, viewer.sees_all))
        @if viewer.sees_all { (headroom::section(app)) }
        @if viewer.sees_all {
            (named_table("callers", "By caller", "Caller", "caller", &view.callers, span, has_audit))
            (named_table("tools", "By tool", "Tool", "tool", &view.tools, span, has_audit))
        }
    };
    html_response::html(StatusCode::OK, page(NavigationPage::Overview, &viewer, &content))
}

/// Renders what is the case now, each figure with the page that tells more.
fn now(app: App, viewer: &PageViewer) -> Markup {
    let calls = app.recent_calls.running(viewer.shown_principal());
    let waiting = calls.iter().filter(|call| call.waits_for().is_some()).count();
    let soon = ends_within_a_week(app, viewer);
    let tiles = [
        ("/ui/calls#now", calls.len() - waiting, "calls running", false),
        ("/ui/calls#now", waiting, "calls waiting", waiting > 0),
        ("/ui/tokens", soon, "tokens that end within 7 days", soon > 0),
    ];
    let content = html! {
        ul class="tiles" {
            @for (link, count, what, is_notable) in tiles {
                li { a href=(link) class=[is_notable.then_some("notable")] { strong { (count) } " " span { (what) } } }
            }
            @if viewer.sees_all {
                @let programs = app.workspaces.runner.running();
                li { a href="/ui/calls#programs" { strong { (programs) } " " span { "programs running" } } }
                @let pending = viewer.pending_approvals;
                li {
                    a href="/ui/approvals" class=[(pending > 0).then_some("notable")] {
                        strong { (pending) } " " span { @if pending == 1 { "approval waiting" } @else { "approvals waiting" } }
                    }
                }
                @let scarce = headroom::scarce(app);
                @if !scarce.is_empty() {
                    li { a href="#headroom" class="notable" {
                        strong { (scarce.len()) } " " span { "nearly used up: " (scarce.join(", ")) }
                    } }
                }
            }
        }
    };
    section("state", "Now", &content)
}

fn ends_within_a_week(app: App, viewer: &PageViewer) -> usize {
    let week = SystemTime::now() + Duration::from_secs(7 * 86_400);
    let tokens = app.authenticator.tokens();
    tokens
        .valid()
        .filter(|token| viewer.shown_principal().is_none_or(|shown| shown == &*token.name))
        .filter(|token| token.expires_at.is_some_and(|end| end < week))
        .count()
}

/// Renders the calls that take long, the longest first.
fn slow_calls(app: App, viewer: &PageViewer) -> Markup {
    let mut calls = app.recent_calls.running(viewer.shown_principal());
    calls.retain(|call| call.since.elapsed() >= LONG);
    calls.truncate(5);
    section("slow", "Slow now, and why", &running::list(app, viewer, &calls))
}

fn charts(view: &ActivityView, span: TimeSpan, with_server: bool) -> Markup {
    let name = span_name(span);
    let amounts = |value: &dyn Fn(&TimeBucketView) -> Option<f64>| -> Vec<Option<f64>> {
        view.pieces.iter().map(|piece| value(piece).filter(|_| !piece.elapsed.is_zero())).collect()
    };
    let rated = rated_pieces(&view.pieces, span);
    let values = |value: &dyn Fn(&TimeBucketView) -> Option<f64>| -> Vec<Option<f64>> {
        rated.iter().map(|piece| value(piece).filter(|_| !piece.elapsed.is_zero())).collect()
    };
    let seconds = |piece: &TimeBucketView| piece.elapsed.as_secs_f64().max(1.0);
    let per_second = values(&|piece| Some(f64::from(piece.counts.ran()) / seconds(piece)));
    let per_minute = |count: fn(&TimeBucketView) -> u32| {
        values(&move |piece| Some(f64::from(count(piece)) * 60.0 / seconds(piece)))
    };
    let latency = |quantile: f64| {
        values(&move |piece| piece.counts.latency.quantile(quantile).map(|time| time.as_secs_f64()))
    };
    let programs = amounts(&|piece| Some(as_f64(piece.counts.programs as u64)));
    let cpu = values(&|piece| Some(piece.counts.cpu.as_secs_f64() / seconds(piece)));
    let memory = amounts(&|piece| Some(as_f64(piece.counts.memory)));
    let server_cpu = values(&|piece| Some(piece.load.cpu.as_secs_f64() / seconds(piece)));
    let server_memory = amounts(&|piece| Some(as_f64(piece.load.memory)));
    let count = |value: f64| format::number(value);
    let time = |value: f64| format::duration(Duration::try_from_secs_f64(value).unwrap_or_default());
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an amount of memory")]
    let space = |value: f64| format::space(value as u64);
    let one = |title, values, words: &dyn Fn(f64) -> String| chart(title, vec![("", values)], name, words);
    // Of one caller, the server's own use is not known: it serves all of them.
    let both = |title, programs, server, words: &dyn Fn(f64) -> String| match with_server {
        true => chart(title, vec![("programs", programs), ("server", server)], name, words),
        false => chart(title, vec![("", programs)], name, words),
    };
    let links = html! {
        p class="spans" {
            @for (other, link, words) in
                [(TimeSpan::Hour, "/ui", "Last hour"), (TimeSpan::Day, "/ui?span=day", "Last day")]
            {
                a href=(link) aria-current=[(other == span).then_some("true")] { (words) }
            }
        }
    };
    let content = html! {
        (links)
        div class="charts" {
            (one("Calls per second", per_second, &count))
            (one("Errors per minute", per_minute(|piece| piece.counts.failed), &count))
            (one("Refusals per minute", per_minute(|piece| piece.counts.refused), &count))
            (chart("Latency", vec![("median", latency(0.5)), ("95 %", latency(0.95))], name, &time))
            (one("Running programs", programs, &count))
            (both("Processors busy", cpu, server_cpu, &count))
            (both("Memory", memory, server_memory, &space))
        }
    };
    section("charts", "Activity", &content)
}

/// Returns the pieces of time that have a rate: all, without the one that is now while it is too young.
fn rated_pieces(pieces: &[TimeBucketView], span: TimeSpan) -> &[TimeBucketView] {
    match pieces {
        // The first piece after the start of the server is better than none.
        [finished @ .., before, now]
            if now.elapsed < span.piece() / MIN_SHARE && !before.elapsed.is_zero() =>
        {
            pieces.get(..=finished.len()).unwrap_or(pieces)
        }
        pieces => pieces,
    }
}

fn chart(
    title: &str,
    lines: Vec<(&str, Vec<Option<f64>>)>,
    span: &'static str,
    words: &dyn Fn(f64) -> String,
) -> Markup {
    // The last line is the one that matters: the 95th percentile of latencies, and the whole where there is one.
    let figures = lines.iter().map(|(_, values)| values);
    let now: Vec<String> = figures
        .clone()
        .map(|values| values.last().copied().flatten().map_or("–".to_owned(), words))
        .collect();
    let peak = figures.flatten().flatten().copied().fold(0.0, f64::max);
    let lines = lines.into_iter().map(|(name, values)| ChartLine { name, values }).collect();
    TimeChart { title, now: now.join(" / "), peak: words(peak), lines, span }.render()
}

fn span_name(span: TimeSpan) -> &'static str {
    match span {
        TimeSpan::Hour => "hour",
        TimeSpan::Day => "day",
    }
}

/// Renders the activity of callers, or with tools.
fn named_table(
    id: &str,
    title: &str,
    column: &str,
    filter: &str,
    named: &[NamedActivity],
    span: TimeSpan,
    has_audit: bool,
) -> Markup {
    let rows: Vec<_> = named
        .iter()
        .take(MAX_ROWS)
        .map(|NamedActivity { name, total, processors, memory }| {
            let time = |time: Option<Duration>| time.map_or("–".to_owned(), format::duration);
            let refused = if total.refused > 0 { "some" } else { "" };
            let failed = if total.failed > 0 { "bad" } else { "" };
            let peak = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
            let busy = format!("{} at most", format::processors(peak(processors)));
            let held = format!("{} at most", format::space(total.memory));
            let label =
                |what: &str, most: &str| format!("{what} of {name}, last {}: {most}", span_name(span));
            vec![
                cell(html! {
                    @if name.starts_with('(') { (name) }
                    @else { a href={ "/ui/calls?" (filter) "=" (percent_encoded(name)) } { (name) } }
                })
                .class("name"),
                cell(total.ran()).class("number"),
                cell(html! { span class=(failed) { (total.failed) } }).class("number"),
                cell(html! {
                    @if total.refused > 0 { a class=(refused) href=(refused_link(has_audit, filter, name, span)) { (total.refused) } }
                    @else { (total.refused) }
                })
                .class("number"),
                cell(time(total.latency.quantile(0.5))).class("number"),
                cell(time(total.latency.quantile(0.95))).class("number"),
                cell(time(Some(total.slowest).filter(|slowest| !slowest.is_zero()))).class("number"),
                cell(html! {
                    @if total.cpu.is_zero() { span class="faint" { "–" } }
                    @else {
                        (sparkline(&label("Processors", &busy), processors))
                        span class="faint small" { (format::duration(total.cpu)) " of CPU time" }
                    }
                })
                .class("chart-cell"),
                cell(html! {
                    @if total.memory == 0 { span class="faint" { "–" } }
                    @else {
                        (sparkline(&label("Memory", &held), memory))
                        span class="faint small" { (held) }
                    }
                })
                .class("chart-cell"),
            ]
        })
        .collect();
    let columns = [
        column,
        "Calls",
        "Errors",
        "Refused",
        "Median",
        "95 %",
        "Slowest",
        "Processors of its programs",
        "Memory of its programs",
    ];
    let content = html! {
        (compact_table(id, &columns, &rows))
        @if named.len() > MAX_ROWS { p class="faint" { "And " (named.len() - MAX_ROWS) " more." } }
    };
    section(id, title, &content)
}

/// Returns the link to the refusals of a caller, or of calls of a tool: in the history, or among the latest calls where there is
/// no audit.
fn refused_link(has_audit: bool, filter: &str, name: &str, span: TimeSpan) -> String {
    let name = if name == STRANGERS { format!("{STRANGER}*") } else { name.to_owned() };
    let name = percent_encoded(&name);
    match has_audit {
        true => format!("/ui/history?outcome=not-run&when={}&{filter}={name}", span_name(span)),
        false => format!("/ui/calls?outcome=not-run&{filter}={name}"),
    }
}

/// Encodes a name for a query.
pub(super) fn percent_encoded(text: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    text.as_bytes()
        .iter()
        .map(|byte| if is_plain(byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_refusal_in_the_first_seconds_of_a_piece_is_no_rate() {
        let piece =
            |seconds| TimeBucketView { elapsed: Duration::from_secs(seconds), ..TimeBucketView::default() };
        let shown = |last: u64, before: u64| {
            rated_pieces(&[piece(0), piece(before), piece(last)], TimeSpan::Hour).len()
        };
        assert_eq!((shown(5, 30), shown(9, 30), shown(10, 30), shown(29, 30)), (2, 2, 3, 3));
        assert_eq!(shown(5, 0), 3, "the server has just started");
        assert_eq!(rated_pieces(&[piece(5)], TimeSpan::Hour).len(), 1);
    }

    #[test]
    fn refusals_lead_to_those_of_their_caller_in_the_history() {
        assert_eq!(
            refused_link(true, "caller", "ada", TimeSpan::Day),
            "/ui/history?outcome=not-run&when=day&caller=ada"
        );
        assert!(
            refused_link(true, "caller", STRANGERS, TimeSpan::Hour)
                .ends_with("when=hour&caller=stranger%3A%2A")
        );
        assert_eq!(
            refused_link(false, "tool", "build", TimeSpan::Day),
            "/ui/calls?outcome=not-run&tool=build"
        );
    }

    #[test]
    fn a_name_is_one_field_of_a_query_whatever_it_has() {
        assert_eq!(percent_encoded("jwt:ada&x=1 ä"), "jwt%3Aada%26x%3D1%20%C3%A4");
    }
}
