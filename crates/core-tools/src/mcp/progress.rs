//! What a client is told while it waits.

use std::sync::{Arc, Mutex, PoisonError};

/// Where a running tool leaves the latest word on how it goes. Cheap to clone.
///
/// Only the newest word is kept. The host sends it on at its own pace, so a chatty tool costs nothing, and
/// sends a heartbeat when the tool is silent.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    latest: Arc<Mutex<Option<String>>>,
}

impl Progress {
    /// Replaces the latest word.
    pub fn say(&self, message: impl Into<String>) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(message.into());
    }

    /// The word said since the last time this was asked.
    pub(crate) fn take(&self) -> Option<String> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
