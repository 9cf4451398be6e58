//! MCP over standard input and output: one JSON message a line.
//!
//! rmcp's own line transport drops what it cannot read. This one answers it: not JSON is -32700, a message
//! of the wrong shape is -32600 under its own id, an array is taken where the protocol has arrays
//! (2025-03-26) and refused elsewhere, a line past the limit is refused under the id found in it as it went
//! by. Nothing that asks for an answer goes without one.

mod decode;
mod ledger;
mod line;
mod streams;

use decode::{Decoded, decode, decode_value, request_id};
use ledger::Ledger;
use line::{Line, LineReader};
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::Value;
use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The longest line that is taken, in bytes. The same as most MCP servers take over HTTP.
pub(crate) const MAX_LINE_BYTES: usize = 16 << 20;

/// What was asked before the end of input may still be answered for so long: `printf ... | mcp-stdio`.
const END_GRACE: Duration = Duration::from_millis(300);

/// Messages that wait for a client that does not read. Past that, those who send wait too.
const WAITING_MESSAGES: usize = 256;

/// Standard input and output as a transport for rmcp.
pub(crate) struct Stdio {
    reader: LineReader<streams::Input>,
    /// Messages of an array, still to be given out.
    queue: VecDeque<ClientJsonRpcMessage>,
    /// Lines of our own, still to be sent.
    replies: VecDeque<Vec<u8>>,
    /// Input has ended; what was asked before may be answered until then.
    ending: Option<Instant>,
    writer: Option<mpsc::Sender<Vec<u8>>>,
    writing: Option<JoinHandle<()>>,
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
        let (writer, messages) = mpsc::channel(WAITING_MESSAGES);
        let writing = tokio::spawn(write(output, messages, gone.clone()));
        Self {
            reader: LineReader::new(input, MAX_LINE_BYTES),
            queue: VecDeque::new(),
            replies: VecDeque::new(),
            ending: None,
            writer: Some(writer),
            writing: Some(writing),
            ledger: Arc::default(),
            started: false,
            gone,
        }
    }

    fn refuse(&mut self, id: Option<&RequestId>, error: &ErrorData) {
        tracing::debug!(code = error.code.0, message = %error.message, "refused a message");
        self.replies.extend(self.ledger.refusal(id, error));
    }

    /// Takes one message in, or says why it is not given to the server.
    fn admit(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> Result<Option<ClientJsonRpcMessage>, (RequestId, ErrorData)> {
        match &message {
            JsonRpcMessage::Request(request) => {
                if !self.ledger.open(&request.id) {
                    let error =
                        ErrorData::invalid_request("invalid request: its id is in use by another", None);
                    return Err((request.id.clone(), error));
                }
                self.started |= !matches!(
                    request.request,
                    ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_)
                );
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.replies.extend(self.ledger.cancel(id));
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        let given = self.started || matches!(message, JsonRpcMessage::Request(_));
        Ok(given.then_some(message))
    }

    fn batch(&mut self, messages: &[Value]) {
        if messages.is_empty() || !self.ledger.takes_batches() {
            let error = ErrorData::invalid_request(
                "invalid request: send one message a line; this protocol version has no arrays of them",
                None,
            );
            return self.refuse(None, &error);
        }
        let mut ids = HashSet::new();
        let mut answers = Vec::new();
        let mut taken = Vec::new();
        for value in messages {
            match decode_value(value) {
                Decoded::Message(message) => match self.admit(*message) {
                    Ok(Some(message)) => {
                        if let JsonRpcMessage::Request(request) = &message {
                            ids.insert(request.id.clone());
                        }
                        taken.push(message);
                    }
                    Ok(None) => {}
                    Err((id, error)) => answers.push(self.ledger.refusal_value(Some(&id), &error)),
                },
                Decoded::Refused(id, error) => answers.push(self.ledger.refusal_value(id.as_ref(), &error)),
                Decoded::Batch(_) => {
                    let error = ErrorData::invalid_request("invalid request: an array in an array", None);
                    answers.push(self.ledger.refusal_value(None, &error));
                }
                Decoded::Nothing => {}
            }
        }
        if ids.is_empty() {
            self.replies.extend(ledger::array(&answers));
        } else {
            self.ledger.open_batch(ids, answers);
        }
        self.queue.extend(taken);
    }

    /// Sends our own lines. Each leaves the queue in the same step in which it is sent.
    async fn reply(&mut self) {
        while !self.replies.is_empty() {
            let Some(Ok(permit)) = (match &self.writer {
                Some(writer) => Some(writer.reserve().await),
                None => None,
            }) else {
                // Nobody reads any more.
                self.replies.clear();
                return;
            };
            if let Some(line) = self.replies.pop_front() {
                permit.send(line);
            }
        }
    }

    /// Lets what was asked be answered, then says that the client is gone.
    async fn end(&mut self) {
        let until = *self.ending.get_or_insert_with(|| Instant::now() + END_GRACE);
        // Answered or out of time: it ends either way.
        let _ = tokio::time::timeout_at(until, self.ledger.empty()).await;
        self.gone.cancel();
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let writer = self.writer.clone();
        let ledger = Arc::clone(&self.ledger);
        async move {
            let closed = || io::Error::new(io::ErrorKind::NotConnected, "the client is gone");
            let writer = writer.ok_or_else(closed)?;
            match ledger.encode(&message) {
                Some(line) => writer.send(line).await.map_err(|_| closed()),
                None => Ok(()),
            }
        }
    }

    /// Polled in a `select!`, so it may be dropped at each await: what has been read is in the reader or in
    /// the queue by then.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            self.reply().await;
            if let Some(message) = self.queue.pop_front() {
                return Some(message);
            }
            let decoded = match self.reader.next().await {
                Ok(Line::Whole(line)) => decode(&line),
                Ok(Line::TooLong { bytes, id }) => {
                    let id = id.and_then(|id| serde_json::from_str(&id).ok()).as_ref().and_then(request_id);
                    let message = format!(
                        "invalid request: a message of {bytes} bytes; at most {MAX_LINE_BYTES} are taken"
                    );
                    Decoded::Refused(id, ErrorData::invalid_request(message, None))
                }
                Ok(Line::End) => {
                    self.end().await;
                    return None;
                }
                Err(error) => {
                    tracing::error!(%error, "standard input cannot be read");
                    self.gone.cancel();
                    return None;
                }
            };
            match decoded {
                Decoded::Message(message) => match self.admit(*message) {
                    Ok(Some(message)) => return Some(message),
                    Ok(None) => {}
                    Err((id, error)) => self.refuse(Some(&id), &error),
                },
                Decoded::Batch(messages) => self.batch(&messages),
                Decoded::Refused(id, error) => self.refuse(id.as_ref(), &error),
                Decoded::Nothing => {}
            }
        }
    }

    /// Returns when everything that was sent has been written, or cannot be.
    async fn close(&mut self) -> io::Result<()> {
        drop(self.writer.take());
        match self.writing.take() {
            Some(writing) => tokio::time::timeout(END_GRACE, writing)
                .await
                .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "the client does not read"))?
                .map_err(io::Error::other),
            None => Ok(()),
        }
    }
}

/// Writes what is sent, several messages in one go where they wait.
async fn write(mut output: streams::Output, mut messages: mpsc::Receiver<Vec<u8>>, gone: CancellationToken) {
    /// A full pipe on Linux.
    const ENOUGH: usize = 64 * 1024;
    while let Some(mut bytes) = messages.recv().await {
        while bytes.len() < ENOUGH
            && let Ok(more) = messages.try_recv()
        {
            bytes.extend_from_slice(&more);
        }
        let written = async {
            output.write_all(&bytes).await?;
            output.flush().await
        };
        if let Err(error) = written.await {
            tracing::debug!(%error, "standard output is closed");
            gone.cancel();
            return;
        }
    }
}
