//! What a session prints, on its way into its log.

use super::directory::SessionFolder;
use super::log::Lines;
use super::store::Record;
use super::supervisor::{Output, Supervisor, TAIL};
use super::terminal::Terminal;
use crate::redact::LineRedactor;
use std::io;
use std::sync::{Arc, PoisonError};
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;

impl Supervisor {
    /// Records what a session prints.
    pub(super) fn record_output(
        &self,
        id: &str,
        record: &Record,
        source: Source,
        credential: Option<String>,
    ) -> JoinHandle<()> {
        let output = match self.table().sessions.get(id) {
            Some(entry) => Arc::clone(&entry.output),
            None => return tokio::spawn(async {}),
        };
        let unnamed = record.agent_session.is_none();
        let agent = record.agent.as_deref().and_then(|name| self.tuned().agents.named(name).cloned());
        let mut recorder = Recorder {
            lines: Lines::default(),
            redactor: self.0.options.redactor.lines(),
            output,
            agent: agent.filter(|_| unnamed),
            credential,
        };
        let (supervisor, id) = (self.clone(), id.to_owned());
        tokio::spawn(async move {
            loop {
                let mut bytes = vec![0; 64 * 1024];
                let read = source.read(&mut bytes).await;
                bytes.truncate(read);
                // A disk may be slow, and meanwhile others are served.
                let recorded = tokio::task::spawn_blocking(move || {
                    let named = recorder.record(&bytes);
                    (recorder, named)
                });
                let Ok((back, named)) = recorded.await else { return };
                recorder = back;
                if let Some(named) = named {
                    recorder.agent = None;
                    if let Some(entry) = supervisor.table().sessions.get_mut(&id) {
                        entry.record.agent_session = Some(named);
                    }
                    supervisor.write(&id).await;
                }
                let trouble = recorder.output.log.lock().unwrap_or_else(PoisonError::into_inner).trouble();
                supervisor.trouble("session logs", trouble);
                recorder.output.written.notify_waiters();
                if read == 0 {
                    return;
                }
            }
        })
    }
}

impl Output {
    /// Begins the output of a process: why it ends is not told by what another has printed.
    pub(super) fn begin(&self) {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.log.lock().unwrap_or_else(PoisonError::into_inner).write(None, super::log::BEGIN);
    }
}

/// Where what a session prints is read.
pub(super) enum Source {
    Pipe(pipe::Receiver),
    Terminal(Terminal),
}

impl Source {
    pub(super) fn terminal(&self) -> Option<Terminal> {
        match self {
            Self::Pipe(_) => None,
            Self::Terminal(terminal) => Some(terminal.clone()),
        }
    }

    /// Waits for something. Nothing at the end, or where it cannot be read.
    async fn read(&self, bytes: &mut [u8]) -> usize {
        loop {
            let read = match self {
                Self::Pipe(receiver) => match receiver.try_read(bytes) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        match receiver.readable().await {
                            Ok(()) => continue,
                            Err(error) => Err(error),
                        }
                    }
                    read => read,
                },
                Self::Terminal(terminal) => terminal.read(bytes).await,
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read.unwrap_or(0),
            }
        }
    }
}

pub(super) fn receiver(folder: &SessionFolder) -> io::Result<pipe::Receiver> {
    pipe::Receiver::from_owned_fd(folder.pipe_end("out", false)?)
}

/// Puts what is printed into the log, whole line by whole line and masked.
struct Recorder {
    lines: Lines,
    redactor: LineRedactor,
    output: Arc<Output>,
    /// The agent, until it has said what it calls its session.
    agent: Option<super::agent::Agent>,
    /// The session's own, where it is known.
    credential: Option<String>,
}

impl Recorder {
    /// Records bytes; none at the end. Says what the agent calls its session, if that is among them.
    fn record(&mut self, bytes: &[u8]) -> Option<String> {
        let lines = match bytes {
            [] => self.lines.end().into_iter().collect(),
            bytes => self.lines.push(bytes),
        };
        if lines.is_empty() {
            return None;
        }
        let own = self.credential.as_deref();
        let hide = |line: String| match own.filter(|own| line.contains(own)) {
            Some(own) => line.replace(own, "[redacted:session-credential]"),
            None => line,
        };
        let masked: Vec<String> = lines.iter().map(|line| hide(self.redactor.line(line))).collect();
        {
            let mut log = self.output.log.lock().unwrap_or_else(PoisonError::into_inner);
            // In one piece, for it costs a system call each.
            let empty_lines_stay = masked.iter().map(|line| if line.is_empty() { " " } else { line });
            log.write(None, &empty_lines_stay.collect::<Vec<_>>().join("\n"));
        }
        let named =
            self.agent.as_ref().and_then(|agent| lines.iter().find_map(|line| agent.session_in(line)));
        let mut tail = self.output.tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(lines);
        let more = tail.len().saturating_sub(TAIL);
        tail.drain(..more);
        named
    }
}
