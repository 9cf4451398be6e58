//! The forms in which entries are printed.

use super::error::AuditCommandError;
use crate::cli::AuditFormat;
use audit_log::{AuditEntry, CallDecision, Outcome};
use std::collections::VecDeque;

/// The columns of the table and of CSV.
const COLUMNS: [&str; 7] = ["time", "caller", "role", "tool", "outcome", "duration", "what"];

/// Writes `entries` in a form.
pub(super) fn write_entries(
    entries: &VecDeque<AuditEntry>,
    format: AuditFormat,
) -> Result<String, AuditCommandError> {
    let mut text = String::new();
    match format {
        AuditFormat::Json => {
            for entry in entries {
                text.push_str(&serde_json::to_string(entry)?);
                text.push('\n');
            }
        }
        AuditFormat::Csv => {
            let header = COLUMNS.map(str::to_owned);
            for row in std::iter::once(header).chain(entries.iter().map(row)) {
                text.push_str(&row.map(|field| csv_field(&field)).join(","));
                // RFC 4180 ends lines so.
                text.push_str("\r\n");
            }
        }
        AuditFormat::Table => text = table(entries),
    }
    Ok(text)
}

/// Returns the columns of an entry.
fn row(entry: &AuditEntry) -> [String; 7] {
    let outcome = match (entry.outcome, entry.decision) {
        (Some(Outcome::NotRun), Some(decision)) => decision.as_str(),
        (Some(outcome), _) => outcome.as_str(),
        (None, _) => "",
    };
    let duration = entry
        .duration_us
        .map(|microseconds| format!("{}.{:03} s", microseconds / 1_000_000, microseconds / 1000 % 1000));
    // A refusal is understood by its rule.
    let mut what = entry.detail();
    if entry.decision.is_some_and(|decision| decision != CallDecision::Allowed) && !entry.rule.is_empty() {
        let separator = if what.is_empty() { "" } else { "; " };
        what = format!("{what}{separator}{}", entry.rule);
    }
    [
        entry.time.clone(),
        entry.principal.clone().unwrap_or_default(),
        entry.role.clone(),
        entry.tool.clone(),
        outcome.to_owned(),
        duration.unwrap_or_default(),
        what,
    ]
}

fn table(entries: &VecDeque<AuditEntry>) -> String {
    let header = COLUMNS.map(str::to_uppercase);
    let rows: Vec<[String; 7]> = std::iter::once(header)
        .chain(entries.iter().map(|entry| row(entry).map(|field| plain(&field))))
        .collect();
    let mut widths = [0; 7];
    for row in &rows {
        for (width, field) in widths.iter_mut().zip(row) {
            *width = field.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in &rows {
        let fields: Vec<String> =
            row.iter().zip(widths).map(|(field, width)| format!("{field:width$}")).collect();
        text.push_str(fields.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Escapes what a terminal would act on, or a person would read otherwise: the text is of callers.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for c in text.chars() {
        match c.escape_debug().next() {
            // Quotes and backslashes are escaped in Rust alone.
            Some('\\') if !matches!(c, '"' | '\'' | '\\') => plain.extend(c.escape_debug()),
            _ => plain.push(c),
        }
    }
    plain
}

/// Returns a field of CSV. A spreadsheet would compute one that begins as a formula does, so that it gets an apostrophe.
fn csv_field(text: &str) -> String {
    let text = match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => format!("'{text}"),
        false => text.to_owned(),
    };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use audit_log::{AuditEvent, CallTargets};
    use std::time::{Duration, SystemTime};

    #[test]
    fn entries_are_printed_as_a_table_as_json_and_as_csv() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_763_764_620);
        let mut ran = AuditEntry::new(AuditEvent::Call, time);
        ran.principal = Some("ada".to_owned());
        (ran.role, ran.tool) = ("dev".to_owned(), "run_command".to_owned());
        (ran.decision, ran.outcome, ran.duration_us) =
            (Some(CallDecision::Allowed), Some(Outcome::Ok), Some(1_234_567));
        let command = Some("echo \"a\",\u{1b}[31m\u{202e}b".to_owned());
        ran.targets = Some(CallTargets { command, ..CallTargets::default() });
        let mut refused = AuditEntry::new(AuditEvent::Call, time);
        refused.principal = Some("=stranger".to_owned());
        (refused.decision, refused.outcome) = (Some(CallDecision::Refused), Some(Outcome::NotRun));
        refused.rule = "http: no_token".to_owned();
        let entries = VecDeque::from([ran, refused]);
        insta::assert_snapshot!(write_entries(&entries, AuditFormat::Table).unwrap(), @r#"
        TIME                      CALLER     ROLE  TOOL         OUTCOME  DURATION  WHAT
        2025-11-21T22:37:00.000Z  ada        dev   run_command  ok       1.234 s   echo "a",\u{1b}[31m\u{202e}b
        2025-11-21T22:37:00.000Z  =stranger                     refused            http: no_token
        "#);
        let csv = write_entries(&entries, AuditFormat::Csv).unwrap();
        assert!(csv.contains("ok,1.234 s,\"echo \"\"a\"\","), "{csv}");
        assert!(csv.ends_with("2025-11-21T22:37:00.000Z,'=stranger,,,refused,,http: no_token\r\n"), "{csv}");
        let json = write_entries(&entries, AuditFormat::Json).unwrap();
        let read: VecDeque<AuditEntry> =
            json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read, entries);
    }
}
