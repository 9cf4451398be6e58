//! An MCP server on standard input and output, for a local agent: `mcp-stdio`, and servers of projects.
//!
//! [`main`] is the whole of such a program: arguments, environment and configuration in, a server up, an exit code out.
//! A server with tools and roles of its own is another [`Program`]:
//!
//! ```no_run
//! use mcp_stdio::Program;
//! # fn toolset(_: &mcp_stdio::Resources) -> core_tools::mcp::Toolset { unimplemented!() }
//! # const ROLES: &str = "";
//!
//! fn main() -> std::process::ExitCode {
//!     mcp_stdio::main(Program::new("demo", "0.1.0").toolset(toolset).roles(ROLES))
//! }
//! ```
//!
//! `mcp-stdio new` writes such a project. Toolsets are features, and so are the subcommands that few servers need:
//! `wrap` and `new`. All are on by default.

// The template of a tool, which is a part of this crate, names it as others do.
#[cfg(feature = "new")]
extern crate self as mcp_stdio;

mod call;
mod cli;
#[cfg(feature = "context")]
mod context;
mod doctor;
mod index;
#[cfg(feature = "new")]
mod new;
mod policy;
mod print_config;
mod serve;
#[cfg(all(feature = "sessions", unix))]
mod session;
mod transport;
#[cfg(all(feature = "wrap", unix))]
mod wrap;

use cli::{Cli, Command};
pub use server_setup::{Program, Resources};
use server_setup::{identity, log, manual, settings, setup};
use std::process::ExitCode;
use std::sync::OnceLock;

/// The name of the program that has nothing of its own, by which texts here call it.
const PLAIN_NAME: &str = "mcp-stdio";

/// The name under which this program speaks to people.
static NAME: OnceLock<&'static str> = OnceLock::new();

fn name() -> &'static str {
    NAME.get().copied().unwrap_or(PLAIN_NAME)
}

/// The `main` of `program`: does what the arguments of the process ask for; without a subcommand it serves. Errors are
/// written to standard error. The exit code is 2 where the work could not start.
///
/// To be called first, and once: what it starts runs this program again, to end what it would leave behind.
pub fn main(program: Program) -> ExitCode {
    // The process that outlives this one and ends what it left running. Never returns in that process.
    process_runner::guardian::run_if_requested();
    NAME.get_or_init(|| program.name);
    let cli = cli::parse(program);
    // As the first process of a container (`docker run -i`) the server runs below one that waits for what loses its parent.
    #[cfg(target_os = "linux")]
    if cli.command.is_none() {
        match server_setup::init::run_below() {
            Ok(Some(code)) => return code,
            Ok(None) => {}
            Err(error) => {
                print_error(&format!("{}: what loses its parent will not be waited for: {error}", name()));
            }
        }
    }
    match run(program, cli) {
        Ok(code) => code,
        Err(error) => {
            print_error(&format!("{}: {error}", name()));
            ExitCode::from(2)
        }
    }
}

/// Runs what was asked for. An error is one that kept the work from starting.
fn run(program: Program, cli: Cli) -> Result<ExitCode, String> {
    match cli.command {
        Some(Command::PrintConfig { client, url: Some(url) }) => {
            return Ok(print(&print_config::remote(client, &url, &cli.options)?));
        }
        Some(Command::PrintConfig { client, url: None }) => {
            let executable = std::env::current_exe().map_err(|error| {
                format!("cannot find out which file this program was started from: {error}")
            })?;
            return Ok(print(&print_config::print_config(client, &executable, &cli.options)?));
        }
        Some(Command::Completions { shell }) => {
            return Ok(print(&manual::completions(shell, &mut cli::command(program))));
        }
        Some(Command::Man(man)) => return Ok(print(&man.run(cli::command(program))?)),
        #[cfg(feature = "new")]
        Some(Command::New(asked)) => return new::new(&asked),
        _ => {}
    }
    let settings = settings::read(program, &cli.options.flags(), cli.options.agent_command.clone());
    let settings = match (settings, &cli.command) {
        (Err(error), Some(Command::Doctor { json })) => return Ok(doctor::without_settings(error, *json)),
        (settings, _) => settings?,
    };
    let _log = log::start(cli.options.log.as_deref().unwrap_or("warn"), settings.redactor.clone(), None)?;
    #[cfg(all(feature = "wrap", unix))]
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
        #[cfg(feature = "context")]
        Some(Command::Context(arguments)) => {
            runtime.block_on(context::context(&settings, cli.options.role.as_deref(), &arguments))
        }
        Some(Command::Policy { command }) => policy::run(&settings, cli.options.role.as_deref(), command),
        #[cfg(all(feature = "sessions", unix))]
        Some(Command::Session { command }) => {
            let (flags, agent_command) = (cli.options.flags(), cli.options.agent_command.clone());
            let again = move || settings::read(program, &flags, agent_command.clone());
            runtime.block_on(session::run(settings, command, again))
        }
        Some(Command::Tools { json, markdown }) => Ok(call::tools(&setup::server(settings)?, json, markdown)),
        Some(Command::Index(asked)) => index::index(settings, &asked),
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
            print_error(&format!("{}: cannot write to standard output: {error}", name()));
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
