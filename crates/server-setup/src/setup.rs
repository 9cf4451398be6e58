//! From settings to a server that is ready to serve.

use crate::broad_root::BroadRoot;
use crate::config::{ResultFormat, Toolsets};
use crate::error::Error;
use crate::instructions::instructions;
use crate::narrowing::RootNarrowing;
use crate::program::Program;
use crate::resources::{runner, workspace};
use crate::served_paths::{effects_of, served_roots};
use crate::sessions::{self, SessionHandle};
use crate::settings::Settings;
use crate::toolsets::{self, ServedCallers};
use crate::{approvals, audit, confinement, environment, identity, policy, protected_files};
use core_tools::ci::{ConfinementPolicy, EnvironmentPolicy};
use core_tools::mcp::{
    AuditLevel, Connection, Host, HostBuilder, HostLimits, ToolSelection, WorkspaceEffects,
};
use process_runner::Runner;
use role_policy::{Caller, Policy, ToolFacts};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A server for one caller that is ready to serve.
#[derive(Debug)]
#[non_exhaustive]
pub struct LocalServer {
    pub(crate) program: Program,
    /// The tools.
    pub host: Host,
    /// The caller, who makes every call.
    pub caller: Caller,
    /// The runner of programs, which must be shut down in the end.
    pub runner: Runner,
    /// The confinement of the programs that tools run, in words.
    pub confinement: String,
    /// The part of the server's environment that these programs get, in words.
    pub environment: String,
    /// The policy file, which a server watches for changes.
    pub policy_file: Option<PathBuf>,
    /// The check that a changed policy fits this server.
    pub policy_check: PolicyCheck,
    /// The facts of every tool that there could be, for which a changed policy is loaded.
    pub facts: Vec<ToolFacts<'static>>,
    /// The service for sessions, including those that end with this server.
    pub sessions: SessionHandle,
    /// The remote on which the tools work, if it is not this machine.
    #[cfg(all(feature = "remotes", unix))]
    pub remote: Option<remotes::Remote>,
    /// The remotes on which the caller works beside the roots.
    #[cfg(all(feature = "remotes", unix))]
    pub chosen_remotes: Option<crate::remote::ChosenRemotes>,
    /// The remotes that are made ahead, once this server serves.
    #[cfg(all(feature = "remotes", unix))]
    pub warm_remotes: remotes::WarmRemotes,
    pub(crate) narrowing: Option<Arc<RootNarrowing>>,
}

type CheckPolicy = dyn Fn(&Policy) -> Result<(), Error> + Send + Sync;

/// The check that a policy fits a server. Cheap to clone.
#[derive(Clone)]
pub struct PolicyCheck(Arc<CheckPolicy>);

impl PolicyCheck {
    pub(crate) fn new(check: impl Fn(&Policy) -> Result<(), Error> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// Checks a policy.
    ///
    /// # Errors
    /// It does not fit.
    pub fn check(&self, policy: &Policy) -> Result<(), Error> {
        (self.0)(policy)
    }
}

impl std::fmt::Debug for PolicyCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PolicyCheck")
    }
}

impl LocalServer {
    /// Returns the connection that a transport serves.
    pub fn connection(&self) -> Connection {
        let connection = Connection::new(
            self.host.clone(),
            self.caller.clone(),
            self.program.name,
            self.program.version,
            instructions(&self.host, &self.caller),
        );
        match self.narrowing.clone() {
            Some(narrowing) => connection.narrowed_by_client(move |offered| narrowing.host(offered)),
            None => connection,
        }
    }
}

/// Builds the server that `settings` describe, for the one caller whom they name.
///
/// # Errors
/// Something that the settings name cannot be used, or does not fit the rest.
pub fn server(settings: Settings) -> Result<LocalServer, Error> {
    let workspace = Arc::new(workspace(&settings)?);
    let runner = runner(&settings)?;
    for warning in &settings.config.warnings {
        tracing::warn!("{warning}");
    }
    // The tools are described once: the policy judges them before it is known how their commands are confined.
    let (confine, deferred) = ConfinementPolicy::deferred();
    let sessions = sessions::of_one(&settings);
    let (environment, deferred_environment) = EnvironmentPolicy::deferred();
    let callers = ServedCallers::One(&sessions);
    let toolsets = toolsets::all(&settings, &workspace, &runner, confine, environment, callers)?;
    let facts = toolsets::facts_of(&toolsets);
    let mut loaded = policy::at_start(&settings, &facts)?;
    loaded = policy::narrowed_by_operator(loaded, &settings, &facts)?;
    if let Some(server) = settings.asked_by {
        loaded.policy = loaded.policy.for_calls_asked_about_by(server);
    }
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    // Before the caller is found: a key that a tool can read proves nothing about it.
    protected_files::check_marker_key(&settings, &workspace)?;
    let effects = WorkspaceEffects::new(Arc::clone(&workspace), std::env::var_os("PATH"));
    let caller = identity::caller(&settings, &loaded.policy).caller;
    policy::check_exclusions(&loaded.policy, &caller, &workspace, &effects)?;
    let audit = audit::open(&settings)?;
    let confine = confinement::confine(&settings, &workspace, &loaded.policy, &caller, &facts)?;
    let confinement = confine.to_string();
    if let Some(audit) = &audit {
        audit.set_confinement(confine.achieved_level());
    }
    deferred.set(confine);
    let environment = environment::for_caller(&settings, &runner, &loaded.policy, &caller, &facts);
    let environment_summary = environment.to_string();
    // The tools hold the deferred value already, and no call can come before the host below exists.
    deferred_environment.set(environment);
    // A reload of the policy gets the same check as the start, with the roots and the caller of the start.
    let policy_check = {
        let (workspace, effects, caller) = (Arc::clone(&workspace), effects.clone(), caller.clone());
        PolicyCheck::new(move |policy| policy::check_exclusions(policy, &caller, &workspace, &effects))
    };
    let approvals = approvals::of_one(&settings, &workspace);
    let mut host =
        host(&settings, loaded.policy).approvals(approvals).roots(served_roots(&settings, &workspace));
    for toolset in toolsets {
        host = host.toolset(toolset);
    }
    let host = host.effects(effects_of(&settings, effects)).audit(audit).build()?;
    let (program, policy_file) = (settings.program, settings.config.policy.file.value.clone());
    #[cfg(all(feature = "remotes", unix))]
    let (chosen_remotes, warm_remotes) = (settings.chosen_remotes.clone(), settings.warm_remotes.clone());
    let narrowing = Arc::new(RootNarrowing {
        settings,
        runner: runner.clone(),
        sessions: sessions.clone(),
        host: host.clone(),
        caller: caller.clone(),
        facts: facts.clone(),
    });
    Ok(LocalServer {
        program,
        host,
        caller,
        runner,
        confinement,
        environment: environment_summary,
        policy_file,
        facts,
        policy_check,
        sessions,
        #[cfg(all(feature = "remotes", unix))]
        remote: None,
        #[cfg(all(feature = "remotes", unix))]
        chosen_remotes,
        #[cfg(all(feature = "remotes", unix))]
        warm_remotes,
        narrowing: Some(narrowing),
    })
}

/// Returns the builder of a host with the limits and the selection of `settings`, as yet without tools.
pub fn host(settings: &Settings, policy: Policy) -> HostBuilder {
    let config = &settings.config;
    let mut limits = HostLimits::default();
    limits.max_concurrent_calls = usize::try_from(*config.limits.max_concurrent_calls).unwrap_or(usize::MAX);
    limits.call_timeout = Duration::from_millis(*config.limits.call_timeout_ms);
    limits.max_timeout = Duration::from_millis(*config.limits.max_timeout_ms);
    limits.max_answer_bytes = usize::try_from(*config.limits.max_output_bytes).unwrap_or(usize::MAX);
    let notice = settings.broad_root.as_ref().map(BroadRoot::notice);
    if let Some(notice) = &notice {
        tracing::warn!("{notice}");
    }
    Host::builder(policy, settings.redactor.clone())
        .audit_level(audit::level(settings, AuditLevel::Names))
        .selection(selection(settings))
        .notice(notice)
        .limits(limits)
        .text_only(*config.results == ResultFormat::Text)
        // For the ends of background commands and of sessions.
        .client_log(true)
}

/// Returns the tools that `settings` choose.
pub(crate) fn selection(settings: &Settings) -> ToolSelection {
    let selection = match &settings.config.toolsets.value {
        Toolsets::Preset(preset) => ToolSelection::new([preset.name()]),
        Toolsets::Chosen(words) => ToolSelection::new(words),
    };
    selection.supervised(has_supervisor(settings)).read_only(settings.broad_root.is_some())
}

/// Returns true if this server is set up for agents: the settings name a command or agents, or it runs in a session.
fn has_supervisor(settings: &Settings) -> bool {
    let sessions = &settings.config.sessions;
    !sessions.command.is_empty()
        || sessions.agents.is_some()
        || sessions.state_dir.is_some()
        || settings.session.as_ref().is_some_and(Result::is_ok)
}
