//! Lines of JSON over pipes.

use super::{AnswerEnvelope, ClientAnswer, MeasureError, SentRequest, message};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

/// More than this of one answer is counted and thrown away.
const KEPT: usize = 64 << 20;

#[derive(Debug)]
pub(crate) struct StdioClient {
    input: Option<ChildStdin>,
    output: ChildStdout,
    /// The bytes that were read and are no whole line yet.
    buffer: Vec<u8>,
    /// Bytes of the line that did not fit.
    dropped: u64,
    /// Where in the buffer no end of line was found so far.
    searched: usize,
    last_id: u64,
    /// Answers to others than the one that was waited for.
    early: HashMap<u64, ClientAnswer>,
}

impl StdioClient {
    pub(crate) fn new(input: ChildStdin, output: ChildStdout) -> Self {
        let (buffer, early) = (Vec::with_capacity(1 << 16), HashMap::new());
        Self { input: Some(input), output, buffer, dropped: 0, searched: 0, last_id: 0, early }
    }

    pub(crate) fn send(&mut self, message: &Value) -> Result<(), MeasureError> {
        self.write(format!("{message}\n").as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), MeasureError> {
        let input = self.input.as_mut().ok_or_else(|| MeasureError::Gone(String::new()))?;
        input.write_all(bytes).map_err(|error| MeasureError::Gone(format!(" ({error})")))
    }

    pub(crate) fn begin(&mut self, method: &str, params: &Value) -> Result<SentRequest, MeasureError> {
        self.last_id += 1;
        self.send(&message(self.last_id, method, params))?;
        Ok(SentRequest(self.last_id))
    }

    pub(crate) fn wait(
        &mut self,
        ticket: SentRequest,
        deadline: Instant,
    ) -> Result<ClientAnswer, MeasureError> {
        if let Some(answer) = self.early.remove(&ticket.0) {
            return Ok(answer);
        }
        let begun = Instant::now();
        loop {
            let Some((id, answer)) = self.next(deadline)? else {
                return Err(MeasureError::NoAnswer(deadline.saturating_duration_since(begun)));
            };
            if id == ticket.0 {
                return Ok(answer);
            }
            self.early.insert(id, answer);
        }
    }

    pub(crate) fn close(&mut self) {
        self.input = None;
    }

    pub(crate) fn rate(
        &mut self,
        call: &Value,
        in_flight: usize,
        span: Duration,
        patience: Duration,
    ) -> Result<f64, MeasureError> {
        // Written once: the client's own work is not what is measured.
        let tail = format!(",\"method\":\"tools/call\",\"params\":{call}}}\n");
        let mut open = HashSet::new();
        let mut answered = 0_u32;
        let begun = Instant::now();
        let mut last = begun;
        loop {
            while open.len() < in_flight && begun.elapsed() < span {
                self.last_id += 1;
                open.insert(self.last_id);
                self.write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{}{tail}", self.last_id).as_bytes())?;
            }
            if open.is_empty() {
                break;
            }
            let next = self.next(Instant::now() + patience)?;
            let (id, answer) = next.ok_or(MeasureError::NoAnswer(patience))?;
            if open.remove(&id) {
                answer.check()?;
                last = answer.arrived;
                answered += 1;
            }
        }
        Ok(f64::from(answered) / (last - begun).as_secs_f64())
    }

    /// The next answer, whichever it is to. None at the deadline.
    fn next(&mut self, deadline: Instant) -> Result<Option<(u64, ClientAnswer)>, MeasureError> {
        loop {
            let Some(answer) = self.line(deadline)? else { return Ok(None) };
            if let Some(id) = id_of(&answer) {
                return Ok(Some((id, answer)));
            }
        }
    }

    /// The next line. None at the deadline.
    fn line(&mut self, deadline: Instant) -> Result<Option<ClientAnswer>, MeasureError> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
                let arrived = Instant::now();
                let end = self.searched + end;
                let rest = self.buffer.split_off(end + 1);
                let body = std::mem::replace(&mut self.buffer, rest);
                let bytes = body.len() as u64 + self.dropped;
                (self.searched, self.dropped) = (0, 0);
                return Ok(Some(ClientAnswer { arrived, bytes, body }));
            }
            if self.buffer.len() > KEPT {
                self.dropped += (self.buffer.len() - KEPT) as u64;
                self.buffer.truncate(KEPT);
            }
            self.searched = self.buffer.len();
            if !self.readable(deadline)? {
                return Ok(None);
            }
            let begin = self.buffer.len();
            self.buffer.resize(begin + (1 << 16), 0);
            let read = self.output.read(&mut self.buffer[begin..]);
            self.buffer.truncate(begin + read.as_ref().map_or(0, |read| *read));
            match read {
                Ok(0) => return Err(MeasureError::Gone(String::new())),
                Ok(_) => {}
                Err(error) => return Err(MeasureError::Gone(format!(" ({error})"))),
            }
        }
    }

    fn readable(&self, deadline: Instant) -> Result<bool, MeasureError> {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 3600, tv_nsec: 0 });
        let mut fds = [PollFd::new(&self.output, PollFlags::IN)];
        match poll(&mut fds, Some(&left)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(MeasureError::Gone(format!(" ({error})"))),
        }
    }
}

/// Returns the id of the answered request. A notification, a request of the server, and text that is no message have
/// none.
fn id_of(answer: &ClientAnswer) -> Option<u64> {
    if answer.bytes > answer.body.len() as u64 {
        // It was too long to be kept; the id stands in front or is not known.
        let head = String::from_utf8_lossy(&answer.body[..answer.body.len().min(200)]).into_owned();
        let rest = head.split_once("\"id\":")?.1;
        return rest.trim_start().split(|byte: char| !byte.is_ascii_digit()).next()?.parse().ok();
    }
    let envelope: AnswerEnvelope = serde_json::from_slice(&answer.body).ok()?;
    if envelope.method.is_some() { None } else { envelope.id?.as_u64() }
}
