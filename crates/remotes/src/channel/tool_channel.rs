//! [`Channel`]: an open channel, and the calls on it.

use super::pending::{NO_CALL, OnProgress, PendingCalls, STATE_RESOURCES};
use super::supervisor::IDLE;
use super::writer::Lines;
use crate::error::Error;
use crate::opening::OpenAnswer;
use json_rpc::json::{Json, JsonObject};
use json_rpc::message::{Id, Message};
use process_runner::CancellationToken;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;

/// The version of MCP that is spoken: the one without a handshake, so that a call is the second message.
const PROTOCOL_VERSION: &str = "2026-07-28";

/// An open channel. It ends when the last handle is dropped.
#[derive(Debug)]
pub(crate) struct Channel {
    pending: Arc<PendingCalls>,
    lines: Lines,
    cancellations: mpsc::UnboundedSender<u64>,
    closing: CancellationToken,
    ended: CancellationToken,
    answer: OpenAnswer,
    client: &'static str,
    /// True once the server there was asked to tell of changes.
    is_watched: AtomicBool,
}

impl Channel {
    /// The channel whose tasks share these parts: the calls, the queues, and the tokens that close it and tell its end.
    pub(super) fn new(
        pending: Arc<PendingCalls>,
        lines: Lines,
        cancellations: mpsc::UnboundedSender<u64>,
        (closing, ended): (CancellationToken, CancellationToken),
        answer: OpenAnswer,
        client: &'static str,
    ) -> Self {
        let is_watched = AtomicBool::new(false);
        Self { pending, lines, cancellations, closing, ended, answer, client, is_watched }
    }

    /// Returns the answer of the server there to the first message.
    pub(crate) fn answer(&self) -> &OpenAnswer {
        &self.answer
    }

    /// Returns the reason why the channel has ended, if it has.
    pub(crate) fn end_reason(&self) -> Option<String> {
        self.pending.end_reason()
    }

    /// Returns true if something runs there that outlives calls.
    pub(crate) fn keeps_state(&self) -> bool {
        self.pending.keeps_state()
    }

    /// Returns true if no call is open, and nothing runs there that outlives calls.
    pub(crate) fn is_unused(&self) -> bool {
        self.pending.is_unused() && !self.pending.keeps_state()
    }

    /// Returns true if it has ended because nobody called.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending.end_reason().as_deref() == Some(IDLE)
    }

    /// Returns true if the server in front has ended it. False for a channel that is open or was lost.
    pub(crate) fn is_closed_here(&self) -> bool {
        self.pending.is_closed_here()
    }

    /// Notes that something runs there that outlives calls: the channel follows one that was lost.
    pub(crate) async fn note_state(&self) {
        self.pending.note_state();
        self.watch().await;
    }

    /// Asks the server there once to tell of changes of what runs there.
    async fn watch(&self) {
        if self.is_watched.load(Ordering::Acquire) {
            return;
        }
        // Room first: whoever is dropped while it waits has asked nothing.
        let Some(room) = self.lines.room().await else { return };
        if !self.is_watched.swap(true, Ordering::AcqRel) {
            room.send(NO_CALL, self.listen_request().to_line());
        }
    }

    fn listen_request(&self) -> Message<'static> {
        let uris = STATE_RESOURCES.iter().map(|uri| Json::string(*uri)).collect();
        let wanted = [("resourceSubscriptions", Json::Array(uris))];
        let params = [
            ("notifications", Json::Object(wanted.into_iter().collect())),
            ("_meta", Json::Object(self.meta().into_iter().collect())),
        ];
        Message::request(
            &Id::Text("changes".to_owned()),
            "subscriptions/listen",
            params.into_iter().collect(),
        )
    }

    /// Returns what every request says of this server.
    fn meta(&self) -> Vec<(&'static str, Json<'static>)> {
        let string = |text: &str| Json::String(Cow::Owned(text.to_owned()));
        let client = [("name", string(self.client)), ("version", string(&self.answer.version))];
        vec![
            ("io.modelcontextprotocol/protocolVersion", string(PROTOCOL_VERSION)),
            ("io.modelcontextprotocol/clientCapabilities", Json::Object(JsonObject::default())),
            ("io.modelcontextprotocol/clientInfo", Json::Object(client.into_iter().collect())),
        ]
    }

    /// Returns true if it ends: nothing is sent any more, also if the reason is not known yet.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.is_cancelled()
    }

    /// Returns what is cancelled once `connect` has ended.
    pub(crate) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// Ends the channel: the server there reads the end of its input. Returns when `connect` has ended.
    pub(crate) async fn close(&self, reason: &str) {
        self.pending.close(reason);
        self.closing.cancel();
        self.ended.cancelled().await;
    }

    /// Calls a tool, and returns the result as it came. Dropping the future cancels the call there, and so does `cancel`.
    /// After a call that `starts_background`, the channel does not end for idleness.
    pub(crate) async fn call_tool(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        cancel: &CancellationToken,
        on_progress: OnProgress,
        starts_background: bool,
    ) -> Result<Map<String, Value>, Error> {
        if starts_background {
            tokio::select! {
                () = self.watch() => {}
                () = cancel.cancelled() => return Err(Error::Cancelled),
            }
        }
        // Room in the queue first: once it is there, sending cannot be interrupted halfway.
        let room = tokio::select! {
            room = self.lines.room() => room,
            () = cancel.cancelled() => return Err(Error::Cancelled),
        };
        let Some(room) = room else {
            // It ends, and the reason is known once `connect` has ended.
            self.ended.cancelled().await;
            return Err(Error::Closed { reason: self.end_reason().unwrap_or_default() });
        };
        let (call, answer) = self.pending.start(on_progress, self.cancellations.clone())?;
        if starts_background {
            // Before it is sent: a connection that is lost while it runs may have started something.
            self.pending.note_state();
        }
        room.send(call.id(), self.request(call.id(), tool, arguments).to_line());
        let answered = tokio::select! {
            biased;
            answered = answer => answered,
            // Dropping `call` sends the cancellation; a server answers no call that was cancelled.
            () = cancel.cancelled() => return Err(Error::Cancelled),
        };
        call.finish();
        match answered {
            Ok(answer) => answer,
            Err(_) => Err(Error::Lost { reason: self.end_reason().unwrap_or_default() }),
        }
    }

    fn request(&self, id: u64, tool: &str, arguments: &Map<String, Value>) -> Message<'static> {
        let string = |text: &str| Json::String(Cow::Owned(text.to_owned()));
        let mut object = JsonObject::default();
        for (name, value) in arguments {
            object.set(name.clone(), Json::from(value));
        }
        let mut meta = self.meta();
        // Always: the server there sends a sign of life while the call runs.
        meta.push(("progressToken", Json::Number(Cow::Owned(id.to_string()))));
        let params = [
            ("name", string(tool)),
            ("arguments", Json::Object(object)),
            ("_meta", Json::Object(meta.into_iter().collect())),
        ];
        Message::request(&Id::Number(id.to_string()), "tools/call", params.into_iter().collect())
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.pending.close("it is not needed any more");
        self.closing.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::super::writer::MAX_LINES;
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn a_call_that_starts_a_command_is_cancelled_while_the_queue_is_full() {
        let pending = Arc::new(PendingCalls::new(tokio::sync::watch::Sender::default()));
        let (lines, _queued) = Lines::new();
        let (cancellations, _cancelled) = mpsc::unbounded_channel();
        let tokens = (CancellationToken::new(), CancellationToken::new());
        let channel = Channel::new(pending, lines, cancellations, tokens, OpenAnswer::default(), "test");
        for _ in 0..MAX_LINES {
            channel.lines.room().await.unwrap().send(NO_CALL, Vec::new());
        }
        let cancel = CancellationToken::new();
        cancel.cancel();
        let arguments = Map::new();
        let called = channel.call_tool("start_command", &arguments, &cancel, Arc::new(|_: &str| {}), true);
        let called = tokio::time::timeout(Duration::from_secs(20), called).await;
        assert!(matches!(called, Ok(Err(Error::Cancelled))), "{called:?}");
    }
}
