//! The progress of a call, for a client that waits.

use super::message_queue::{ClientMessage, MessageQueue};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A listener to the progress of a call.
type Listener = dyn Fn(ProgressEvent<'_>) + Send + Sync;

/// One report of progress, as a listener gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressEvent<'a> {
    /// The state of the work, such as the tests that are done; it takes the place of the state before.
    Status(&'a str),
    /// A line of output, in addition to those before.
    Line(&'a str),
}

/// The latest progress of a running tool, which the host sends to a client that asked for it. Cheap to clone.
///
/// Only the newest message is kept. The host sends it at its own pace, so a chatty tool costs nothing, and
/// sends a heartbeat when the tool is silent. A listener gets every report at once instead.
#[derive(Clone, Default)]
pub struct ProgressReporter {
    latest: Arc<Mutex<Option<String>>>,
    listener: Option<Arc<Listener>>,
    requested: bool,
    /// The steps that the client has not been sent.
    steps: MessageQueue,
}

impl ProgressReporter {
    /// The progress of a call whose client sent a progress token. Its steps go to `steps`.
    pub(super) fn requested(steps: MessageQueue) -> Self {
        Self { requested: true, steps, ..Self::default() }
    }

    /// The progress of a call whose caller shows each report as it comes, as a terminal does. `listener` is called from
    /// within the tool, so it must not wait, and masks secrets itself.
    pub fn to_listener(listener: impl Fn(ProgressEvent<'_>) + Send + Sync + 'static) -> Self {
        Self { listener: Some(Arc::new(listener)), requested: true, ..Self::default() }
    }

    /// Returns true if the client asked for progress. Otherwise, reports are discarded.
    pub fn is_requested(&self) -> bool {
        self.requested
    }

    /// Adds a line to what the client has not been sent yet, so that none is lost. The tool bounds how many.
    pub fn append_line(&self, line: &str) {
        if let Some(listener) = &self.listener {
            return listener(ProgressEvent::Line(line));
        }
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
        let message = message.into();
        match &self.listener {
            Some(listener) => listener(ProgressEvent::Status(&message)),
            None => *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(message),
        }
    }

    /// Adds what another server has reported to what the client has not been sent yet. Past 64 KiB it takes the place of
    /// that: nobody here bounds how much a server reports.
    pub fn relay(&self, message: &str) {
        const MAX_BYTES: usize = 64 * 1024;
        let message = &message[..message.floor_char_boundary(MAX_BYTES)];
        if let Some(listener) = &self.listener {
            return listener(ProgressEvent::Status(message));
        }
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        match latest.as_mut().filter(|text| text.len() + message.len() < MAX_BYTES) {
            Some(text) => {
                text.push('\n');
                text.push_str(message);
            }
            None => *latest = Some(message.to_owned()),
        }
    }

    /// Reports a step: how much is done, of how much, if that is known. The client gets every step at once; each must have
    /// more done than the one before.
    pub fn step(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        match &self.listener {
            Some(listener) => {
                let of = total.map(|total| format!("/{total}")).unwrap_or_default();
                let text = message.map(|message| format!(" {message}")).unwrap_or_default();
                listener(ProgressEvent::Status(&format!("{done}{of}{text}")));
            }
            None if self.requested => {
                let message = message.map(str::to_owned);
                // Steps go to a queue instead of `latest`, because the client must see each of them.
                self.steps.push(ClientMessage::Progress { progress: done, total, message });
            }
            None => {}
        }
    }

    /// Reports a line of a program's output. A client is sent the newest line, a listener every line.
    pub fn output_line(&self, line: &str) {
        match &self.listener {
            Some(listener) => listener(ProgressEvent::Line(line)),
            None => self.update(line),
        }
    }

    /// Takes what was reported since the last call of this.
    pub(crate) fn take(&self) -> Option<String> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for ProgressReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgressReporter").field("requested", &self.requested).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_sent_the_newest_line_of_output_and_a_listener_gets_each() {
        let client = ProgressReporter::requested(MessageQueue::default());
        client.output_line("one");
        client.output_line("two");
        assert_eq!(client.take().as_deref(), Some("two"));
        let heard = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&heard);
        let listened =
            ProgressReporter::to_listener(move |event| log.lock().unwrap().push(format!("{event:?}")));
        listened.output_line("one");
        listened.update("1 done");
        listened.append_line("two");
        assert!(listened.is_requested() && listened.take().is_none());
        assert_eq!(*heard.lock().unwrap(), ["Line(\"one\")", "Status(\"1 done\")", "Line(\"two\")"]);
    }
}
