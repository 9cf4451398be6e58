//! A client of the Chrome `DevTools` Protocol, as V8 speaks it (Node.js, Deno): commands by id, and events.
//!
//! It connects to inspectors of this machine only: anyone who reaches an inspector can run code in its process.
//!
//! <https://chromedevtools.github.io/devtools-protocol/v8/>

use super::http;
use super::target::TargetUrl;
use futures_util::SinkExt as _;
use futures_util::stream::{SplitSink, StreamExt as _};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};

/// The default time limit of a command, and that of connecting.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(5);
/// The default limit of a message, in bytes.
pub(crate) const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// The most events that wait to be received. Beyond them the connection is not read.
const MAX_QUEUED_EVENTS: usize = 1024;

/// An inspector that did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CdpError {
    /// The list of inspector targets could not be fetched.
    #[error("no inspector answers there")]
    Http(#[source] http::HttpGetError),
    /// The answer is not that of an inspector. Holds the fault.
    #[error("what answers there is no inspector: {0}")]
    NotInspector(String),
    /// The inspector did not answer in time.
    #[error("no answer to {method} within {} ms", .limit.as_millis())]
    TimedOut {
        /// The command.
        method: String,
        /// The time limit.
        limit: Duration,
    },
    /// The inspector refused a command.
    #[error("{method}: {message}")]
    Refused {
        /// The command.
        method: String,
        /// Its message.
        message: String,
    },
    /// The connection ended, because the process ended or sent an invalid message. Holds the cause with a colon before it;
    /// empty if it is not known.
    #[error("the inspector's connection ended{0}")]
    Closed(String),
}

/// An entry of `/json/list`: one thing that an inspector can be connected to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct InspectorTarget {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) url: String,
    web_socket_debugger_url: String,
}

impl InspectorTarget {
    /// Returns the URL to connect to. Only its path is taken from the entry: another host in it could be on another
    /// machine.
    pub(crate) fn socket(&self, address: SocketAddr) -> Option<TargetUrl> {
        let url = TargetUrl::parse(&self.web_socket_debugger_url)?;
        Some(TargetUrl::local("ws", address, url.path()))
    }
}

/// Lists the inspector targets at an address of this machine.
pub(crate) async fn list(address: SocketAddr) -> Result<Vec<InspectorTarget>, CdpError> {
    let url = TargetUrl::local("http", address, "/json/list");
    let body = http::get(&url, &[address], 1 << 20).await.map_err(CdpError::Http)?;
    let listed: Vec<InspectorTarget> =
        serde_json::from_slice(&body).map_err(|error| CdpError::NotInspector(error.to_string()))?;
    if listed.iter().all(|listed| listed.socket(address).is_none()) {
        return Err(CdpError::NotInspector("it lists nothing to connect to".to_owned()));
    }
    Ok(listed)
}

/// An event of the protocol.
#[derive(Clone, Debug)]
pub(crate) struct CdpEvent {
    pub(crate) method: String,
    pub(crate) params: Value,
}

type PendingCommands = HashMap<u64, oneshot::Sender<Result<Box<RawValue>, InspectorCommandError>>>;

/// The state that the reading task and the callers share.
#[derive(Default)]
struct SharedCdpSession {
    /// The commands that wait for an answer, by id. `None` once the connection has ended.
    pending: Mutex<Option<PendingCommands>>,
    /// The receiver of events, if there is one.
    events: Mutex<Option<mpsc::Sender<CdpEvent>>>,
    /// The cause of the end of the connection, for [`Error::Closed`].
    close_reason: Mutex<String>,
    /// A process that ends is held until what it has recorded is fetched.
    holds_exit: AtomicBool,
    /// The process would end if no inspector were connected.
    is_exiting: AtomicBool,
}

// A poisoned lock is used on: each critical section is one assignment, which leaves no half-changed state.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type MessageSink = SplitSink<WebSocketStream<TcpStream>, Message>;

/// Acknowledges received packets at once (`TCP_QUICKACK` in tcp(7)). The inspector's side collects small packets (Nagle),
/// so that each of several answers would wait 40 ms for the acknowledgement of the one before.
struct QuickAck {
    #[cfg(target_os = "linux")]
    socket: Option<std::os::fd::OwnedFd>,
}

impl QuickAck {
    fn new(stream: &TcpStream) -> Self {
        #[cfg(not(target_os = "linux"))]
        let _ = stream;
        Self {
            #[cfg(target_os = "linux")]
            socket: std::os::fd::AsFd::as_fd(stream).try_clone_to_owned().ok(),
        }
    }

    /// Acknowledges what was received. It has to be called for each message: the kernel resets the option by itself.
    fn acknowledge(&self) {
        #[cfg(target_os = "linux")]
        if let Some(socket) = &self.socket {
            // A failure costs time only.
            let _ = rustix::net::sockopt::set_tcp_quickack(socket, true);
        }
    }
}

/// The event of a process that would end if no inspector were connected.
const WAITING_FOR_DISCONNECT: &str = "NodeRuntime.waitingForDisconnect";

/// A connection to one inspector. Commands may be sent from several tasks at once; the inspector runs them in the order
/// in which they are sent. Dropping the session closes the connection.
pub(crate) struct CdpSession {
    output: Arc<tokio::sync::Mutex<MessageSink>>,
    shared: Arc<SharedCdpSession>,
    last_id: AtomicU64,
    reader: tokio::task::JoinHandle<()>,
    url: TargetUrl,
}

impl std::fmt::Debug for CdpSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CdpSession").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Drop for CdpSession {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl CdpSession {
    /// Connects to `url`, which must name this machine. A message longer than `max_message_bytes` ends the
    /// connection.
    pub(crate) async fn connect(url: &TargetUrl, max_message_bytes: usize) -> Result<Self, CdpError> {
        let connecting = async {
            let addresses = url.loopback();
            if addresses.is_empty() {
                return Err(CdpError::NotInspector(format!("`{}` is not this machine", url.host())));
            }
            let stream = http::connect(&addresses).await.map_err(CdpError::Http)?;
            let quick_ack = QuickAck::new(&stream);
            let config = WebSocketConfig::default()
                .max_message_size(Some(max_message_bytes))
                .max_frame_size(Some(max_message_bytes));
            let handshake =
                tokio_tungstenite::client_async_with_config(url.to_string(), stream, Some(config)).await;
            let (socket, _) = handshake.map_err(|error| CdpError::NotInspector(error.to_string()))?;
            Ok((socket, quick_ack))
        };
        let connected = tokio::time::timeout(TIME_LIMIT, connecting).await;
        let timed_out = || CdpError::TimedOut { method: "the connection".to_owned(), limit: TIME_LIMIT };
        let (socket, quick_ack) = connected.map_err(|_| timed_out())??;
        let (output, mut input) = socket.split();
        let shared = Arc::new(SharedCdpSession {
            pending: Mutex::new(Some(PendingCommands::default())),
            ..SharedCdpSession::default()
        });
        let output = Arc::new(tokio::sync::Mutex::new(output));
        let (reader_state, writer) = (Arc::clone(&shared), Arc::clone(&output));
        let reader = tokio::spawn(async move {
            let reason = loop {
                match input.next().await {
                    Some(Ok(Message::Text(text))) => {
                        quick_ack.acknowledge();
                        if !reader_state.dispatch(&text).await {
                            // As long as we stay connected, the process cannot end.
                            break ": the process ends".to_owned();
                        }
                    }
                    Some(Ok(Message::Close(_))) | None => break String::new(),
                    // Pings and pongs are answered by the library; binary messages are not of the protocol.
                    Some(Ok(_)) => {}
                    Some(Err(tungstenite::Error::Capacity(error))) => break format!(": {error}"),
                    Some(Err(error)) => break format!(": {error}"),
                }
            };
            // The reason first: callers read it as soon as the pending commands are dropped.
            *lock(&reader_state.close_reason) = reason;
            lock(&reader_state.pending).take();
            lock(&reader_state.events).take();
            // The other side may be gone, and then there is nobody to close it for.
            let _ = writer.lock().await.close().await;
        });
        Ok(Self { output, shared, last_id: AtomicU64::new(0), reader, url: url.clone() })
    }

    /// Sends a command and returns its result. The time limit is [`TIME_LIMIT`].
    pub(crate) async fn call(&self, method: &str, params: Value) -> Result<Value, CdpError> {
        self.call_within(method, params, TIME_LIMIT).await
    }

    /// Sends a command and returns its result, with a time limit of its own.
    pub(crate) async fn call_within(
        &self,
        method: &str,
        params: Value,
        limit: Duration,
    ) -> Result<Value, CdpError> {
        let text = self.call_for_text(method, params, limit).await?;
        serde_json::from_str(text.get()).map_err(|error| CdpError::NotInspector(error.to_string()))
    }

    /// Sends a command and returns its result as unparsed JSON, for one that is large, or nested deeper than [`Value`]
    /// allows.
    pub(crate) async fn call_for_text(
        &self,
        method: &str,
        params: Value,
        limit: Duration,
    ) -> Result<Box<RawValue>, CdpError> {
        // Relaxed: ids only have to differ.
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answer) = oneshot::channel();
        // Registered before the command is sent: the answer may arrive before the sending returns.
        match &mut *lock(&self.shared.pending) {
            Some(pending) => pending.insert(id, sender),
            None => return Err(self.closed()),
        };
        let message = json!({"id": id, "method": method, "params": params}).to_string();
        let answered = tokio::time::timeout(limit, async {
            self.output.lock().await.send(Message::text(message)).await.map_err(|_| self.closed())?;
            answer.await.map_err(|_| self.closed())
        });
        let answered = answered.await;
        // A late answer finds no sender and is ignored.
        if answered.is_err()
            && let Some(pending) = &mut *lock(&self.shared.pending)
        {
            pending.remove(&id);
        }
        match answered {
            Ok(Ok(Ok(result))) => Ok(result),
            Ok(Ok(Err(refusal))) => {
                Err(CdpError::Refused { method: method.to_owned(), message: refusal.message })
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(CdpError::TimedOut { method: method.to_owned(), limit }),
        }
    }

    /// Returns a receiver of the events from now on. It replaces an earlier one. Up to 1,024 events wait to be received;
    /// beyond them the connection is not read, so no command is answered either, until some are received.
    pub(crate) fn events(&self) -> mpsc::Receiver<CdpEvent> {
        let (sender, events) = mpsc::channel(MAX_QUEUED_EVENTS);
        // After the end of the connection nobody would drop the sender, and the receiver would wait for ever.
        if lock(&self.shared.pending).is_some() {
            *lock(&self.shared.events) = Some(sender);
        }
        events
    }

    /// Asks to be told when the process ends, which it cannot as long as an inspector is connected: [`Self::is_exiting`]
    /// then is true, and the caller must fetch what it needs and drop the session. An inspector without this command, such
    /// as that of Deno, refuses it.
    #[cfg(feature = "trace")]
    pub(crate) async fn hold_exit(&self) -> Result<(), CdpError> {
        self.shared.holds_exit.store(true, Ordering::Release);
        let asked = self.call("NodeRuntime.notifyWhenWaitingForDisconnect", json!({"enabled": true})).await;
        asked.map(|_| ())
    }

    /// Returns true if the process would end if no inspector were connected.
    #[cfg(feature = "trace")]
    pub(crate) fn is_exiting(&self) -> bool {
        self.shared.is_exiting.load(Ordering::Acquire)
    }

    /// Returns true once the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.shared.pending).is_none()
    }

    /// The URL of the inspector.
    pub(crate) fn url(&self) -> &TargetUrl {
        &self.url
    }

    fn closed(&self) -> CdpError {
        CdpError::Closed(lock(&self.shared.close_reason).clone())
    }
}

/// A message of the inspector: an answer if it has an id, else an event.
#[derive(Deserialize)]
struct CdpIncomingMessage {
    id: Option<u64>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    result: Option<Box<RawValue>>,
    error: Option<InspectorCommandError>,
}

/// The error of a command.
#[derive(Deserialize)]
struct InspectorCommandError {
    #[serde(default)]
    message: String,
}

impl SharedCdpSession {
    /// Passes a message on to the command or receiver that waits for it. Returns false if the connection must be closed.
    ///
    /// A message that is not of the protocol is ignored: a command that waits for it runs into its time limit.
    async fn dispatch(&self, text: &str) -> bool {
        // Parsing is what a large answer costs, so the text is only rewritten if it may hold half a surrogate pair.
        let mut fixed = None;
        if ["\\ud", "\\uD"]
            .iter()
            .any(|half| memchr::memmem::find(text.as_bytes(), half.as_bytes()).is_some())
        {
            fixed = Some(well_formed(text));
        }
        let Ok(incoming) = serde_json::from_str(fixed.as_deref().unwrap_or(text)) else { return true };
        let CdpIncomingMessage { id, method, params, result, error } = incoming;
        if let Some(id) = id {
            let sender = lock(&self.pending).as_mut().and_then(|pending| pending.remove(&id));
            if let Some(sender) = sender {
                // The caller may have been dropped, so a failure to send is ignored.
                let result = result.unwrap_or_else(|| RawValue::NULL.to_owned());
                let _ = sender.send(error.map_or(Ok(result), Err));
            }
        } else if let Some(method) = method {
            if method == WAITING_FOR_DISCONNECT {
                self.is_exiting.store(true, Ordering::Release);
                return self.holds_exit.load(Ordering::Acquire);
            }
            // Cloned, so that the lock is not held while the queue is full.
            let receiver = lock(&self.events).clone();
            if let Some(receiver) = receiver {
                let _ = receiver.send(CdpEvent { method, params }).await;
            }
        }
        true
    }
}

/// Replaces each half of a surrogate pair that stands alone in the JSON `text`. JavaScript's strings may hold such halves,
/// and V8 writes them as `\ud83d`, which is no character and which `serde_json` rejects.
fn well_formed(text: &str) -> String {
    const REPLACEMENT: &str = "\\ufffd";
    // Returns the UTF-16 code unit of the escape at a position.
    let unit = |start: usize| {
        let digits = text.get(start..start + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut fixed = String::with_capacity(text.len());
    let (mut copied, mut position) = (0, 0);
    while let Some(found) = text.get(position..).and_then(|rest| memchr::memchr(b'\\', rest.as_bytes())) {
        let start = position + found;
        position = match unit(start) {
            Some(0xd800..=0xdbff) if matches!(unit(start + 6), Some(0xdc00..=0xdfff)) => start + 12,
            Some(0xd800..=0xdfff) => {
                fixed.push_str(text.get(copied..start).unwrap_or_default());
                fixed.push_str(REPLACEMENT);
                copied = start + 6;
                copied
            }
            // Any other escape: two bytes, so that the second backslash of `\\` begins no escape.
            _ => start + 2,
        };
    }
    fixed.push_str(text.get(copied..).unwrap_or_default());
    fixed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_pair_becomes_a_replacement_and_a_pair_stays() {
        for (given, fixed) in [
            (r#""a\ud83db""#, "a\u{fffd}b"),
            (r#""\ude00""#, "\u{fffd}"),
            (r#""\ud83d\ude00""#, "\u{1f600}"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
            (r#""\\ud83d""#, "\\ud83d"),
            (r#""é\ud800""#, "é\u{fffd}"),
        ] {
            assert_eq!(serde_json::from_str::<String>(&well_formed(given)).unwrap(), fixed, "{given}");
        }
    }

    #[tokio::test]
    async fn another_machine_is_not_connected_to() {
        let error =
            CdpSession::connect(&TargetUrl::parse("ws://192.0.2.1:9229/x").unwrap(), 1000).await.unwrap_err();
        assert_eq!(error.to_string(), "what answers there is no inspector: `192.0.2.1` is not this machine");
    }
}
