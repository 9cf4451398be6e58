//! One client for every server, over its standard streams or over HTTP.
//!
//! It does little beside waiting: what is timed ends when the last byte of an answer is there; what the answer says is
//! read afterwards.

mod http;
mod server;
mod stdio;

pub(crate) use server::{RunningServer, ServerExit};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::process::{ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

/// The protocol that every server is spoken to in: the newest that all of them know.
const ERA: integration_tests::Era = integration_tests::Era::Initialize("2025-06-18");

/// Why there is no figure.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum MeasureError {
    /// It did not start.
    #[error("does not start: {0}")]
    Start(String),
    /// It has said nothing for so long.
    #[error("no answer in {} s", .0.as_secs())]
    NoAnswer(Duration),
    /// It ended, or closed the connection.
    #[error("the server ended{0}")]
    Gone(String),
    /// It answered with an error.
    #[error("an error: {0}")]
    Refused(String),
    /// It answered something else.
    #[error("wrong answer: {0}")]
    Wrong(String),
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct ClientAnswer {
    /// When its last byte was there.
    pub(crate) arrived: Instant,
    /// How long it was.
    pub(crate) bytes: u64,
    /// The message, or its beginning where it was longer than anybody should have to read.
    body: Vec<u8>,
}

/// The members that are read of every answer. Everything else is skipped.
#[derive(Deserialize)]
struct AnswerEnvelope {
    id: Option<Value>,
    method: Option<IgnoredAny>,
    error: Option<Value>,
    result: Option<AnswerOutcome>,
}

#[derive(Deserialize)]
struct AnswerOutcome {
    #[serde(rename = "isError", default)]
    is_error: Option<bool>,
}

impl ClientAnswer {
    /// Fails where the answer is an error.
    pub(crate) fn check(&self) -> Result<(), MeasureError> {
        let envelope: AnswerEnvelope = match serde_json::from_slice(&self.body) {
            Ok(envelope) => envelope,
            Err(_) if self.bytes > self.body.len() as u64 => {
                return Err(MeasureError::Wrong(format!("{} bytes", self.bytes)));
            }
            Err(error) => return Err(MeasureError::Wrong(error.to_string())),
        };
        if let Some(error) = envelope.error {
            return Err(MeasureError::Refused(short(error["message"].as_str().unwrap_or_default())));
        }
        match envelope.result {
            Some(outcome) if outcome.is_error == Some(true) => {
                Err(MeasureError::Refused(short(&self.text())))
            }
            Some(_) => Ok(()),
            None => Err(MeasureError::Wrong(short(&self.text()))),
        }
    }

    /// Its result.
    pub(crate) fn result(&self) -> Value {
        let mut message: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        message["result"].take()
    }

    /// The structured part of a tool's answer, as JSON.
    pub(crate) fn structured(&self) -> String {
        self.result()["structuredContent"].to_string()
    }

    /// The text of a tool's answer, or what it is instead.
    pub(crate) fn text(&self) -> String {
        let result = self.result();
        let blocks = result["content"].as_array().into_iter().flatten();
        let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
        match texts.is_empty() {
            false => texts.join("\n"),
            true => String::from_utf8_lossy(&self.body).into_owned(),
        }
    }
}

/// The first words of what was said, for a table.
pub(crate) fn short(said: &str) -> String {
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(90) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// A message of this client.
fn message(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A connection to a server.
#[derive(Debug)]
pub(crate) enum ServerClient {
    Stdio(stdio::StdioClient),
    Http(http::HttpClient),
}

/// A request that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SentRequest(u64);

impl ServerClient {
    /// A client of a server that was started with pipes.
    pub(crate) fn over(input: ChildStdin, output: ChildStdout) -> Self {
        Self::Stdio(stdio::StdioClient::new(input, output))
    }

    /// The handshake. What the server says of its version.
    pub(crate) fn greet(&mut self, deadline: Instant) -> Result<String, MeasureError> {
        let client = json!({"name": "benchmarks", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": ERA.version(), "capabilities": {}, "clientInfo": client});
        let answer = self.request("initialize", &params, deadline)?;
        answer.check()?;
        self.notify("notifications/initialized", &json!({}))?;
        Ok(answer.result()["serverInfo"]["version"].as_str().unwrap_or_default().to_owned())
    }

    /// Sends a notification.
    fn notify(&mut self, method: &str, params: &Value) -> Result<(), MeasureError> {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        match self {
            Self::Stdio(stdio) => stdio.send(&message),
            Self::Http(http) => http.notify(&message),
        }
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn request(
        &mut self,
        method: &str,
        params: &Value,
        deadline: Instant,
    ) -> Result<ClientAnswer, MeasureError> {
        match self {
            Self::Stdio(stdio) => {
                let ticket = stdio.begin(method, params)?;
                stdio.wait(ticket, deadline)
            }
            Self::Http(http) => http.request(method, params, deadline),
        }
    }

    /// Sends a request and does not wait; over HTTP, on a connection of its own.
    pub(crate) fn begin(&mut self, method: &str, params: &Value) -> Result<SentRequest, MeasureError> {
        match self {
            Self::Stdio(stdio) => stdio.begin(method, params),
            Self::Http(http) => http.begin(method, params),
        }
    }

    /// Waits for the answer to what was begun.
    pub(crate) fn wait(
        &mut self,
        ticket: SentRequest,
        deadline: Instant,
    ) -> Result<ClientAnswer, MeasureError> {
        match self {
            Self::Stdio(stdio) => stdio.wait(ticket, deadline),
            Self::Http(http) => http.wait(ticket, deadline),
        }
    }

    /// Tells the server that nobody waits for it any more.
    pub(crate) fn cancel(&mut self, ticket: SentRequest) -> Result<(), MeasureError> {
        self.notify("notifications/cancelled", &json!({"requestId": ticket.0, "reason": "measured"}))
    }

    /// Another client of the same server, which has said nothing yet. Of standard streams there is none: it would speak
    /// to nobody.
    pub(crate) fn again(&self) -> Option<Self> {
        match self {
            Self::Stdio(_) => None,
            Self::Http(http) => Some(Self::Http(http.again())),
        }
    }

    /// Ends the session, which standard streams do not have.
    pub(crate) fn end_session(&mut self) -> Result<(), MeasureError> {
        match self {
            Self::Stdio(_) => Ok(()),
            Self::Http(http) => http.end_session(),
        }
    }

    /// Closes what the server reads from: its input, or every connection.
    pub(crate) fn close(&mut self) {
        match self {
            Self::Stdio(stdio) => stdio.close(),
            Self::Http(http) => http.close(),
        }
    }

    /// Answers a second to the same call with so many of them in flight, for `span`.
    pub(crate) fn rate(
        &mut self,
        call: &Value,
        in_flight: usize,
        span: Duration,
        patience: Duration,
    ) -> Result<f64, MeasureError> {
        match self {
            Self::Stdio(stdio) => stdio.rate(call, in_flight, span, patience),
            Self::Http(http) => http.rate(call, in_flight, span, patience),
        }
    }
}
