//! The page of the history: who did what, from the audit.

use super::super::html_response;
use super::super::viewer::PageViewer;
use super::format;
use super::layout::{NavigationPage, cell, page, path_text, section, table};
use super::query::{PageQuery, name_glob};
use crate::app_state::App;
use crate::audit_source::{AuditSource, AuditSourceError, FoundEntries};
use crate::call_words::{describe_arguments, describe_targets, explain_refusal, outcome_word};
use audit_log::{AuditEntry, AuditQuery, OutcomeFilter, PatternError, timestamp};
use axum::extract::State;
use axum::response::Response;
use core_tools::mcp::{CallDecision, Outcome};
use error_causes::chain;
use http::{StatusCode, Uri};
use maud::{Markup, html};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};
use tokio::sync::Semaphore;

/// The entries that are shown.
const MAX_ENTRIES: usize = 100;
/// The searches at once: each reads the whole audit.
static SEARCHES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(1)));
/// The time that a search waits for the one before it.
const SEARCH_WAIT: Duration = Duration::from_secs(20);

/// The spans of time in the form.
const SPANS: [(&str, &str); 8] = [
    ("day", "last 24 hours"),
    ("quarter", "last 15 minutes"),
    ("hour", "last hour"),
    ("today", "today (UTC)"),
    ("yesterday", "yesterday (UTC)"),
    ("week", "last 7 days"),
    ("month", "last 30 days"),
    ("all", "any time"),
];

/// The outcomes in the form.
const OUTCOMES: [(&str, &str); 4] = [("", "any"), ("ok", "ok"), ("failed", "failed"), ("not-run", "not run")];

/// Answers with the page.
pub(in super::super) async fn show(State(app): State<App>, viewer: PageViewer, uri: Uri) -> Response {
    if !viewer.sees_all {
        return html_response::nothing_here();
    }
    let query = PageQuery::of(&uri);
    let found = match &app.audit_source {
        None => html! { p class="faint" {
            "Nothing is recorded: set " code { "policy.audit" } " or " code { "http.audit_database" } " in the configuration."
        } },
        Some(source) => match search(source, &query).await {
            Ok(found) => entries(&found, &query),
            Err(error) => html! { p class="bad" role="alert" { (chain(&error)) } },
        },
    };
    let content = html! {
        p class="bar" { "Who did what, as the audit has it. Others cannot change it here." }
        (form(&query))
        (section("found", "Found", &found))
    };
    html_response::html(StatusCode::OK, page(NavigationPage::History, &viewer, &content))
}

/// Renders the form of a search.
fn form(query: &PageQuery) -> Markup {
    let field = |id: &'static str, label: &'static str, hint: &'static str| {
        html! {
            div {
                label for=(id) { (label) }
                input id=(id) name=(id) value=(query.get(id)) maxlength="300" autocomplete="off" placeholder=(hint);
            }
        }
    };
    let choice = |id: &'static str, label: &'static str, choices: &[(&'static str, &'static str)]| {
        html! {
            div {
                label for=(id) { (label) }
                select id=(id) name=(id) {
                    @for (value, words) in choices {
                        option value=(value) selected[*value == query.get(id)] { (words) }
                    }
                }
            }
        }
    };
    html! {
        form class="filter" method="get" action="/ui/history" role="search" aria-label="Search in the history" {
            (field("about", "File or command", "notes.txt, src/**"))
            (choice("when", "When", &SPANS))
            (field("caller", "Caller", "ada, jwt:*"))
            (field("tool", "Tool", "delete_*"))
            (choice("outcome", "Outcome", &OUTCOMES))
            button { "Search" }
        }
    }
}

/// The reason that a search of the audit has no answer, as the page shows it.
#[derive(Debug, thiserror::Error)]
enum SearchError {
    /// A field of the form holds no pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The search before this one took too long.
    #[error("other searches take long; try again")]
    Busy,
    /// The audit was not read.
    #[error("the audit cannot be read")]
    Read(#[source] AuditSourceError),
    /// The task of the search panicked.
    #[error("the search ended early, by a defect of this server; its log has the details")]
    Panicked,
}

/// Searches the audit.
async fn search(source: &AuditSource, query: &PageQuery) -> Result<FoundEntries, SearchError> {
    let audit_query = audit_query(query, SystemTime::now())?;
    let Ok(Ok(permit)) = tokio::time::timeout(SEARCH_WAIT, Arc::clone(&SEARCHES).acquire_owned()).await
    else {
        return Err(SearchError::Busy);
    };
    let source = source.clone();
    // Reading the audit blocks for as long as its files are large. The search holds the permit itself: it goes on after its
    // reader has left.
    let found = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        source.find(&audit_query, MAX_ENTRIES)
    })
    .await;
    match found {
        Ok(found) => found.map_err(SearchError::Read),
        Err(_) => Err(SearchError::Panicked),
    }
}

/// Returns the query of the audit that the form asks for.
fn audit_query(query: &PageQuery, now: SystemTime) -> Result<AuditQuery, PatternError> {
    let mut audit = AuditQuery::default();
    if !query.get("about").is_empty() {
        audit = audit.mentioning(query.get("about"))?;
    }
    if !query.get("caller").is_empty() {
        audit = audit.caller(&name_glob(query.get("caller")))?;
    }
    if !query.get("tool").is_empty() {
        audit = audit.tool(&name_glob(query.get("tool")))?;
    }
    let outcome = match query.get("outcome") {
        "ok" => Some(Outcome::Ok),
        "failed" => Some(Outcome::Failed),
        "not-run" => Some(Outcome::NotRun),
        _ => None,
    };
    if let Some(outcome) = outcome {
        audit = audit.outcome(OutcomeFilter::Outcome(outcome));
    }
    let (since, until) = span(query.get("when"), now);
    if let Some(since) = since {
        audit = audit.since(timestamp(since));
    }
    if let Some(until) = until {
        audit = audit.until(timestamp(until));
    }
    Ok(audit)
}

/// Returns the begin and the end of a span of time. Without one it is the last 24 hours.
fn span(name: &str, now: SystemTime) -> (Option<SystemTime>, Option<SystemTime>) {
    let (quarter, hour, day) =
        (Duration::from_secs(900), Duration::from_secs(3600), Duration::from_secs(86_400));
    let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let today = SystemTime::UNIX_EPOCH + Duration::from_secs(since_epoch - since_epoch % 86_400);
    match name {
        "quarter" => (now.checked_sub(quarter), None),
        "hour" => (now.checked_sub(hour), None),
        "today" => (Some(today), None),
        "yesterday" => (today.checked_sub(day), Some(today)),
        "week" => (now.checked_sub(7 * day), None),
        "month" => (now.checked_sub(30 * day), None),
        "all" => (None, None),
        _ => (now.checked_sub(day), None),
    }
}

fn entries(found: &FoundEntries, query: &PageQuery) -> Markup {
    let rows: Vec<_> = found
        .entries
        .iter()
        .rev()
        .map(|entry| {
            let not_run = entry.outcome == Some(Outcome::NotRun);
            let class = match entry.outcome {
                Some(Outcome::Ok) => "good",
                Some(Outcome::Failed) => "bad",
                _ => "some",
            };
            let took = entry.duration_us.filter(|_| !not_run).map(Duration::from_micros);
            vec![
                cell(shown_time(&entry.time)).class("time"),
                cell(html! {
                    strong { (entry.principal.as_deref().unwrap_or("–")) }
                    @if !matches!(&*entry.role, "" | "none") { " " span class="faint" { "role " (entry.role) } }
                }),
                cell(html! { @if !entry.tool.is_empty() { code { (entry.tool) } } }).class("name"),
                cell(what(entry)).class("what"),
                cell(html! { span class=(class) { (entry.outcome.map_or("", outcome_word)) } }),
                cell(took.map_or_else(String::new, format::duration)).class("time"),
            ]
        })
        .collect();
    html! {
        (table("found", &["When (UTC)", "Who", "Tool", "What", "Outcome", "Took"], &rows))
        @if rows.is_empty() && ["about", "caller", "tool"].iter().any(|field| !query.get(field).is_empty()) {
            p class="faint" {
                "Caller and tool take a part of a name, in capitals or not. A " code { "*" } " stands for any text: "
                code { "jwt:*" } ", " code { "delete_*" } ", " code { "src/**" } "."
            }
        }
        @if let Some(begin) = &found.begins {
            p class="faint" { "The audit begins at " (shown_time(begin)) " UTC." }
        }
        @if found.has_more {
            p class="faint" { "These are the newest " (MAX_ENTRIES) ". Narrow the search to see others." }
        }
        @if found.damaged > 0 {
            p class="bad" { (found.damaged) " lines of the audit are no entries: " code { "audit verify" } " says which." }
        }
    }
}

/// Writes the time of an entry to the second.
fn shown_time(time: &str) -> String {
    time.get(..19).unwrap_or(time).replace('T', " ")
}

/// Says what was done, and why not if it was not.
fn what(entry: &AuditEntry) -> Markup {
    let targets = entry.targets.as_ref().filter(|targets| !targets.is_empty());
    let detail = match targets {
        Some(targets) => describe_targets(&entry.tool, targets),
        None => describe_arguments(&entry.arguments),
    };
    let decision = entry.decision.filter(|decision| *decision != CallDecision::Allowed);
    // An action on the page or in the token file is no call; its record says what it was.
    let action = ["page: ", "file: "].into_iter().find_map(|start| entry.rule.strip_prefix(start));
    html! {
        @if !detail.is_empty() { (path_text(&detail)) }
        @if let Some(action) = action { (action) }
        @if let Some(decision) = decision {
            " " span class="some" { (explain_refusal(decision, &entry.role, &entry.rule)) }
        }
        @if let Some(approval) = &entry.approval {
            " " span class="faint" { (approval.answer) " by " (approval.by) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yesterday_is_the_day_before_in_utc() {
        let at = |text: &str| audit_log::instant(text).unwrap();
        let now = at("2026-11-27T16:30:00.000Z");
        let (since, until) = span("yesterday", now);
        assert_eq!(
            (since, until),
            (Some(at("2026-11-26T00:00:00.000Z")), Some(at("2026-11-27T00:00:00.000Z")))
        );
        assert_eq!(span("", now).0, Some(at("2026-11-26T16:30:00.000Z")));
        assert_eq!(span("quarter", now).0, Some(at("2026-11-27T16:15:00.000Z")));
        assert_eq!(span("hour", now).0, Some(at("2026-11-27T15:30:00.000Z")));
        assert_eq!(span("all", now), (None, None));
    }
}
