//! How a supervisor is set up, and what of that can change while it works.

use super::agent::Agents;
use super::lock::Owner;
use super::log::LogLimits;
use super::plan::Plan;
use crate::redact::Redactor;
use process_runner::Runner;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How a supervisor is set up.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// What hosts it.
    pub owner: Owner,
    /// What starts processes. For sessions that end with their server it needs a guardian, for those of a daemon none:
    /// what lives through the daemon's death is taken over by the next.
    pub runner: Runner,
    /// What masks secrets in logs.
    pub redactor: Redactor,
    /// What is known of agents.
    pub agents: Agents,
    /// What is done when a process ends.
    pub plan: Plan,
    /// The command of a session that names none. Empty by default: then it must name one.
    pub command: Vec<String>,
    /// What is kept of each log.
    pub logs: LogLimits,
    /// Sessions that are not over, at once. 256 by default.
    pub max_sessions: usize,
    /// Those of them that one caller of a server for many may have. 16 by default.
    pub max_per_caller: usize,
    /// This process runs programs for callers who are strangers to each other: what descends from it, and from no
    /// session, speaks for nobody. False by default.
    pub strangers: bool,
    /// How long a session's credential is good. A day by default; markers that are signed are good for no longer.
    pub credential_lifetime: Duration,
    /// The key with which markers are signed.
    pub marker_key: Option<Vec<u8>>,
    /// What starting again by hand would have taken, for the statistics. 300 s by default.
    pub manual_restart: Duration,
    /// Folders of session files that others write.
    pub watched: Vec<PathBuf>,
    /// Reads the options again. None by default: they stay.
    pub again: Option<Again>,
}

/// A way to read [`Options`] again.
#[derive(Clone)]
pub struct Again(pub(super) Arc<dyn Fn() -> Result<Options, String> + Send + Sync>);

impl Again {
    /// By `read`.
    pub fn new(read: impl Fn() -> Result<Options, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }
}

impl std::fmt::Debug for Again {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Again")
    }
}

/// What of the options can change while a supervisor works.
#[derive(Debug)]
pub(super) struct Tuned {
    pub(super) agents: Agents,
    pub(super) plan: Plan,
    pub(super) command: Vec<String>,
    pub(super) max_sessions: usize,
    pub(super) max_per_caller: usize,
    pub(super) manual_restart: Duration,
}

impl Tuned {
    pub(super) fn of(options: &Options) -> Arc<Self> {
        Arc::new(Self {
            agents: options.agents.clone(),
            plan: options.plan.clone(),
            command: options.command.clone(),
            max_sessions: options.max_sessions,
            max_per_caller: options.max_per_caller,
            manual_restart: options.manual_restart,
        })
    }
}

impl Options {
    /// The defaults.
    pub fn new(owner: Owner, runner: Runner, redactor: Redactor, agents: Agents) -> Self {
        Self {
            owner,
            runner,
            redactor,
            agents,
            plan: Plan::default(),
            command: Vec::new(),
            logs: LogLimits::default(),
            max_sessions: 256,
            max_per_caller: 16,
            strangers: false,
            credential_lifetime: Duration::from_secs(86_400),
            marker_key: None,
            manual_restart: Duration::from_secs(300),
            watched: Vec::new(),
            again: None,
        }
    }
}
