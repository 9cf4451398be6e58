//! The progress of a call, for a client that waits.

use std::sync::{Arc, Mutex, PoisonError};

/// The latest progress of a running tool, which the host sends to a client that asked for it. Cheap to clone.
///
/// Only the newest message is kept. The host sends it at its own pace, so a chatty tool costs nothing, and
/// sends a heartbeat when the tool is silent.
#[derive(Clone, Debug, Default)]
pub struct ProgressReporter {
    latest: Arc<Mutex<Option<String>>>,
    requested: bool,
}

impl ProgressReporter {
    /// The progress of a call whose client sent a progress token.
    pub(crate) fn requested() -> Self {
        Self { requested: true, ..Self::default() }
    }

    /// Returns true if the client asked for it. What is reported is discarded otherwise.
    pub fn is_requested(&self) -> bool {
        self.requested
    }

    /// Adds a line to what the client has not been sent yet, so that none is lost. The tool bounds how many.
    pub fn append_line(&self, line: &str) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        match latest.as_mut() {
            Some(text) => {
                text.push('\n');
                text.push_str(line);
            }
            None => *latest = Some(line.to_owned()),
        }
    }

    /// Replaces what the client has not been sent yet.
    pub fn update(&self, message: impl Into<String>) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(message.into());
    }

    /// Takes what was reported since the last call of this.
    pub(crate) fn take(&self) -> Option<String> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
