//! The way in which a proxy asks an operator about calls that its policy allows only with an approval.

use approvals::ApprovalQueue;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The queue in which calls wait for an operator. Cheap to clone.
#[derive(Clone)]
pub struct ProxyApprovals {
    pub(crate) queue: ApprovalQueue,
    pub(crate) timeout: Duration,
    pub(crate) redact: Arc<dyn Fn(&str) -> String + Send + Sync>,
}

impl ProxyApprovals {
    /// Lets calls wait in `queue` for `timeout`. `redact` masks secrets in what the operator is shown.
    pub fn new(
        queue: ApprovalQueue,
        timeout: Duration,
        redact: impl Fn(&str) -> String + Send + Sync + 'static,
    ) -> Self {
        Self { queue, timeout, redact: Arc::new(redact) }
    }
}

impl fmt::Debug for ProxyApprovals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyApprovals").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}
