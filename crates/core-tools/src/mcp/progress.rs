//! What a client is told while it waits.

use std::sync::{Arc, Mutex, PoisonError};

/// Where a running tool leaves the latest word on how it goes. Cheap to clone.
///
/// Only the newest word is kept. The host sends it on at its own pace, so a chatty tool costs nothing, and
/// sends a heartbeat when the tool is silent.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    latest: Arc<Mutex<Option<String>>>,
    heard: bool,
}

impl Progress {
    /// Progress of a call whose client asked to hear of it.
    pub(crate) fn heard() -> Self {
        Self { heard: true, ..Self::default() }
    }

    /// Whether the client asked to hear of it. What is said is lost otherwise.
    pub fn is_heard(&self) -> bool {
        self.heard
    }

    /// Adds a line to what the client has not been sent yet, so that none is lost. The caller bounds how many.
    pub fn add(&self, line: &str) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        match latest.as_mut() {
            Some(text) => {
                text.push('\n');
                text.push_str(line);
            }
            None => *latest = Some(line.to_owned()),
        }
    }

    /// Replaces the latest word.
    pub fn say(&self, message: impl Into<String>) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(message.into());
    }

    /// The word said since the last time this was asked.
    pub(crate) fn take(&self) -> Option<String> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
