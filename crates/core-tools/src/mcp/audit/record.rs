//! The record of one call.

use crate::time::rfc3339;
use approvals::{ApprovalAnswer, ApprovalVerdict};
use audit_log::{AuditApproval, AuditEntry, AuditEvent, CallDecision, CallTargets, Outcome};
use role_policy::Caller;
use std::time::{Duration, SystemTime};

/// The facts about a call that are known when it ends.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallRecord<'a> {
    /// The caller.
    pub caller: &'a Caller,
    /// The tool, as it was asked for.
    pub tool: &'a str,
    /// The decision that was made before it ran.
    pub decision: CallDecision,
    /// The rule that decided; empty where none did.
    pub rule: &'a str,
    /// Its end.
    pub outcome: Outcome,
    /// From its arrival to its end.
    pub duration: Duration,
    /// The names and sizes of its arguments, never their values.
    pub arguments: &'a str,
    /// The things that it reaches, where they are recorded.
    pub targets: Option<&'a CallTargets>,
    /// Its whole arguments, masked and bounded, where they are recorded.
    pub full_arguments: Option<&'a str>,
    /// Bytes of its arguments.
    pub bytes_in: usize,
    /// Bytes of its answer.
    pub bytes_out: usize,
    /// The connections that were refused to its programs, each as a sentence.
    pub refused_connections: &'a [String],
    /// The first line of its error, masked and cut, for observers: the audit does not record it. Empty where there is none, and
    /// where targets are not recorded.
    pub error: &'a str,
    /// True if its tool runs programs, so that their confinement is recorded too.
    pub runs_programs: bool,
    /// The answer of the person who was asked, if one was.
    pub approval: Option<&'a ApprovalAnswer>,
}

impl<'a> CallRecord<'a> {
    /// Creates the record of a call that took no time, had no arguments, and was not answered.
    pub const fn new(caller: &'a Caller, tool: &'a str, decision: CallDecision, outcome: Outcome) -> Self {
        let (rule, arguments) = ("", "");
        Self {
            caller,
            tool,
            decision,
            rule,
            outcome,
            duration: Duration::ZERO,
            arguments,
            targets: None,
            full_arguments: None,
            bytes_in: 0,
            bytes_out: 0,
            refused_connections: &[],
            error: "",
            runs_programs: false,
            approval: None,
        }
    }

    /// Sets the rule that decided.
    #[must_use]
    pub const fn rule(mut self, rule: &'a str) -> Self {
        self.rule = rule;
        self
    }

    /// Sets the time from its arrival to its end.
    #[must_use]
    pub const fn duration(mut self, duration: Duration) -> Self {
        self.duration = duration;
        self
    }

    /// Sets the names and sizes of its arguments, and their size in bytes.
    #[must_use]
    pub const fn arguments(mut self, arguments: &'a str, bytes: usize) -> Self {
        self.arguments = arguments;
        self.bytes_in = bytes;
        self
    }

    /// Sets the things that it reaches, and its whole arguments, as far as they are recorded.
    #[must_use]
    pub const fn detail(mut self, targets: Option<&'a CallTargets>, full_arguments: Option<&'a str>) -> Self {
        self.targets = targets;
        self.full_arguments = full_arguments;
        self
    }

    /// Sets the connections that were refused to its programs.
    #[must_use]
    pub const fn refused_connections(mut self, refused: &'a [String]) -> Self {
        self.refused_connections = refused;
        self
    }

    /// Sets the first line of its error.
    #[must_use]
    pub const fn error(mut self, error: &'a str) -> Self {
        self.error = error;
        self
    }

    /// Sets whether its tool runs programs.
    #[must_use]
    pub const fn runs_programs(mut self, runs_programs: bool) -> Self {
        self.runs_programs = runs_programs;
        self
    }

    /// Sets the answer of the person who was asked.
    #[must_use]
    pub const fn approval(mut self, approval: Option<&'a ApprovalAnswer>) -> Self {
        self.approval = approval;
        self
    }

    /// Sets the size of its answer in bytes.
    #[must_use]
    pub const fn bytes_out(mut self, bytes: usize) -> Self {
        self.bytes_out = bytes;
        self
    }

    /// Returns the entry of the audit about this call, which ends now.
    pub fn to_entry(&self) -> AuditEntry {
        let mut entry = self.start_entry();
        entry.event = AuditEvent::Call;
        entry.decision = Some(self.decision);
        self.rule.clone_into(&mut entry.rule);
        entry.outcome = Some(self.outcome);
        entry.approval = self.approval.map(|answer| AuditApproval {
            answer: answer.verdict.as_str().to_owned(),
            by: answer.approver.clone(),
            at: rfc3339(answer.at),
            reason: match &answer.verdict {
                ApprovalVerdict::Deny(reason) => reason.clone(),
                _ => None,
            },
        });
        entry.duration_us = Some(u64::try_from(self.duration.as_micros()).unwrap_or(u64::MAX));
        entry.bytes_out = Some(self.bytes_out as u64);
        entry.refused_connections = self.refused_connections.to_vec();
        entry
    }

    /// Returns the entry about this call before it runs: the caller, the tool and the arguments.
    pub(super) fn start_entry(&self) -> AuditEntry {
        let mut entry = AuditEntry::new(AuditEvent::Start, SystemTime::now());
        entry.principal = self.caller.principal().map(str::to_owned);
        entry.session = self.caller.session().map(str::to_owned);
        entry.role = self.caller.role();
        // The caller chose the name. Direction marks and control characters would mislead a reader.
        entry.tool = self.tool.chars().take(64).flat_map(char::escape_debug).collect();
        self.arguments.clone_into(&mut entry.arguments);
        entry.targets = self.targets.cloned();
        entry.full_arguments = self.full_arguments.map(str::to_owned);
        entry.bytes_in = self.bytes_in as u64;
        entry
    }
}
