//! Standard input and output as a transport for rmcp.
//!
//! Memory is bounded, whatever the client sends and however little it reads: see [`RequestLedger::has_room`] and
//! [`RequestLedger::may_read`]. While no line is read, the end of input is still noticed.

use super::decode::{self, DecodedLine, MAX_LINE_BYTES, decode, decode_value};
use super::ledger::{self, RequestIdInUse, RequestLedger};
use super::line::{Line, MessageLineReader};
use super::streams;
use super::writer::{END_GRACE, LineWriter, WriteProgress};
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
/// The time between two checks for the end of input while no line is read.
const HANG_UP_CHECK: Duration = Duration::from_millis(100);

/// The reason why a request is answered with an error instead of being handed to the server.
#[derive(Debug, thiserror::Error)]
enum RequestRefused {
    #[error("`initialize` comes once, and first")]
    Initialize,
    #[error(transparent)]
    Id(RequestIdInUse),
}

/// Standard input and output as a transport for rmcp.
pub(crate) struct StdioTransport {
    reader: MessageLineReader<streams::MessageInput>,
    /// Notifications and responses for the server. They may overtake requests.
    unanswered: VecDeque<ClientJsonRpcMessage>,
    /// Requests for the server, as soon as there is room. All of them are in the ledger.
    requests: VecDeque<JsonRpcRequest<ClientRequest>>,
    /// Set when input has ended: until then open requests may be answered.
    end_deadline: Option<Instant>,
    /// None once the transport is closed.
    writer: Option<LineWriter>,
    progress: WriteProgress,
    ledger: Arc<RequestLedger>,
    /// True if a request has told rmcp which era this is. Until then it takes a notification for a fault.
    serving: bool,
    /// Cancelled by this transport when the client is gone.
    client_gone: CancellationToken,
    /// The line by which the client says that it needs nothing any more.
    close: Option<CloseLine>,
}

/// The line by which a client ends more than its connection, and what is cancelled then.
#[derive(Clone, Debug)]
pub(crate) struct CloseLine {
    pub(crate) line: &'static [u8],
    pub(crate) closed: CancellationToken,
}

impl StdioTransport {
    /// A transport over the process's own streams. `client_gone` is cancelled when input has ended and the open requests
    /// have been answered or have had their time, and when nobody reads output any more.
    pub(crate) fn new(client_gone: CancellationToken) -> Self {
        Self::over(streams::standard(), client_gone, None)
    }

    /// The same, for a client that sends a line before the end of input if it needs nothing any more.
    #[cfg(all(feature = "remotes", unix))]
    pub(crate) fn closed_by(client_gone: CancellationToken, close: CloseLine) -> Self {
        Self::over(streams::standard(), client_gone, Some(close))
    }

    /// The same over a socket.
    #[cfg(all(feature = "remotes", unix))]
    pub(crate) fn over_socket(
        socket: tokio::net::UnixStream,
        client_gone: CancellationToken,
        close: CloseLine,
    ) -> Self {
        let (input, output) = socket.into_split();
        Self::over((Box::new(input), Box::new(output)), client_gone, Some(close))
    }

    fn over(
        (input, output): (streams::MessageInput, streams::MessageOutput),
        client_gone: CancellationToken,
        close: Option<CloseLine>,
    ) -> Self {
        let ledger = Arc::<RequestLedger>::default();
        let progress = WriteProgress::default();
        let writer = LineWriter::start(output, Arc::clone(&ledger), client_gone.clone(), progress.clone());
        Self {
            reader: MessageLineReader::new(input, MAX_LINE_BYTES),
            unanswered: VecDeque::new(),
            requests: VecDeque::new(),
            end_deadline: None,
            writer: Some(writer),
            progress,
            ledger,
            serving: false,
            client_gone,
            close,
        }
    }

    /// Returns what tells if the client reads.
    pub(crate) fn write_progress(&self) -> WriteProgress {
        self.progress.clone()
    }

    /// Sends a line of the transport's own.
    fn reply(&self, line: Option<Vec<u8>>) {
        if let (Some(writer), Some(line)) = (&self.writer, line) {
            // Fails only after the writer has cancelled `client_gone`.
            let _ = writer.lines().send(line);
        }
    }

    /// Answers a message that the server does not get.
    fn reject(&self, id: Option<&RequestId>, error: &ErrorData) {
        tracing::debug!(code = error.code.0, message = %error.message, "rejected a message");
        self.reply(self.ledger.error_line(id, error));
    }

    /// Accepts what a line of `bytes` held.
    fn accept(&mut self, decoded: DecodedLine, bytes: usize) {
        match decoded {
            DecodedLine::Message(message) => match *message {
                JsonRpcMessage::Request(request) => {
                    if let Err((id, error)) = self.accept_request(request, bytes) {
                        self.reject(Some(&id), &error);
                    }
                }
                other => self.accept_unanswered(other),
            },
            DecodedLine::Batch(messages) => self.accept_batch(&messages, bytes),
            DecodedLine::Rejected(id, error) => self.reject(id.as_ref(), &error),
            DecodedLine::Ignored => {}
        }
    }

    /// Queues a request of `bytes` for the server.
    ///
    /// # Errors
    /// The server does not get it. Holds the answer.
    fn accept_request(
        &mut self,
        request: JsonRpcRequest<ClientRequest>,
        bytes: usize,
    ) -> Result<(), (RequestId, ErrorData)> {
        let opened = if self.serving && matches!(request.request, ClientRequest::InitializeRequest(_)) {
            Err(RequestRefused::Initialize)
        } else {
            self.ledger.open(&request.id, bytes).map_err(RequestRefused::Id)
        };
        match opened {
            Ok(()) => {
                self.requests.push_back(request);
                Ok(())
            }
            Err(why) => {
                Err((request.id, ErrorData::invalid_request(format!("invalid request: {why}"), None)))
            }
        }
    }

    /// Queues a notification or a response for the server. It may overtake requests that wait for room: a cancellation
    /// would be of no use behind them.
    fn accept_unanswered(&mut self, message: ClientJsonRpcMessage) {
        if let JsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(id) = &cancelled.params.request_id
        {
            // Sends the array of which it was the last open request.
            self.reply(self.ledger.cancel(id));
            let queued = self.requests.iter().position(|request| request.id == *id);
            if let Some(index) = queued {
                // The server has never seen it, so it need not hear of its end.
                self.requests.remove(index);
                return;
            }
        }
        // Before an era is chosen, rmcp would take it for a fault.
        if self.serving {
            self.unanswered.push_back(message);
        }
    }

    /// Accepts an array of `bytes`. Its answers go out as one array, once the last of them is there.
    fn accept_batch(&mut self, messages: &[Value], bytes: usize) {
        // JSON-RPC 2.0 §6: an empty array is an invalid request too.
        if messages.is_empty() || !self.ledger.accepts_batches() {
            let error = ErrorData::invalid_request(
                "invalid request: send one message a line; this protocol version has no arrays of them",
                None,
            );
            return self.reject(None, &error);
        }
        let mut ids = HashSet::new();
        let mut answers = Vec::new();
        let mut unanswered = Vec::new();
        for value in messages {
            let rejected = match decode_value(value) {
                DecodedLine::Message(message) => match *message {
                    JsonRpcMessage::Request(request) => {
                        let id = request.id.clone();
                        // The members share the bytes of their line evenly: their own lengths are not known any more.
                        match self.accept_request(request, bytes / messages.len()) {
                            Ok(()) => {
                                ids.insert(id);
                                continue;
                            }
                            Err((id, error)) => (Some(id), error),
                        }
                    }
                    other => {
                        unanswered.push(other);
                        continue;
                    }
                },
                DecodedLine::Rejected(id, error) => (id, error),
                DecodedLine::Batch(_) => {
                    (None, ErrorData::invalid_request("invalid request: an array in an array", None))
                }
                DecodedLine::Ignored => continue,
            };
            answers.push(self.ledger.error_value(rejected.0.as_ref(), &rejected.1));
        }
        if ids.is_empty() {
            self.reply(ledger::array(&answers));
        } else {
            self.ledger.open_batch(ids, answers);
        }
        // After the requests: a cancellation among them may be for one of the array.
        for message in unanswered {
            self.accept_unanswered(message);
        }
    }

    /// Returns the next message that the server may have.
    fn next_message(&mut self) -> Option<ClientJsonRpcMessage> {
        if let Some(message) = self.unanswered.pop_front() {
            return Some(message);
        }
        if !self.ledger.has_room() {
            return None;
        }
        let request = self.requests.pop_front()?;
        self.ledger.deliver(&request.id);
        Some(JsonRpcMessage::Request(request))
    }
}

impl Transport<RoleServer> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let lines = self.writer.as_ref().map(|writer| writer.lines().clone());
        let ledger = Arc::clone(&self.ledger);
        async move {
            // An answer takes the room of its request; a notification has to wait for some.
            if matches!(message, JsonRpcMessage::Notification(_)) {
                ledger.wait_for_room().await;
            }
            match (lines, ledger.encode(&message)) {
                (Some(lines), Some(line)) => lines.send(line),
                _ => Ok(()),
            }
        }
    }

    /// Returns the next message for the server. rmcp polls it in a `select!`, so it may be dropped at each await: what has
    /// been read is in the reader or in a queue by then.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.serving = self.serving || self.ledger.is_serving();
        let ledger = Arc::clone(&self.ledger);
        loop {
            // Before the look, or what is freed between the two would not wake us.
            let freed = ledger.freed();
            if let Some(message) = self.next_message() {
                return Some(message);
            }
            if let Some(deadline) = self.end_deadline {
                if !ledger.is_empty() && tokio::time::timeout_at(deadline, freed).await.is_ok() {
                    continue;
                }
                // Everything is answered, or time is up.
                self.client_gone.cancel();
                return None;
            }
            // After a hang-up a full pipe is the most there is to read, so the bound holds all the same.
            if !ledger.may_read() && !self.reader.stream().is_hung_up() {
                // Whether something was freed or not, the loop looks at both again.
                let _ = tokio::time::timeout(HANG_UP_CHECK, freed).await;
                continue;
            }
            let line = tokio::select! {
                line = self.reader.next() => line,
                () = freed, if !self.requests.is_empty() => continue,
            };
            match line {
                Ok(Line::Whole(line)) => {
                    if let Some(close) =
                        self.close.as_ref().filter(|close| line.trim_ascii_end() == close.line)
                    {
                        close.closed.cancel();
                        self.client_gone.cancel();
                        return None;
                    }
                    let (decoded, bytes) = (decode(line), line.len());
                    self.accept(decoded, bytes);
                }
                Ok(Line::TooLong { bytes, outline }) => self.accept(decode::too_long(bytes, outline), 0),
                Ok(Line::End) => self.end_deadline = Some(Instant::now() + END_GRACE),
                Err(error) => {
                    tracing::error!(%error, "standard input cannot be read");
                    self.client_gone.cancel();
                    return None;
                }
            }
        }
    }

    /// Waits until everything that was sent has been written, or cannot be.
    async fn close(&mut self) -> io::Result<()> {
        match self.writer.take() {
            Some(writer) => writer.close().await,
            None => Ok(()),
        }
    }
}
