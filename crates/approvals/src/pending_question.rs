//! [`PendingQuestion`]: a question with its id and its times.

use crate::question::ApprovalQuestion;
use std::time::SystemTime;

/// A question that waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingQuestion {
    /// Its id: 32 hexadecimal digits, which nobody can guess.
    pub id: String,
    /// The question.
    pub question: ApprovalQuestion,
    /// The time at which it was asked.
    pub asked_at: SystemTime,
    /// The time at which its call ends without an answer.
    pub expires_at: SystemTime,
}
