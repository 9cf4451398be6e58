//! The approval of calls by a person: who is asked, and for how long.

mod client;
mod client_answer;
mod elicitation;

pub(crate) use client::ClientApprover;
pub(super) use client_answer::ClientAnswer;
pub(super) use elicitation::supports_forms;

use approvals::ApprovalQueue;
use std::time::Duration;

/// The persons who may approve a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approvers {
    /// The client's user, by elicitation. If the client has none, the operator.
    #[default]
    ClientFirst,
    /// The client's user alone.
    Client,
    /// The operator alone, on the page or in a terminal.
    Operator,
}

/// The access that an operator has to the queue of questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OperatorAccess {
    /// Nobody reads the queue.
    #[default]
    None,
    /// An operator reads the queue and answers, on the page of the server or in a terminal.
    Queue,
}

/// The way in which a host asks a person about calls that its policy allows only with an approval.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ApprovalOptions {
    /// The questions that wait for an operator.
    pub queue: ApprovalQueue,
    /// The access of an operator to the queue. None by default.
    pub operator: OperatorAccess,
    /// The persons who may answer.
    pub approvers: Approvers,
    /// The time that a call waits for an answer. Five minutes by default.
    pub timeout: Duration,
}

impl Default for ApprovalOptions {
    fn default() -> Self {
        Self {
            queue: ApprovalQueue::default(),
            operator: OperatorAccess::None,
            approvers: Approvers::ClientFirst,
            // A person needs time to notice the question and to read it. The call holds no permit while it waits.
            timeout: Duration::from_secs(300),
        }
    }
}

impl ApprovalOptions {
    /// Returns true if the client may be asked.
    pub fn asks_client(&self) -> bool {
        self.approvers != Approvers::Operator
    }

    /// Returns true if an operator may be asked, and reads the queue.
    pub fn asks_operator(&self) -> bool {
        self.approvers != Approvers::Client && self.operator == OperatorAccess::Queue
    }
}
