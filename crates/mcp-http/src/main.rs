//! CoreTools for a shared host: the same tools and the same guarded host as `mcp-stdio`, behind HTTP, with an
//! identity, a role, roots and limits for each caller.
#![cfg(unix)]

mod address;
mod answer;
#[cfg(feature = "audit-database")]
mod archive;
#[cfg(not(feature = "audit-database"))]
#[path = "no_archive.rs"]
mod archive;
mod bearer;
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
mod route;
mod sessions;
mod tenants;
mod tls;
mod tokens;
mod ui;

use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use server_setup::setup::{self, Program};
use server_setup::{log, manual};
use std::process::ExitCode;

/// This server, as it names itself.
const PROGRAM: Program = Program { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") };

fn main() -> ExitCode {
    // The process that outlives this one and ends what it left running. Never returns in that process.
    process_runner::guardian::run_if_requested();
    match run(Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            say(&format!("mcp-http: {error}"));
            ExitCode::from(2)
        }
    }
}

/// Does what was asked for. An error is one that kept the work from starting.
fn run(cli: Cli) -> Result<ExitCode, String> {
    match cli.command {
        Some(Command::Completions { shell }) => {
            return print(&manual::completions(shell, &mut Cli::command()));
        }
        Some(Command::Man(man)) => return print(&man.run(Cli::command())?),
        _ => {}
    }
    let settings = setup::settings(PROGRAM, &cli.options.flags(), None)?;
    let _log = log::start(cli.options.log.as_deref().unwrap_or("warn"), settings.redactor.clone())?;
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
    let code = runtime.block_on(life::serve(settings));
    // A thread that hangs in the file system must not keep the process.
    runtime.shutdown_background();
    code
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
