//! The way in which a proxy asks a person about calls that its policy allows only with an approval.

use approvals::ApprovalQueue;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The persons who are asked: the client's user, by elicitation, and an operator, who answers in a queue. Cheap to clone.
#[derive(Clone)]
pub struct ProxyApprovals {
    pub(crate) queue: ApprovalQueue,
    pub(crate) timeout: Duration,
    pub(crate) asks_client: bool,
    pub(crate) asks_operator: bool,
    pub(crate) redact: Arc<dyn Fn(&str) -> String + Send + Sync>,
}

impl ProxyApprovals {
    /// Lets calls wait in `queue` for `timeout`, for an operator. `redact` masks secrets in what a person is shown.
    pub fn new(
        queue: ApprovalQueue,
        timeout: Duration,
        redact: impl Fn(&str) -> String + Send + Sync + 'static,
    ) -> Self {
        Self { queue, timeout, asks_client: false, asks_operator: true, redact: Arc::new(redact) }
    }

    /// Sets whether the user of a client that shows forms is asked first. By default only an operator is.
    #[must_use]
    pub fn asks_client(mut self, asks_client: bool) -> Self {
        self.asks_client = asks_client;
        self
    }

    /// Sets whether an operator answers in the queue. One does by default.
    #[must_use]
    pub fn asks_operator(mut self, asks_operator: bool) -> Self {
        self.asks_operator = asks_operator;
        self
    }
}

impl fmt::Debug for ProxyApprovals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyApprovals").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}
