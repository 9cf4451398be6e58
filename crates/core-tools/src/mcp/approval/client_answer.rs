//! [`ClientAnswer`]: the answer of the client's user.

use approvals::ApprovalVerdict;

/// The answer of a client to a question.
#[derive(Debug)]
pub(in crate::mcp) enum ClientAnswer {
    /// The user decided.
    Verdict(ApprovalVerdict),
    /// There is no decision, for this reason.
    None(&'static str),
}
