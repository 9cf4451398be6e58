//! CoreTools for a local agent: arguments in, server up, exit code out.

mod call;
mod cli;
mod context;
mod doctor;
mod policy;
mod print_config;
mod serve;
#[cfg(unix)]
mod session;
mod transport;
#[cfg(unix)]
mod wrap;

use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use server_setup::setup::Program;
use server_setup::{identity, log, manual, setup};
use std::process::ExitCode;

/// This server, as it names itself.
const PROGRAM: Program = Program { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") };

fn main() -> ExitCode {
    // The process that outlives this one and ends what it left running. Never returns in that process.
    process_runner::guardian::run_if_requested();
    let cli = Cli::parse();
    match run(cli) {
        Ok(code) => code,
        Err(error) => {
            print_error(&format!("mcp-stdio: {error}"));
            ExitCode::from(2)
        }
    }
}

/// Runs what was asked for. An error is one that kept the work from starting.
fn run(cli: Cli) -> Result<ExitCode, String> {
    match cli.command {
        Some(Command::PrintConfig { client }) => {
            let program =
                std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
            return Ok(print(&print_config::print_config(client, &program, &cli.options)?));
        }
        Some(Command::Completions { shell }) => {
            return Ok(print(&manual::completions(shell, &mut Cli::command())));
        }
        Some(Command::Man(man)) => return Ok(print(&man.run(Cli::command())?)),
        _ => {}
    }
    let settings = setup::settings(PROGRAM, &cli.options.flags(), cli.options.agent_command.clone())?;
    let _log = log::start(cli.options.log.as_deref().unwrap_or("warn"), settings.redactor.clone())?;
    #[cfg(unix)]
    if let Some(Command::Wrap(wrap)) = cli.command {
        return wrap::wrap(*wrap, &settings);
    }
    // One thread for the protocol: with it a call takes half the time that handing it over takes. Blocking
    // work has threads of its own.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the runtime: {error}"))?;
    let code = match cli.command {
        Some(Command::Doctor { json }) => runtime.block_on(doctor::doctor(settings, json)),
        Some(Command::Context(arguments)) => {
            runtime.block_on(context::context(&settings, cli.options.role.as_deref(), &arguments))
        }
        Some(Command::Policy { command }) => policy::run(&settings, cli.options.role.as_deref(), command),
        #[cfg(unix)]
        Some(Command::Session { command }) => {
            let (flags, agent_command) = (cli.options.flags(), cli.options.agent_command.clone());
            let again = move || setup::settings(PROGRAM, &flags, agent_command.clone());
            runtime.block_on(session::run(settings, command, again))
        }
        Some(Command::Tools { json }) => Ok(call::tools(&setup::server(settings)?, json)),
        Some(Command::Call { tool, arguments, json }) => {
            let server = setup::server(settings)?;
            runtime.block_on(call::call(server, &tool, &arguments, json))
        }
        _ => {
            let server = setup::server(settings)?;
            Ok(runtime.block_on(serve::serve(server)))
        }
    };
    // A thread that hangs in the file system must not keep the process.
    runtime.shutdown_background();
    code
}

/// Prints to standard output, for subcommands; serving never comes here. Returns the exit code: failure where
/// not everything could be written.
fn print(text: &str) -> ExitCode {
    use std::io::Write;
    let mut output = std::io::stdout().lock();
    let written = output
        .write_all(text.as_bytes())
        .and_then(|()| output.write_all(b"\n"))
        .and_then(|()| output.flush());
    match written {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that has seen enough (`| head`) is no fault.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&format!("mcp-stdio: cannot write to standard output: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints to standard error.
fn print_error(text: &str) {
    use std::io::Write;
    // Where standard error is closed, the exit code has to do.
    let _ = writeln!(std::io::stderr(), "{text}");
}
