//! The connections that were refused to commands.

use egress_proxy::DeniedConnection;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The most different refusals that are kept; the others are counted.
const MAX_KEPT: usize = 20;

/// The connections that were refused while a call ran. Clones share one log.
///
/// Calls of one caller with the same hosts share a proxy. A refusal is in the log of each call that runs at the time.
#[derive(Clone, Debug, Default)]
pub struct EgressLog(Arc<Mutex<EgressRefusals>>);

#[derive(Debug, Default)]
struct EgressRefusals {
    messages: Vec<String>,
    left_out: usize,
}

/// A log without a hold on it.
#[derive(Debug)]
pub(super) struct WeakEgressLog(Weak<Mutex<EgressRefusals>>);

impl EgressLog {
    fn lock(&self) -> MutexGuard<'_, EgressRefusals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a refusal, unless the same is there already.
    pub(super) fn add(&self, denial: &DeniedConnection) {
        self.add_message(denial.message("this role's hosts"));
    }

    /// Adds the refusals of another log.
    #[cfg(feature = "mcp")]
    pub(crate) fn extend(&self, messages: Vec<String>) {
        messages.into_iter().for_each(|message| self.add_message(message));
    }

    fn add_message(&self, message: String) {
        let mut refusals = self.lock();
        if refusals.messages.contains(&message) {
            return;
        }
        if refusals.messages.len() < MAX_KEPT {
            refusals.messages.push(message);
        } else {
            refusals.left_out += 1;
        }
    }

    /// Returns each refusal as a sentence without its period, such as "`example.org:443` is not in this role's hosts".
    pub fn messages(&self) -> Vec<String> {
        let refusals = self.lock();
        let mut messages = refusals.messages.clone();
        if refusals.left_out > 0 {
            messages.push(format!("{} more connections were refused", refusals.left_out));
        }
        messages
    }

    pub(super) fn downgrade(&self) -> WeakEgressLog {
        WeakEgressLog(Arc::downgrade(&self.0))
    }
}

impl WeakEgressLog {
    pub(super) fn upgrade(&self) -> Option<EgressLog> {
        self.0.upgrade().map(EgressLog)
    }

    pub(super) fn is(&self, log: &EgressLog) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&log.0))
    }
}
