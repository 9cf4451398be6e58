//! The question that a person is asked.

use crate::shown_text::shown_text;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// The question about one call. Whoever creates a question masks its texts and makes them visible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovalQuestion {
    /// The tool.
    pub tool: String,
    /// The role of the caller.
    pub role: String,
    /// The person or token behind the call, if there is one.
    pub principal: Option<String>,
    /// The session of the caller, if there is one.
    pub session: Option<String>,
    /// The conditions that do not hold, in words. Empty if every call of the tool is asked about.
    pub conditions: Vec<String>,
    /// The arguments, as [`shown_arguments`](crate::shown_arguments) returns them.
    pub arguments: String,
    /// The identity of the call, which the answer is bound to.
    pub fingerprint: String,
}

impl ApprovalQuestion {
    /// Creates the question about a call of `tool` in `role` without arguments.
    pub fn new(tool: impl Into<String>, role: impl Into<String>, fingerprint: impl Into<String>) -> Self {
        Self {
            tool: tool.into(),
            role: role.into(),
            principal: None,
            session: None,
            conditions: Vec::new(),
            arguments: String::new(),
            fingerprint: fingerprint.into(),
        }
    }

    /// Returns the text that a person reads. This crate writes each line, and texts of others stand only within a line.
    pub fn text(&self) -> String {
        let mut text = format!(
            "An agent in the role {} asks to call {}.\n",
            shown_text(&self.role, 120),
            shown_text(&self.tool, 128)
        );
        if let Some(principal) = &self.principal {
            let _ = writeln!(text, "Caller: {}", shown_text(principal, 120));
        }
        for condition in &self.conditions {
            let _ = writeln!(text, "Asked because: {}", shown_text(condition, 2_000));
        }
        let _ = write!(text, "Arguments (written by the agent):\n{}", self.arguments);
        let short: String = self.fingerprint.chars().take(12).collect();
        let _ = write!(text, "Call {short}. Allowing it allows this call with these arguments.");
        text
    }
}
