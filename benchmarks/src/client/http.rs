//! Streamable HTTP over kept connections, each with one request at a time.

use super::{ClientAnswer, ERA, MeasureError, SentRequest, message};
use integration_tests::{Reply, read_reply};
use serde_json::Value;
use std::collections::HashMap;
use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Where a server is, and as whom it is spoken to.
#[derive(Clone, Debug)]
pub(crate) struct ServerAddress {
    /// `HOST:PORT`.
    address: String,
    path: String,
    token: Option<String>,
    session: Option<String>,
}

impl ServerAddress {
    /// Returns the address in a URL that begins with `http://`.
    pub(crate) fn new(url: &str, token: Option<String>) -> Self {
        let rest = url.trim_start_matches("http://");
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let port = if authority.contains(':') { "" } else { ":80" };
        Self { address: format!("{authority}{port}"), path: format!("/{path}"), token, session: None }
    }

    fn post(&self, body: &str) -> Vec<u8> {
        self.bytes("POST", body)
    }

    fn bytes(&self, method: &str, body: &str) -> Vec<u8> {
        let header = |name: &str, value: Option<&String>| {
            value.map(|value| format!("{name}{value}\r\n")).unwrap_or_default()
        };
        format!(
            "{method} {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {}\r\nContent-Length: {}\r\n{}{}\r\n{body}",
            self.path,
            self.address,
            ERA.version(),
            body.len(),
            header("Authorization: Bearer ", self.token.as_ref()),
            header("Mcp-Session-Id: ", self.session.as_ref()),
        )
        .into_bytes()
    }
}

#[derive(Debug)]
pub(crate) struct HttpClient {
    place: ServerAddress,
    line: ReusedConnection,
    last_id: u64,
    begun: HashMap<u64, (TcpStream, Receiver<Result<ClientAnswer, MeasureError>>)>,
}

impl HttpClient {
    pub(crate) fn new(place: ServerAddress) -> Self {
        Self { line: ReusedConnection::new(), place, last_id: 0, begun: HashMap::new() }
    }

    /// Another that has said nothing yet.
    pub(crate) fn again(&self) -> Self {
        Self::new(ServerAddress { session: None, ..self.place.clone() })
    }

    /// Ends the session.
    pub(crate) fn end_session(&mut self) -> Result<(), MeasureError> {
        let bytes = self.place.bytes("DELETE", "");
        self.place.session = None;
        let (reply, _) = self.line.exchange(&self.place, &bytes, Instant::now() + Duration::from_secs(10))?;
        match reply.status {
            200..300 => Ok(()),
            status => Err(MeasureError::Refused(format!("HTTP {status}"))),
        }
    }

    /// Returns true if somebody listens.
    pub(crate) fn is_up(&self) -> bool {
        TcpStream::connect(&self.place.address).is_ok()
    }

    pub(crate) fn request(
        &mut self,
        method: &str,
        params: &Value,
        deadline: Instant,
    ) -> Result<ClientAnswer, MeasureError> {
        self.last_id += 1;
        let bytes = self.place.post(&message(self.last_id, method, params).to_string());
        let (reply, arrived) = self.line.exchange(&self.place, &bytes, deadline)?;
        if let Some(session) = reply.header("mcp-session-id") {
            self.place.session = Some(session.to_owned());
        }
        answer(&reply, arrived)
    }

    pub(crate) fn notify(&mut self, message: &Value) -> Result<(), MeasureError> {
        let bytes = self.place.post(&message.to_string());
        let (reply, _) = self.line.exchange(&self.place, &bytes, Instant::now() + Duration::from_secs(10))?;
        match reply.status {
            200..300 => Ok(()),
            status => Err(MeasureError::Refused(format!("HTTP {status}"))),
        }
    }

    pub(crate) fn begin(&mut self, method: &str, params: &Value) -> Result<SentRequest, MeasureError> {
        self.last_id += 1;
        let bytes = self.place.post(&message(self.last_id, method, params).to_string());
        let mut stream = connect(&self.place)?;
        let kept = stream.try_clone().map_err(gone)?;
        stream.write_all(&bytes).map_err(gone)?;
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let reply = read_reply(&mut BufReader::new(stream));
            let arrived = Instant::now();
            let _ = sender.send(reply.map_err(gone).and_then(|reply| answer(&reply, arrived)));
        });
        self.begun.insert(self.last_id, (kept, receiver));
        Ok(SentRequest(self.last_id))
    }

    pub(crate) fn wait(
        &mut self,
        ticket: SentRequest,
        deadline: Instant,
    ) -> Result<ClientAnswer, MeasureError> {
        let (_, receiver) = self.begun.get(&ticket.0).ok_or_else(|| MeasureError::Gone(String::new()))?;
        let left = deadline.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(left) {
            Ok(answer) => {
                self.begun.remove(&ticket.0);
                answer
            }
            Err(_) => Err(MeasureError::NoAnswer(left)),
        }
    }

    pub(crate) fn close(&mut self) {
        self.line = ReusedConnection::new();
        for (_, (stream, _)) in self.begun.drain() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn rate(
        &mut self,
        call: &Value,
        in_flight: usize,
        span: Duration,
        patience: Duration,
    ) -> Result<f64, MeasureError> {
        // No two requests of a session may have the same id.
        let ids = AtomicU64::new(self.last_id + 1);
        let (answered, over, place) = (AtomicU64::new(0), AtomicBool::new(false), self.place.clone());
        let begun = Instant::now();
        let one = || -> Result<(), MeasureError> {
            let mut line = ReusedConnection::new();
            while begun.elapsed() < span && !over.load(Ordering::Relaxed) {
                let id = ids.fetch_add(1, Ordering::Relaxed);
                let bytes = place.post(&message(id, "tools/call", call).to_string());
                let (reply, arrived) = line.exchange(&place, &bytes, Instant::now() + patience)?;
                answer(&reply, arrived)?.check()?;
                answered.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        let outcome = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..in_flight)
                .map(|_| scope.spawn(|| one().inspect_err(|_| over.store(true, Ordering::Relaxed))))
                .collect();
            threads.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|_| Err(MeasureError::Gone(" (the client broke)".to_owned())))
            })
        });
        let elapsed = begun.elapsed().as_secs_f64();
        self.last_id = ids.into_inner();
        outcome.map(|()| answered.load(Ordering::Relaxed) as f64 / elapsed)
    }
}

/// A connection that is read from until a time that is set for each answer, however much comes in between.
#[derive(Debug)]
struct TimedConnection {
    stream: TcpStream,
    until: Instant,
}

impl Read for TimedConnection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}

/// One connection, made when it is needed.
#[derive(Debug)]
struct ReusedConnection(Option<BufReader<TimedConnection>>);

impl ReusedConnection {
    fn new() -> Self {
        Self(None)
    }

    fn exchange(
        &mut self,
        place: &ServerAddress,
        bytes: &[u8],
        until: Instant,
    ) -> Result<(Reply, Instant), MeasureError> {
        let begun = Instant::now();
        // A server may have closed a connection that was idle: then another is made, once.
        let kept = self.0.take().and_then(|mut stream| match ask(&mut stream, bytes, until) {
            Err(error) if !timed_out(&error) => None,
            asked => Some((stream, asked)),
        });
        let (stream, asked) = match kept {
            Some(asked) => asked,
            None => {
                let mut stream = BufReader::new(TimedConnection { stream: connect(place)?, until });
                let asked = ask(&mut stream, bytes, until);
                (stream, asked)
            }
        };
        let arrived = Instant::now();
        let reply = asked.map_err(|error| match timed_out(&error) {
            true => MeasureError::NoAnswer(until.saturating_duration_since(begun)),
            false => gone(error),
        })?;
        if reply.header("connection") != Some("close") {
            self.0 = Some(stream);
        }
        Ok((reply, arrived))
    }
}

fn ask(stream: &mut BufReader<TimedConnection>, bytes: &[u8], until: Instant) -> io::Result<Reply> {
    stream.get_mut().until = until;
    stream.get_mut().stream.write_all(bytes)?;
    read_reply(stream)
}

fn connect(place: &ServerAddress) -> Result<TcpStream, MeasureError> {
    let stream = TcpStream::connect(&place.address).map_err(gone)?;
    stream.set_nodelay(true).map_err(gone)?;
    Ok(stream)
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn gone(error: io::Error) -> MeasureError {
    MeasureError::Gone(format!(" ({error})"))
}

fn timed_out(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// The answer in a reply: its body, or the last message of its stream that is no notification.
fn answer(reply: &Reply, arrived: Instant) -> Result<ClientAnswer, MeasureError> {
    if reply.status != 200 {
        return Err(MeasureError::Refused(super::short(&format!("HTTP {} {}", reply.status, reply.body))));
    }
    let stream = reply.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    let body = match stream {
        true => {
            let data = reply.body.lines().filter_map(|line| line.strip_prefix("data:"));
            data.map(str::trim).rfind(|data| data.contains("\"id\":")).unwrap_or_default().as_bytes().to_vec()
        }
        false => reply.bytes.clone(),
    };
    Ok(ClientAnswer { arrived, bytes: reply.bytes.len() as u64, body })
}
