//! One line of the audit.

use super::record::{CallDecision, CallRecord, Outcome};
use crate::time::rfc3339;
use approvals::{ApprovalAnswer, ApprovalVerdict};
use role_policy::Caller;
use serde::Serialize;
use std::time::SystemTime;

/// One line, as it is written. A field that does not apply to the event is left out.
#[derive(Serialize)]
pub(super) struct AuditLine<'a> {
    time: String,
    event: AuditEvent,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    role: String,
    tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<CallDecision>,
    #[serde(skip_serializing_if = "str::is_empty")]
    rule: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    /// The answer of the person who was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<AuditApproval<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_us: Option<u64>,
    arguments: &'a str,
    bytes_in: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_out: Option<usize>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    refused_connections: &'a [String],
    /// The level at which the programs of the call are confined.
    #[serde(skip_serializing_if = "Option::is_none")]
    confinement: Option<&'a str>,
    /// The lines before this one that could not be written.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) lost_before: u64,
}

/// The answer of a person, with its time.
#[derive(Serialize)]
struct AuditApproval<'a> {
    answer: &'static str,
    by: &'a str,
    at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl<'a> AuditApproval<'a> {
    fn of(answer: &'a ApprovalAnswer) -> Self {
        let reason = match &answer.verdict {
            ApprovalVerdict::Deny(reason) => reason.as_deref(),
            _ => None,
        };
        Self { answer: answer.verdict.as_str(), by: &answer.approver, at: rfc3339(answer.at), reason }
    }
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum AuditEvent {
    /// A call is about to run.
    Start,
    /// A call has ended, or was not run.
    Call,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl<'a> AuditLine<'a> {
    /// The line before a call runs.
    pub(super) fn start(caller: &'a Caller, tool: &str, arguments: &'a str, bytes_in: usize) -> Self {
        Self {
            time: rfc3339(SystemTime::now()),
            event: AuditEvent::Start,
            principal: caller.principal(),
            session: caller.session(),
            role: caller.role(),
            // The caller chose the name. Direction marks and control characters would mislead a reader.
            tool: tool.chars().take(64).flat_map(char::escape_debug).collect(),
            decision: None,
            rule: "",
            outcome: None,
            approval: None,
            duration_us: None,
            arguments,
            bytes_in,
            bytes_out: None,
            refused_connections: &[],
            confinement: None,
            lost_before: 0,
        }
    }

    /// The line after a call. `confinement` is the level at which programs are confined.
    pub(super) fn end(record: &CallRecord<'a>, confinement: Option<&'a str>) -> Self {
        Self {
            event: AuditEvent::Call,
            decision: Some(record.decision),
            rule: record.rule,
            outcome: Some(record.outcome),
            approval: record.approval.map(AuditApproval::of),
            duration_us: Some(u64::try_from(record.duration.as_micros()).unwrap_or(u64::MAX)),
            bytes_out: Some(record.bytes_out),
            refused_connections: record.refused_connections,
            confinement: confinement.filter(|_| record.runs_programs && record.outcome != Outcome::NotRun),
            ..Self::start(record.caller, record.tool, record.arguments, record.bytes_in)
        }
    }
}
