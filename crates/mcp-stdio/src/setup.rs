//! From flags, environment and configuration to a server that is ready to serve.

use crate::cli::Options;
use core_tools::ci::{Commands, ServerFacts};
use core_tools::mcp::{Connection, Host, Limits, Selection};
use core_tools::redact::{self, Redactor};
use core_tools::workspace::Workspace;
use process_runner::Runner;
use process_runner::guardian::Guardian;
use role_policy::{Caller, Policy};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

const INSTRUCTIONS: &str = "Tools for working in a code base: read and edit files, find and search, run programs. \
Paths are relative to the first root. Search with search_files and find_files instead of running grep or find; \
change files with edit_file instead of rewriting them. run_command has no shell and ends everything it started at \
its time limit; servers and watchers belong in start_command. Secrets are masked as [redacted:kind] in every \
answer; the files still hold them.";

/// Everything that is read from outside, read.
pub(crate) struct Settings {
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) redactor: Redactor,
    pub(crate) options: Options,
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
    let values = redact::secret_environment(std::env::vars());
    let redactor =
        Redactor::new(redact::Options { values, ..Default::default() }).map_err(|error| error.to_string())?;
    let mut roots = options.roots.clone();
    if roots.is_empty() {
        roots.push(match std::env::var_os("FILESYSTEM_TOOLS_BASE_PATH").filter(|path| !path.is_empty()) {
            Some(path) => path.into(),
            None => {
                std::env::current_dir().map_err(|error| format!("cannot find the current folder: {error}"))?
            }
        });
    }
    Ok(Settings { roots, redactor, options: options.clone() })
}

/// The server that `settings` describe.
pub(crate) fn server(settings: Settings) -> Result<Server, String> {
    let workspace = Arc::new(Workspace::new(&settings.roots).map_err(|error| error.to_string())?);
    let guardian = Guardian::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let runner = Runner::builder().guardian(guardian).build();
    let facts = ServerFacts {
        name: env!("CARGO_PKG_NAME").to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: Instant::now(),
        path: std::env::var_os("PATH"),
    };
    let commands = Commands::new(runner.clone(), Arc::clone(&workspace));
    let host = Host::builder(Policy::allow_all(), settings.redactor)
        .toolset(core_tools::mcp::filesystem::toolset(&workspace))
        .toolset(core_tools::mcp::ci::toolset(commands, facts))
        .selection(Selection::new(settings.options.toolsets))
        .limits(Limits::default())
        .text_only(settings.options.text_only)
        .build()
        .map_err(|error| error.to_string())?;
    Ok(Server { host, caller: Caller::new("orchestrator"), runner })
}
