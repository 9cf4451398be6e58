//! Supervises sessions of coding agents: real processes, which one supervisor for each state directory starts, watches,
//! resumes and ends.
//!
//! ```no_run
//! use agent_sessions::{SupervisorHostKind, NewSession, Supervisor, SupervisorOptions};
//!
//! # async fn example() -> Result<(), agent_sessions::Error> {
//! let state = "/home/me/.local/state/coretools/sessions".as_ref();
//! let supervisor = Supervisor::host(state, SupervisorOptions::new(SupervisorHostKind::Daemon)?).await?;
//! let session = NewSession::new("/home/me/project", "worker")
//!     .command(["claude"])
//!     .prompt("Fix the failing test.");
//! let started = supervisor.new_session(session).await?; // its process runs
//! println!("{} is process {}, and writes to {}", started.session_id, started.pid, started.log);
//! # Ok(())
//! # }
//! ```
//!
//! # The life of a session
//!
//! `starting → running → stopped`, or, when the process ended at a rate limit, with an exhausted context or by a crash,
//! `running → waiting → resuming → running`. The supervisor diagnoses why the process ended ([`SessionStopCause`]), and the
//! [`SessionRestartPolicy`] decides what is done. Each transition is stored in SQLite with its time and reason before anybody
//! is told of it.
//!
//! The process of a session has a folder of its own as `TMPDIR`, with markers that name the session and its role; a
//! credential in its environment, which is valid until the process ends; and a named pipe for its output. It neither
//! breaks nor blocks when the supervisor dies: the next supervisor goes on reading where this one stopped.
//!
//! # The supervisor
//!
//! The process that holds the lock of the state directory supervises. [`SessionService`] reaches it by its socket, or
//! starts a supervisor if there is none. The supervisor trusts the system about its clients, and not what they say:
//! their user, and the session from which they descend.
//!
//! Inside, each session is an actor, which alone owns its state; the supervisor routes requests to it.
//!
//! # What it leaves out
//!
//! It has no sandbox of its own: a session may do what its user may, unless it is started with a confinement of
//! `process-runner`. It supervises on Linux only, as it needs `/proc` and process handles.

mod backup;
mod catalog;
mod change;
mod classify;
mod client;
mod clock;
mod decoration;
mod diagnosis;
mod directory;
mod dispatch;
mod error;
mod follower;
mod front_matter;
mod journal;
mod legacy_protocol;
mod line_buffer;
mod lock;
mod log;
mod new_session;
mod next_step;
mod options;
mod process_table;
mod protocol;
mod random;
mod record;
mod registry;
mod report;
mod requester;
mod restart_policy;
mod service;
mod session;
mod session_file;
mod session_queries;
mod session_store;
mod socket;
mod state;
mod state_kind;
mod supervisor;
mod supervisor_context;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
mod variables;
mod watcher;
mod wire;

pub use catalog::{AgentCatalog, AgentCatalogError};
pub use change::SessionChange;
pub use client::SupervisorClient;
pub use diagnosis::{AgentRetrySource, SessionStopCause};
pub use error::{Error, ErrorCode};
pub use lock::SupervisorHostKind;
pub use log::{SessionLogLevel, SessionLogLimits};
pub use options::{OptionsError, SupervisorOptions, SupervisorOptionsLoader};
pub use protocol::{
    MessageDeliveryMethod, NewSession, NextSessionAction, SessionEnded, SessionIdentity, SessionInfo,
    SessionList, SessionLogLines, SessionLogRequest, SessionMessageDelivery, SessionStarted, SessionStopInfo,
    SupervisorActivity, SupervisorPauseChange, SupervisorRequest, SupervisorStatsInfo, SupervisorStatus,
    WatchedSession,
};
pub use restart_policy::SessionRestartPolicy;
pub use service::SessionService;
pub use state::SessionAction;
pub use state_kind::SessionStateKind;
pub use supervisor::Supervisor;
pub use variables::{CREDENTIAL_VARIABLE, SESSION_VARIABLE, STATE_VARIABLE};

// The example in the README compiles and runs.
#[cfg(all(doctest, target_os = "linux"))]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
