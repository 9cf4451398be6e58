//! Delivers messages to a process that reads its standard input or has a terminal.

use crate::error::{Error, ErrorCode};
use crate::log::SessionLogLevel;
use crate::process_table::ProcessIdentity;
use crate::protocol::{MessageDeliveryMethod, SessionMessageDelivery};
use crate::record::SessionRecord;
use crate::supervisor_context::SupervisorContext;
use process_runner::PseudoTerminal;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

/// The time that a process has to read a message.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// Writes a message to the process of a session and answers with `reply`, in a task of its own: a process that does not
/// read must not keep the session's actor from its commands.
pub(super) fn deliver(
    context: Arc<SupervisorContext>,
    record: &SessionRecord,
    terminal: Option<PseudoTerminal>,
    text: String,
    process: ProcessIdentity,
    reply: oneshot::Sender<Result<SessionMessageDelivery, Error>>,
) {
    let (id, principal, is_terminal) = (record.id.clone(), record.principal.clone(), record.pty);
    tokio::spawn(async move {
        let (written, done) = match is_terminal {
            true => (type_into(terminal, &text).await, "typed in"),
            false => (write_to_stdin(&context, &id, &text).await, "written to it"),
        };
        if written.is_ok() {
            let line = format!("session {id}: a message of {} bytes was {done}", text.len());
            context.log(principal.as_deref(), SessionLogLevel::Info, &line);
        }
        let delivered = MessageDeliveryMethod::Input;
        let _ = reply.send(written.map(|()| SessionMessageDelivery {
            session_id: id,
            delivered,
            pid: process.pid,
        }));
    });
}

/// Types a message into a terminal. The terminal is gone if an earlier supervisor had it.
async fn type_into(terminal: Option<PseudoTerminal>, text: &str) -> Result<(), Error> {
    let Some(terminal) = terminal else {
        return Err(Error::new(ErrorCode::State, "its terminal is gone with the supervisor that had it"));
    };
    // Enter sends a carriage return.
    let line = format!("{}\r", text.trim_end_matches('\n'));
    terminal.write(line.as_bytes(), WRITE_TIMEOUT).await.map_err(|error| {
        let message =
            format!("the session does not read: it took {} bytes, then {}", error.written, error.source);
        Error::new(ErrorCode::State, message)
    })
}

/// Writes a message as a line to the standard input of a session.
async fn write_to_stdin(context: &SupervisorContext, id: &str, text: &str) -> Result<(), Error> {
    let broken = |error| Error::broken("the session's input", &error);
    let folder = context.lock.folder().existing(id);
    let folder = folder.map_err(|error| Error::broken("cannot use the session's folder", &error))?;
    let input = folder.open_pipe_writer("in").and_then(pipe::Sender::from_owned_fd).map_err(broken)?;
    // One line whatever the text ends with: programs that read lines would take a second break for an empty message.
    let line = format!("{}\n", text.trim_end_matches('\n'));
    let mut rest = line.as_bytes();
    let deadline = tokio::time::Instant::now() + WRITE_TIMEOUT;
    while !rest.is_empty() {
        match input.try_write(rest) {
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if tokio::time::timeout_at(deadline, input.writable()).await.is_err() {
                    let written = line.len() - rest.len();
                    return Err(Error::new(
                        ErrorCode::State,
                        format!(
                            "the session does not read: it took {written} bytes and not the other {}",
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
