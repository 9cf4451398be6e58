//! Those who wait for something to happen to a session.

use crate::error::Error;
use crate::protocol::{MessageDeliveryMethod, SessionEnded, SessionMessageDelivery, SessionStarted};
use tokio::sync::oneshot;

/// The one who waits until the process of a session runs.
pub(crate) enum SessionStartWaiter {
    /// For a new session.
    Started(oneshot::Sender<Result<SessionStarted, Error>>),
    /// For a message that starts the agent again.
    Delivered(oneshot::Sender<Result<SessionMessageDelivery, Error>>),
}

impl SessionStartWaiter {
    /// Tells whether the process runs.
    pub(super) fn resolve(self, result: Result<SessionStarted, Error>) {
        // Nobody is there to hear it if the requester has gone away.
        match self {
            Self::Started(reply) => drop(reply.send(result)),
            Self::Delivered(reply) => drop(reply.send(result.map(|started| SessionMessageDelivery {
                session_id: started.session_id,
                delivered: MessageDeliveryMethod::Resume,
                pid: started.pid,
            }))),
        }
    }
}

/// The one who waits until a session is over.
pub(super) enum SessionEndWaiter {
    Ended(oneshot::Sender<SessionEnded>),
    Replaced(oneshot::Sender<Result<(), Error>>),
    ShutDown(oneshot::Sender<()>),
}

impl SessionEndWaiter {
    /// Tells that the session is over.
    pub(super) fn resolve(self, ended: SessionEnded) {
        match self {
            Self::Ended(reply) => drop(reply.send(ended)),
            Self::Replaced(reply) => drop(reply.send(Ok(()))),
            Self::ShutDown(reply) => drop(reply.send(())),
        }
    }
}
