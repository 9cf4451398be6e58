//! The subcommand `codex-environment`: the executor that Codex is given in place of its own, and its entry in Codex's
//! `environments.toml`.

mod environments_toml;
mod install;

pub(crate) use install::state;

use crate::cli::GlobalOptions;
use crate::error::Error;
use crate::output::{name, print_error};
use crate::serve::{SHUTDOWN_LIMIT, cancel_on_signal};
use clap::{Args, Subcommand};
use codex_executor::{ExecutorOptions, serve};
use error_causes::chain;
use server_setup::codex_executor::CodexExecutorPolicy;
use server_setup::settings::Settings;
use std::process::ExitCode;
use std::time::Duration;
use tokio::io::BufReader;
use tokio_util::sync::CancellationToken;

pub(crate) const EXAMPLES: &str = "\
Examples:
  mcp-stdio --role worker codex-environment install    have Codex run commands and reach files through this program
  mcp-stdio codex-environment remove                   give Codex its own executor back

Without a subcommand it is the executor: Codex starts it and speaks to it on standard input and output.";

/// The size of the buffer that requests are read into.
const BUFFER_BYTES: usize = 64 << 10;

/// The arguments of `codex-environment`.
#[derive(Args, Debug)]
pub(crate) struct CodexEnvironmentArguments {
    /// End a command after this many seconds. Default: `limits.max_timeout_ms`
    #[arg(long, value_name = "SECONDS", global = true)]
    exec_timeout: Option<u64>,
    #[command(subcommand)]
    pub(crate) command: Option<CodexEnvironmentCommand>,
}

/// The subcommands of `codex-environment`.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum CodexEnvironmentCommand {
    /// Make this program, with the flags given here, the only executor in Codex's environments.toml
    Install,
    /// Take it out of environments.toml again
    Remove,
}

/// Installs or removes the entry in Codex's settings.
pub(crate) fn change_settings(
    options: &GlobalOptions,
    arguments: &CodexEnvironmentArguments,
    command: CodexEnvironmentCommand,
) -> Result<ExitCode, Error> {
    match command {
        CodexEnvironmentCommand::Install => install::install(options, arguments.exec_timeout),
        CodexEnvironmentCommand::Remove => install::remove(),
    }
}

/// Serves the executor until Codex is gone or a signal comes.
pub(crate) async fn run(
    settings: Settings,
    arguments: &CodexEnvironmentArguments,
) -> Result<ExitCode, Error> {
    if let Some(broad) = &settings.broad_root {
        return Err(Error::Argument(broad.notice()));
    }
    let folder = std::env::current_dir().map_err(Error::system("cannot find the current folder"))?;
    let redactor = settings.redactor.clone();
    let timeout = arguments.exec_timeout.map(|seconds| Duration::from_secs(seconds.max(1)));
    let policy = CodexExecutorPolicy::new(settings, timeout)?;
    let mut options = ExecutorOptions::new(policy.runner().clone(), redactor, folder);
    if let Some(shell) =
        std::env::var_os("SHELL").map(std::path::PathBuf::from).filter(|shell| is_shell(shell))
    {
        options.shell = shell;
    }
    let ending = CancellationToken::new();
    let signals = tokio::spawn(cancel_on_signal(ending.clone()));
    let reader = BufReader::with_capacity(BUFFER_BYTES, tokio::io::stdin());
    let served = serve(reader, tokio::io::stdout(), policy, options, ending.clone().cancelled_owned());
    tokio::pin!(served);
    let overdue = async {
        ending.cancelled().await;
        tokio::time::sleep(SHUTDOWN_LIMIT).await;
    };
    let result = tokio::select! {
        result = &mut served => result,
        // What has not ended by then is left to the guardian.
        () = overdue => Ok(()),
    };
    signals.abort();
    match result {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => {
            print_error(&format!("{}: {}", name(), chain(&error)));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Returns true for a shell whose lines the policy can judge.
fn is_shell(path: &std::path::Path) -> bool {
    let name = path.file_name().and_then(std::ffi::OsStr::to_str);
    path.is_absolute() && matches!(name, Some("bash" | "sh" | "dash")) && path.is_file()
}
