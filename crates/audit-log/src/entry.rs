//! One entry of the audit.

use crate::call::{CallDecision, Outcome};
use crate::chain::ChainHash;
use crate::targets::CallTargets;
use crate::time::timestamp;
use serde::{Deserialize, Serialize};
use std::time::SystemTime;

/// One entry. A field that does not apply to the event is left out. The fields have the same order as in the hashed
/// text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditEntry {
    /// The time, as [`timestamp`] writes it.
    pub time: String,
    /// The event.
    pub event: AuditEvent,
    /// The identity of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The session of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The roles of the caller.
    #[serde(default)]
    pub role: String,
    /// The tool, as it was asked for.
    #[serde(default)]
    pub tool: String,
    /// The decision that was made before the call ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<CallDecision>,
    /// The rule that decided.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// The end of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The answer of the person who was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<AuditApproval>,
    /// Microseconds from its arrival to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<u64>,
    /// Names and sizes of the arguments.
    #[serde(default)]
    pub arguments: String,
    /// The things that the call reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<CallTargets>,
    /// The whole arguments as a text of JSON, masked and cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_arguments: Option<String>,
    /// Bytes of the arguments.
    #[serde(default)]
    pub bytes_in: u64,
    /// Bytes of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_out: Option<u64>,
    /// The connections that were refused to its programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_connections: Vec<String>,
    /// The level at which the programs of the call are confined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<String>,
    /// Entries before this one that could not be written.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_before: u64,
    /// The process that wrote it, where each has a chain of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Its number in the chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// The hash of the entry before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<ChainHash>,
}

/// The answer of a person, with its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditApproval {
    /// The verdict.
    pub answer: String,
    /// The person.
    pub by: String,
    /// The time.
    pub at: String,
    /// The reason of a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The event that an entry records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditEvent {
    /// A call is about to run.
    Start,
    /// A call has ended, or was not run.
    Call,
    /// The process that writes the chain ends: the chain has no entry after this one.
    End,
}

impl AuditEvent {
    /// The word in the audit, such as `call`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Call => "call",
            Self::End => "end",
        }
    }

    /// Returns the event that the audit writes as `word`.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Start, Self::Call, Self::End].into_iter().find(|event| event.as_str() == word)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl AuditEntry {
    /// Creates the entry of an event at `time`, in which nothing else is set.
    pub fn new(event: AuditEvent, time: SystemTime) -> Self {
        Self {
            time: timestamp(time),
            event,
            principal: None,
            session: None,
            role: String::new(),
            tool: String::new(),
            decision: None,
            rule: String::new(),
            outcome: None,
            approval: None,
            duration_us: None,
            arguments: String::new(),
            targets: None,
            full_arguments: None,
            bytes_in: 0,
            bytes_out: None,
            refused_connections: Vec::new(),
            confinement: None,
            lost_before: 0,
            server: None,
            number: None,
            previous: None,
        }
    }

    /// Returns the text that is hashed: the entry as JSON.
    pub(crate) fn body(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// Returns what the call reaches, in words; the names and sizes of its arguments where nothing else was recorded.
    pub fn detail(&self) -> String {
        let targets = self.targets.as_ref().filter(|targets| !targets.is_empty()).map(CallTargets::summary);
        targets.unwrap_or_else(|| self.arguments.clone())
    }
}
