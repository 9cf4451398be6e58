//! MCP over standard input and output: one JSON message a line.
//!
//! rmcp's own line transport drops what it cannot read. This one answers it: not JSON is -32700, a message
//! of the wrong shape is -32600, parameters of the wrong shape are -32602, an array is taken where the
//! protocol has arrays (2025-03-26) and refused elsewhere, a line past the limit is refused. The id is
//! looked for even in what is not JSON or was not kept. Nothing that asks for an answer goes without one,
//! nothing else is answered, and no id is answered twice.
//!
//! Memory is bounded, whatever the client sends and however little it reads: see [`Ledger::has_room`] and
//! [`Ledger::may_read`]. While no line is read, the end of input is still noticed.

mod decode;
mod ledger;
mod line;
mod outline;
mod streams;
mod writer;

use decode::{Decoded, decode, decode_value, too_long};
use ledger::Ledger;
use line::{Line, LineReader};
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, JsonRpcMessage, JsonRpcRequest,
    RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::Value;
use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use writer::Writer;

/// The longest line that is taken, in bytes. The same as most MCP servers take over HTTP.
pub(crate) const MAX_LINE_BYTES: usize = 16 << 20;

/// What was asked before the end of input may still be answered for so long: `printf ... | mcp-stdio`.
const END_GRACE: Duration = Duration::from_millis(300);

/// How often to look for the end of input while no line is read.
const HANG_UP_CHECK: Duration = Duration::from_millis(100);

/// Standard input and output as a transport for rmcp.
pub(crate) struct Stdio {
    reader: LineReader<streams::Input>,
    /// What is no request, for the server.
    notices: VecDeque<ClientJsonRpcMessage>,
    /// Requests for the server, as soon as there is room. All of them are in the ledger.
    requests: VecDeque<JsonRpcRequest<ClientRequest>>,
    /// Input has ended; what was asked before may be answered until then.
    ending: Option<Instant>,
    writer: Option<Writer>,
    ledger: Arc<Ledger>,
    /// A request has told rmcp which era this is. Until then it takes a notification for a fault.
    started: bool,
    /// Cancelled by this transport when the client is gone.
    gone: CancellationToken,
}

impl Stdio {
    /// The process's own streams. `gone` is cancelled when input has ended and what was asked before has
    /// been answered or has had its moment, and when nobody reads output any more.
    pub(crate) fn new(gone: CancellationToken) -> Self {
        let (input, output) = streams::standard();
        let ledger = Arc::<Ledger>::default();
        Self {
            reader: LineReader::new(input, MAX_LINE_BYTES),
            notices: VecDeque::new(),
            requests: VecDeque::new(),
            ending: None,
            writer: Some(Writer::start(output, Arc::clone(&ledger), gone.clone())),
            ledger,
            started: false,
            gone,
        }
    }

    /// Sends a line of our own.
    fn reply(&self, line: Option<Vec<u8>>) {
        if let (Some(writer), Some(line)) = (&self.writer, line) {
            // Where nobody reads, the writer has said so.
            let _ = writer.lines().put(line);
        }
    }

    fn refuse(&self, id: Option<&RequestId>, error: &ErrorData) {
        tracing::debug!(code = error.code.0, message = %error.message, "refused a message");
        self.reply(self.ledger.refusal(id, error));
    }

    /// Takes one line's worth of `bytes`.
    fn take(&mut self, decoded: Decoded, bytes: usize) {
        match decoded {
            Decoded::Message(message) => match *message {
                JsonRpcMessage::Request(request) => {
                    if let Err((id, error)) = self.request(request, bytes) {
                        self.refuse(Some(&id), &error);
                    }
                }
                notice => self.notice(notice),
            },
            Decoded::Batch(messages) => self.batch(&messages, bytes),
            Decoded::Refused(id, error) => self.refuse(id.as_ref(), &error),
            Decoded::Nothing => {}
        }
    }

    /// Takes a request of `bytes`, or says why it is not given to the server.
    fn request(
        &mut self,
        request: JsonRpcRequest<ClientRequest>,
        bytes: usize,
    ) -> Result<(), (RequestId, ErrorData)> {
        let taken = if self.started && matches!(request.request, ClientRequest::InitializeRequest(_)) {
            Err("`initialize` comes once, and first".to_owned())
        } else {
            self.ledger.open(&request.id, bytes)
        };
        match taken {
            Ok(()) => {
                self.requests.push_back(request);
                Ok(())
            }
            Err(why) => {
                Err((request.id, ErrorData::invalid_request(format!("invalid request: {why}"), None)))
            }
        }
    }

    /// Takes a notification or a response. It may overtake requests that wait for room.
    fn notice(&mut self, message: ClientJsonRpcMessage) {
        if let JsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(id) = &cancelled.params.request_id
        {
            self.reply(self.ledger.cancel(id));
            let waiting = self.requests.iter().position(|request| request.id == *id);
            if let Some(place) = waiting {
                self.requests.remove(place);
                return;
            }
        }
        if self.started {
            self.notices.push_back(message);
        }
    }

    /// Takes an array of `bytes`.
    fn batch(&mut self, messages: &[Value], bytes: usize) {
        if messages.is_empty() || !self.ledger.takes_batches() {
            let error = ErrorData::invalid_request(
                "invalid request: send one message a line; this protocol version has no arrays of them",
                None,
            );
            return self.refuse(None, &error);
        }
        let mut ids = HashSet::new();
        let mut answers = Vec::new();
        let mut notices = Vec::new();
        for value in messages {
            let refused = match decode_value(value) {
                Decoded::Message(message) => match *message {
                    JsonRpcMessage::Request(request) => {
                        let id = request.id.clone();
                        match self.request(request, bytes / messages.len()) {
                            Ok(()) => {
                                ids.insert(id);
                                continue;
                            }
                            Err((id, error)) => (Some(id), error),
                        }
                    }
                    notice => {
                        notices.push(notice);
                        continue;
                    }
                },
                Decoded::Refused(id, error) => (id, error),
                Decoded::Batch(_) => {
                    (None, ErrorData::invalid_request("invalid request: an array in an array", None))
                }
                Decoded::Nothing => continue,
            };
            answers.push(self.ledger.refusal_value(refused.0.as_ref(), &refused.1));
        }
        if ids.is_empty() {
            self.reply(ledger::array(&answers));
        } else {
            self.ledger.open_batch(ids, answers);
        }
        // A cancellation among them may be for one of the array.
        for notice in notices {
            self.notice(notice);
        }
    }

    /// The next message that may be given to the server.
    fn next(&mut self) -> Option<ClientJsonRpcMessage> {
        if let Some(notice) = self.notices.pop_front() {
            return Some(notice);
        }
        if !self.ledger.has_room() {
            return None;
        }
        let request = self.requests.pop_front()?;
        self.ledger.give(&request.id);
        Some(JsonRpcMessage::Request(request))
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let lines = self.writer.as_ref().map(|writer| writer.lines().clone());
        let ledger = Arc::clone(&self.ledger);
        async move {
            // Answers have their room from their requests; progress has none.
            if matches!(message, JsonRpcMessage::Notification(_)) {
                ledger.room().await;
            }
            match (lines, ledger.encode(&message)) {
                (Some(lines), Some(line)) => lines.put(line),
                _ => Ok(()),
            }
        }
    }

    /// Polled in a `select!`, so it may be dropped at each await: what has been read is in the reader or in
    /// a queue by then.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.started = self.started || self.ledger.is_serving();
        let ledger = Arc::clone(&self.ledger);
        loop {
            let lighter = ledger.lighter();
            if let Some(message) = self.next() {
                return Some(message);
            }
            if let Some(until) = self.ending {
                if !ledger.is_empty() && tokio::time::timeout_at(until, lighter).await.is_ok() {
                    continue;
                }
                // Answered or out of time.
                self.gone.cancel();
                return None;
            }
            // After a hang-up what is left to read is a full pipe at most.
            if !ledger.may_read() && !self.reader.stream().hung_up() {
                // Either way it looks again.
                let _ = tokio::time::timeout(HANG_UP_CHECK, lighter).await;
                continue;
            }
            let line = tokio::select! {
                line = self.reader.next() => line,
                () = lighter, if !self.requests.is_empty() => continue,
            };
            match line {
                Ok(Line::Whole(line)) => self.take(decode(&line), line.len()),
                Ok(Line::TooLong { bytes, outline }) => self.take(too_long(bytes, outline), 0),
                Ok(Line::End) => self.ending = Some(Instant::now() + END_GRACE),
                Err(error) => {
                    tracing::error!(%error, "standard input cannot be read");
                    self.gone.cancel();
                    return None;
                }
            }
        }
    }

    /// Returns when everything that was sent has been written, or cannot be.
    async fn close(&mut self) -> io::Result<()> {
        match self.writer.take() {
            Some(writer) => writer.close().await,
            None => Ok(()),
        }
    }
}
