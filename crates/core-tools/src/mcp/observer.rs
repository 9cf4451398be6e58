//! The observer of calls, beside the audit.

use super::audit::CallRecord;
use std::fmt;
use std::sync::Arc;

/// Is notified of each call and each refusal once it has ended, for metrics and traces. An observer must neither block
/// nor panic.
#[derive(Clone)]
pub struct CallObserver(Arc<dyn Fn(&CallRecord<'_>) + Send + Sync>);

impl CallObserver {
    /// An observer that calls `on_end` with each record.
    pub fn new(on_end: impl Fn(&CallRecord<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(on_end))
    }

    /// Hands `record` to the observer.
    pub fn observe(&self, record: &CallRecord<'_>) {
        (self.0)(record);
    }
}

impl fmt::Debug for CallObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallObserver")
    }
}
