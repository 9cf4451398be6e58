//! The client side of the socket.

use crate::error::{Error, ErrorCode};
use crate::protocol::{PROTOCOL_VERSION, SupervisorRequest};
use crate::wire::{hello, parse_hello, read_line, socket_path, write_json};
use serde_json::Value;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// The time that a supervisor has for its first line. What is asked then may take longer.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// A client of a supervisor in another process. Each request has a connection of its own.
#[derive(Clone, Debug)]
pub struct SupervisorClient {
    state: PathBuf,
    principal: Option<Arc<str>>,
}

impl SupervisorClient {
    /// Creates a client of the supervisor of a state directory.
    pub fn new(state: impl Into<PathBuf>) -> Self {
        Self { state: state.into(), principal: None }
    }

    /// Makes requests for one caller of a shared server. The caller sees only its own sessions.
    #[must_use]
    pub fn for_principal(mut self, principal: Option<&str>) -> Self {
        self.principal = principal.map(Arc::from);
        self
    }

    /// Makes a request and waits for the answer.
    ///
    /// # Errors
    /// The error that the supervisor answers with; [`ErrorCode::NotRunning`] if there is no supervisor.
    pub async fn ask(&self, request: &SupervisorRequest) -> Result<Value, Error> {
        let mut connection = self.connect().await?;
        connection.greet().await?;
        if let Some(principal) = &self.principal {
            connection.send(&SupervisorRequest::For { principal: principal.to_string() }).await?;
            let line = connection.receive_soon().await?;
            parse_answer(&line)?;
        }
        connection.send(request).await?;
        // Without a time limit: a session is started or ended in the time that it takes, and a log is followed for a
        // minute.
        let line = connection.receive().await?;
        parse_answer(&line)
    }

    async fn connect(&self) -> Result<SupervisorConnection, Error> {
        let stream =
            UnixStream::connect(socket_path(&self.state)).await.map_err(|error| self.unreachable(&error))?;
        let peer = stream.peer_cred().map_err(|error| self.unreachable(&error))?;
        // Credentials are sent over this socket, so it must be this user's own.
        if peer.uid() != rustix::process::geteuid().as_raw() {
            return Err(Error::new(ErrorCode::Refused, "the supervisor's socket belongs to another user"));
        }
        let (reader, writer) = stream.into_split();
        Ok(SupervisorConnection { reader: BufReader::new(reader), writer })
    }

    fn unreachable(&self, error: &io::Error) -> Error {
        match error.kind() {
            // No socket, or one that a supervisor left when it was killed.
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Error::new(
                ErrorCode::NotRunning,
                format!(
                    "no supervisor runs for {}; `mcp-stdio session daemon` starts one",
                    self.state.display()
                ),
            ),
            _ => Error::broken("cannot reach the supervisor", error),
        }
    }
}

/// A connection to a supervisor.
struct SupervisorConnection {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

impl SupervisorConnection {
    /// Exchanges the first lines.
    async fn greet(&mut self) -> Result<(), Error> {
        write_json(&mut self.writer, &hello()).await.map_err(|error| broken_off(&error))?;
        let first = self.receive_soon().await?;
        match parse_hello(&first) {
            Some(PROTOCOL_VERSION) => Ok(()),
            Some(other) => Err(Error::new(
                ErrorCode::Broken,
                format!(
                    "the supervisor speaks version {other} of the protocol, and this program {PROTOCOL_VERSION}: \
                     restart the older of the two"
                ),
            )),
            // Instead of its version a supervisor may answer with an error, such as that it belongs to another user.
            None => Err(parse_answer(&first)
                .err()
                .unwrap_or_else(|| broken_off(&io::ErrorKind::UnexpectedEof.into()))),
        }
    }

    async fn send(&mut self, request: &SupervisorRequest) -> Result<(), Error> {
        let request = serde_json::to_value(request)
            .map_err(|error| Error::broken("cannot write the request", &error))?;
        write_json(&mut self.writer, &request).await.map_err(|error| broken_off(&error))
    }

    async fn receive(&mut self) -> Result<String, Error> {
        let line = read_line(&mut self.reader).await.map_err(|error| broken_off(&error))?;
        line.ok_or_else(|| broken_off(&io::ErrorKind::UnexpectedEof.into()))
    }

    /// Receives a line that takes a supervisor no time.
    async fn receive_soon(&mut self) -> Result<String, Error> {
        tokio::time::timeout(HELLO_TIMEOUT, self.receive()).await.unwrap_or_else(|_| {
            Err(Error::new(ErrorCode::Broken, "the supervisor does not answer; it may be busy: try again"))
        })
    }
}

fn broken_off(error: &io::Error) -> Error {
    Error::broken("the supervisor went away before it had answered", error)
}

fn parse_answer(line: &str) -> Result<Value, Error> {
    let mut answer: Value = serde_json::from_str(line)
        .map_err(|error| Error::broken("the supervisor's answer is no JSON", &error))?;
    match answer.get_mut("error").map(Value::take) {
        None => Ok(answer.get_mut("ok").map(Value::take).unwrap_or_default()),
        Some(error) => Err(serde_json::from_value(error)
            .map_err(|error| Error::broken("the supervisor's error cannot be read", &error))?),
    }
}
