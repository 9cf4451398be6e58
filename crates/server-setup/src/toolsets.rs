//! The toolsets of a server, and what each of them is given.

#[cfg(feature = "ci")]
use crate::broad_root::BroadRoot;
use crate::config::Config;
#[cfg(feature = "context")]
use crate::error::CatalogueFileError;
use crate::error::Error;
use crate::program::Resources;
#[cfg(feature = "ci")]
use crate::resources::server_facts;
use crate::resources::{runner, workspace};
use crate::sessions::{self, SessionHandle};
use crate::settings::Settings;
use core_tools::ci::{Commands, ConfinementPolicy, EnvironmentPolicy};
#[cfg(feature = "context")]
use core_tools::context::{Catalogue, WorkspaceCompiler};
#[cfg(feature = "introspection")]
use core_tools::db::Databases;
#[cfg(feature = "introspection")]
use core_tools::inspect::Inspector;
#[cfg(feature = "introspection")]
use core_tools::logs::Logs;
use core_tools::mcp::{Tool, Toolset};
#[cfg(feature = "introspection")]
use core_tools::redact::Redactor;
#[cfg(feature = "introspection")]
use core_tools::trace::Profiler;
use core_tools::workspace::Workspace;
use process_runner::Runner;
use role_policy::ToolFacts;
#[cfg(feature = "introspection")]
use std::num::NonZeroU16;
#[cfg(feature = "context")]
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The callers of the tools.
#[derive(Clone, Copy, Debug)]
pub enum ServedCallers<'a> {
    /// The user that the server runs for, who has these sessions.
    One(&'a SessionHandle),
    /// Several callers who do not trust each other. Nothing of the server itself belongs to them, and each has its own
    /// of these sessions.
    Many(&'a SessionHandle),
}

/// Returns every tool for these callers. The programs that tools run are confined by `confine`, and inherit what
/// `environment` gives.
///
/// # Errors
/// Something that the settings name cannot be used.
pub fn all(
    settings: &Settings,
    workspace: &Arc<Workspace>,
    runner: &Runner,
    confine: ConfinementPolicy,
    environment: EnvironmentPolicy,
    callers: ServedCallers<'_>,
) -> Result<Vec<Toolset>, Error> {
    let resources = resources(settings, workspace, runner, confine, environment);
    let mut toolsets = library(settings, workspace, runner, &resources.commands, callers)?;
    if let Some(own) = settings.program.own_toolset {
        // Last, so that the program's own tools can replace those of the library.
        own(&resources).overlay(&mut toolsets);
    }
    #[cfg(all(feature = "remotes", unix))]
    if let Some(chosen) = &settings.chosen_remotes {
        toolsets = chosen.add_to(toolsets);
    }
    Ok(toolsets)
}

fn resources(
    settings: &Settings,
    workspace: &Arc<Workspace>,
    runner: &Runner,
    confine: ConfinementPolicy,
    environment: EnvironmentPolicy,
) -> Resources {
    let commands = Commands::new(runner.clone(), Arc::clone(workspace), settings.redactor.clone())
        .first_background_id(settings.first_command_id.max(1))
        .environment(environment)
        .confined(confine);
    Resources { workspace: Arc::clone(workspace), commands, redactor: settings.redactor.clone() }
}

/// Returns the names of the program's own tools, including those that replace library tools.
///
/// # Errors
/// Something that the settings name cannot be used.
pub fn own(settings: &Settings) -> Result<Vec<&'static str>, Error> {
    let Some(own) = settings.program.own_toolset else { return Ok(Vec::new()) };
    let workspace = Arc::new(workspace(settings)?);
    let runner = runner(settings)?;
    let confine = ConfinementPolicy::off("nothing is run");
    let resources = resources(settings, &workspace, &runner, confine, EnvironmentPolicy::default());
    Ok(own(&resources).tools.iter().map(Tool::name).collect())
}

/// Returns the facts that a policy knows of every tool there is.
///
/// # Errors
/// Something that the settings name cannot be used.
pub fn facts(
    settings: &Settings,
    workspace: &Arc<Workspace>,
    runner: &Runner,
) -> Result<Vec<ToolFacts<'static>>, Error> {
    // The tools are built to be asked for their facts, and dropped: none of them runs, so nothing is confined.
    let confine = ConfinementPolicy::off("nothing is run");
    let environment = EnvironmentPolicy::default();
    let callers = sessions::of_one(settings);
    let toolsets = all(settings, workspace, runner, confine, environment, ServedCallers::One(&callers))?;
    Ok(facts_of(&toolsets))
}

/// Returns the facts of `toolsets`, and of the tools that only some configurations have: a policy may name a tool that is
/// not there.
pub fn facts_of(toolsets: &[Toolset]) -> Vec<ToolFacts<'static>> {
    let facts: Vec<ToolFacts<'static>> = toolsets.iter().flat_map(Toolset::facts).collect();
    #[cfg(all(feature = "remotes", unix))]
    if !facts.iter().any(|tool| tool.name == crate::remote::USE_REMOTE.name) {
        return facts.into_iter().chain([crate::remote::USE_REMOTE]).collect();
    }
    facts
}

/// Returns the toolsets of the library that this server is linked with.
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
    callers: ServedCallers<'_>,
) -> Result<Vec<Toolset>, Error> {
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
    {
        let notice = settings.broad_root.as_ref().map(BroadRoot::notice);
        let facts = server_facts(settings.program).notice(notice);
        toolsets.push(mcp::ci::toolset(commands.clone(), facts, max_timeout));
    }
    #[cfg(feature = "introspection")]
    toolsets.push(mcp::introspection::toolset(
        workspace,
        logs(config, workspace, &settings.redactor),
        databases(config, workspace),
        inspector(config, workspace, runner, callers)?,
        traces(config, workspace, runner),
    ));
    #[cfg(all(feature = "sessions", unix))]
    {
        let (ServedCallers::One(sessions) | ServedCallers::Many(sessions)) = callers;
        toolsets.push(mcp::sessions::toolset(commands, sessions));
    }
    toolsets.push(mcp::discovery::toolset());
    Ok(toolsets)
}

/// Returns the logs of the application: `$LOG_PATH`, and those that the configuration names.
#[cfg(feature = "introspection")]
fn logs(config: &Config, workspace: &Arc<Workspace>, redactor: &Redactor) -> Logs {
    // Read here, as libraries read no environment.
    let path = std::env::var_os("LOG_PATH").and_then(|path| path.into_string().ok());
    Logs::new(Arc::clone(workspace)).path(path).named(config.logs.sources()).redactor(redactor.clone())
}

/// Returns the databases of the application: `$DB_PATH`, `$DB_URL`, and those that the configuration names.
#[cfg(feature = "introspection")]
pub fn databases(config: &Config, workspace: &Arc<Workspace>) -> Databases {
    let variable = |name: &str| std::env::var_os(name).and_then(|value| value.into_string().ok());
    let named = config.databases.connections().map(|(name, place)| {
        let value = place.strip_prefix('$').and_then(variable);
        (name, value.unwrap_or(place))
    });
    Databases::new(Arc::clone(workspace)).path(variable("DB_PATH")).url(variable("DB_URL")).named(named)
}

/// Returns the state of the application: `$STATE_PATH`, `$STATE_URL`, `$NODE_INSPECT_PORT`, `$INSPECT_TARGET`, and what
/// the configuration says.
#[cfg(feature = "introspection")]
fn inspector(
    config: &Config,
    workspace: &Arc<Workspace>,
    runner: &Runner,
    callers: ServedCallers<'_>,
) -> Result<Inspector, Error> {
    let variable = |name: &str| {
        std::env::var_os(name).and_then(|value| value.into_string().ok()).filter(|value| !value.is_empty())
    };
    let port = variable("NODE_INSPECT_PORT")
        .map(|port| port.parse::<NonZeroU16>().map(NonZeroU16::get).map_err(|_| Error::InspectPort { port }));
    let (setting, target) = match config.inspect.target.as_str() {
        "" => ("INSPECT_TARGET", variable("INSPECT_TARGET")),
        target => ("inspect.target", Some(target.to_owned())),
    };
    // The environment of a shared server is the operator's, and no caller's.
    let environment = matches!(callers, ServedCallers::One(_)).then(std::env::vars_os);
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
        .target(target)
        .map_err(|source| Error::InspectTarget { setting, source })
}

/// Returns the folder of the profiles: in the user's folder for state, `$XDG_STATE_HOME`, by default `~/.local/state`
/// (XDG Base Directory Specification), unless the configuration names one.
pub fn traces_folder(config: &Config) -> PathBuf {
    if let Some(folder) = config.traces.folder.as_ref() {
        return folder.clone();
    }
    // A relative path is ignored, as the specification demands: it would depend on where a client starts the server.
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/state")));
    state.unwrap_or_else(std::env::temp_dir).join("coretools/traces")
}

#[cfg(feature = "introspection")]
fn traces(config: &Config, workspace: &Arc<Workspace>, runner: &Runner) -> Profiler {
    let target = match config.inspect.target.as_str() {
        "" => std::env::var_os("INSPECT_TARGET").and_then(|target| target.into_string().ok()),
        target => Some(target.to_owned()),
    };
    Profiler::new(Arc::clone(workspace), runner.clone(), traces_folder(config))
        .path(std::env::var_os("PATH"))
        .target(target)
        .allow_signals(*config.inspect.allow_signals)
}

/// Returns a compiler of documents that caches what it read of files in the user's folder for caches:
/// `$XDG_CACHE_HOME`, by default `~/.cache` (XDG Base Directory Specification).
#[cfg(feature = "context")]
pub fn documents(commands: Commands) -> WorkspaceCompiler {
    // Relative paths are ignored, as for the profiles.
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let caches = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    let documents = WorkspaceCompiler::new(commands);
    match caches {
        Some(caches) => documents.cached_in(caches.join("coretools/context")),
        None => documents,
    }
}

/// Returns the same compiler with the catalogue that the configuration names. The file lies beneath a root and is
/// opened like any file there, because a configuration that came with a project may name it.
///
/// # Errors
/// The catalogue cannot be read, or is no catalogue.
#[cfg(feature = "context")]
pub fn project_documents(
    config: &Config,
    workspace: &Workspace,
    commands: Commands,
) -> Result<WorkspaceCompiler, Error> {
    let documents = documents(commands);
    let Some(path) = config.context.catalogue.as_ref() else { return Ok(documents) };
    let catalogue =
        read_catalogue(workspace, path).map_err(|source| Error::Catalogue { path: path.clone(), source })?;
    Ok(documents.catalogue(catalogue))
}

#[cfg(feature = "context")]
fn read_catalogue(workspace: &Workspace, path: &Path) -> Result<Catalogue, CatalogueFileError> {
    use std::io::Read as _;
    const MAX_BYTES: u64 = 1 << 20;
    let (file, metadata) = workspace.locate(path)?.open_read()?;
    if metadata.size > MAX_BYTES {
        return Err(CatalogueFileError::TooLarge { max_bytes: MAX_BYTES });
    }
    let mut text = String::new();
    // Bounded again, since the file may have grown since its size was read.
    file.take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(Catalogue::parse(&text)?)
}
