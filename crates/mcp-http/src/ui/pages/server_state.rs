//! The state of the server in one line: its version, its age, and whether its audit is written.

use super::format;
use crate::app_state::App;
use core_tools::mcp::AuditFileHealth;
use maud::{Markup, html};
use std::time::{Duration, SystemTime};

/// Renders the line.
pub(super) fn line(app: App) -> Markup {
    let file =
        app.workspaces.full_host().audit().map(|audit| describe_file(audit.health(), SystemTime::now()));
    let database = app.audit_store.as_ref().map(|store| {
        let (written, lost) = store.counts();
        (format!("in the database, {written} records written, {lost} lost"), lost == 0)
    });
    let parts: Vec<(String, bool)> = file.into_iter().chain(database).collect();
    html! {
        p id="server" class="faint" data-live {
            "Version " (app.version) ", up for " (format::duration(whole_seconds(app.activity.age()))) ". Audit: "
            @if parts.is_empty() { span class="some" { "none is written" } }
            @for (index, (words, is_well)) in parts.iter().enumerate() {
                @if index > 0 { "; " }
                span class=[(!is_well).then_some("bad")] { (words) }
            }
            "."
        }
    }
}

/// Describes the file of the audit, and says whether it is well.
fn describe_file(health: AuditFileHealth, now: SystemTime) -> (String, bool) {
    let written = match health.last_written.and_then(|at| now.duration_since(at).ok()) {
        Some(ago) if ago < Duration::from_secs(2) => "last written now".to_owned(),
        Some(ago) => format!("last written {} ago", format::duration(whole_seconds(ago))),
        None => "nothing written since the start".to_owned(),
    };
    match health.lost_lines {
        0 => (format!("in the file, {written}, no errors"), true),
        lost => (format!("in the file, {written}, {lost} lines since then could not be written"), false),
    }
}

fn whole_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audit_that_cannot_be_written_is_told_from_one_that_waits_for_calls() {
        let now = SystemTime::now();
        let mut health = AuditFileHealth::default();
        assert_eq!(
            describe_file(health, now),
            ("in the file, nothing written since the start, no errors".to_owned(), true)
        );
        health.last_written = now.checked_sub(Duration::from_secs(90));
        health.lost_lines = 3;
        let words = "in the file, last written 1 min 30 s ago, 3 lines since then could not be written";
        assert_eq!(describe_file(health, now), (words.to_owned(), false));
    }
}
