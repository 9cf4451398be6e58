//! Sessions of coding agents: real processes, which one supervisor for each state directory starts, watches, resumes
//! and ends.
//!
//! ```no_run
//! use core_tools::redact::Redactor;
//! use core_tools::sessions::{Agents, NewSession, Options, Owner, Supervisor};
//! use process_runner::Runner;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let redactor = Redactor::new(Default::default())?;
//! let options = Options::new(Owner::Daemon, Runner::new(), redactor, Agents::builtin()?);
//! let supervisor = Supervisor::host("/home/me/.local/state/coretools/sessions".as_ref(), options).await?;
//! let started = supervisor
//!     .new_session(NewSession {
//!         command: Some(vec!["claude".to_owned()]),
//!         prompt: Some("Fix the failing test.".to_owned()),
//!         role: "worker".to_owned(),
//!         roles: vec!["worker".to_owned()],
//!         cwd: "/home/me/project".into(),
//!         ..NewSession::default()
//!     })
//!     .await?; // its process runs
//! println!("{} is process {}, and writes to {}", started.session_id, started.pid, started.log);
//! # Ok(())
//! # }
//! ```
//!
//! # How a session lives
//!
//! `starting → running → stopped`, or, when its process has ended at a rate limit, with its context exhausted, or by a
//! crash: `running → waiting → resuming → running`. [`classify()`] finds out why it ended, [`Plan`] says what is done, and
//! [`State`] allows nothing else. Each change is kept in SQLite with its time and reason.
//!
//! Its process has a folder of its own as `TMPDIR`, with the markers that say who runs there, written before it starts;
//! a credential in its environment that is good until it ends; and a named pipe for its output, so that it neither
//! breaks nor blocks others when the supervisor dies, and the next one goes on reading where it was.
//!
//! # Who supervises
//!
//! Whoever holds the lock of the state directory. [`Sessions`] reaches it by its socket, or hosts one where there is
//! none. A supervisor believes its peers as far as the system vouches for them: their user, and the session that they
//! descend from.
//!
//! # What it leaves out
//!
//! A sandbox of its own: a session may do what its user may, or what it is told to keep to by a fence.

mod access;
mod agent;
mod classify;
mod clock;
mod directory;
mod drive;
mod error;
mod host;
mod lock;
mod log;
mod message;
mod monitor;
mod options;
mod plan;
mod process;
mod protocol;
mod random;
mod recorder;
mod report;
mod restore;
mod state;
mod store;
mod supervisor;
mod terminal;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
mod words;

pub use access::Asker;
pub use agent::{Agent, Agents, AgentsError, Filling};
pub use classify::{Ending, Reason, RetryAt, RetrySource, Stop, When, classify};
pub use directory::{Markers, SessionFolder, StateFolder, safe_name};
pub use error::{Code, Error};
pub use host::{Client, Sessions};
pub use lock::{Attempt, Holder, Owner, StateLock, holder};
pub use log::{Log, LogLevel, LogLimits, LogPage, LogQuery};
pub use monitor::{FrontMatter, NextStep, back_up, next_step};
pub use options::{Again, Options};
pub use plan::{Decision, Past, Plan};
pub use protocol::{
    Identity, LogAnswer, LogRequest, NewSession, NextAction, Request, Sent, SessionEnded, SessionInfo,
    SessionList, Started, StatsInfo, Status, StopInfo, Switched, VERSION, WatchedSession,
};
pub use state::{Action, Event, Illegal, Machine, Next, Process, State, Transition};
pub use store::{Kept, KeptFor, Record, Stats, Store};
pub use supervisor::Supervisor;

/// The variable that names a session to its processes.
pub const SESSION_VARIABLE: &str = "CORETOOLS_SESSION_ID";
/// The variable that holds its credential.
pub const CREDENTIAL_VARIABLE: &str = "CORETOOLS_SESSION_TOKEN";
/// The variable by which its processes find its supervisor: that of the key `sessions.state_dir`.
pub const STATE_VARIABLE: &str = "CORETOOLS_SESSIONS_STATE_DIR";
/// The variable of the command from which its role was derived.
const AGENT_COMMAND_VARIABLE: &str = "CORETOOLS_AGENT_COMMAND";
