//! From flags, environment and configuration to a server that is ready to serve.

use crate::cli;
use crate::confinement;
use crate::identity;
use core_tools::ci::{Commands, Confine, EnvironmentPolicy, ServerFacts};
use core_tools::config::{
    Config, EnvironmentMode, FILE_NAME, Flags, Preset, Results, Toolsets, VARIABLE_PREFIX,
};
use core_tools::context::Documents;
use core_tools::db::Databases;
use core_tools::logs::Logs;
use core_tools::mcp::{self, Connection, Host, Limits, Selection, Toolset, WorkspaceEffects};
use core_tools::redact::{self, Redactor};
#[cfg(unix)]
use core_tools::sessions::{Agents, CREDENTIAL_VARIABLE, Options, Owner, Sessions};
use core_tools::workspace::Workspace;
use process_runner::guardian::Guardian;
use process_runner::{Runner, Secrets};
use role_policy::{Caller, ToolFacts};
use std::ffi::OsString;
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

fn instructions(seen: &[&str]) -> String {
    let told = INSTRUCTIONS.iter().filter(|(named, _)| named.iter().all(|tool| seen.contains(tool)));
    told.map(|(_, sentence)| *sentence).collect::<Vec<_>>().join(" ")
}

/// Everything that is read from outside, read.
pub(crate) struct Settings {
    pub(crate) config: Config,
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) redactor: Redactor,
    /// Values that must not leave, which the runner hides before any output is cut.
    pub(crate) secrets: Secrets,
    /// `$TMPDIR`: a session may have one of its own.
    pub(crate) temporary_folder: Option<PathBuf>,
    /// The command that the agent was started with.
    pub(crate) agent_command: Option<String>,
    /// The credential of the session that this server runs in.
    pub(crate) credential: Option<String>,
}

/// A server that is ready to serve.
pub(crate) struct Server {
    pub(crate) host: Host,
    pub(crate) caller: Caller,
    pub(crate) runner: Runner,
    /// How what the tools run is confined, in words.
    pub(crate) confinement: String,
    /// The policy file, to judge by what it says later.
    pub(crate) policy_file: Option<PathBuf>,
    /// What the rules of such a policy must fit.
    pub(crate) checked: (Arc<Workspace>, WorkspaceEffects),
    /// Every tool there could be, for that.
    pub(crate) facts: Vec<ToolFacts<'static>>,
    /// The sessions, those that end with this server among them.
    pub(crate) sessions: SessionHandle,
}

/// The way to the sessions, where there are any.
#[cfg(unix)]
pub(crate) type SessionHandle = Sessions;
#[cfg(not(unix))]
pub(crate) type SessionHandle = ();

impl Server {
    /// What a transport serves.
    pub(crate) fn connection(&self) -> Connection {
        Connection::new(
            self.host.clone(),
            self.caller.clone(),
            env!("CARGO_PKG_NAME"),
            env!("CARGO_PKG_VERSION"),
            instructions(&self.host.names(&self.caller)),
        )
    }
}

/// Reads flags, environment and configuration.
pub(crate) fn settings(options: &cli::Options) -> Result<Settings, String> {
    let folder =
        std::env::current_dir().map_err(|error| format!("cannot find the current folder: {error}"))?;
    let variables = variables(std::env::vars_os())?;
    let flags = Flags {
        config: options.config.clone(),
        roots: options.roots.clone(),
        toolsets: options.toolsets.clone(),
        results: options.text_only.then(|| "text".to_owned()),
        role: options.role.clone(),
        policy: options.policy.clone(),
        audit: options.audit.clone(),
    };
    let mut config =
        Config::load(&folder, variables.iter().cloned(), &flags).map_err(|error| chain(&error))?;
    let roots = if config.roots.is_empty() { vec![folder] } else { config.roots.to_vec() };
    let values = secret_values(&mut config, &variables);
    let secrets = if *config.redaction.enabled { Secrets::new(&values) } else { Secrets::default() };
    let agent_command = options.agent_command.clone();
    let redaction = redact::Options { enabled: *config.redaction.enabled, values };
    let redactor = Redactor::new(redaction).map_err(|error| chain(&error))?;
    let temporary_folder = std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    #[cfg(not(unix))]
    let credential = None;
    #[cfg(unix)]
    let credential = std::env::var_os(CREDENTIAL_VARIABLE).map(|value| value.to_string_lossy().into_owned());
    Ok(Settings { config, roots, redactor, secrets, temporary_folder, agent_command, credential })
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

/// The runner of a server: with a guardian, so that what it runs does not outlive it.
pub(crate) fn runner(secrets: Secrets) -> Result<Runner, String> {
    let guardian = Guardian::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    Ok(Runner::builder().guardian(guardian).secrets(secrets).build())
}

/// What this server knows of itself.
pub(crate) fn facts() -> ServerFacts {
    ServerFacts {
        name: env!("CARGO_PKG_NAME").to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: Instant::now(),
        path: std::env::var_os("PATH"),
    }
}

/// The folders that tools may use, without the configuration that limits the tools.
pub(crate) fn workspace(settings: &Settings) -> Result<Workspace, String> {
    let workspace = Workspace::new(&settings.roots).map_err(|error| chain(&error))?;
    // By name as well, or a tool could write the file that is found at the next start.
    Ok(workspace.protect(identity::protected(settings)).protect_name(FILE_NAME))
}

/// Every tool there is. What they run is confined by `confine`.
pub(crate) fn toolsets(
    settings: &Settings,
    workspace: &Arc<Workspace>,
    runner: &Runner,
    confine: Confine,
    sessions: &SessionHandle,
) -> Vec<Toolset> {
    let config = &settings.config;
    let commands = Commands::new(runner.clone(), Arc::clone(workspace), settings.redactor.clone())
        .environment(match *config.commands.environment {
            EnvironmentMode::Inherit => EnvironmentPolicy::Inherit,
            EnvironmentMode::Minimal => EnvironmentPolicy::Minimal,
        })
        .confined(confine);
    let max_timeout = Duration::from_millis(*config.limits.max_timeout_ms);
    #[allow(unused_mut, reason = "some are for Unix alone")]
    let mut toolsets = vec![
        mcp::filesystem::toolset(workspace),
        mcp::git::toolset(&commands),
        mcp::testing::toolset(&commands, max_timeout),
        mcp::context::toolset(&documents(commands.clone())),
        mcp::ci::toolset(commands, facts(), max_timeout),
        mcp::introspection::toolset(workspace, logs(config, workspace), databases(config, workspace)),
    ];
    #[cfg(unix)]
    toolsets.push(mcp::sessions::toolset(workspace, sessions));
    #[cfg(not(unix))]
    let () = sessions;
    toolsets
}

/// The sessions of this user's state directory. Where nobody supervises them this server does, once they are asked for;
/// its own end with it, by the guardian even if it is killed.
#[cfg(unix)]
pub(crate) fn sessions(settings: &Settings) -> SessionHandle {
    let (config, redactor) = (settings.config.clone(), settings.redactor.clone());
    let secrets = settings.secrets.clone();
    match state_folder(settings) {
        Ok(state) => {
            Sessions::new(state, move || session_options(&config, &redactor, &secrets, Owner::Server))
        }
        // The other tools need no such folder; who asks for sessions is told.
        Err(missing) => Sessions::new("/nonexistent", move || Err(missing.clone())),
    }
}

#[cfg(not(unix))]
pub(crate) fn sessions(_: &Settings) -> SessionHandle {}

/// Where sessions are kept: what the configuration says, else `coretools/sessions` in `$XDG_STATE_HOME`, by default
/// `~/.local/state` (XDG Base Directory Specification).
#[cfg(unix)]
pub(crate) fn state_folder(settings: &Settings) -> Result<PathBuf, String> {
    if let Some(folder) = settings.config.sessions.state_dir.as_ref() {
        return Ok(folder.clone());
    }
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/state")));
    let missing = "nowhere to keep sessions: set sessions.state_dir, XDG_STATE_HOME or HOME";
    Ok(state.ok_or(missing)?.join("coretools/sessions"))
}

/// How a supervisor of one's own is set up.
#[cfg(unix)]
pub(crate) fn session_options(
    config: &Config,
    redactor: &Redactor,
    secrets: &Secrets,
    owner: Owner,
) -> Result<Options, String> {
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
    let mut runner =
        Runner::builder().secrets(secrets.clone()).max_concurrent(max_sessions.saturating_add(8));
    if owner == Owner::Server {
        let guardian =
            Guardian::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
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
    options.manual_restart = Duration::from_secs(*sessions.manual_restart_s);
    if let Some(path) = config.policy.marker_key.as_ref() {
        let key = role_policy::source::read_key(path)
            .map_err(|error| format!("cannot use policy.marker_key {}: {error}", path.display()))?;
        options.marker_key = Some(key);
    }
    Ok(options)
}

/// The logs of the application: `$LOG_PATH`, and those that the configuration names.
fn logs(config: &Config, workspace: &Arc<Workspace>) -> Logs {
    let path = std::env::var_os("LOG_PATH").and_then(|path| path.into_string().ok());
    Logs::new(Arc::clone(workspace)).path(path).named(config.logs.sources())
}

/// The databases of the application: `$DB_PATH`, `$DB_URL`, and those that the configuration names.
fn databases(config: &Config, workspace: &Arc<Workspace>) -> Databases {
    let variable = |name: &str| std::env::var_os(name).and_then(|value| value.into_string().ok());
    let named = config.databases.connections().map(|(name, place)| {
        let value = place.strip_prefix('$').and_then(variable);
        (name, value.unwrap_or(place))
    });
    Databases::new(Arc::clone(workspace)).path(variable("DB_PATH")).url(variable("DB_URL")).named(named)
}

/// Documents that remember what files were in the user's folder for caches: `$XDG_CACHE_HOME`, by default `~/.cache`
/// (XDG Base Directory Specification).
pub(crate) fn documents(commands: Commands) -> Documents {
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let caches = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    let documents = Documents::new(commands);
    match caches {
        Some(caches) => documents.cached_in(caches.join("coretools/context")),
        None => documents,
    }
}

/// What a policy knows of every tool there is.
pub(crate) fn tool_facts(
    settings: &Settings,
    workspace: &Arc<Workspace>,
    runner: &Runner,
) -> Vec<ToolFacts<'static>> {
    let toolsets = toolsets(settings, workspace, runner, Confine::off("nothing is run"), &sessions(settings));
    toolsets.iter().flat_map(Toolset::facts).collect()
}

/// The server that `settings` describe.
pub(crate) fn server(settings: Settings) -> Result<Server, String> {
    let workspace = Arc::new(workspace(&settings)?);
    let runner = runner(settings.secrets.clone())?;
    for warning in &settings.config.warnings {
        tracing::warn!("{warning}");
    }
    let facts = tool_facts(&settings, &workspace, &runner);
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
    let sessions = sessions(&settings);
    let toolsets = toolsets(&settings, &workspace, &runner, confine, &sessions);
    let config = settings.config;
    let mut limits = Limits::default();
    limits.max_concurrent_calls = usize::try_from(*config.limits.max_concurrent_calls).unwrap_or(usize::MAX);
    limits.call_timeout = Duration::from_millis(*config.limits.call_timeout_ms);
    limits.max_timeout = Duration::from_millis(*config.limits.max_timeout_ms);
    limits.max_answer_bytes = usize::try_from(*config.limits.max_output_bytes).unwrap_or(usize::MAX);
    let selection = match config.toolsets.value {
        Toolsets::Preset(Preset::Full) => Selection::default(),
        Toolsets::Preset(Preset::Edit) => Selection::new(["edit"]),
        Toolsets::Preset(Preset::Minimal) => Selection::new(["minimal"]),
        Toolsets::Chosen(words) => Selection::new(words),
    };
    let checked = (Arc::clone(&workspace), effects.clone());
    let mut host = Host::builder(loaded.policy, settings.redactor);
    for toolset in toolsets {
        host = host.toolset(toolset);
    }
    let host = host
        .effects(Arc::new(effects))
        .audit(audit)
        .selection(selection)
        .limits(limits)
        .text_only(*config.results == Results::Text)
        .build()
        .map_err(|error| error.to_string())?;
    let policy_file = config.policy.file.value;
    Ok(Server { host, caller, runner, confinement, policy_file, facts, checked, sessions })
}

/// An error and everything that led to it.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
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
