//! The options of a supervisor, and those of them that can change while it works.

use crate::catalog::{AgentCatalog, AgentCatalogError};
use crate::change::SessionObserver;
use crate::error::{Error, ErrorCode};
use crate::lock::SupervisorHostKind;
use crate::log::SessionLogLimits;
use crate::restart_policy::SessionRestartPolicy;
use process_runner::Runner;
use redaction::Redactor;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The cause for which options could not be read.
pub type OptionsError = Box<dyn std::error::Error + Send + Sync>;

/// The options of a supervisor.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SupervisorOptions {
    /// The kind of process that hosts the supervisor.
    pub host: SupervisorHostKind,
    /// The runner that starts the processes. For sessions that end with their server, the runner needs a guardian. For
    /// sessions of a daemon, the runner must have no guardian: the next daemon adopts the sessions that survive the
    /// death of the daemon.
    pub runner: Runner,
    /// The redactor that masks secrets in logs.
    pub redactor: Redactor,
    /// The agents that are known.
    pub agents: AgentCatalog,
    /// The policy for processes that end.
    pub restart: SessionRestartPolicy,
    /// The command of a session that names none. Empty by default. Each session must then name a command.
    pub command: Vec<String>,
    /// The limits of each log.
    pub logs: SessionLogLimits,
    /// The number of sessions that may be open at once. 256 by default.
    pub max_sessions: usize,
    /// The number of open sessions that one caller of a shared server may have. 16 by default.
    pub max_per_caller: usize,
    /// Tells that this process runs programs for callers who must not trust each other: a process that descends from it
    /// and belongs to no session may steer nothing. False by default.
    pub shared_server: bool,
    /// The lifetime of a session's credential. A day by default; signed markers last no longer than a day.
    pub credential_lifetime: Duration,
    /// The key with which markers are signed. None by default: they are not signed.
    pub marker_key: Option<Vec<u8>>,
    /// The time that a restart by hand would have taken, for the statistics. 300 s by default.
    pub manual_restart: Duration,
    /// The folders in which agents that were not started here write session files.
    pub watched_folders: Vec<PathBuf>,
    /// The loader for [`Supervisor::reload`](crate::Supervisor::reload). None by default: the options stay.
    pub loader: Option<SupervisorOptionsLoader>,
    /// Is told of each change of a session.
    pub(crate) observer: SessionObserver,
}

impl SupervisorOptions {
    /// Creates options with the default runner, redactor and agents.
    ///
    /// The default runner runs only a few programs at once. A supervisor of many sessions needs a runner with a permit
    /// for each session.
    ///
    /// # Errors
    /// The default redactor cannot be built.
    pub fn new(host: SupervisorHostKind) -> Result<Self, Error> {
        let redactor = Redactor::new(redaction::RedactionOptions::default())
            .map_err(|error| Error::broken("cannot build the redactor", &error))?;
        let agents = AgentCatalog::builtin()
            .map_err(|error: AgentCatalogError| Error::new(ErrorCode::Broken, error.to_string()))?;
        Ok(Self {
            host,
            runner: Runner::new(),
            redactor,
            agents,
            restart: SessionRestartPolicy::default(),
            command: Vec::new(),
            logs: SessionLogLimits::default(),
            max_sessions: 256,
            max_per_caller: 16,
            shared_server: false,
            credential_lifetime: Duration::from_secs(86_400),
            marker_key: None,
            // An estimate: to notice, to find the session, and to start it again.
            manual_restart: Duration::from_secs(300),
            watched_folders: Vec::new(),
            loader: None,
            observer: SessionObserver::default(),
        })
    }
}

/// A function that reads [`SupervisorOptions`] anew, for a supervisor whose configuration has changed.
#[derive(Clone)]
pub struct SupervisorOptionsLoader(Arc<LoadOptions>);

type LoadOptions = dyn Fn() -> Result<SupervisorOptions, OptionsError> + Send + Sync;

impl SupervisorOptionsLoader {
    /// Creates a loader that calls `load`.
    pub fn new(load: impl Fn() -> Result<SupervisorOptions, OptionsError> + Send + Sync + 'static) -> Self {
        Self(Arc::new(load))
    }

    pub(crate) fn load(&self) -> Result<SupervisorOptions, OptionsError> {
        (self.0)()
    }
}

impl std::fmt::Debug for SupervisorOptionsLoader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OptionsLoader")
    }
}

/// The options in effect that a reload can change.
#[derive(Debug)]
pub(crate) struct EffectiveSupervisorOptions {
    pub(crate) agents: AgentCatalog,
    pub(crate) restart: SessionRestartPolicy,
    pub(crate) command: Vec<String>,
    pub(crate) max_sessions: usize,
    pub(crate) max_per_caller: usize,
    pub(crate) manual_restart: Duration,
}

impl EffectiveSupervisorOptions {
    pub(crate) fn of(options: &SupervisorOptions) -> Arc<Self> {
        Arc::new(Self {
            agents: options.agents.clone(),
            restart: options.restart.clone(),
            command: options.command.clone(),
            max_sessions: options.max_sessions,
            max_per_caller: options.max_per_caller,
            manual_restart: options.manual_restart,
        })
    }
}
