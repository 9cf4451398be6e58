//! One session: an actor that owns its state, and the references by which others reach it.
//!
//! A task of its own runs each [`SessionActor`]. It starts the process, follows it to its end, diagnoses the stop, and
//! does what the restart policy decides. Nobody else changes the session's record: the supervisor sends commands
//! through a [`SessionRef`], and readers get the copy that the actor published last.

mod actor;
mod handle;
mod launch;
mod live;
mod message;
mod output;
mod owned_record;
mod recorder;
mod recover;
mod stop;
mod successor;
mod waiters;

pub(crate) use actor::SessionActor;
pub(crate) use handle::SessionRef;
pub(crate) use output::SessionOutput;
pub(crate) use recover::recover;
pub(crate) use waiters::SessionStartWaiter;
