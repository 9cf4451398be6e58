//! From settings to a server that is ready to serve.

use crate::program::Program;
use crate::sessions::{self, SessionHandle};
use crate::settings::{Settings, chain};
use crate::toolsets::{self, Callers};
use crate::{confinement, identity};
use core_tools::ci::{Confine, ServerFacts};
use core_tools::config::{FILE_NAME, Preset, Results, Toolsets};
use core_tools::mcp::{Connection, Host, HostBuilder, Limits, Selection, Toolset, WorkspaceEffects};
use core_tools::workspace::Workspace;
use process_runner::Runner;
use process_runner::guardian::Guardian;
use role_policy::{Caller, Policy, ToolFacts};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a model is told before it has seen a tool; clients cut it at 2 KB. Each sentence with the tools that it
/// names: who does not see them is not told it.
const INSTRUCTIONS: [(&[&str], &str); 6] = [
    (&[], "Tools for working in a code base. Paths are relative to the first root."),
    (
        &["search_files", "find_files"],
        "Search with search_files and find_files instead of running grep or find.",
    ),
    (&["edit_file"], "Change files with edit_file instead of rewriting them."),
    (&["run_command"], "run_command has no shell and ends everything it started at its time limit."),
    (&["start_command"], "Servers and watchers belong in start_command."),
    (&[], "Secrets are masked as [redacted] or [redacted:kind] in every answer; the files still hold them."),
];

/// What a model is told that sees the tools `seen`.
pub fn instructions(seen: &[&str]) -> String {
    let told = INSTRUCTIONS.iter().filter(|(named, _)| named.iter().all(|tool| seen.contains(tool)));
    told.map(|(_, sentence)| *sentence).collect::<Vec<_>>().join(" ")
}

/// A server for one caller that is ready to serve.
#[derive(Debug)]
pub struct Server {
    program: Program,
    /// The tools.
    pub host: Host,
    /// Who makes every call.
    pub caller: Caller,
    /// What runs programs; to be shut down in the end.
    pub runner: Runner,
    /// How what the tools run is confined, in words.
    pub confinement: String,
    /// The policy file, to judge by what it says later.
    pub policy_file: Option<PathBuf>,
    /// What the rules of such a policy must fit.
    pub checked: (Arc<Workspace>, WorkspaceEffects),
    /// Every tool there could be, for that.
    pub facts: Vec<ToolFacts<'static>>,
    /// The sessions, those that end with this server among them.
    pub sessions: SessionHandle,
}

impl Server {
    /// What a transport serves.
    pub fn connection(&self) -> Connection {
        Connection::new(
            self.host.clone(),
            self.caller.clone(),
            self.program.name,
            self.program.version,
            instructions(&self.host.names(&self.caller)),
        )
    }
}

/// The server that `settings` describe, for the one caller whom they name.
///
/// # Errors
/// What is wrong, in words.
pub fn server(settings: Settings) -> Result<Server, String> {
    let workspace = Arc::new(workspace(&settings)?);
    let runner = runner(&settings)?;
    for warning in &settings.config.warnings {
        tracing::warn!("{warning}");
    }
    // The tools are described once: the policy judges them before it is known how their commands are confined.
    let (confine, confined) = Confine::later();
    let sessions = sessions::of_one(&settings);
    let toolsets = toolsets::all(&settings, &workspace, &runner, confine, Callers::One(&sessions))?;
    let facts: Vec<ToolFacts<'static>> = toolsets.iter().flat_map(Toolset::facts).collect();
    let loaded = identity::policy(&settings, &facts)?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    identity::check_key(&settings, &workspace)?;
    let effects = WorkspaceEffects::new(Arc::clone(&workspace), std::env::var_os("PATH"));
    let caller = identity::caller(&settings, &loaded.policy).caller;
    identity::check_places(&loaded.policy, &caller, &workspace, &effects)?;
    let audit = identity::audit(&settings)?;
    let confine = confinement::confine(&settings, &workspace, &loaded.policy, &caller, &facts)?;
    let confinement = confine.to_string();
    confined.decide(confine);
    let checked = (Arc::clone(&workspace), effects.clone());
    let mut host = host(&settings, loaded.policy);
    for toolset in toolsets {
        host = host.toolset(toolset);
    }
    let host = host.effects(Arc::new(effects)).audit(audit).build().map_err(|error| error.to_string())?;
    let (program, policy_file) = (settings.program, settings.config.policy.file.value);
    Ok(Server { program, host, caller, runner, confinement, policy_file, facts, checked, sessions })
}

/// What `settings` say of a host, as yet without its tools.
pub fn host(settings: &Settings, policy: Policy) -> HostBuilder {
    let config = &settings.config;
    let mut limits = Limits::default();
    limits.max_concurrent_calls = usize::try_from(*config.limits.max_concurrent_calls).unwrap_or(usize::MAX);
    limits.call_timeout = Duration::from_millis(*config.limits.call_timeout_ms);
    limits.max_timeout = Duration::from_millis(*config.limits.max_timeout_ms);
    limits.max_answer_bytes = usize::try_from(*config.limits.max_output_bytes).unwrap_or(usize::MAX);
    let selection = match &config.toolsets.value {
        Toolsets::Preset(Preset::All) => Selection::default(),
        Toolsets::Preset(Preset::Full) => Selection::new(["full"]),
        Toolsets::Preset(Preset::Edit) => Selection::new(["edit"]),
        Toolsets::Preset(Preset::Introspect) => Selection::new(["introspect"]),
        Toolsets::Preset(Preset::Minimal) => Selection::new(["minimal"]),
        Toolsets::Chosen(words) => Selection::new(words),
    };
    Host::builder(policy, settings.redactor.clone())
        .selection(selection)
        .limits(limits)
        .text_only(*config.results == Results::Text)
}

/// The runner of the server that `settings` describe: with a guardian, so that what it runs does not outlive it.
///
/// # Errors
/// This program's own file cannot be found.
pub fn runner(settings: &Settings) -> Result<Runner, String> {
    let guardian = Guardian::current_exe()
        .map_err(|error| format!("cannot find out which file this program was started from: {error}"))?;
    let runner = Runner::builder().guardian(guardian).secrets(settings.secrets.clone());
    Ok(runner.withhold(&settings.withheld).build())
}

/// What a server knows of itself.
pub fn facts(program: Program) -> ServerFacts {
    ServerFacts {
        name: program.name.to_owned(),
        version: program.version.to_owned(),
        started: Instant::now(),
        path: std::env::var_os("PATH"),
    }
}

/// The folders that tools may use, without the configuration that limits the tools.
///
/// # Errors
/// One of them is no folder.
pub fn workspace(settings: &Settings) -> Result<Workspace, String> {
    workspace_of(settings, &settings.roots)
}

/// The same of `roots`, which are some of those folders or lie in them.
///
/// # Errors
/// One of them is no folder.
pub fn workspace_of(settings: &Settings, roots: &[PathBuf]) -> Result<Workspace, String> {
    let workspace = Workspace::new(roots).map_err(|error| chain(&error))?;
    // By name as well, or a tool could write the file that is found at the next start.
    Ok(workspace.protect(identity::protected(settings)).protect_name(FILE_NAME))
}

/// Raises the soft limit of open files towards the hard one (getrlimit(2)): connections and sessions have several each.
#[cfg(unix)]
pub fn more_descriptors() {
    const DESCRIPTORS: u64 = 8192;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(DESCRIPTORS, |maximum| maximum.min(DESCRIPTORS));
    if current.is_some_and(|current| current < wanted)
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })
    {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}
