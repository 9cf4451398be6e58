//! A server that is reached by URL: MCP's Streamable HTTP, in both eras.
//!
//! The session writes lines into a pipe, as to a child. Here each is posted; what comes back is cut into
//! messages, which are read as strictly as a child's lines.

use super::Error;
use super::events::Events;
use super::json::Json;
use super::lines::{Line, Lines};
use super::message::{Id, Kind, MAX_MESSAGE_BYTES, Message};
use super::outbox::Outbox;
use super::session::Session;
use super::upstream::{FIRST_WAIT, GOOD_LIFE, LONGEST_WAIT, pause, until};
use process_runner::CancellationToken;
use std::fmt;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use ureq::http::{HeaderMap, HeaderName, HeaderValue, Response, Uri};
use ureq::{Agent, Body};

/// Until a connection stands.
const CONNECT: Duration = Duration::from_secs(10);
/// For what has no answer of its own: a notification, the end of a session.
const BRIEF: Duration = Duration::from_secs(30);
/// For the end of a session when we end.
const FAREWELL: Duration = Duration::from_millis(300);
/// Requests that may be open, each with a thread and a connection.
const MAX_OPEN: usize = 128;
/// Between two attempts to hear what a server says unasked.
const LISTEN_AGAIN: Duration = Duration::from_secs(2);

/// A server to be reached by URL, and what every request to it carries.
#[derive(Clone)]
pub struct Remote {
    url: Uri,
    headers: HeaderMap,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The values are secrets, and a query may be one.
        let names: Vec<&str> = self.headers.keys().map(HeaderName::as_str).collect();
        f.debug_struct("Remote")
            .field("host", &self.url.host())
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

/// Headers that are not the operator's to set.
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

impl Remote {
    /// The server at `url`: `https`, or `http` to this machine alone. No user or password in it: the command
    /// line is there for every user of the machine to read.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the URL, without repeating it.
    pub fn new(url: &str) -> Result<Self, String> {
        let url: Uri = url.parse().map_err(|error| format!("no URL: {error}"))?;
        let authority = url.authority().ok_or("a URL needs a host")?;
        if authority.as_str().contains('@') {
            return Err("no user or password may stand in a URL; use a header".to_owned());
        }
        let is_local = matches!(authority.host(), "localhost" | "127.0.0.1" | "[::1]");
        match url.scheme_str() {
            Some("https") => {}
            Some("http") if is_local => {}
            Some("http") => return Err("http is for this machine alone; use https".to_owned()),
            _ => return Err("a URL begins with https:// or, to this machine, http://".to_owned()),
        }
        Ok(Self { url, headers: HeaderMap::new() })
    }

    /// Adds a header to every request.
    ///
    /// # Errors
    ///
    /// For a name or a value that HTTP does not allow, and for a name that is not the operator's to set. The
    /// value is not in the message.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, String> {
        let header: HeaderName = name.parse().map_err(|_| format!("{name:?} is no name of a header"))?;
        if RESERVED.contains(&header.as_str()) || header.as_str().starts_with("mcp-") {
            return Err(format!("the header `{header}` is not for you to set"));
        }
        let mut value: HeaderValue =
            value.parse().map_err(|_| format!("the value of the header `{header}` cannot be sent"))?;
        value.set_sensitive(true);
        self.headers.insert(header, value);
        Ok(self)
    }
}

/// Keeps a connection until the client is gone or `end` is cancelled.
pub(super) async fn supervise(
    session: &Session,
    remote: &Remote,
    longest: Duration,
    end: &CancellationToken,
) {
    let mut wait = FIRST_WAIT;
    loop {
        let begun = Instant::now();
        let link = match connect(session, remote, longest) {
            Ok(link) => link,
            Err(error) => return tracing::error!(%error, "cannot begin"),
        };
        let is_over = attend(session, link.generation, end).await;
        session.server_is_gone(link.generation, "the session with it has ended");
        link.is_over.store(true, Ordering::Release);
        if is_over {
            // A server that is slow to hear of it forgets the session by itself.
            let goodbye = tokio::task::spawn_blocking(move || link.say_goodbye());
            let _ = tokio::time::timeout(FAREWELL, goodbye).await;
            return;
        }
        if begun.elapsed() >= GOOD_LIFE {
            wait = FIRST_WAIT;
        }
        if pause(session, wait, end).await {
            return;
        }
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// Waits for the end: whether it is the client's.
async fn attend(session: &Session, generation: u64, end: &CancellationToken) -> bool {
    loop {
        let todo = session.tick(Instant::now());
        if todo.end || todo.condemned == Some(generation) {
            return todo.end;
        }
        tokio::select! {
            () = end.cancelled() => return true,
            () = session.wait() => {}
            () = until(todo.next) => {}
        }
    }
}

fn connect(session: &Session, remote: &Remote, longest: Duration) -> Result<Arc<Link>, Error> {
    let (reader, writer) = io::pipe()?;
    let outbox = Outbox::new(OwnedFd::from(writer), super::QUEUE_BYTES, "to-server")?;
    let generation = session.server_is_up(outbox);
    let config = Agent::config_builder()
        .http_status_as_error(false)
        // A redirect would carry the headers to another server.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .user_agent(concat!("role-policy/", env!("CARGO_PKG_VERSION")))
        .accept_encoding("identity")
        .max_response_header_size(64 * 1024)
        .max_idle_connections_per_host(8)
        .timeout_connect(Some(CONNECT))
        .build();
    let link = Arc::new(Link {
        agent: Agent::new_with_config(config),
        remote: remote.clone(),
        session: session.clone(),
        generation,
        longest,
        id: Mutex::default(),
        open: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
    });
    let posting = Arc::clone(&link);
    let mut lines = Lines::new(reader.into(), MAX_MESSAGE_BYTES * 2);
    std::thread::Builder::new().name("to-url".to_owned()).spawn(move || {
        while let Ok(Line::Whole(line)) = lines.next() {
            posting.post(line);
        }
    })?;
    Ok(link)
}

/// One generation of the connection.
struct Link {
    agent: Agent,
    remote: Remote,
    session: Session,
    generation: u64,
    /// What no request takes longer than.
    longest: Duration,
    /// The id that the server has given the session, in the `initialize` era.
    id: Mutex<Option<HeaderValue>>,
    open: AtomicUsize,
    is_over: AtomicBool,
}

/// Why there is no answer.
enum Failure {
    /// It was not sent.
    NotSent(String),
    /// It was, and may have run.
    Unknown(String),
    /// The server does not know the session any more.
    SessionGone,
}

/// What the headers of a request say of it.
struct Head {
    version: Option<String>,
    method: Option<String>,
    name: Option<String>,
}

impl Link {
    /// Posts one line of the session's.
    fn post(self: &Arc<Self>, line: &[u8]) {
        // Our own writing: it is a message.
        let Ok(message) = Message::parse(line) else { return };
        let head = self.head(&message);
        let body = line.to_vec();
        match message.kind {
            Kind::Request { id, method } => {
                let limit = (method != "subscriptions/listen").then_some(self.longest);
                let link = Arc::clone(self);
                if self.open.fetch_add(1, Ordering::AcqRel) >= MAX_OPEN {
                    self.open.fetch_sub(1, Ordering::AcqRel);
                    return self.give_up(&id, &Failure::NotSent("too many requests are open".to_owned()));
                }
                let give_up = (Arc::clone(self), id.clone());
                let thread = std::thread::Builder::new().name("request".to_owned()).spawn(move || {
                    let answered = link.exchange(&body, &head, limit, true);
                    link.open.fetch_sub(1, Ordering::AcqRel);
                    let failure = answered
                        .err()
                        .unwrap_or_else(|| Failure::Unknown("its answer has ended without one".to_owned()));
                    link.give_up(&id, &failure);
                });
                if let Err(error) = thread {
                    let (link, id) = give_up;
                    link.open.fetch_sub(1, Ordering::AcqRel);
                    link.give_up(&id, &Failure::NotSent(error.to_string()));
                }
            }
            // In their order, and before what comes after them.
            Kind::Notification { method } => {
                if let Err(failure) = self.exchange(&body, &head, Some(BRIEF), false) {
                    tracing::debug!(%failure, "a notification was not taken");
                } else if method == "notifications/initialized" {
                    self.listen();
                }
            }
            Kind::Response { .. } => {
                if let Err(failure) = self.exchange(&body, &head, Some(BRIEF), false) {
                    tracing::debug!(%failure, "a response was not taken");
                }
            }
        }
    }

    fn head(&self, message: &Message<'_>) -> Head {
        let modern = message.is_modern();
        let text = |name: &str| message.params()?.get(name).and_then(Json::as_str).map(str::to_owned);
        let (Kind::Request { method, .. } | Kind::Notification { method }) = &message.kind else {
            return Head { version: self.session.protocol_version(), method: None, name: None };
        };
        if !modern {
            let version = if method == "initialize" { None } else { self.session.protocol_version() };
            return Head { version, method: None, name: None };
        }
        let meta = message.meta().and_then(|meta| meta.get("io.modelcontextprotocol/protocolVersion"));
        let name = match method.as_str() {
            "tools/call" | "prompts/get" => text("name"),
            "resources/read" => text("uri"),
            _ => None,
        };
        Head { version: meta.and_then(Json::as_str).map(str::to_owned), method: Some(method.clone()), name }
    }

    /// Posts, and hands on what comes back.
    fn exchange(
        &self,
        body: &[u8],
        head: &Head,
        limit: Option<Duration>,
        is_request: bool,
    ) -> Result<(), Failure> {
        let mut request = self.agent.post(&self.remote.url).config().timeout_global(limit).build();
        let headers = request.headers_mut().ok_or_else(|| Failure::NotSent("no URL".to_owned()))?;
        self.fill(headers, head, "application/json, text/event-stream")?;
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        let answer = request.send(body).map_err(|error| explain(&error))?;
        self.check(&answer)?;
        if let Some(id) = answer.headers().get("mcp-session-id") {
            *self.id.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.clone());
        }
        if is_request { self.hand_on(answer) } else { Ok(()) }
    }

    fn fill(&self, headers: &mut HeaderMap, head: &Head, accept: &'static str) -> Result<(), Failure> {
        headers.extend(self.remote.headers.clone());
        headers.insert("accept", HeaderValue::from_static(accept));
        if let Some(id) = &*self.id.lock().unwrap_or_else(PoisonError::into_inner) {
            headers.insert("mcp-session-id", id.clone());
        }
        let own =
            [("mcp-protocol-version", &head.version), ("mcp-method", &head.method), ("mcp-name", &head.name)];
        for (name, value) in own {
            let Some(value) = value.as_ref().filter(|value| !value.is_empty()) else { continue };
            let value = value.parse().map_err(|_| Failure::NotSent(format!("`{name}` cannot be sent")))?;
            headers.insert(name, value);
        }
        Ok(())
    }

    /// Any 2xx is alike. The body of anything else is not read: it is nobody's answer.
    fn check(&self, answer: &Response<Body>) -> Result<(), Failure> {
        let status = answer.status();
        let has_session = self.id.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if status.as_u16() == 404 && has_session {
            return Err(Failure::SessionGone);
        }
        if !status.is_success() {
            return Err(Failure::Unknown(format!("HTTP status {}", status.as_u16())));
        }
        let is_plain = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
        if answer.headers().get_all("content-encoding").iter().any(|value| !is_plain(value)) {
            return Err(Failure::Unknown("a compressed answer, which was not asked for".to_owned()));
        }
        Ok(())
    }

    fn hand_on(&self, mut answer: Response<Body>) -> Result<(), Failure> {
        let media = answer.headers().get("content-type").and_then(|value| value.to_str().ok());
        let media = media.and_then(|value| value.split(';').next()).unwrap_or_default();
        let media = media.trim().to_ascii_lowercase();
        let unread = |error: io::Error| Failure::Unknown(format!("its answer cannot be read: {error}"));
        let reader = answer.body_mut().as_reader();
        match media.as_str() {
            "application/json" => {
                let mut body = Vec::new();
                reader.take(MAX_MESSAGE_BYTES as u64 + 1).read_to_end(&mut body).map_err(unread)?;
                self.session.server_line(self.generation, &body);
                Ok(())
            }
            "text/event-stream" => {
                let mut events = Events::new(reader, MAX_MESSAGE_BYTES + 1024);
                while let Some(data) = events.next().map_err(unread)? {
                    while !self.session.client().wait_for_room(super::LOOK) {}
                    self.session.server_line(self.generation, &data);
                }
                Ok(())
            }
            _ => Err(Failure::Unknown("an answer that is neither JSON nor a stream of events".to_owned())),
        }
    }

    /// Where the request is still open, it will have no answer.
    fn give_up(&self, id: &Id, failure: &Failure) {
        if matches!(failure, Failure::SessionGone) {
            return self.session.server_is_gone(self.generation, "it does not know the session any more");
        }
        self.session.server_gave_up(self.generation, id, &failure.to_string());
    }

    /// Hears what a server of the `initialize` era says unasked, where it has such a stream.
    fn listen(self: &Arc<Self>) {
        let link = Arc::clone(self);
        let thread = std::thread::Builder::new().name("listen".to_owned()).spawn(move || {
            while !link.is_over.load(Ordering::Acquire) {
                let mut request = link.agent.get(&link.remote.url);
                let head = Head { version: link.session.protocol_version(), method: None, name: None };
                let Some(headers) = request.headers_mut() else { return };
                if link.fill(headers, &head, "text/event-stream").is_err() {
                    return;
                }
                match request.call() {
                    Ok(answer) if link.check(&answer).is_ok() => drop(link.hand_on(answer)),
                    // 405: there is none.
                    Ok(_) => return,
                    Err(error) => tracing::debug!(%error, "cannot listen"),
                }
                std::thread::sleep(LISTEN_AGAIN);
            }
        });
        if let Err(error) = thread {
            tracing::warn!(%error, "cannot listen");
        }
    }

    fn say_goodbye(&self) {
        if self.id.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
            return;
        }
        let mut request = self.agent.delete(&self.remote.url).config().timeout_global(Some(FAREWELL)).build();
        let head = Head { version: self.session.protocol_version(), method: None, name: None };
        if let Some(headers) = request.headers_mut()
            && self.fill(headers, &head, "application/json").is_ok()
        {
            let _ = request.call();
        }
    }
}

impl fmt::Display for Failure {
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

/// What surely was not sent is told from what may have been.
fn explain(error: &ureq::Error) -> Failure {
    let problem = error.to_string();
    match error {
        ureq::Error::HostNotFound
        | ureq::Error::ConnectionFailed
        | ureq::Error::Timeout(ureq::Timeout::Connect) => Failure::NotSent(problem),
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Failure::NotSent(problem)
        }
        _ => Failure::Unknown(problem),
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
            assert_eq!(Remote::new(url).is_ok(), allowed, "{url}");
        }
    }

    #[test]
    fn headers_that_are_ours_or_no_headers_are_refused_and_values_are_not_shown() {
        let remote = || Remote::new("https://example.com/").unwrap();
        for (name, value) in [
            ("Host", "x"),
            ("Mcp-Session-Id", "x"),
            ("Content-Length", "0"),
            ("a b", "x"),
            ("", "x"),
            ("x-a", "a\r\nb: c"),
        ] {
            let problem = remote().header(name, value).unwrap_err();
            assert!(!problem.contains("b: c"), "{problem}");
        }
        let shown = format!("{:?}", remote().header("Authorization", "Bearer secret").unwrap());
        assert!(shown.contains("authorization") && !shown.contains("secret"), "{shown}");
    }
}
