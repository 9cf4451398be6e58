//! [`RejectedCall`]: a call that does not run.

use super::record::CallVerdict;
use crate::mcp::audit::CallDecision;
use approvals::ApprovalAnswer;

/// A call that does not run: the verdict is for the audit, the message for the caller.
pub(super) struct RejectedCall {
    pub(super) verdict: CallVerdict,
    pub(super) message: String,
}

impl RejectedCall {
    pub(super) fn new(decision: CallDecision, rule: &str, message: impl Into<String>) -> Self {
        Self { verdict: CallVerdict::new(decision, rule.into()), message: message.into() }
    }

    /// Adds the answer of the person who was asked.
    pub(super) fn answered(mut self, answer: ApprovalAnswer) -> Self {
        self.verdict.approval = Some(answer);
        self
    }
}
