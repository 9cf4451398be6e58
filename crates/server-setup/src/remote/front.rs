//! The server in front of a remote: it judges, limits, masks and records every call, and has it made there.

use super::forward::forward;
use super::notices::RemoteNotices;
use crate::config::Config;
use crate::error::Error;
use crate::program::Program;
use crate::resources::{self, workspace};
use crate::settings::Settings;
use crate::setup::{self, LocalServer, PolicyCheck};
use crate::toolsets::{self, ServedCallers};
use crate::{approvals, audit, identity, policy, protected_files, sessions, trusted_text};
use core_tools::ci::{ConfinementPolicy, EnvironmentPolicy};
use core_tools::mcp::{CallForwarder, ForwardedCall, RemoteEffects, Toolset};
use process_runner::Runner;
use process_runner::guardian::GuardianProgram;
use remotes::{LeaseFolder, LeaseRegistry, OpenRequest, Remote, RemoteOptions, RemoteSettings};
use role_policy::{Caller, EffectResolver};
use std::path::PathBuf;
use std::sync::Arc;

/// The name of the program there, if the kind names none.
const PROGRAM: &str = "mcp-stdio";

/// The hash of the sources of this build. Empty for a release.
const BUILD: &str = env!("CORETOOLS_BUILD");

/// Returns the version that both ends must have, with the build as its metadata (Semantic Versioning 2.0.0, §10). A program
/// with tools of its own has its name in it: others lack them.
pub fn version(program: Program) -> String {
    let mut version = program.version.to_owned();
    if !BUILD.is_empty() {
        version.push('+');
        version.push_str(BUILD);
    }
    match program.own_toolset {
        Some(_) => format!("{} {version}", program.name),
        None => version,
    }
}

/// Returns the folder in which what remotes create is written down: `coretools/remotes` in `$XDG_STATE_HOME`, by default
/// `~/.local/state` (XDG Base Directory Specification).
pub fn lease_folder() -> Option<LeaseFolder> {
    // A relative path is ignored, as the specification demands.
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/state")));
    Some(LeaseFolder::new(state?.join("coretools/remotes")))
}

/// Returns the first message to the server there: what `caller` may do, and nothing of who it is.
///
/// # Errors
/// The policy cannot be read.
pub fn open_request(
    settings: &Settings,
    remote: &RemoteSettings,
    caller: &Caller,
) -> Result<OpenRequest, Error> {
    let mut request = OpenRequest::new(version(settings.program), settings.config.forwarded());
    request.roots.clone_from(&remote.roots);
    request.roles = caller.roles().map(str::to_owned).collect();
    request.policy = match settings.config.policy.file.as_ref() {
        None => None,
        Some(path) => Some(trusted_text::read(path).map_err(|source| Error::File {
            role: "the policy",
            path: path.clone(),
            source,
        })?),
    };
    Ok(request)
}

/// Returns what makes calls on `remote`.
fn forwarder(remote: &Remote) -> CallForwarder {
    let (remote, notices) = (remote.clone(), RemoteNotices::default());
    let connected = notices.clone();
    let forwarder = CallForwarder::new(move |call: ForwardedCall| {
        let (remote, notices) = (remote.clone(), notices.clone());
        async move { forward(remote, call, &notices, None).await }
    });
    forwarder.sends_notices(move |notices| connected.connect(notices))
}

/// Tools whose work is done by a remote, and what a host needs beside them.
#[derive(Debug)]
#[non_exhaustive]
pub struct ForwardedTools {
    /// The tools.
    pub toolsets: Vec<Toolset>,
    /// Judges the paths and programs there by their text.
    pub effects: RemoteEffects,
    /// The folders there.
    pub roots: Vec<PathBuf>,
}

impl ForwardedTools {
    fn new(toolsets: Vec<Toolset>, remote: &Remote) -> Self {
        let forwarder = forwarder(remote);
        let roots = &remote.settings().roots;
        Self {
            toolsets: toolsets.into_iter().map(|toolset| toolset.forwarded(&forwarder)).collect(),
            effects: RemoteEffects::new(roots.iter().cloned()),
            roots: roots.iter().map(PathBuf::from).collect(),
        }
    }
}

/// Returns the runner of the commands of up to `max_remotes` remotes.
///
/// # Errors
/// This program's own file cannot be found.
pub fn runner(settings: &Settings, max_remotes: usize) -> Result<Runner, Error> {
    // Beside each connection a command may run that creates or destroys.
    let max_commands = max_remotes.saturating_mul(2);
    let guardian = GuardianProgram::current_exe().map_err(Error::CurrentExecutable)?;
    let runner = Runner::builder().guardian(guardian).secrets(settings.secrets.clone());
    Ok(runner.withhold(&settings.withheld).max_concurrent(max_commands).build())
}

/// Returns the remote of `caller`, of whom the commands of the kind get this `slug` ([`remotes::caller_slug`]). It is
/// connected with the first call.
///
/// # Errors
/// The policy cannot be read.
pub fn connect_for(
    settings: &Settings,
    remote: RemoteSettings,
    caller: &Caller,
    slug: String,
    runner: Runner,
) -> Result<Remote, Error> {
    let request = open_request(settings, &remote, caller)?;
    let options = remote_options(settings, runner, slug);
    Ok(Remote::new(remote, request, options, settings.warm_remotes.clone()))
}

/// Makes the remotes of the configuration ahead from now on, as many as each says, and destroys what other servers have
/// left behind in a registry that they share. To be called in a runtime.
pub fn start_warm(settings: &Settings, runner: &Runner) {
    let options = remote_options(settings, runner.clone(), String::new());
    if settings.leases.get().is_some() {
        // Another server may be killed before anybody calls this one.
        options.start_reaping();
    }
    for remote in &settings.config.remotes {
        settings.warm_remotes.start(remote, &options);
    }
}

/// Returns the tools of `settings`, whose work is done by `remote`.
///
/// # Errors
/// Something that the settings name cannot be used.
pub fn forwarded_tools(
    settings: &Settings,
    runner: &Runner,
    callers: ServedCallers<'_>,
    remote: &Remote,
) -> Result<ForwardedTools, Error> {
    let mut settings = settings.clone();
    // A caller whose tools work on a remote chooses no other.
    settings.chosen_remotes = None;
    without_local_files(&mut settings.config);
    // The tools need a workspace to be made. None of them works here, so that nothing reaches it.
    let workspace = Arc::new(workspace(&settings)?);
    let confine = ConfinementPolicy::off("nothing is run here");
    let toolsets =
        toolsets::all(&settings, &workspace, runner, confine, EnvironmentPolicy::default(), callers)?;
    Ok(ForwardedTools::new(toolsets, remote))
}

/// Returns the options of a remote for a caller of this slug.
pub(crate) fn remote_options(settings: &Settings, runner: Runner, caller: String) -> RemoteOptions {
    let program = settings.program;
    let name = if program.own_toolset.is_some() { program.name } else { PROGRAM };
    let mut options = RemoteOptions::new(name, program.version, runner);
    options.leases = settings.leases.get().cloned().or_else(|| lease_folder().map(LeaseRegistry::from));
    options.configured.clone_from(&settings.config.remotes);
    options.caller = caller;
    options
}

/// Builds the server that `settings` describe, for the one caller whom they name: in front of a remote, if they name one.
///
/// # Errors
/// Something that the settings name cannot be used, or does not fit the rest.
pub fn server(settings: Settings) -> Result<LocalServer, Error> {
    match settings.remote.clone() {
        Some(remote) => remote_server(settings, remote),
        None => setup::server(settings),
    }
}

fn remote_server(mut settings: Settings, remote: RemoteSettings) -> Result<LocalServer, Error> {
    for warning in &settings.config.warnings {
        tracing::warn!("{warning}");
    }
    without_local_files(&mut settings.config);
    // Added when the other tools are forwarded: those on other remotes are not forwarded to this one.
    let chosen_remotes = settings.chosen_remotes.take();
    // The tools need a workspace to be made. None of them works here, so that nothing reaches it.
    let workspace = Arc::new(workspace(&settings)?);
    let runner = resources::runner(&settings)?;
    let confine = ConfinementPolicy::off("nothing is run here");
    let sessions = sessions::of_one(&settings);
    let callers = ServedCallers::One(&sessions);
    let environment = EnvironmentPolicy::default();
    let toolsets = toolsets::all(&settings, &workspace, &runner, confine, environment, callers)?;
    let facts = toolsets::facts_of(&toolsets);
    let loaded = policy::at_start(&settings, &facts)?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    protected_files::check_marker_key(&settings, &workspace)?;
    let caller = identity::caller(&settings, &loaded.policy).caller;
    let remote = connect_for(&settings, remote, &caller, "local".to_owned(), runner.clone())?;
    let ForwardedTools { mut toolsets, effects, mut roots } = ForwardedTools::new(toolsets, &remote);
    let mut effects: Arc<dyn EffectResolver + Send + Sync> = Arc::new(effects);
    if let Some(chosen) = &chosen_remotes {
        toolsets = chosen.add_to(toolsets);
        effects = Arc::new(chosen.effects(effects));
        roots.extend(chosen.roots());
    }
    let mut host = setup::host(&settings, loaded.policy)
        .approvals(approvals::of_one(&settings, &workspace))
        .roots(roots);
    for toolset in toolsets {
        host = host.toolset(toolset);
    }
    let host = host.effects(effects).audit(audit::open(&settings)?).build()?;
    let name = remote.settings().label();
    Ok(LocalServer {
        program: settings.program,
        host,
        caller,
        runner,
        confinement: format!("as remote {name} has it"),
        environment: format!("as remote {name} has it"),
        policy_file: settings.config.policy.file.value.clone(),
        // The server there checks them, where the files are.
        policy_check: PolicyCheck::new(|_| Ok(())),
        facts,
        sessions,
        narrowing: None,
        remote: Some(remote),
        chosen_remotes,
        warm_remotes: settings.warm_remotes.clone(),
    })
}

/// Forgets the settings that name files of this machine.
fn without_local_files(config: &mut Config) {
    config.context.catalogue.value = None;
}
