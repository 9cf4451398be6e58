//! An MCP server over HTTP, for a shared host: the same tools and the same guarded host as `mcp-stdio`, with an
//! identity, a role, roots and limits for each caller.
//!
//! [`main`] is the whole of such a program. A server with tools and roles of its own is another [`Program`], which
//! `mcp_stdio::main` serves to a local agent as well. Toolsets are features, all of them on by default.
#![cfg(unix)]

mod address;
#[cfg(feature = "sessions")]
mod agents;
mod answer;
#[cfg(feature = "audit-database")]
mod archive;
#[cfg(not(feature = "audit-database"))]
#[path = "no_archive.rs"]
mod archive;
mod bearer;
mod begun;
mod cli;
mod compress;
mod connection;
mod file;
mod gate;
mod governor;
mod health;
mod identity;
mod jwt;
mod life;
mod mcp;
mod metrics;
mod notify;
mod places;
mod route;
mod sessions;
#[cfg(feature = "telemetry")]
mod telemetry;
#[cfg(not(feature = "telemetry"))]
#[path = "no_telemetry.rs"]
mod telemetry;
mod tenants;
mod tls;
mod tokens;
mod ui;

use cli::{Cli, Command};
use core_tools::config::Flags;
use server_setup::settings::{self, Settings};
pub use server_setup::{Program, Resources};
use server_setup::{log, manual, setup};
use std::process::ExitCode;
use telemetry::Telemetry;

/// The `main` of `program`: does what the arguments of the process ask for; without a subcommand it serves. The exit
/// code is 2 where the work could not start.
///
/// To be called first, and once: what it starts runs this program again, to end what it would leave behind.
pub fn main(program: Program) -> ExitCode {
    // The process that outlives this one and ends what it left running. Never returns in that process.
    process_runner::guardian::run_if_requested();
    let cli = cli::parse(program);
    // As the first process of a container the server runs below one that waits for what loses its parent.
    #[cfg(target_os = "linux")]
    if cli.command.is_none() {
        match server_setup::init::run_below() {
            Ok(Some(code)) => return code,
            Ok(None) => {}
            Err(error) => {
                say(&format!("{}: what loses its parent will not be waited for: {error}", program.name));
            }
        }
    }
    match run(program, cli) {
        Ok(code) => code,
        Err(error) => {
            say(&format!("{}: {error}", program.name));
            ExitCode::from(2)
        }
    }
}

/// Does what was asked for. An error is one that kept the work from starting.
fn run(program: Program, cli: Cli) -> Result<ExitCode, String> {
    match cli.command {
        Some(Command::Completions { shell }) => {
            return print(&manual::completions(shell, &mut cli::command(program)));
        }
        Some(Command::Man(man)) => return print(&man.run(cli::command(program))?),
        _ => {}
    }
    let settings = read_settings(program, &cli.options.flags())?;
    // Only the server itself is watched: the other commands end at once.
    let telemetry = match cli.command {
        None => Telemetry::from_environment(program.name, program.version)?,
        Some(_) => None,
    };
    let further = telemetry.as_ref().and_then(|telemetry| telemetry.further(settings.redactor.clone()));
    let level = cli.options.log.as_deref().unwrap_or("warn");
    let _log = log::start(level, settings.redactor.clone(), further)?;
    match cli.command {
        Some(Command::Token { command }) => return tokens::run(&settings, command),
        Some(Command::Health(asked)) => return health::run(&settings, &asked),
        _ => {}
    }
    setup::more_descriptors();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the runtime: {error}"))?;
    let spans = telemetry.as_ref().and_then(Telemetry::spans);
    let flags = cli.options.flags();
    let again = Box::new(move || read_settings(program, &flags));
    let code = runtime.block_on(life::serve(settings, again, spans));
    if let Some(telemetry) = telemetry {
        telemetry.close();
    }
    // A thread that hangs in the file system must not keep the process.
    runtime.shutdown_background();
    code
}

/// Variables that hold what this server alone may show to others; besides the one that `http.audit_database` names.
const CREDENTIALS: [&str; 4] = [
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
    "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
];

/// Environment and configuration. No program of a caller gets what is meant for this server alone.
fn read_settings(program: Program, flags: &Flags) -> Result<Settings, String> {
    let mut settings = settings::read(program, flags, None)?;
    let database = settings.config.http.audit_database.as_deref().and_then(|place| place.strip_prefix('$'));
    settings.withheld = CREDENTIALS.into_iter().chain(database).map(str::to_owned).collect();
    Ok(settings)
}

/// Prints to standard output. An error where not everything could be written: a token is shown but once.
fn print(text: &str) -> Result<ExitCode, String> {
    use std::io::Write;
    let mut output = std::io::stdout().lock();
    let written = output
        .write_all(text.as_bytes())
        .and_then(|()| output.write_all(b"\n"))
        .and_then(|()| output.flush());
    written.map(|()| ExitCode::SUCCESS).map_err(|error| format!("cannot write to standard output: {error}"))
}

/// Says something to whoever started the server.
fn say(text: &str) {
    use std::io::Write;
    // Where standard error is closed, the exit code has to do.
    let _ = writeln!(std::io::stderr(), "{text}");
}
