//! An MCP server over HTTP, for a shared host: the same tools and the same guarded host as `mcp-stdio`, with an
//! identity, a role, roots and limits for each caller.
//!
//! [`main`] is the whole of such a program. A server with tools and roles of its own is another [`Program`], which
//! `mcp_stdio::main` serves to a local agent as well. Toolsets are features, all of them on by default.
#![cfg(unix)]

mod activity;
mod allowed_hosts;
mod app_state;
mod atomic_file;
mod audit_source;
mod audit_store;
mod auth;
mod call_words;
mod cli;
mod commands;
mod console_output;
mod error;
mod flame_graphs;
mod layers;
mod lease_store;
mod limits;
mod login_store;
mod mcp_endpoint;
mod mcp_request;
mod metrics;
mod middleware;
mod monitoring;
mod net;
mod oauth;
mod operator_actions;
mod process_usage;
mod recent_calls;
mod refusal;
mod refusal_reason;
#[cfg(feature = "remotes")]
mod remote_hosts;
mod response;
mod response_guard;
mod router;
mod server;
mod sessions;
mod telemetry;
mod ui;
mod unauthenticated_peers;
mod wait_reason;
mod workspaces;

use cli::{Cli, CliCommand};
use console_output::{print, say};
use error::Error;
use error_causes::chain;
use server_setup::config::SettingFlags;
use server_setup::settings::Settings;
pub use server_setup::{Program, Resources};
use server_setup::{log, manual, open_file_limit, read_settings};
use std::process::ExitCode;
use telemetry::Telemetry;

/// Runs `program` as the arguments of the process say; without a subcommand it serves. The exit code is 2 if it could not
/// start.
///
/// Call it first in `main`, and once: it starts this program again as the guardian of what it runs.
pub fn main(program: Program) -> ExitCode {
    // In the guardian, which ends what a killed server leaves running, this never returns.
    process_runner::guardian::run_if_requested();
    console_output::set_name(program.name);
    let cli = cli::parse(program);
    // The first process of a container gets the orphans of all others. The server runs below one that reaps them.
    #[cfg(target_os = "linux")]
    if cli.command.is_none() {
        match server_setup::container_init::run_below() {
            Ok(Some(code)) => return code,
            Ok(None) => {}
            Err(error) => {
                say(&format!("{}: orphaned processes will not be reaped: {error}", program.name));
            }
        }
    }
    match run(program, cli) {
        Ok(code) => code,
        Err(error) => {
            say(&format!("{}: {}", program.name, chain(&error)));
            ExitCode::from(2)
        }
    }
}

/// Runs the subcommand, or serves. An error is one that kept it from starting.
fn run(program: Program, cli: Cli) -> Result<ExitCode, Error> {
    match cli.command {
        Some(CliCommand::Completions { shell }) => {
            return Ok(print(&manual::completions(shell, &mut cli::command(program)))?);
        }
        Some(CliCommand::Man(man)) => return Ok(print(&man.run(cli::command(program))?)?),
        _ => {}
    }
    let settings = read_settings(program, &cli.options.flags())?;
    // Only the server itself sends telemetry: the other commands end at once.
    let telemetry = match cli.command {
        None => Telemetry::from_environment(program.name, program.version)?,
        Some(_) => None,
    };
    let log_layer = telemetry.as_ref().and_then(|telemetry| telemetry.log_layer(settings.redactor.clone()));
    let level = cli.options.log.as_deref().unwrap_or("warn");
    let _log = log::start(level, settings.redactor.clone(), log_layer)?;
    match cli.command {
        Some(CliCommand::Token { command }) => return Ok(commands::token::run(&settings, command)?),
        Some(CliCommand::Audit { command }) => return Ok(commands::audit::run(&settings, &command)?),
        Some(CliCommand::Doctor(arguments)) => return Ok(commands::doctor::run(&settings, &arguments)?),
        Some(CliCommand::Init(arguments)) => return Ok(commands::init::run(&settings, &arguments)?),
        Some(CliCommand::Health(arguments)) => return Ok(commands::health::run(&settings, &arguments)?),
        _ => {}
    }
    open_file_limit::raise();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Error::Runtime)?;
    let tracer = telemetry.as_ref().and_then(Telemetry::tracer);
    let flags = cli.options.flags();
    let reread = Box::new(move || read_settings(program, &flags));
    let code = runtime.block_on(server::run::serve(settings, reread, tracer));
    if let Some(telemetry) = telemetry {
        telemetry.close();
    }
    // A thread that hangs in the file system must not keep the process.
    runtime.shutdown_background();
    code
}

/// The environment variables with credentials of the server itself, besides the one that `http.audit_database` names.
const CREDENTIALS: [&str; 4] = [
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
    "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
];

/// Reads the environment and the configuration. The programs of callers do not get the server's own credentials.
fn read_settings(program: Program, flags: &SettingFlags) -> Result<Settings, server_setup::Error> {
    let mut settings = read_settings::read(program, flags, None)?;
    let database =
        settings.config.http.audit_database.as_deref().and_then(|location| location.strip_prefix('$'));
    settings.withheld = CREDENTIALS.into_iter().chain(database).map(str::to_owned).collect();
    Ok(settings)
}
