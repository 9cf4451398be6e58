//! Other machines as commands that connect standard streams.
//!
//! A remote is a command, such as `ssh build-box mcp-stdio remote-server`, whose standard streams lead to a server there. A
//! [`RemoteKind`] is such commands as data: one that connects, and those that create, list and destroy what is connected
//! to, if it has to be made. [`RemoteSettings`] are one remote of a configuration, and [`Remote`] calls its tools:
//!
//! ```text
//! call ──> Remote ──> Channel ──lines──> connect ··· server there
//!             └──> Lease (written down before `create` runs)
//! ```
//!
//! # What is promised
//!
//! - **The server there is not believed.** Its lines are parsed strictly ([`json_rpc`]) and bounded; what it may send is
//!   the answer to an open call and the progress of one. It gets roles, roots, limits and a policy with the first message
//!   ([`OpenRequest`]), and no token and no name of a caller.
//! - **A call is sent once.** If the channel ends while it is open, it fails and says that it may have run.
//! - **What was created is destroyed.** A lease is written down before `create` runs, and its lock is released by the
//!   system when its owner dies: whoever finds it then destroys what it names ([`LeaseRegistry::reap`]).
//! - **Commands inherit few variables**: those that every program needs, and those that the kind names.
//!
//! Unix only.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod binary;
mod caller_slug;
mod channel;
mod commands;
mod connection;
mod error;
mod kind;
mod lease;
mod lost_channel;
mod making;
mod opening;
mod options;
mod presets;
mod reaping;
mod remote;
mod settings;
mod shared_remote;
mod shown;
mod table;
mod template;
mod warm;

pub use caller_slug::caller_slug;
pub use channel::OnProgress;
pub use error::{CopyError, Error};
pub use kind::{KindOption, RemoteKind};
pub use lease::{FoundLease, InvalidLease, LeaseFolder, LeaseRecord, LeaseRegistry, Reaped};
#[cfg(feature = "database")]
pub use lease::{LeaseDatabase, LeaseDatabaseError};
pub use opening::{
    CLOSE_LINE, InvalidOpening, MAX_OPENING_BYTES, NO_SESSION, OPEN_METHOD, OpenAnswer, OpenRequest,
    OpenSession, Opening,
};
pub use options::RemoteOptions;
pub use remote::{Remote, RemoteCall, WeakRemote};
pub use settings::{RemoteNameError, RemoteSettings};
pub use table::TableError;
pub use template::{MissingValue, TemplateError};
pub use warm::WarmRemotes;
