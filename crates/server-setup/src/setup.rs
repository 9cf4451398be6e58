//! From flags, environment and configuration to a server that is ready to serve.

use crate::confinement;
use crate::identity;
use crate::program::{Program, Resources};
use core_tools::ci::{Commands, Confine, EnvironmentPolicy, ServerFacts};
use core_tools::config::{
    Config, EnvironmentMode, FILE_NAME, Flags, Preset, Results, Toolsets, VARIABLE_PREFIX,
};
#[cfg(feature = "context")]
use core_tools::context::{Catalogue, Documents};
#[cfg(feature = "introspection")]
use core_tools::db::Databases;
#[cfg(feature = "introspection")]
use core_tools::inspect::Inspector;
#[cfg(feature = "introspection")]
use core_tools::logs::Logs;
use core_tools::mcp::{Connection, Host, HostBuilder, Limits, Selection, Toolset, WorkspaceEffects};
use core_tools::redact::{self, Redactor};
#[cfg(all(feature = "sessions", unix))]
use core_tools::sessions::{Again, Agents, CREDENTIAL_VARIABLE, Options, Owner, Sessions};
#[cfg(feature = "introspection")]
use core_tools::trace::Traces;
use core_tools::workspace::Workspace;
use process_runner::guardian::Guardian;
use process_runner::{Runner, Secrets};
use role_policy::{Caller, Policy, ToolFacts};
use std::ffi::OsString;
#[cfg(feature = "introspection")]
use std::num::NonZeroU16;
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

/// Everything that is read from outside, read.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The server that is set up.
    pub program: Program,
    /// The configuration.
    pub config: Config,
    /// The folders that tools may use.
    pub roots: Vec<PathBuf>,
    /// What masks secrets in everything that leaves.
    pub redactor: Redactor,
    /// Values that must not leave, which the runner hides before any output is cut.
    pub secrets: Secrets,
    /// `$TMPDIR`: a session may have one of its own.
    pub temporary_folder: Option<PathBuf>,
    /// The command that the agent was started with.
    pub agent_command: Option<String>,
    /// The session that this server runs in, or why what it shows of one is not good.
    pub session: Option<Result<SessionIdentity, String>>,
    /// Variables of this process that no program gets: what is meant for the server alone. None, unless it says so.
    pub withheld: Vec<String>,
}

/// What the supervisor of a session says of it.
#[cfg(all(feature = "sessions", unix))]
pub type SessionIdentity = core_tools::sessions::Identity;

/// What would be said of a session, if there were any here.
#[cfg(not(all(feature = "sessions", unix)))]
#[derive(Clone, Debug)]
pub struct SessionIdentity {
    /// Its roles.
    pub roles: Vec<String>,
    /// Its id.
    pub session_id: String,
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

/// The way to the sessions, where there are any.
#[cfg(all(feature = "sessions", unix))]
pub type SessionHandle = Sessions;
/// The way to the sessions, where there are none.
#[cfg(not(all(feature = "sessions", unix)))]
pub type SessionHandle = ();

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

/// Reads environment and configuration, beneath `flags`. `agent_command` is the command that the agent was started
/// with, where it is known.
///
/// # Errors
/// What is wrong, in words.
pub fn settings(program: Program, flags: &Flags, agent_command: Option<String>) -> Result<Settings, String> {
    let folder =
        std::env::current_dir().map_err(|error| format!("cannot find the current folder: {error}"))?;
    let folder = program.serves(folder);
    let variables = variables(std::env::vars_os())?;
    let mut config =
        Config::load(&folder, variables.iter().cloned(), flags).map_err(|error| chain(&error))?;
    let roots = if config.roots.is_empty() { vec![folder] } else { config.roots.to_vec() };
    let values = secret_values(&mut config, &variables);
    let secrets = if *config.redaction.enabled { Secrets::new(&values) } else { Secrets::default() };
    let redaction = redact::Options { enabled: *config.redaction.enabled, values };
    let redactor = Redactor::new(redaction).map_err(|error| chain(&error))?;
    let temporary_folder = std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    #[allow(unused_mut, reason = "sessions are for Unix alone, and not for every server")]
    let mut settings = Settings {
        program,
        config,
        roots,
        redactor,
        secrets,
        temporary_folder,
        agent_command,
        session: None,
        withheld: Vec::new(),
    };
    #[cfg(all(feature = "sessions", unix))]
    if let Some(credential) = std::env::var_os(CREDENTIAL_VARIABLE) {
        let session = identity::session(&settings, credential.to_string_lossy().into_owned());
        if let Ok(session) = &session
            && !session.roots.is_empty()
        {
            settings.roots = narrowed(&settings.roots, &session.roots)?;
        }
        settings.session = Some(session);
    }
    Ok(settings)
}

/// As [`settings`], for a server of the current folder that nothing was said to.
///
/// # Errors
/// What is wrong, in words.
pub fn plain(program: Program) -> Result<Settings, String> {
    let folder =
        std::env::current_dir().map_err(|error| format!("cannot find the current folder: {error}"))?;
    Ok(Settings {
        program,
        config: Config::default(),
        roots: vec![folder],
        redactor: Redactor::new(redact::Options::default()).map_err(|error| chain(&error))?,
        secrets: Secrets::default(),
        temporary_folder: None,
        agent_command: None,
        session: None,
        withheld: Vec::new(),
    })
}

/// What of `roots` lies in `within`.
#[cfg(all(feature = "sessions", unix))]
fn narrowed(roots: &[PathBuf], within: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut narrowed: Vec<PathBuf> = Vec::new();
    for root in roots {
        let Ok(real) = root.canonicalize() else { continue };
        let common = within.iter().filter_map(|outer| match real.starts_with(outer) {
            true => Some(&real),
            false => outer.starts_with(&real).then_some(outer),
        });
        for common in common {
            if !narrowed.contains(common) {
                narrowed.push(common.clone());
            }
        }
    }
    if narrowed.is_empty() {
        let within: Vec<_> = within.iter().map(|root| root.display().to_string()).collect();
        return Err(format!("this session may use {}, and no root lies there", within.join(", ")));
    }
    Ok(narrowed)
}

/// The environment as text.
///
/// # Errors
///
/// Where one of our own variables is no text: to go on without it could lift what it was to narrow.
fn variables(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Vec<(String, String)>, String> {
    let mut variables = Vec::new();
    for (name, value) in environment {
        // Another's variable that is no text can neither configure the server nor be printed whole.
        let Ok(name) = name.into_string() else { continue };
        match value.into_string() {
            Ok(value) => variables.push((name, value)),
            Err(_) if name.starts_with(VARIABLE_PREFIX) || name == "FILESYSTEM_TOOLS_BASE_PATH" => {
                return Err(format!("environment variable {name} is not valid UTF-8"));
            }
            Err(_) => {}
        }
    }
    Ok(variables)
}

/// The values that `config` has masked. One that is too short for that is a warning in `config`.
fn secret_values(config: &mut Config, variables: &[(String, String)]) -> Vec<String> {
    let mut values = Vec::new();
    if *config.redaction.environment_values {
        values = redact::secret_environment(variables.iter().cloned());
    }
    for (name, value) in variables.iter().filter(|(name, _)| config.redaction.variables.contains(name)) {
        if value.trim().len() < redact::MIN_VALUE_BYTES {
            config.warnings.push(format!(
                "the value of {name}, which redaction.variables names, is NOT masked: it has fewer than {} bytes, \
                 and so short a text is found all over ordinary text",
                redact::MIN_VALUE_BYTES
            ));
        }
        values.push(value.clone());
    }
    values.retain(|value| value.trim().len() >= redact::MIN_VALUE_BYTES);
    values
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

/// Who calls the tools.
#[derive(Clone, Copy, Debug)]
pub enum Callers<'a> {
    /// The user that the server runs for, who has these sessions.
    One(&'a SessionHandle),
    /// Several, who are strangers to each other: nothing of the server itself is theirs. Each has its own of these
    /// sessions.
    Many(&'a SessionHandle),
}

/// Every tool there is for such callers. What they run is confined by `confine`.
///
/// # Errors
/// What is wrong, in words.
pub fn toolsets(
    settings: &Settings,
    workspace: &Arc<Workspace>,
    runner: &Runner,
    confine: Confine,
    callers: Callers<'_>,
) -> Result<Vec<Toolset>, String> {
    let resources = resources(settings, workspace, runner, confine);
    let mut toolsets = library(settings, workspace, runner, &resources.commands, callers)?;
    if let Some(own) = settings.program.own {
        own(&resources).over(&mut toolsets);
    }
    Ok(toolsets)
}

fn resources(
    settings: &Settings,
    workspace: &Arc<Workspace>,
    runner: &Runner,
    confine: Confine,
) -> Resources {
    let commands = Commands::new(runner.clone(), Arc::clone(workspace), settings.redactor.clone())
        .environment(match *settings.config.commands.environment {
            EnvironmentMode::Inherit => EnvironmentPolicy::Inherit,
            EnvironmentMode::Minimal => EnvironmentPolicy::Minimal,
        })
        .confined(confine);
    Resources { workspace: Arc::clone(workspace), commands, redactor: settings.redactor.clone() }
}

/// The names of the tools that are the program's own, those that take the place of another's among them.
///
/// # Errors
/// What is wrong, in words.
pub fn own_tools(settings: &Settings) -> Result<Vec<&'static str>, String> {
    let Some(own) = settings.program.own else { return Ok(Vec::new()) };
    let workspace = Arc::new(workspace(settings)?);
    let runner = runner(settings)?;
    let resources = resources(settings, &workspace, &runner, Confine::off("nothing is run"));
    Ok(own(&resources).facts().map(|tool| tool.name).collect())
}

/// The toolsets of the library that this server is linked with.
#[allow(
    unused_imports,
    unused_variables,
    unused_mut,
    clippy::vec_init_then_push,
    clippy::unnecessary_wraps,
    reason = "each toolset is a feature and needs something else"
)]
fn library(
    settings: &Settings,
    workspace: &Arc<Workspace>,
    runner: &Runner,
    commands: &Commands,
    callers: Callers<'_>,
) -> Result<Vec<Toolset>, String> {
    use core_tools::mcp;
    let config = &settings.config;
    let max_timeout = Duration::from_millis(*config.limits.max_timeout_ms);
    let mut toolsets = Vec::new();
    #[cfg(feature = "filesystem")]
    toolsets.push(mcp::filesystem::toolset(workspace));
    #[cfg(feature = "git")]
    toolsets.push(mcp::git::toolset(commands));
    #[cfg(feature = "tests")]
    toolsets.push(mcp::testing::toolset(commands, max_timeout));
    #[cfg(feature = "context")]
    toolsets.push(mcp::context::toolset(&project_documents(config, workspace, commands.clone())?));
    #[cfg(feature = "ci")]
    toolsets.push(mcp::ci::toolset(commands.clone(), facts(settings.program), max_timeout));
    #[cfg(feature = "introspection")]
    toolsets.push(mcp::introspection::toolset(
        workspace,
        logs(config, workspace),
        databases(config, workspace),
        inspector(config, workspace, runner, callers)?,
        traces(config, workspace, runner),
    ));
    #[cfg(all(feature = "sessions", unix))]
    {
        let (Callers::One(sessions) | Callers::Many(sessions)) = callers;
        toolsets.push(mcp::sessions::toolset(commands, sessions));
    }
    Ok(toolsets)
}

/// The sessions of this user's state directory. Where nobody supervises them this server does, once they are asked for.
///
/// For one user its own end with it, by the guardian even if it is killed.
#[cfg(all(feature = "sessions", unix))]
pub fn sessions(settings: &Settings) -> SessionHandle {
    let own = settings.clone();
    supervised(settings, move || session_options(&own, Owner::Server))
}

#[cfg(not(all(feature = "sessions", unix)))]
/// There are none.
pub fn sessions(_: &Settings) -> SessionHandle {}

#[cfg(not(all(feature = "sessions", unix)))]
/// There are none.
pub fn sessions_for_many(
    _: &Settings,
    _: impl Fn() -> Result<Settings, String> + Send + Sync + 'static,
) -> SessionHandle {
}

/// The sessions of a server's many callers. It is as a daemon to them: they end when it is told to end, and what outlives
/// it otherwise is taken up by the next. `again` reads the settings again.
#[cfg(all(feature = "sessions", unix))]
pub fn sessions_for_many(
    settings: &Settings,
    again: impl Fn() -> Result<Settings, String> + Send + Sync + 'static,
) -> SessionHandle {
    let options = |settings: &Settings| {
        let mut options = session_options(settings, Owner::Daemon)?;
        options.strangers = true;
        Ok::<_, String>(options)
    };
    let (first, again) = (settings.clone(), Arc::new(again));
    supervised(settings, move || {
        let again = Arc::clone(&again);
        let mut supervised = options(&first)?;
        supervised.again = Some(Again::new(move || options(&again()?)));
        Ok(supervised)
    })
}

#[cfg(all(feature = "sessions", unix))]
fn supervised(
    settings: &Settings,
    options: impl Fn() -> Result<Options, String> + Send + Sync + 'static,
) -> SessionHandle {
    match state_folder(settings) {
        Ok(state) => Sessions::new(state, options),
        // The other tools need no such folder; who asks for sessions is told.
        Err(missing) => Sessions::new("/nonexistent", move || Err(missing.clone())),
    }
}

/// Where sessions are kept: what the configuration says, else `coretools/sessions` in `$XDG_STATE_HOME`, by default
/// `~/.local/state` (XDG Base Directory Specification).
///
/// # Errors
/// What is wrong, in words.
#[cfg(all(feature = "sessions", unix))]
pub fn state_folder(settings: &Settings) -> Result<PathBuf, String> {
    if let Some(folder) = settings.config.sessions.state_dir.as_ref() {
        return Ok(folder.clone());
    }
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/state")));
    let missing = "nowhere to keep sessions: set sessions.state_dir, XDG_STATE_HOME or HOME";
    Ok(state.ok_or(missing)?.join("coretools/sessions"))
}

/// How a supervisor of one's own is set up.
///
/// # Errors
/// What is wrong, in words.
#[cfg(all(feature = "sessions", unix))]
pub fn session_options(settings: &Settings, owner: Owner) -> Result<Options, String> {
    let Settings { config, redactor, secrets, withheld, .. } = settings;
    let sessions = &config.sessions;
    let agents = match sessions.agents.as_ref() {
        None => Agents::builtin(),
        Some(path) => {
            let text = identity::read(path)
                .map_err(|error| format!("cannot use sessions.agents {}: {error}", path.display()))?;
            Agents::with(Some((&path.display().to_string(), &text)))
        }
    };
    let max_sessions = usize::try_from(*sessions.max_sessions).unwrap_or(usize::MAX);
    let places = max_sessions.saturating_add(8);
    let mut runner = Runner::builder().secrets(secrets.clone()).withhold(withheld).max_concurrent(places);
    if owner == Owner::Server {
        let guardian = Guardian::current_exe()
            .map_err(|error| format!("cannot find out which file this program was started from: {error}"))?;
        runner = runner.guardian(guardian);
    }
    let agents = agents.map_err(|error| chain(&error))?;
    let mut options = Options::new(owner, runner.build(), redactor.clone(), agents);
    options.plan.resume_after_limit = *sessions.resume_after_limit;
    options.plan.renew_context = *sessions.renew_context;
    options.plan.restart_after_crash = *sessions.restart_after_crash;
    options.plan.base = Duration::from_millis(*sessions.backoff_base_ms);
    options.plan.cap = Duration::from_millis(*sessions.backoff_cap_ms);
    options.plan.attempts = u32::try_from(*sessions.max_attempts).unwrap_or(u32::MAX);
    options.command.clone_from(&sessions.command);
    options.watched.clone_from(&sessions.watch);
    options.logs.file_bytes = *sessions.log_bytes;
    options.max_sessions = max_sessions;
    options.max_per_caller = usize::try_from(*sessions.max_per_caller).unwrap_or(usize::MAX);
    options.manual_restart = Duration::from_secs(*sessions.manual_restart_s);
    if let Some(path) = config.policy.marker_key.as_ref() {
        let key = role_policy::source::read_key(path)
            .map_err(|error| format!("cannot use policy.marker_key {}: {error}", path.display()))?;
        options.marker_key = Some(key);
    }
    Ok(options)
}

/// The logs of the application: `$LOG_PATH`, and those that the configuration names.
#[cfg(feature = "introspection")]
fn logs(config: &Config, workspace: &Arc<Workspace>) -> Logs {
    let path = std::env::var_os("LOG_PATH").and_then(|path| path.into_string().ok());
    Logs::new(Arc::clone(workspace)).path(path).named(config.logs.sources())
}

/// The databases of the application: `$DB_PATH`, `$DB_URL`, and those that the configuration names.
#[cfg(feature = "introspection")]
pub fn databases(config: &Config, workspace: &Arc<Workspace>) -> Databases {
    let variable = |name: &str| std::env::var_os(name).and_then(|value| value.into_string().ok());
    let named = config.databases.connections().map(|(name, place)| {
        let value = place.strip_prefix('$').and_then(variable);
        (name, value.unwrap_or(place))
    });
    Databases::new(Arc::clone(workspace)).path(variable("DB_PATH")).url(variable("DB_URL")).named(named)
}

/// The state of the application: `$STATE_PATH`, `$STATE_URL`, `$NODE_INSPECT_PORT`, `$INSPECT_TARGET`, and what the
/// configuration says.
#[cfg(feature = "introspection")]
fn inspector(
    config: &Config,
    workspace: &Arc<Workspace>,
    runner: &Runner,
    callers: Callers<'_>,
) -> Result<Inspector, String> {
    let variable = |name: &str| {
        std::env::var_os(name).and_then(|value| value.into_string().ok()).filter(|value| !value.is_empty())
    };
    let port = variable("NODE_INSPECT_PORT").map(|port| {
        port.parse::<NonZeroU16>()
            .map(NonZeroU16::get)
            .map_err(|_| format!("NODE_INSPECT_PORT is {port:?}, and must be a port from 1 to 65535"))
    });
    let target = match config.inspect.target.as_str() {
        "" => ("INSPECT_TARGET", variable("INSPECT_TARGET")),
        target => ("inspect.target", Some(target.to_owned())),
    };
    let environment = matches!(callers, Callers::One(_)).then(std::env::vars_os);
    let environment = environment
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Inspector::new(Arc::clone(workspace))
        .state_path(variable("STATE_PATH"))
        .state_url(variable("STATE_URL").as_deref())?
        .inspect_port(port.transpose()?)
        .environment(environment)
        .programs(runner.clone(), std::env::var_os("PATH"))
        .allow_signals(*config.inspect.allow_signals)
        .target(target.1)
        .map_err(|error| format!("{}: {error}", target.0))
}

/// Where profiles are kept: in the user's folder for state, `$XDG_STATE_HOME`, by default `~/.local/state` (XDG Base
/// Directory Specification), unless the configuration names one.
pub fn traces_folder(config: &Config) -> PathBuf {
    if let Some(folder) = config.traces.folder.as_ref() {
        return folder.clone();
    }
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/state")));
    state.unwrap_or_else(std::env::temp_dir).join("coretools/traces")
}

#[cfg(feature = "introspection")]
fn traces(config: &Config, workspace: &Arc<Workspace>, runner: &Runner) -> Traces {
    let target = match config.inspect.target.as_str() {
        "" => std::env::var_os("INSPECT_TARGET").and_then(|target| target.into_string().ok()),
        target => Some(target.to_owned()),
    };
    Traces::new(Arc::clone(workspace), runner.clone(), traces_folder(config))
        .path(std::env::var_os("PATH"))
        .target(target)
        .allow_signals(*config.inspect.allow_signals)
}

/// Documents that remember what files were in the user's folder for caches: `$XDG_CACHE_HOME`, by default `~/.cache`
/// (XDG Base Directory Specification).
#[cfg(feature = "context")]
pub fn documents(commands: Commands) -> Documents {
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let caches = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    let documents = Documents::new(commands);
    match caches {
        Some(caches) => documents.cached_in(caches.join("coretools/context")),
        None => documents,
    }
}

/// The same, by the catalogue that the configuration names. What it names lies beneath a root and is opened as any file
/// there, for a stranger's configuration may name it.
///
/// # Errors
/// It cannot be read, or is no catalogue.
#[cfg(feature = "context")]
pub fn project_documents(
    config: &Config,
    workspace: &Workspace,
    commands: Commands,
) -> Result<Documents, String> {
    use std::io::Read as _;
    const MAX_BYTES: u64 = 1 << 20;
    let documents = documents(commands);
    let Some(path) = config.context.catalogue.as_ref() else { return Ok(documents) };
    let failed =
        |error: &dyn std::fmt::Display| format!("cannot use context.catalogue {}: {error}", path.display());
    let (file, metadata) =
        workspace.locate(path).and_then(|path| path.open_read()).map_err(|error| failed(&chain(&error)))?;
    if metadata.size > MAX_BYTES {
        return Err(failed(&format!("it has more than {MAX_BYTES} bytes")));
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(|error| failed(&error))?;
    let catalogue = Catalogue::read(&text).map_err(|error| failed(&error))?;
    Ok(documents.catalogue(catalogue))
}

/// What a policy knows of every tool there is.
///
/// # Errors
/// What is wrong, in words.
pub fn tool_facts(
    settings: &Settings,
    workspace: &Arc<Workspace>,
    runner: &Runner,
) -> Result<Vec<ToolFacts<'static>>, String> {
    let confine = Confine::off("nothing is run");
    let toolsets = toolsets(settings, workspace, runner, confine, Callers::One(&sessions(settings)))?;
    Ok(toolsets.iter().flat_map(Toolset::facts).collect())
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
    let sessions = sessions(&settings);
    let toolsets = toolsets(&settings, &workspace, &runner, confine, Callers::One(&sessions))?;
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

/// An error and everything that led to it.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configured(variables: &[(String, String)], names: &str) -> Config {
        let names = ("CORETOOLS_REDACTION_VARIABLES".to_owned(), names.to_owned());
        let folder = std::env::temp_dir();
        Config::load(&folder, variables.iter().cloned().chain([names]), &Flags::default()).unwrap()
    }

    #[test]
    fn a_value_too_short_to_be_masked_is_a_warning_that_names_the_variable_and_not_the_value() {
        let variables =
            [("DB_PIN", "4z9!"), ("LONG", "long-enough"), ("PADDED", "  1q2w3e  "), ("OTHER", "x")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut config = configured(&variables, "DB_PIN, LONG, PADDED, UNSET");
        let values = secret_values(&mut config, &variables);
        let warned: Vec<_> = config.warnings.iter().filter_map(|warning| warning.split(',').next()).collect();
        assert_eq!(warned, ["the value of DB_PIN", "the value of PADDED"]);
        assert!(!config.warnings.concat().contains("4z9!") && !config.warnings.concat().contains("1q2w3e"));
        assert_eq!(values, ["long-enough"]);
    }

    #[cfg(unix)]
    #[test]
    fn one_of_our_variables_that_is_no_text_is_an_error_and_anothers_is_not() {
        use std::os::unix::ffi::OsStringExt;
        let with = |name: &str| variables([(name.into(), OsString::from_vec(vec![0xff]))]);
        assert_eq!(with("SOMETHING").unwrap(), []);
        for name in ["CORETOOLS_ROLE", "CORETOOLS_TOOLSETS", "FILESYSTEM_TOOLS_BASE_PATH"] {
            assert!(with(name).unwrap_err().contains(name));
        }
    }
}
