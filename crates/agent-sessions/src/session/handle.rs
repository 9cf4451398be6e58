//! The reference to a session: how others send it commands and read its state.

use super::output::SessionOutput;
use crate::error::{Error, ErrorCode};
use crate::protocol::{SessionEnded, SessionMessageDelivery};
use crate::record::SessionRecord;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// A command to a session. A session that is starting a process obeys once that has succeeded or failed.
#[derive(Debug)]
pub(super) enum SessionActorCommand {
    /// Ends the process, or cancels the scheduled action.
    End {
        /// The time between `SIGTERM` and `SIGKILL`.
        grace: Duration,
        /// The reason for the log.
        reason: String,
        reply: oneshot::Sender<SessionEnded>,
    },
    /// Delivers a message.
    Send { text: String, reply: oneshot::Sender<Result<SessionMessageDelivery, Error>> },
    /// Starts a session that continues the work, and ends this one.
    Replace { reply: oneshot::Sender<Result<(), Error>> },
    /// Follows a pause that began or ended.
    UpdatePause { reply: oneshot::Sender<()> },
    /// Deletes the session if it is over, and tells whether it was.
    Forget { reply: oneshot::Sender<bool> },
    /// Ends the process, leaves a scheduled action to the next supervisor, and ends the actor.
    Shutdown {
        /// The time between `SIGTERM` and `SIGKILL`.
        grace: Duration,
        reply: oneshot::Sender<()>,
    },
}

/// A reference to a session. Cheap to clone; the session's actor ends once it is over and all references are gone.
#[derive(Clone, Debug)]
pub(crate) struct SessionRef {
    commands: mpsc::UnboundedSender<SessionActorCommand>,
    record: watch::Receiver<Arc<SessionRecord>>,
    output: Arc<SessionOutput>,
}

impl SessionRef {
    pub(super) fn new(
        commands: mpsc::UnboundedSender<SessionActorCommand>,
        record: watch::Receiver<Arc<SessionRecord>>,
        output: Arc<SessionOutput>,
    ) -> Self {
        Self { commands, record, output }
    }

    /// Returns the record as the session published it last.
    pub(crate) fn record(&self) -> Arc<SessionRecord> {
        Arc::clone(&self.record.borrow())
    }

    /// Returns what the session prints.
    pub(crate) fn output(&self) -> &Arc<SessionOutput> {
        &self.output
    }

    /// Ends the session, and waits until it is over.
    pub(crate) async fn end(&self, grace: Duration, reason: &str) -> Result<SessionEnded, Error> {
        let reason = reason.to_owned();
        self.ask(|reply| SessionActorCommand::End { grace, reason, reply }).await.ok_or_else(|| self.gone())
    }

    /// Delivers a message: by its standard input while it runs, or by starting its agent again.
    pub(crate) async fn send(&self, text: &str) -> Result<SessionMessageDelivery, Error> {
        let text = text.to_owned();
        // A reply that never comes: the session was ended before its agent had been started again.
        let ended = || Err(Error::new(ErrorCode::State, "it was ended meanwhile"));
        self.ask(|reply| SessionActorCommand::Send { text, reply }).await.unwrap_or_else(ended)
    }

    /// Has another session continue the work, and ends this one.
    pub(crate) async fn replace(&self) -> Result<(), Error> {
        self.ask(|reply| SessionActorCommand::Replace { reply }).await.unwrap_or_else(|| Err(self.gone()))
    }

    /// Has the session follow a pause that began or ended.
    pub(crate) async fn update_pause(&self) {
        self.ask(|reply| SessionActorCommand::UpdatePause { reply }).await;
    }

    /// Deletes the session if it is over. Tells whether it is gone.
    pub(crate) async fn forget(&self) -> bool {
        self.ask(|reply| SessionActorCommand::Forget { reply }).await.unwrap_or(true)
    }

    /// Ends the session's process and its actor.
    pub(crate) async fn shut_down(&self, grace: Duration) {
        self.ask(|reply| SessionActorCommand::Shutdown { grace, reply }).await;
    }

    /// Sends a command and waits for the reply. Returns nothing if the actor ends without one.
    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> SessionActorCommand) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).ok()?;
        answer.await.ok()
    }

    fn gone(&self) -> Error {
        Error::no_session(&self.record.borrow().id)
    }
}
