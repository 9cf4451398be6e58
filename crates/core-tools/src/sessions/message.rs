//! What a session is told.

use super::clock;
use super::directory::SessionFolder;
use super::error::{Code, Error};
use super::log::LogLevel;
use super::protocol::Sent;
use super::state::{Action, Event, Next, State};
use super::supervisor::Supervisor;
use super::terminal::Terminal;
use std::io;
use std::time::Duration;
use tokio::net::unix::pipe;

/// How long a message may take that a process does not read.
const PATIENCE: Duration = Duration::from_secs(2);

impl Supervisor {
    /// Tells a session something: by its standard input while it runs, or by starting its agent again with it.
    ///
    /// # Errors
    /// It was not told, and why.
    pub async fn send(&self, id: &str, text: &str) -> Result<Sent, Error> {
        if text.is_empty() || text.len() > 100_000 || text.contains('\0') {
            return Err(Error::new(Code::Invalid, "a message has 1 to 100000 bytes, and no NUL"));
        }
        let record = self.record_of(id)?;
        let wrong = |why: String| Err(Error::new(Code::State, why));
        match record.state {
            State::Running { process } if record.input => {
                let terminal = self.table().sessions.get(id).and_then(|entry| entry.terminal.clone());
                if record.pty {
                    type_in(terminal, text).await?;
                    self.say_of(
                        id,
                        LogLevel::Info,
                        &format!("a message of {} bytes was typed in", text.len()),
                    );
                    return Ok(Sent {
                        session_id: id.to_owned(),
                        delivered: "input".to_owned(),
                        pid: process.pid,
                    });
                }
                let folder = self.0.lock.folder().existing(id);
                let folder =
                    folder.map_err(|error| Error::broken("cannot use the session's folder", &error))?;
                self.write_input(&folder, text).await?;
                self.say_of(
                    id,
                    LogLevel::Info,
                    &format!("a message of {} bytes was written to it", text.len()),
                );
                Ok(Sent { session_id: id.to_owned(), delivered: "input".to_owned(), pid: process.pid })
            }
            State::Running { .. } => wrong(format!(
                "session {id} works on its prompt and reads no messages meanwhile; send it when the session is stopped, \
                 or start the agent without a prompt"
            )),
            State::Stopped { ref stop } => {
                let tuned = self.tuned();
                let agent = record.agent.as_deref().and_then(|name| tuned.agents.named(name));
                if agent.is_none_or(|agent| agent.resume.is_empty()) || record.replaced_by.is_some() {
                    let instead = match &record.replaced_by {
                        Some(other) => format!("session {other} went on in its place"),
                        None => "its command cannot be resumed; new_session starts another".to_owned(),
                    };
                    return wrong(format!("session {id} is stopped, and {instead}"));
                }
                let now = clock::now();
                let next =
                    Next { action: Action::Message, at: now, attempt: 1, since: now, stop: stop.clone() };
                let (told, tell) = tokio::sync::oneshot::channel();
                self.apply(id, Event::Again(next), "it was sent a message")?;
                if let Some(entry) = self.table().sessions.get_mut(id) {
                    (entry.message, entry.told) = (Some(text.to_owned()), Some(told));
                }
                self.drive(id);
                let started = tell.await;
                let started =
                    started.unwrap_or_else(|_| Err(Error::new(Code::State, "it was ended meanwhile")))?;
                Ok(Sent { session_id: id.to_owned(), delivered: "resume".to_owned(), pid: started.pid })
            }
            state => wrong(format!("session {id} is {}, and reads no messages", state.name())),
        }
    }

    async fn write_input(&self, folder: &SessionFolder, text: &str) -> Result<(), Error> {
        let broken = |error| Error::broken("the session's input", &error);
        let input = folder.pipe_end("in", true).and_then(pipe::Sender::from_owned_fd).map_err(broken)?;
        let line = format!("{}\n", text.trim_end_matches('\n'));
        let mut rest = line.as_bytes();
        let until = tokio::time::Instant::now() + PATIENCE;
        while !rest.is_empty() {
            match input.try_write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if tokio::time::timeout_at(until, input.writable()).await.is_err() {
                        let taken = line.len() - rest.len();
                        return Err(Error::new(
                            Code::State,
                            format!(
                                "the session does not read: it took {taken} bytes and not the other {}",
                                rest.len()
                            ),
                        ));
                    }
                }
                Err(error) => return Err(broken(error)),
            }
        }
        Ok(())
    }
}

async fn type_in(terminal: Option<Terminal>, text: &str) -> Result<(), Error> {
    let Some(terminal) = terminal else {
        return Err(Error::new(Code::State, "its terminal is gone with the supervisor that had it"));
    };
    terminal.type_in(text).await.map_err(|(taken, error)| {
        Error::new(Code::State, format!("the session does not read: it took {taken} bytes, then {error}"))
    })
}
