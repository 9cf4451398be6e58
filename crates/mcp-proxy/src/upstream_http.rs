//! A server that is reached by URL: MCP's Streamable HTTP, in both eras.
//!
//! The session writes lines into a pipe, as to a child. Here each is posted; what comes back is cut into
//! messages, which are read as strictly as a child's lines.

use super::backoff::{Backoff, pause, until};
use super::event_reader::EventReader;
use super::line_reader::{BoundedLineReader, Line};
use super::output_queue::{MAX_QUEUE_BYTES, OutputQueue};
use super::session::ProxySession;
use json_rpc::json::Json;
use json_rpc::message::{Id, MAX_MESSAGE_BYTES, Message, MessageKind};
use process_runner::CancellationToken;
use std::fmt;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use ureq::http::{HeaderMap, HeaderName, HeaderValue, Response, Uri};
use ureq::{Agent, Body};

/// The longest time to establish a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest time for a message that has no answer: a notification or a response.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest time to end the server's session when the proxy ends.
const DELETE_TIMEOUT: Duration = Duration::from_millis(300);
/// The largest number of open requests, each with a thread and a connection.
const MAX_OPEN_REQUESTS: usize = 128;
/// The delay between two attempts to open the stream of the server's own messages.
const LISTEN_RETRY_DELAY: Duration = Duration::from_secs(2);

/// The interval at which a full queue to the client is looked at again.
const CAPACITY_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A server that is reached by URL, with the headers of every request to it.
#[derive(Clone)]
pub struct RemoteServer {
    url: Uri,
    headers: HeaderMap,
}

impl fmt::Debug for RemoteServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The values are secrets, and a query may be one.
        let names: Vec<&str> = self.headers.keys().map(HeaderName::as_str).collect();
        f.debug_struct("RemoteServer")
            .field("host", &self.url.host())
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

/// The headers that the proxy or the HTTP client sets itself.
const RESERVED: [&str; 12] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The error for a URL or a header that cannot be used. The error repeats neither the URL nor the value of a header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The text is not a URL.
    #[error("no URL: {0}")]
    NotAUrl(String),
    /// The URL names no host.
    #[error("a URL needs a host")]
    NoHost,
    /// The URL holds a user or a password, which every user of the machine could read on the command line.
    #[error("no user or password may stand in a URL; use a header")]
    Credentials,
    /// The URL is `http` to another machine.
    #[error("http is for this machine alone; use https")]
    Unencrypted,
    /// The URL has another scheme, or none.
    #[error("a URL begins with https:// or, to this machine, http://")]
    Scheme,
    /// HTTP allows no header of this name.
    #[error("{0:?} is no name of a header")]
    HeaderName(String),
    /// The proxy sets this header itself.
    #[error("the header `{0}` is not for you to set")]
    ReservedHeader(String),
    /// HTTP does not allow the value of this header.
    #[error("the value of the header `{0}` cannot be sent")]
    HeaderValue(String),
}

impl RemoteServer {
    /// Names the server at `url`: `https`, or `http` to this machine alone. A user or password in it is refused,
    /// because every user of the machine can read a command line.
    ///
    /// # Errors
    ///
    /// The URL cannot be used.
    pub fn new(url: &str) -> Result<Self, RemoteError> {
        let url: Uri = url.parse().map_err(|error| RemoteError::NotAUrl(format!("{error}")))?;
        let authority = url.authority().ok_or(RemoteError::NoHost)?;
        if authority.as_str().contains('@') {
            return Err(RemoteError::Credentials);
        }
        let is_local = matches!(authority.host(), "localhost" | "127.0.0.1" | "[::1]");
        match url.scheme_str() {
            Some("https") => {}
            Some("http") if is_local => {}
            Some("http") => return Err(RemoteError::Unencrypted),
            _ => return Err(RemoteError::Scheme),
        }
        Ok(Self { url, headers: HeaderMap::new() })
    }

    /// Adds a header to every request.
    ///
    /// # Errors
    ///
    /// HTTP does not allow the name or the value, or the proxy sets the header itself.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, RemoteError> {
        let header: HeaderName = name.parse().map_err(|_| RemoteError::HeaderName(name.to_owned()))?;
        if RESERVED.contains(&header.as_str()) || header.as_str().starts_with("mcp-") {
            return Err(RemoteError::ReservedHeader(header.to_string()));
        }
        let mut value: HeaderValue =
            value.parse().map_err(|_| RemoteError::HeaderValue(header.to_string()))?;
        // `Debug` of the headers then shows no value.
        value.set_sensitive(true);
        self.headers.insert(header, value);
        Ok(self)
    }
}

/// Keeps a connection until the client is gone or `end` is cancelled.
pub(super) async fn supervise(
    session: &ProxySession,
    remote: &RemoteServer,
    max_timeout: Duration,
    end: &CancellationToken,
) {
    let mut backoff = Backoff::new();
    loop {
        let started_at = Instant::now();
        let connection = match connect(session, remote, max_timeout) {
            Ok(connection) => connection,
            Err(error) => return tracing::error!(%error, "cannot begin"),
        };
        let is_over = watch(session, connection.generation, end).await;
        session.server_is_gone(connection.generation, "the session with it has ended");
        // Ends the thread that listens.
        connection.is_over.store(true, Ordering::Release);
        if is_over {
            // A server that is slow to hear of it forgets the session by itself.
            let goodbye = tokio::task::spawn_blocking(move || connection.delete_session());
            let _ = tokio::time::timeout(DELETE_TIMEOUT, goodbye).await;
            return;
        }
        if pause(session, backoff.next_delay(started_at), end).await {
            return;
        }
    }
}

/// Waits for the end of the session; returns true if it is the client's.
async fn watch(session: &ProxySession, generation: u64, end: &CancellationToken) -> bool {
    loop {
        let supervision = session.tick(Instant::now());
        if supervision.is_over || supervision.condemned == Some(generation) {
            return supervision.is_over;
        }
        tokio::select! {
            () = end.cancelled() => return true,
            () = session.wait() => {}
            () = until(supervision.next_check) => {}
        }
    }
}

fn connect(
    session: &ProxySession,
    remote: &RemoteServer,
    max_timeout: Duration,
) -> io::Result<Arc<RemoteConnection>> {
    let (reader, writer) = io::pipe()?;
    let queue = OutputQueue::new(OwnedFd::from(writer), MAX_QUEUE_BYTES, "to-server")?;
    let generation = session.server_is_up(queue);
    let config = Agent::config_builder()
        .http_status_as_error(false)
        // A redirect would carry the headers to another server.
        .max_redirects(0)
        .max_redirects_will_error(false)
        // The environment's `HTTPS_PROXY` is ignored: the headers are for the server that the operator named.
        .proxy(None)
        .user_agent(concat!("mcp-proxy/", env!("CARGO_PKG_VERSION")))
        // Uncompressed, so that a small answer cannot unpack to a huge one.
        .accept_encoding("identity")
        .max_response_header_size(64 * 1024)
        .max_idle_connections_per_host(8)
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .build();
    let connection = Arc::new(RemoteConnection {
        agent: Agent::new_with_config(config),
        remote: remote.clone(),
        session: session.clone(),
        generation,
        max_timeout,
        session_id: Mutex::default(),
        open_requests: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
    });
    let poster = Arc::clone(&connection);
    let mut lines = BoundedLineReader::new(reader.into(), MAX_MESSAGE_BYTES * 2);
    std::thread::Builder::new().name("to-url".to_owned()).spawn(move || {
        while let Ok(Line::Whole(line)) = lines.next() {
            poster.post(line);
        }
    })?;
    Ok(connection)
}

/// One generation of the connection to the server.
struct RemoteConnection {
    agent: Agent,
    remote: RemoteServer,
    session: ProxySession,
    generation: u64,
    /// The longest time that any request may take.
    max_timeout: Duration,
    /// The session id that the server gave, in versions of MCP with a handshake.
    session_id: Mutex<Option<HeaderValue>>,
    /// The requests without an answer yet, each with a thread.
    open_requests: AtomicUsize,
    is_over: AtomicBool,
}

/// The error for a request that gets no answer.
enum UpstreamHttpError {
    /// The request was not sent.
    NotSent(String),
    /// The request was sent and may have run.
    Unknown(String),
    /// The server no longer knows the session.
    SessionGone,
}

/// The parts of a message that MCP repeats in the headers of its request.
struct RequestMetadata {
    version: Option<String>,
    method: Option<String>,
    name: Option<String>,
}

impl RemoteConnection {
    /// Posts one line that the session has written.
    fn post(self: &Arc<Self>, line: &[u8]) {
        // The session writes nothing else than messages.
        let Ok(message) = Message::parse(line) else { return };
        let metadata = self.request_metadata(&message);
        let body = line.to_vec();
        match message.kind {
            MessageKind::Request { id, method } => {
                // Each request has a thread, since its answer may be a stream that stays open. A stream that was
                // asked for stays open for ever.
                let limit = (method != "subscriptions/listen").then_some(self.max_timeout);
                let connection = Arc::clone(self);
                if self.open_requests.fetch_add(1, Ordering::AcqRel) >= MAX_OPEN_REQUESTS {
                    self.open_requests.fetch_sub(1, Ordering::AcqRel);
                    return self
                        .give_up(&id, &UpstreamHttpError::NotSent("too many requests are open".to_owned()));
                }
                let give_up = (Arc::clone(self), id.clone());
                let thread = std::thread::Builder::new().name("request".to_owned()).spawn(move || {
                    let answered = connection.exchange(&body, &metadata, limit, true);
                    connection.open_requests.fetch_sub(1, Ordering::AcqRel);
                    let failure = answered.err().unwrap_or_else(|| {
                        UpstreamHttpError::Unknown("its answer has ended without one".to_owned())
                    });
                    // If the answer came, no request is open under this id any more, and nothing fails.
                    connection.give_up(&id, &failure);
                });
                if let Err(error) = thread {
                    let (connection, id) = give_up;
                    connection.open_requests.fetch_sub(1, Ordering::AcqRel);
                    connection.give_up(&id, &UpstreamHttpError::NotSent(error.to_string()));
                }
            }
            // On this thread, so that notifications reach the server in their order, before what comes after them.
            MessageKind::Notification { method } => {
                if let Err(failure) = self.exchange(&body, &metadata, Some(NOTIFICATION_TIMEOUT), false) {
                    tracing::debug!(%failure, "a notification was not taken");
                } else if method == "notifications/initialized" {
                    self.listen();
                }
            }
            MessageKind::Response { .. } => {
                if let Err(failure) = self.exchange(&body, &metadata, Some(NOTIFICATION_TIMEOUT), false) {
                    tracing::debug!(%failure, "a response was not taken");
                }
            }
        }
    }

    fn request_metadata(&self, message: &Message<'_>) -> RequestMetadata {
        let modern = message.is_modern();
        let text = |name: &str| message.params()?.get(name).and_then(Json::as_str).map(str::to_owned);
        let (MessageKind::Request { method, .. } | MessageKind::Notification { method }) = &message.kind
        else {
            return RequestMetadata { version: self.session.protocol_version(), method: None, name: None };
        };
        if !modern {
            let version = if method == "initialize" { None } else { self.session.protocol_version() };
            return RequestMetadata { version, method: None, name: None };
        }
        let meta = message.meta().and_then(|meta| meta.get("io.modelcontextprotocol/protocolVersion"));
        let name = match method.as_str() {
            "tools/call" | "prompts/get" => text("name"),
            "resources/read" => text("uri"),
            _ => None,
        };
        RequestMetadata {
            version: meta.and_then(Json::as_str).map(str::to_owned),
            method: Some(method.clone()),
            name,
        }
    }

    /// Posts a message and, for a request, delivers what comes back.
    fn exchange(
        &self,
        body: &[u8],
        metadata: &RequestMetadata,
        limit: Option<Duration>,
        is_request: bool,
    ) -> Result<(), UpstreamHttpError> {
        let mut request = self.agent.post(&self.remote.url).config().timeout_global(limit).build();
        let headers = request.headers_mut().ok_or_else(|| UpstreamHttpError::NotSent("no URL".to_owned()))?;
        self.add_headers(headers, metadata, "application/json, text/event-stream")?;
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        let answer = request.send(body).map_err(|error| classify(&error))?;
        self.check_status(&answer)?;
        // MCP: it comes with the answer to `initialize`.
        if let Some(id) = answer.headers().get("mcp-session-id") {
            *self.session_id.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.clone());
        }
        if is_request { self.deliver(answer) } else { Ok(()) }
    }

    fn add_headers(
        &self,
        headers: &mut HeaderMap,
        metadata: &RequestMetadata,
        accept: &'static str,
    ) -> Result<(), UpstreamHttpError> {
        headers.extend(self.remote.headers.clone());
        headers.insert("accept", HeaderValue::from_static(accept));
        if let Some(id) = &*self.session_id.lock().unwrap_or_else(PoisonError::into_inner) {
            headers.insert("mcp-session-id", id.clone());
        }
        // After the operator's headers, so that none of those replaces one of these.
        let message_headers = [
            ("mcp-protocol-version", &metadata.version),
            ("mcp-method", &metadata.method),
            ("mcp-name", &metadata.name),
        ];
        for (name, value) in message_headers {
            let Some(value) = value.as_ref().filter(|value| !value.is_empty()) else { continue };
            let value =
                value.parse().map_err(|_| UpstreamHttpError::NotSent(format!("`{name}` cannot be sent")))?;
            headers.insert(name, value);
        }
        Ok(())
    }

    /// Accepts any 2xx status. The body of any other answer is not read: it holds no message.
    fn check_status(&self, answer: &Response<Body>) -> Result<(), UpstreamHttpError> {
        let status = answer.status();
        let has_session = self.session_id.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        // MCP: with a session id, 404 means that the session is over, and that a client begins a new one.
        if status.as_u16() == 404 && has_session {
            return Err(UpstreamHttpError::SessionGone);
        }
        if !status.is_success() {
            return Err(UpstreamHttpError::Unknown(format!("HTTP status {}", status.as_u16())));
        }
        let is_identity = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
        if answer.headers().get_all("content-encoding").iter().any(|value| !is_identity(value)) {
            return Err(UpstreamHttpError::Unknown(
                "a compressed answer, which was not asked for".to_owned(),
            ));
        }
        Ok(())
    }

    fn deliver(&self, mut answer: Response<Body>) -> Result<(), UpstreamHttpError> {
        let media_type = answer.headers().get("content-type").and_then(|value| value.to_str().ok());
        let media_type = media_type.and_then(|value| value.split(';').next()).unwrap_or_default();
        let media_type = media_type.trim().to_ascii_lowercase();
        let read_error =
            |error: io::Error| UpstreamHttpError::Unknown(format!("its answer cannot be read: {error}"));
        let reader = answer.body_mut().as_reader();
        match media_type.as_str() {
            "application/json" => {
                let mut body = Vec::new();
                reader.take(MAX_MESSAGE_BYTES as u64 + 1).read_to_end(&mut body).map_err(read_error)?;
                self.session.server_line(self.generation, &body);
                Ok(())
            }
            "text/event-stream" => {
                // The names of the fields count as well, so an event may be a little longer than a message.
                let mut events = EventReader::new(reader, MAX_MESSAGE_BYTES + 1024);
                while let Some(data) = events.next().map_err(read_error)? {
                    // No event is read while the client does not read; the reader thread does the same for a child.
                    while !self.session.client().wait_for_capacity(CAPACITY_CHECK_INTERVAL) {}
                    self.session.server_line(self.generation, &data);
                }
                Ok(())
            }
            _ => Err(UpstreamHttpError::Unknown(
                "an answer that is neither JSON nor a stream of events".to_owned(),
            )),
        }
    }

    /// Fails the request, if it is still open.
    fn give_up(&self, id: &Id, failure: &UpstreamHttpError) {
        if matches!(failure, UpstreamHttpError::SessionGone) {
            return self.session.server_is_gone(self.generation, "it does not know the session any more");
        }
        self.session.server_gave_up(self.generation, id, &failure.to_string());
    }

    /// Opens the stream of the server's own messages, which servers of the versions with a handshake may have.
    fn listen(self: &Arc<Self>) {
        let connection = Arc::clone(self);
        let thread = std::thread::Builder::new().name("listen".to_owned()).spawn(move || {
            while !connection.is_over.load(Ordering::Acquire) {
                let mut request = connection.agent.get(&connection.remote.url);
                let metadata = RequestMetadata {
                    version: connection.session.protocol_version(),
                    method: None,
                    name: None,
                };
                let Some(headers) = request.headers_mut() else { return };
                if connection.add_headers(headers, &metadata, "text/event-stream").is_err() {
                    return;
                }
                match request.call() {
                    Ok(answer) if connection.check_status(&answer).is_ok() => {
                        drop(connection.deliver(answer));
                    }
                    // 405: there is none.
                    Ok(_) => return,
                    Err(error) => tracing::debug!(%error, "cannot listen"),
                }
                std::thread::sleep(LISTEN_RETRY_DELAY);
            }
        });
        if let Err(error) = thread {
            tracing::warn!(%error, "cannot listen");
        }
    }

    fn delete_session(&self) {
        if self.session_id.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
            return;
        }
        let mut request =
            self.agent.delete(&self.remote.url).config().timeout_global(Some(DELETE_TIMEOUT)).build();
        let metadata = RequestMetadata { version: self.session.protocol_version(), method: None, name: None };
        if let Some(headers) = request.headers_mut()
            && self.add_headers(headers, &metadata, "application/json").is_ok()
        {
            let _ = request.call();
        }
    }
}

impl fmt::Display for UpstreamHttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent(problem) => write!(f, "not sent: {problem}"),
            Self::Unknown(problem) => {
                write!(
                    f,
                    "no answer from the server ({problem}): the request may have run, and is not sent again"
                )
            }
            Self::SessionGone => f.write_str("the server does not know the session any more"),
        }
    }
}

/// Distinguishes a request that surely was not sent from one that may have been.
fn classify(error: &ureq::Error) -> UpstreamHttpError {
    let problem = error.to_string();
    // Only what happens before a connection exists: after that the server may have seen the request.
    match error {
        ureq::Error::HostNotFound
        | ureq::Error::ConnectionFailed
        | ureq::Error::Timeout(ureq::Timeout::Connect) => UpstreamHttpError::NotSent(problem),
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            UpstreamHttpError::NotSent(problem)
        }
        _ => UpstreamHttpError::Unknown(problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_https_or_this_machine_and_holds_no_password() {
        for (url, allowed) in [
            ("https://example.com/mcp", true),
            ("http://localhost:8080/mcp", true),
            ("http://127.0.0.1:1/", true),
            ("http://[::1]:1/", true),
            ("http://example.com/mcp", false),
            ("http://localhost.example.com/", false),
            ("https://user:secret@example.com/", false),
            ("ftp://example.com/", false),
            ("example.com", false),
            ("/mcp", false),
            ("", false),
        ] {
            assert_eq!(RemoteServer::new(url).is_ok(), allowed, "{url}");
        }
    }

    #[test]
    fn headers_that_are_ours_or_no_headers_are_refused_and_values_are_not_shown() {
        let remote = || RemoteServer::new("https://example.com/").unwrap();
        for (name, value) in [
            ("Host", "x"),
            ("Mcp-Session-Id", "x"),
            ("Content-Length", "0"),
            ("a b", "x"),
            ("", "x"),
            ("x-a", "a\r\nb: c"),
        ] {
            let problem = remote().header(name, value).unwrap_err().to_string();
            assert!(!problem.contains("b: c"), "{problem}");
        }
        let shown = format!("{:?}", remote().header("Authorization", "Bearer secret").unwrap());
        assert!(shown.contains("authorization") && !shown.contains("secret"), "{shown}");
    }
}
