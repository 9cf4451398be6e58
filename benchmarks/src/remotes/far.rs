//! A server in front with its client, and a line that an engine sends back.

use crate::client::{MeasureError, ServerClient};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest time for one answer, or for the end of a program.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server in front, and its client.
pub(crate) struct Front {
    child: Child,
    client: ServerClient,
}

impl Front {
    /// Starts the server, and waits for its handshake. It connects with the first call, not before.
    pub(crate) fn start(mut command: Command) -> Result<Self, MeasureError> {
        let mut child = spawn(&mut command)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(MeasureError::Start("no pipes".to_owned()));
        };
        let mut client = ServerClient::over(input, output);
        client.greet(Instant::now() + PATIENCE)?;
        Ok(Self { child, client })
    }

    /// Returns the time of a call that reads a small file.
    pub(crate) fn read(&mut self) -> Result<Duration, MeasureError> {
        self.call("read_file", json!({"path": "notes.txt"}))
    }

    /// Returns the time of a call that lists a folder.
    pub(crate) fn list(&mut self) -> Result<Duration, MeasureError> {
        self.call("list_directory", json!({"path": "."}))
    }

    #[allow(clippy::needless_pass_by_value, reason = "calls read better with a `json!`")]
    fn call(&mut self, tool: &str, arguments: Value) -> Result<Duration, MeasureError> {
        let params = json!({"name": tool, "arguments": arguments});
        let began = Instant::now();
        let answer = self.client.request("tools/call", &params, began + PATIENCE)?;
        answer.check()?;
        Ok(answer.arrived - began)
    }

    /// Ends the server, and waits until it has destroyed what it made.
    pub(crate) fn end(mut self) -> Result<(), MeasureError> {
        self.client.close();
        wait(&mut self.child)
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        // After an error. One that was ended is a process no more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `cat` behind an engine.
pub(crate) struct BareEcho {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl BareEcho {
    pub(crate) fn start(mut command: Command) -> Result<Self, MeasureError> {
        let mut child = spawn(&mut command)?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => Ok(Self { child, input, output: BufReader::new(output) }),
            _ => Err(MeasureError::Start("no pipes".to_owned())),
        }
    }

    /// Returns the time from the start of the command to the first line that comes back.
    pub(crate) fn first(command: Command) -> Result<Duration, MeasureError> {
        let began = Instant::now();
        let mut echo = Self::start(command)?;
        echo.line()?;
        Ok(began.elapsed())
    }

    /// Returns the time of a line there and back.
    pub(crate) fn line(&mut self) -> Result<Duration, MeasureError> {
        let began = Instant::now();
        let gone = |error: std::io::Error| MeasureError::Gone(format!(" ({error})"));
        self.input.write_all(b"a line of some words\n").map_err(gone)?;
        let mut line = String::new();
        match self.output.read_line(&mut line).map_err(gone)? {
            0 => Err(MeasureError::Gone(String::new())),
            _ => Ok(began.elapsed()),
        }
    }
}

impl Drop for BareEcho {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a file to a command. Returns the time to the end of the command.
pub(crate) fn sent(command: &mut Command, file: &Path) -> Result<Duration, MeasureError> {
    let start = |error: std::io::Error| MeasureError::Start(error.to_string());
    let file = File::open(file).map_err(start)?;
    let began = Instant::now();
    let status = command.stdin(file).stdout(Stdio::null()).status().map_err(start)?;
    match status.success() {
        true => Ok(began.elapsed()),
        false => Err(MeasureError::Start(status.to_string())),
    }
}

fn spawn(command: &mut Command) -> Result<Child, MeasureError> {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command.spawn().map_err(|error| MeasureError::Start(format!("{command:?}: {error}")))
}

fn wait(child: &mut Child) -> Result<(), MeasureError> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        match child.try_wait() {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(MeasureError::Gone(format!(" ({error})"))),
        }
    }
    Err(MeasureError::NoAnswer(PATIENCE))
}
