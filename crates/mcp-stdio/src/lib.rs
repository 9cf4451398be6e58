//! An MCP server on standard input and output, for a local agent: `mcp-stdio`, and a project's own server.
//!
//! [`main`] is the whole of such a program: it reads arguments, environment and configuration, runs the server, and
//! returns an exit code. A server with tools and roles of its own is another [`Program`]:
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
//! `mcp-stdio new` creates such a project. Each toolset is a feature, and so are the subcommands that few servers need,
//! `wrap` and `new`. All are on by default.

// The template of a tool is compiled as a part of this crate, and names it as other crates do.
#[cfg(feature = "new")]
extern crate self as mcp_stdio;

mod approvals;
mod atomic_file;
mod call;
mod cli;
#[cfg(all(feature = "hooks", unix))]
mod codex_environment;
mod completions;
mod configured_server;
#[cfg(feature = "context")]
mod context;
mod doctor;
mod error;
#[cfg(all(feature = "hooks", target_os = "linux"))]
mod exec;
#[cfg(all(feature = "remotes", unix))]
mod far_session;
#[cfg(feature = "hooks")]
mod hook;
mod index;
#[cfg(feature = "new")]
mod new;
mod output;
mod policy;
mod print_config;
#[cfg(all(feature = "remotes", unix))]
mod remote_server;
#[cfg(all(feature = "remotes", unix))]
mod remotes;
mod serve;
#[cfg(all(feature = "remotes", unix))]
mod serve_session;
mod served_remotes;
#[cfg(all(feature = "sessions", unix))]
mod session;
mod terminal;
mod transport;
#[cfg(all(feature = "wrap", unix))]
mod wrap;

use cli::{Cli, CliCommand};
use error::Error;
use error_causes::chain;
use output::{name, print, print_error};
pub use server_setup::{Program, Resources};
use server_setup::{log, read_settings};
use std::io::IsTerminal;
use std::process::ExitCode;

/// Runs `program` as the arguments of the process say; without a subcommand it serves. Errors are written to standard
/// error. The exit code is 2 if the command could not be done.
///
/// Call it first in `main`, and once: it starts the same executable again as the guardian, which ends whatever the server
/// would leave behind.
pub fn main(program: Program) -> ExitCode {
    // In the guardian, the process that outlives this one and ends what it left running, this never returns.
    process_runner::guardian::run_if_requested();
    output::set_name(program.name);
    let cli = cli::parse(program);
    if cli.command.is_none() && nobody_speaks_to_it() {
        return print(&cli::introduction(program));
    }
    // As the first process of a container (`docker run -i`) it must wait for orphaned processes, and the server cannot do
    // so without taking the exit codes of its own children: so the server runs in a child of this process.
    #[cfg(target_os = "linux")]
    if serves(&cli) {
        match server_setup::container_init::run_below() {
            Ok(Some(code)) => return code,
            Ok(None) => {}
            Err(error) => {
                print_error(&format!("{}: orphaned processes will not be reaped: {error}", name()));
            }
        }
    }
    match run(program, cli) {
        Ok(code) => code,
        Err(error) => {
            print_error(&format!("{}: {}", name(), chain(&error)));
            ExitCode::from(2)
        }
    }
}

/// Returns true if this process is to serve, to a client or to the server in front of a remote.
#[cfg(target_os = "linux")]
fn serves(cli: &Cli) -> bool {
    match cli.command {
        None => true,
        #[cfg(feature = "remotes")]
        Some(CliCommand::RemoteServer) => true,
        _ => false,
    }
}

/// Refuses a remote for a subcommand that works on this machine alone.
fn check_remote(cli: &Cli) -> Result<(), Error> {
    let works_there = matches!(
        cli.command,
        None | Some(
            CliCommand::Call { .. }
                | CliCommand::Tools { .. }
                | CliCommand::Index(_)
                | CliCommand::PrintConfig(_)
        )
    );
    match cli.options.remote() {
        Some(_) if !works_there => Err(Error::Argument(
            "--remote: this subcommand works on this machine alone; serving, `call` and `tools` take a remote".to_owned(),
        )),
        None if !works_there && cli.options.roots.iter().any(|root| read_settings::is_remote_root(root)) => Err(Error::Argument(
            "--root: this subcommand works on this machine alone; serving, `call` and `tools` take a root on a remote"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Returns true on a terminal: a person has started the program, and no client.
fn nobody_speaks_to_it() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Runs the subcommand, or serves.
fn run(program: Program, cli: Cli) -> Result<ExitCode, Error> {
    check_remote(&cli)?;
    match cli.command {
        Some(CliCommand::PrintConfig(arguments)) => {
            return print_config::print_config(&arguments, &cli.options);
        }
        Some(CliCommand::Completions { shell }) => {
            return Ok(print(&completions::script(program, shell, &cli.options.flags())));
        }
        Some(CliCommand::Call { tool: None, .. }) => return Ok(print(&cli::call_help(program))),
        Some(CliCommand::Approvals { command }) => return approvals::run(command),
        Some(CliCommand::Man(man)) => return Ok(print(&man.run(cli::command(program))?)),
        #[cfg(feature = "new")]
        Some(CliCommand::New(arguments)) => return new::new(&arguments),
        // Without the log, a runtime or tools: a client waits for the answer before every tool.
        #[cfg(feature = "hooks")]
        Some(CliCommand::Hook { command }) => return hook::run(program, &cli.options, command),
        #[cfg(all(feature = "hooks", target_os = "linux"))]
        Some(CliCommand::Exec(arguments)) => return exec::exec(program, &cli.options, &arguments),
        #[cfg(all(feature = "remotes", unix))]
        Some(CliCommand::RemoteServer) => return remote_server::run(program, &cli.options),
        #[cfg(all(feature = "hooks", unix))]
        Some(CliCommand::CodexEnvironment(arguments)) if let Some(command) = arguments.command => {
            return codex_environment::change_settings(&cli.options, &arguments, command);
        }
        #[cfg(all(feature = "hooks", feature = "sessions", target_os = "linux"))]
        Some(CliCommand::ExecHolder(arguments)) => return exec::background::hold(&arguments),
        #[cfg(all(feature = "hooks", target_os = "linux"))]
        Some(CliCommand::Shell(arguments)) => return exec::shell(program, &cli.options, &arguments),
        _ => {}
    }
    let settings = read_settings::read(program, &cli.options.flags(), cli.options.agent_command.clone());
    // Only the doctor goes on without settings: its task is to say what is wrong with them.
    let settings = match (settings, &cli.command) {
        (Err(error), Some(CliCommand::Doctor { json })) => {
            return Ok(doctor::without_settings(&error, *json));
        }
        (settings, _) => settings?,
    };
    let _log = log::start(cli.options.log.as_deref().unwrap_or("warn"), settings.redactor.clone(), None)?;
    // Before the runtime: the proxy makes one of its own.
    #[cfg(all(feature = "wrap", unix))]
    if let Some(CliCommand::Wrap(wrap)) = cli.command {
        return wrap::wrap(*wrap, &settings);
    }
    // One thread for the protocol: a call takes half the time that it takes if it is handed to another. Blocking
    // work has threads of its own.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::system("cannot start the runtime"))?;
    let code = match cli.command {
        Some(CliCommand::Doctor { json }) => runtime.block_on(doctor::doctor(settings, json)),
        #[cfg(feature = "context")]
        Some(CliCommand::Context(arguments)) => {
            runtime.block_on(context::context(&settings, cli.options.role.as_deref(), &arguments))
        }
        Some(CliCommand::Policy { command }) => policy::run(&settings, cli.options.role.as_deref(), command),
        #[cfg(all(feature = "sessions", unix))]
        Some(CliCommand::Session { command }) => {
            let (flags, agent_command) = (cli.options.flags(), cli.options.agent_command.clone());
            let reread = move || read_settings::read(program, &flags, agent_command.clone());
            runtime.block_on(session::run(settings, command, reread))
        }
        #[cfg(all(feature = "hooks", unix))]
        Some(CliCommand::CodexEnvironment(arguments)) => {
            runtime.block_on(codex_environment::run(settings, &arguments))
        }
        Some(CliCommand::Tools { json, markdown }) => {
            Ok(call::tools(&configured_server::server(settings)?, json, markdown))
        }
        #[cfg(all(feature = "remotes", unix))]
        Some(CliCommand::Remotes { command }) => runtime.block_on(remotes::run(&settings, command)),
        Some(CliCommand::Index(arguments)) => index::index(settings, &arguments),
        Some(CliCommand::Call { tool: Some(tool), help: true, .. }) => {
            call::parameters(&configured_server::server(settings)?, &tool)
        }
        Some(CliCommand::Call { tool: Some(tool), arguments, json, .. }) => {
            let server = configured_server::server(settings)?;
            runtime.block_on(call::call(server, &tool, &arguments, json))
        }
        _ => {
            let server = configured_server::server(settings)?;
            Ok(runtime.block_on(serve::serve(server)))
        }
    };
    // Not dropped: that would wait for its threads, and one may hang in the file system.
    runtime.shutdown_background();
    code
}
