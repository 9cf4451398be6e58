//! The messages of a call that its client gets while it runs: steps of its progress, and log messages.

use super::log_level::LogLevel;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// The most messages that wait. A call that sends more before they are read loses the oldest.
const MAX_MESSAGES: usize = 256;

/// A message for the client of a call.
#[derive(Debug, PartialEq)]
pub(super) enum ClientMessage {
    /// A step of the progress.
    Progress { progress: f64, total: Option<f64>, message: Option<String> },
    /// A log message.
    Log { level: LogLevel, data: Value },
}

/// The messages of one call that have not been sent. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct MessageQueue(Arc<Queue>);

#[derive(Debug, Default)]
struct Queue {
    messages: Mutex<VecDeque<ClientMessage>>,
    added: Notify,
}

impl MessageQueue {
    /// Adds a message.
    pub(super) fn push(&self, message: ClientMessage) {
        let mut messages = self.0.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if messages.len() >= MAX_MESSAGES {
            messages.pop_front();
        }
        messages.push_back(message);
        self.0.added.notify_one();
    }

    /// Takes all messages, in their order.
    pub(super) fn take(&self) -> Vec<ClientMessage> {
        self.0.messages.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }

    /// Waits until a message is added. May return although none is left.
    pub(super) async fn added(&self) {
        self.0.added.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_sends_more_than_is_read_loses_the_oldest() {
        let queue = MessageQueue::default();
        for number in 0..=MAX_MESSAGES {
            queue.push(ClientMessage::Log { level: LogLevel::Info, data: number.into() });
        }
        let kept = queue.take();
        assert_eq!(kept.len(), MAX_MESSAGES);
        assert_eq!(kept[0], ClientMessage::Log { level: LogLevel::Info, data: 1.into() });
        assert!(queue.take().is_empty());
    }
}
