//! A row of the audit's table.

use core_tools::mcp::{CallRecord, Outcome};
use std::time::SystemTime;

/// A record as it is written.
#[derive(Debug)]
pub(super) struct AuditRow {
    pub(super) number: i64,
    /// The time at which the call ended, in seconds since 1970.
    pub(super) at: f64,
    pub(super) principal: Option<String>,
    pub(super) session: Option<String>,
    pub(super) role: String,
    pub(super) tool: String,
    pub(super) decision: &'static str,
    pub(super) rule: String,
    pub(super) outcome: &'static str,
    pub(super) duration_us: i64,
    pub(super) arguments: String,
    pub(super) bytes_in: i64,
    pub(super) bytes_out: i64,
    pub(super) lost_before: i64,
}

impl AuditRow {
    /// Makes the row of a record, the `number`th of this process, before which `lost_before` were lost.
    pub(super) fn new(record: &CallRecord<'_>, number: u64, lost_before: u64) -> Self {
        Self {
            number: i64::try_from(number).unwrap_or(i64::MAX),
            at: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
            principal: record.caller.principal().map(without_nul),
            session: record.caller.session().map(without_nul),
            role: without_nul(&record.caller.role()),
            // A client chose the name. Direction marks and control characters would mislead a reader of the table.
            tool: record.tool.chars().take(64).flat_map(char::escape_debug).collect(),
            decision: record.decision.as_str(),
            rule: without_nul(&rule(record)),
            outcome: match record.outcome {
                Outcome::Ok => "ok",
                Outcome::Failed => "failed",
                Outcome::NotRun => "not_run",
            },
            duration_us: i64::try_from(record.duration.as_micros()).unwrap_or(i64::MAX),
            arguments: without_nul(record.arguments),
            bytes_in: i64::try_from(record.bytes_in).unwrap_or(i64::MAX),
            bytes_out: i64::try_from(record.bytes_out).unwrap_or(i64::MAX),
            lost_before: i64::try_from(lost_before).unwrap_or(i64::MAX),
        }
    }
}

/// Returns the rule that decided, with the answer of the person who was asked.
fn rule(record: &CallRecord<'_>) -> String {
    match record.approval {
        None => record.rule.to_owned(),
        Some(answer) => {
            let at = answer.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
            format!("{}; {} by {} at {at}", record.rule, answer.verdict.as_str(), answer.approver)
        }
    }
}

/// Replaces the character that PostgreSQL's text cannot hold.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
