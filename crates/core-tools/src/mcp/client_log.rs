//! Log messages for the client of a call.

use super::log_level::LogLevel;
use super::message_queue::{ClientMessage, MessageQueue};
use serde_json::Value;
use std::sync::atomic::{AtomicU8, Ordering};

/// Sends log messages to the client of one call. Cheap to clone.
///
/// A client of 2026-07-28 gets the messages of a call for which it asked by a level, and a client of the `initialize` era
/// those from the level on that it has set. Secrets are masked. Messages are for a person who watches the call; what a
/// model needs belongs into the answer.
#[derive(Clone, Debug, Default)]
pub struct ClientLog {
    lowest: Option<LogLevel>,
    messages: MessageQueue,
}

impl ClientLog {
    /// The log of a call whose client wants messages from `lowest` on.
    pub(super) fn new(lowest: LogLevel, messages: MessageQueue) -> Self {
        Self { lowest: Some(lowest), messages }
    }

    /// Returns true if the client gets messages of this level.
    pub fn is_enabled(&self, level: LogLevel) -> bool {
        self.lowest.is_some_and(|lowest| level >= lowest)
    }

    /// Sends a message: a text, or any other value that serialises to JSON.
    pub fn log(&self, level: LogLevel, data: impl Into<Value>) {
        if self.is_enabled(level) {
            self.messages.push(ClientMessage::Log { level, data: data.into() });
        }
    }
}

/// The level that a client of the `initialize` era has set for its connection. It gets no messages before it sets one.
#[derive(Debug, Default)]
pub(super) struct SessionLogLevel(AtomicU8);

impl SessionLogLevel {
    /// Returns the level, if one is set.
    pub(super) fn get(&self) -> Option<LogLevel> {
        let index = usize::from(self.0.load(Ordering::Relaxed)).checked_sub(1)?;
        LogLevel::ALL.get(index).copied()
    }

    /// Sets the level.
    pub(super) fn set(&self, level: LogLevel) {
        self.0.store(level as u8 + 1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_no_level_until_one_is_set_and_then_that_one() {
        let session = SessionLogLevel::default();
        assert_eq!(session.get(), None);
        for level in LogLevel::ALL {
            session.set(level);
            assert_eq!(session.get(), Some(level));
            assert_eq!(LogLevel::from_protocol(level.to_protocol()), level);
        }
    }

    #[test]
    fn a_message_below_the_level_of_the_client_is_not_kept() {
        let queue = MessageQueue::default();
        let log = ClientLog::new(LogLevel::Warning, queue.clone());
        log.log(LogLevel::Info, "quiet");
        log.log(LogLevel::Error, "loud");
        ClientLog::default().log(LogLevel::Emergency, "nobody");
        let kept = queue.take();
        assert!(
            matches!(&kept[..], [ClientMessage::Log { level: LogLevel::Error, data }] if data == "loud"),
            "{kept:?}"
        );
    }
}
