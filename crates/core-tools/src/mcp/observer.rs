//! The observer of calls, beside the audit.

use super::audit::CallRecord;
use std::fmt;
use std::sync::Arc;

type OnRecord = dyn Fn(&CallRecord<'_>) + Send + Sync;

/// Is notified of each call and each refusal once it has ended, for metrics and traces, and of calls that begin to run. An
/// observer must neither block nor panic.
#[derive(Clone)]
pub struct CallObserver {
    on_end: Arc<OnRecord>,
    on_start: Option<Arc<OnRecord>>,
}

impl CallObserver {
    /// An observer that calls `on_end` with each record.
    pub fn new(on_end: impl Fn(&CallRecord<'_>) + Send + Sync + 'static) -> Self {
        Self { on_end: Arc::new(on_end), on_start: None }
    }

    /// Calls `on_start` as well when a call is allowed and begins to run: with its caller, its tool and what it reaches. The
    /// calls that a tool makes are notified too.
    #[must_use]
    pub fn on_start(mut self, on_start: impl Fn(&CallRecord<'_>) + Send + Sync + 'static) -> Self {
        self.on_start = Some(Arc::new(on_start));
        self
    }

    /// Hands `record` of a call that has ended to the observer.
    pub fn observe(&self, record: &CallRecord<'_>) {
        (self.on_end)(record);
    }

    /// Hands `record` of a call that begins to the observer.
    pub fn observe_start(&self, record: &CallRecord<'_>) {
        if let Some(on_start) = &self.on_start {
            on_start(record);
        }
    }
}

impl fmt::Debug for CallObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallObserver")
    }
}
