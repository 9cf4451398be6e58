//! A client of the inspector protocol, as V8 speaks it (Node.js, Deno): commands by id, and events.
//!
//! Only inspectors of this machine are spoken to: whoever reaches one may run code in its process.
//!
//! <https://chromedevtools.github.io/devtools-protocol/v8/>

use super::http;
use super::target::Url;
use futures_util::SinkExt as _;
use futures_util::stream::{SplitSink, StreamExt as _};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};

/// How long a command may take where nothing else is said.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(5);
/// The longest message that is taken where nothing else is said.
pub(crate) const MOST_MESSAGE: usize = 64 << 20;
/// Events that may wait to be taken. Beyond them the connection is not read.
const MOST_WAITING: usize = 1024;

/// Why an inspector did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The list of what can be inspected could not be had.
    #[error("no inspector answers there")]
    Http(#[source] http::Error),
    /// What answers there is something else.
    #[error("what answers there is no inspector: {0}")]
    NotInspector(String),
    /// It did not answer in time.
    #[error("no answer to {method} within {} ms", .limit.as_millis())]
    TimedOut {
        /// The command.
        method: String,
        /// How long was waited.
        limit: Duration,
    },
    /// It refused a command.
    #[error("{method}: {message}")]
    Refused {
        /// The command.
        method: String,
        /// In its words.
        message: String,
    },
    /// The connection ended: the process did, or it sent what cannot be taken.
    #[error("the inspector's connection ended{0}")]
    Closed(String),
}

/// One thing that can be inspected, as `/json/list` has it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Listed {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) url: String,
    web_socket_debugger_url: String,
}

impl Listed {
    /// Where its connection is made. The path alone is believed: the host is the one that was asked.
    pub(crate) fn socket(&self, address: SocketAddr) -> Option<Url> {
        let url = Url::parse(&self.web_socket_debugger_url)?;
        Some(Url::local("ws", address, url.path()))
    }
}

/// What can be inspected at an address of this machine.
pub(crate) async fn list(address: SocketAddr) -> Result<Vec<Listed>, Error> {
    let url = Url::local("http", address, "/json/list");
    let body = http::get(&url, &[address], 1 << 20).await.map_err(Error::Http)?;
    let listed: Vec<Listed> =
        serde_json::from_slice(&body).map_err(|error| Error::NotInspector(error.to_string()))?;
    if listed.iter().all(|listed| listed.socket(address).is_none()) {
        return Err(Error::NotInspector("it lists nothing to connect to".to_owned()));
    }
    Ok(listed)
}

/// An event, or what it says.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) method: String,
    pub(crate) params: Value,
}

type Waiting = HashMap<u64, oneshot::Sender<Result<Box<RawValue>, String>>>;

/// What the reading side and the commands share.
#[derive(Default)]
struct Shared {
    /// Those who wait for an answer. None once the connection has ended.
    waiting: Mutex<Option<Waiting>>,
    /// Whoever takes events.
    events: Mutex<Option<mpsc::Sender<Event>>>,
    /// Why the connection ended.
    ended: Mutex<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Output = SplitSink<WebSocketStream<TcpStream>, Message>;

/// Tells the inspector at once that an answer has come. Its side of the connection gathers small packets (Nagle), so
/// that of several answers each would wait 40 ms for the one before to be acknowledged (`TCP_QUICKACK` in tcp(7)).
struct Acknowledged {
    #[cfg(target_os = "linux")]
    socket: Option<std::os::fd::OwnedFd>,
}

impl Acknowledged {
    fn of(stream: &TcpStream) -> Self {
        #[cfg(not(target_os = "linux"))]
        let _ = stream;
        Self {
            #[cfg(target_os = "linux")]
            socket: std::os::fd::AsFd::as_fd(stream).try_clone_to_owned().ok(),
        }
    }

    /// It holds for what has come, and not for good.
    fn at_once(&self) {
        #[cfg(target_os = "linux")]
        if let Some(socket) = &self.socket {
            // Without it all is as it was, only slower.
            let _ = rustix::net::sockopt::set_tcp_quickack(socket, true);
        }
    }
}

/// What a process says that would end, if it were not for its inspectors.
const WAITS_FOR_US: &str = "NodeRuntime.waitingForDisconnect";

/// A connection to one inspector. Commands may be given from several places at once; they are carried out in the
/// order in which they are sent. Dropping it closes the connection.
pub(crate) struct Session {
    output: Arc<tokio::sync::Mutex<Output>>,
    shared: Arc<Shared>,
    last_id: AtomicU64,
    reader: tokio::task::JoinHandle<()>,
    /// When the connection was made, the process answered under this name.
    url: Url,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Session {
    /// Connects to `url`, which must name this machine. A message longer than `most` bytes ends the connection.
    pub(crate) async fn connect(url: &Url, most: usize) -> Result<Self, Error> {
        let connecting = async {
            let addresses = url.loopback();
            if addresses.is_empty() {
                return Err(Error::NotInspector(format!("`{}` is not this machine", url.host())));
            }
            let stream = http::connect(&addresses).await.map_err(Error::Http)?;
            let acknowledged = Acknowledged::of(&stream);
            let config = WebSocketConfig::default().max_message_size(Some(most)).max_frame_size(Some(most));
            let shaken =
                tokio_tungstenite::client_async_with_config(url.to_string(), stream, Some(config)).await;
            let (socket, _) = shaken.map_err(|error| Error::NotInspector(error.to_string()))?;
            Ok((socket, acknowledged))
        };
        let connected = tokio::time::timeout(TIME_LIMIT, connecting).await;
        let timed_out = || Error::TimedOut { method: "the connection".to_owned(), limit: TIME_LIMIT };
        let (socket, acknowledged) = connected.map_err(|_| timed_out())??;
        let (output, mut input) = socket.split();
        let shared = Arc::new(Shared { waiting: Mutex::new(Some(Waiting::default())), ..Shared::default() });
        let output = Arc::new(tokio::sync::Mutex::new(output));
        let (reading, closing) = (Arc::clone(&shared), Arc::clone(&output));
        let reader = tokio::spawn(async move {
            let why = loop {
                match input.next().await {
                    Some(Ok(Message::Text(text))) => {
                        acknowledged.at_once();
                        if !reading.take(&text).await {
                            break ": the process ends".to_owned();
                        }
                    }
                    Some(Ok(Message::Close(_))) | None => break String::new(),
                    Some(Ok(_)) => {}
                    Some(Err(tungstenite::Error::Capacity(error))) => break format!(": {error}"),
                    Some(Err(error)) => break format!(": {error}"),
                }
            };
            *lock(&reading.ended) = why;
            lock(&reading.waiting).take();
            lock(&reading.events).take();
            // Nobody hears whether it could be said.
            let _ = closing.lock().await.close().await;
        });
        Ok(Self { output, shared, last_id: AtomicU64::new(0), reader, url: url.clone() })
    }

    /// Gives a command and waits for what it answers.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Result<Value, Error> {
        self.call_within(method, params, TIME_LIMIT).await
    }

    /// The same, for a command that takes longer.
    pub(crate) async fn call_within(
        &self,
        method: &str,
        params: Value,
        limit: Duration,
    ) -> Result<Value, Error> {
        let text = self.call_for_text(method, params, limit).await?;
        serde_json::from_str(text.get()).map_err(|error| Error::NotInspector(error.to_string()))
    }

    /// The same, with the answer as it was sent: it may be large, or lie deeper in itself than a [`Value`] may.
    pub(crate) async fn call_for_text(
        &self,
        method: &str,
        params: Value,
        limit: Duration,
    ) -> Result<Box<RawValue>, Error> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answer) = oneshot::channel();
        match &mut *lock(&self.shared.waiting) {
            Some(waiting) => waiting.insert(id, sender),
            None => return Err(self.closed()),
        };
        let message = json!({"id": id, "method": method, "params": params}).to_string();
        let answered = tokio::time::timeout(limit, async {
            self.output.lock().await.send(Message::text(message)).await.map_err(|_| self.closed())?;
            answer.await.map_err(|_| self.closed())
        });
        let answered = answered.await;
        if answered.is_err()
            && let Some(waiting) = &mut *lock(&self.shared.waiting)
        {
            waiting.remove(&id);
        }
        match answered {
            Ok(Ok(Ok(result))) => Ok(result),
            Ok(Ok(Err(message))) => Err(Error::Refused { method: method.to_owned(), message }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(Error::TimedOut { method: method.to_owned(), limit }),
        }
    }

    /// The events from now on. There is one taker at a time, the last. Up to 1,024 events wait to be taken; then the
    /// connection is not read, and so no command answered, until some are.
    pub(crate) fn events(&self) -> mpsc::Receiver<Event> {
        let (sender, events) = mpsc::channel(MOST_WAITING);
        if lock(&self.shared.waiting).is_some() {
            *lock(&self.shared.events) = Some(sender);
        }
        events
    }

    /// Whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.shared.waiting).is_none()
    }

    /// Where it leads.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    fn closed(&self) -> Error {
        Error::Closed(lock(&self.shared.ended).clone())
    }
}

#[derive(Deserialize)]
struct Incoming {
    id: Option<u64>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    result: Option<Box<RawValue>>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    message: String,
}

impl Shared {
    /// What is no message of the protocol is left: whoever waits for an answer sees that none comes.
    ///
    /// Whether the connection goes on.
    async fn take(&self, text: &str) -> bool {
        let mut fixed = None;
        if ["\\ud", "\\uD"]
            .iter()
            .any(|half| memchr::memmem::find(text.as_bytes(), half.as_bytes()).is_some())
        {
            fixed = Some(well_formed(text));
        }
        let Ok(incoming) = serde_json::from_str(fixed.as_deref().unwrap_or(text)) else { return true };
        let Incoming { id, method, params, result, error } = incoming;
        if let Some(id) = id {
            let waiting = lock(&self.waiting).as_mut().and_then(|waiting| waiting.remove(&id));
            if let Some(waiting) = waiting {
                // Whoever waited may have gone.
                let result = result.unwrap_or_else(|| RawValue::NULL.to_owned());
                let _ = waiting.send(error.map_or(Ok(result), |refusal| Err(refusal.message)));
            }
        } else if let Some(method) = method {
            if method == WAITS_FOR_US {
                return false;
            }
            let taker = lock(&self.events).clone();
            if let Some(taker) = taker {
                let _ = taker.send(Event { method, params }).await;
            }
        }
        true
    }
}

/// JSON in which no half of a surrogate pair stands alone: JavaScript's strings may hold such, and V8 writes them as
/// `\ud83d`, which is no character.
fn well_formed(text: &str) -> String {
    const REPLACEMENT: &str = "\\ufffd";
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut fixed = String::with_capacity(text.len());
    let (mut done, mut at) = (0, 0);
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr(b'\\', rest.as_bytes())) {
        let start = at + found;
        at = match unit(start) {
            Some(0xd800..=0xdbff) if matches!(unit(start + 6), Some(0xdc00..=0xdfff)) => start + 12,
            Some(0xd800..=0xdfff) => {
                fixed.push_str(text.get(done..start).unwrap_or_default());
                fixed.push_str(REPLACEMENT);
                done = start + 6;
                done
            }
            _ => start + 2,
        };
    }
    fixed.push_str(text.get(done..).unwrap_or_default());
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
        let error = Session::connect(&Url::parse("ws://192.0.2.1:9229/x").unwrap(), 1000).await.unwrap_err();
        assert_eq!(error.to_string(), "what answers there is no inspector: `192.0.2.1` is not this machine");
    }
}
