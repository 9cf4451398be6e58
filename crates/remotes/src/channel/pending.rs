//! The calls of a channel that wait for their answers.

use crate::error::Error;
use json_rpc::json::{Json, JsonObject};
use json_rpc::message::{Message, MessageKind};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::{mpsc, oneshot, watch};

/// A function that gets the progress of a call.
pub type OnProgress = Arc<dyn Fn(&str) + Send + Sync>;

type CallAnswer = Result<Map<String, Value>, Error>;

/// The calls that wait, the end of the channel, and what is told beside the calls.
pub(super) struct PendingCalls {
    state: Mutex<PendingState>,
    /// Counts the changes of what runs there.
    changes: watch::Sender<u64>,
}

/// The id of a line that is no call. Calls are counted from 1.
pub(super) const NO_CALL: u64 = 0;

/// The resources of what runs there. A notification that one has changed is believed so far that it is looked at.
pub(super) const STATE_RESOURCES: [&str; 2] = ["coretools://commands", "coretools://sessions"];

struct PendingState {
    calls: HashMap<u64, PendingCall>,
    last_id: u64,
    /// The reason why the channel has ended, if it has.
    end: Option<String>,
    /// True if the server in front has ended it, and false if it was lost.
    is_closed_here: bool,
    /// True if something runs there that outlives calls.
    keeps_state: bool,
    /// The time of the last sign of life: a line from there, or the start of a call.
    last_sign: Instant,
    /// The time at which a call was last open.
    last_use: Instant,
}

struct PendingCall {
    /// True once its line is being written.
    is_sent: bool,
    answer: oneshot::Sender<CallAnswer>,
    on_progress: OnProgress,
}

/// A call that waits. Dropping it before [`finish`](Self::finish) cancels the call there.
#[must_use]
pub(super) struct OpenCall {
    id: u64,
    pending: Arc<PendingCalls>,
    cancellations: Option<mpsc::UnboundedSender<u64>>,
}

/// The reason why a line ends its channel.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChannelFault {
    #[error("a line is no message of the protocol: {0}")]
    NoMessage(String),
    #[error("an answer holds a number that cannot be read exactly")]
    Number,
}

impl fmt::Debug for PendingCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingCalls").field("open", &self.state().calls.len()).finish_non_exhaustive()
    }
}

impl PendingCalls {
    pub(super) fn new(changes: watch::Sender<u64>) -> Self {
        let now = Instant::now();
        let state = PendingState {
            calls: HashMap::new(),
            last_id: 0,
            end: None,
            is_closed_here: false,
            keeps_state: false,
            last_sign: now,
            last_use: now,
        };
        Self { state: Mutex::new(state), changes }
    }

    /// Notes that what runs there has changed.
    fn note_change(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn state(&self) -> MutexGuard<'_, PendingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn end_reason(&self) -> Option<String> {
        self.state().end.clone()
    }

    pub(super) fn keeps_state(&self) -> bool {
        self.state().keeps_state
    }

    pub(super) fn note_state(&self) {
        self.state().keeps_state = true;
    }

    /// Returns the time since the last sign of life if a call is open, and the time since the last call if none is.
    pub(super) fn silence(&self) -> Silence {
        let state = self.state();
        match state.calls.is_empty() {
            true => Silence::Idle { since: state.last_use, keeps_state: state.keeps_state },
            false => Silence::Waiting { since: state.last_sign },
        }
    }

    /// Notes that the line of a call is being written, or returns false if nobody waits for the call any more. What is no
    /// call is always written.
    pub(super) fn note_sent(&self, id: u64) -> bool {
        if id == NO_CALL {
            return true;
        }
        let mut state = self.state();
        let call = state.calls.get_mut(&id);
        call.map(|call| call.is_sent = true).is_some()
    }

    /// Notes a sign of life of the server there.
    pub(super) fn note_sign(&self) {
        self.state().last_sign = Instant::now();
    }

    /// Returns true if no call is open.
    pub(super) fn is_unused(&self) -> bool {
        self.state().calls.is_empty()
    }

    /// Opens a call.
    pub(super) fn start(
        self: &Arc<Self>,
        on_progress: OnProgress,
        cancellations: mpsc::UnboundedSender<u64>,
    ) -> Result<(OpenCall, oneshot::Receiver<CallAnswer>), Error> {
        let (answer, receiver) = oneshot::channel();
        let mut state = self.state();
        if let Some(reason) = &state.end {
            return Err(Error::Closed { reason: reason.clone() });
        }
        state.last_id += 1;
        if state.calls.is_empty() {
            // The silence before the first call is no sign of a broken channel.
            state.last_sign = Instant::now();
        }
        let id = state.last_id;
        state.calls.insert(id, PendingCall { is_sent: false, answer, on_progress });
        Ok((OpenCall { id, pending: Arc::clone(self), cancellations: Some(cancellations) }, receiver))
    }

    /// Returns true if the server in front has ended the channel.
    pub(super) fn is_closed_here(&self) -> bool {
        self.state().is_closed_here
    }

    /// Ends a channel that is not needed any more, as [`end`](Self::end) does.
    pub(super) fn close(&self, reason: &str) {
        {
            let mut state = self.state();
            state.is_closed_here |= state.end.is_none();
        }
        self.end(reason);
    }

    /// Ends the channel: every open call fails, and no other begins. The first reason counts.
    pub(super) fn end(&self, reason: &str) {
        let calls = {
            let mut state = self.state();
            if state.end.is_none() {
                state.end = Some(reason.to_owned());
            }
            std::mem::take(&mut state.calls)
        };
        for call in calls.into_values() {
            // A call that nobody waits for any more needs no answer.
            let _ = call.answer.send(Err(Error::Lost { reason: reason.to_owned() }));
        }
        self.note_change();
    }

    /// Handles a line from there.
    ///
    /// # Errors
    /// The line must end the channel.
    pub(super) fn line(&self, line: &[u8]) -> Result<(), ChannelFault> {
        self.state().last_sign = Instant::now();
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let message = match Message::parse(line) {
            Ok(message) => message,
            Err(invalid) => return Err(ChannelFault::NoMessage(invalid.problem)),
        };
        match &message.kind {
            MessageKind::Response { id, succeeded } => {
                let call = id.as_u64().and_then(|id| self.take(id));
                // One that was cancelled, or never sent.
                let Some(call) = call else {
                    tracing::debug!("dropped an answer to no open call");
                    return Ok(());
                };
                let answer = if *succeeded {
                    match message.result_object().and_then(JsonObject::to_map) {
                        Some(result) => result,
                        None => {
                            let reason = ChannelFault::Number.to_string();
                            let _ = call.answer.send(Err(Error::Lost { reason }));
                            return Err(ChannelFault::Number);
                        }
                    }
                } else {
                    let problem = message.error_parts().map(|(_, problem)| problem).unwrap_or_default();
                    // The text comes from another machine, and may be of any length.
                    let problem = problem.chars().take(2000).collect();
                    let _ = call.answer.send(Err(Error::Answered(problem)));
                    return Ok(());
                };
                let _ = call.answer.send(Ok(answer));
            }
            MessageKind::Notification { method } if method == "notifications/progress" => {
                self.progress(message.params());
            }
            MessageKind::Notification { method } if method == "notifications/resources/updated" => {
                let uri = message.params().and_then(|params| params.get("uri")).and_then(Json::as_str);
                if uri.is_some_and(|uri| STATE_RESOURCES.contains(&uri)) {
                    self.note_change();
                }
            }
            MessageKind::Notification { method } => tracing::debug!(method, "dropped a notification"),
            MessageKind::Request { method, .. } => {
                tracing::warn!(method, "dropped a request of the server there");
            }
        }
        Ok(())
    }

    fn progress(&self, params: Option<&JsonObject<'_>>) {
        let token = params.and_then(|params| match params.get("progressToken") {
            Some(Json::Number(token)) => token.parse::<u64>().ok(),
            _ => None,
        });
        let text = params.and_then(|params| params.get("message")).and_then(Json::as_str);
        // Progress is for a person to read. Without a text, or for an unknown call, nothing is lost.
        let (Some(token), Some(text)) = (token, text) else { return };
        let listener = self.state().calls.get(&token).map(|call| Arc::clone(&call.on_progress));
        // Called without the lock: it may do anything but wait.
        if let Some(listener) = listener {
            listener(text);
        }
    }

    fn take(&self, id: u64) -> Option<PendingCall> {
        let mut state = self.state();
        let call = state.calls.remove(&id);
        state.last_use = Instant::now();
        call
    }
}

/// The time since something was heard.
#[derive(Clone, Copy, Debug)]
pub(super) enum Silence {
    /// A call is open.
    Waiting { since: Instant },
    /// None is.
    Idle { since: Instant, keeps_state: bool },
}

impl OpenCall {
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Notes that the call was answered, so that it is not cancelled.
    pub(super) fn finish(mut self) {
        self.cancellations = None;
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if let Some(cancellations) = self.cancellations.take()
            // A server there that does not know the call yet would ignore the cancellation. Such a line is not sent.
            && self.pending.take(self.id).is_some_and(|call| call.is_sent)
        {
            // Fails only after the channel has ended, when there is nothing left to cancel.
            let _ = cancellations.send(self.id);
        }
    }
}
