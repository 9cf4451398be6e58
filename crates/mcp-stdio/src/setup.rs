//! From flags, environment and configuration to a server that is ready to serve.

use crate::cli::Options;
use core_tools::ci::{Commands, EnvironmentPolicy, ServerFacts};
use core_tools::config::{Config, EnvironmentMode, Flags, Preset, Results, Search, Toolsets};
use core_tools::mcp::{self, Connection, Host, Limits, Selection};
use core_tools::redact::{self, Redactor};
use core_tools::workspace::Workspace;
use process_runner::guardian::Guardian;
use process_runner::{Runner, Secrets};
use role_policy::{Caller, Policy};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a model is told before it has seen a tool; clients cut it at 2 KB.
const INSTRUCTIONS: &str = "Tools for working in a code base: read and edit files, find and search, run programs. \
Paths are relative to the first root. Search with search_files and find_files instead of running grep or find; \
change files with edit_file instead of rewriting them. run_command has no shell and ends everything it started at \
its time limit; servers and watchers belong in start_command. Secrets are masked as [redacted:kind] in every \
answer; the files still hold them.";

/// Everything that is read from outside, read.
pub(crate) struct Settings {
    pub(crate) config: Config,
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) redactor: Redactor,
    /// Values that must not leave, which the runner hides before any output is cut.
    pub(crate) secrets: Secrets,
}

/// A server that is ready to serve.
pub(crate) struct Server {
    pub(crate) host: Host,
    pub(crate) caller: Caller,
    pub(crate) runner: Runner,
}

impl Server {
    /// What a transport serves.
    pub(crate) fn connection(&self) -> Connection {
        Connection::new(
            self.host.clone(),
            self.caller.clone(),
            env!("CARGO_PKG_NAME"),
            env!("CARGO_PKG_VERSION"),
            INSTRUCTIONS,
        )
    }
}

/// Reads flags, environment and configuration.
pub(crate) fn settings(options: &Options) -> Result<Settings, String> {
    let folder =
        std::env::current_dir().map_err(|error| format!("cannot find the current folder: {error}"))?;
    // A variable that is no text can neither configure the server nor be printed whole.
    let variables: Vec<_> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let flags = Flags {
        roots: options.roots.clone(),
        toolsets: (!options.toolsets.is_empty()).then(|| options.toolsets.join(",")),
        results: options.text_only.then(|| "text".to_owned()),
    };
    let first_root = options.roots.first().map(|root| folder.join(root));
    let search = match &options.config {
        Some(file) => Search::File(file),
        None => Search::Upward(first_root.as_deref().filter(|root| root.is_dir()).unwrap_or(&folder)),
    };
    let config =
        Config::load(search, &folder, variables.iter().cloned(), &flags).map_err(|error| chain(&error))?;
    let roots = if config.roots.is_empty() { vec![folder] } else { config.roots.to_vec() };
    let values = secret_values(&config, &variables);
    let secrets = if *config.redaction.enabled { Secrets::new(&values) } else { Secrets::default() };
    let options = redact::Options { enabled: *config.redaction.enabled, values };
    let redactor = Redactor::new(options).map_err(|error| chain(&error))?;
    Ok(Settings { config, roots, redactor, secrets })
}

fn secret_values(config: &Config, variables: &[(String, String)]) -> Vec<String> {
    let mut values = Vec::new();
    if *config.redaction.environment_values {
        values = redact::secret_environment(variables.iter().cloned());
    }
    let named = |name: &String| config.redaction.variables.contains(name);
    values.extend(variables.iter().filter(|(name, _)| named(name)).map(|(_, value)| value.clone()));
    // Shorter ones are found in ordinary text.
    values.retain(|value| value.trim().len() >= 8);
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
    Ok(workspace.protect(settings.config.file.iter().cloned()))
}

/// The server that `settings` describe.
pub(crate) fn server(settings: Settings) -> Result<Server, String> {
    let workspace = Arc::new(workspace(&settings)?);
    let runner = runner(settings.secrets.clone())?;
    let config = settings.config;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let commands = Commands::new(runner.clone(), Arc::clone(&workspace), settings.redactor.clone())
        .environment(match *config.commands.environment {
            EnvironmentMode::Inherit => EnvironmentPolicy::Inherit,
            EnvironmentMode::Minimal => EnvironmentPolicy::Minimal,
        });
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
    let host = Host::builder(Policy::allow_all(), settings.redactor)
        .toolset(mcp::filesystem::toolset(&workspace))
        .toolset(mcp::ci::toolset(commands, facts(), limits.max_timeout))
        .selection(selection)
        .limits(limits)
        .text_only(*config.results == Results::Text)
        .build()
        .map_err(|error| error.to_string())?;
    Ok(Server { host, caller: Caller::new("orchestrator"), runner })
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
