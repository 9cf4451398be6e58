//! `mcp-stdio wrap`: a role's policy in front of another MCP server.
#![allow(clippy::doc_markdown, reason = "the comments are what --help prints")]

use crate::log;
use clap::{Args, ValueEnum};
use core_tools::redact::{Options, Redactor};
use process_runner::guardian::Guardian;
use process_runner::{CancellationToken, Runner};
use role_policy::proxy::{Child, Limits, Narrowing, PinMode, PolicyHandle, Proxy};
use role_policy::{Caller, Policy};
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

pub(crate) const EXAMPLES: &str = "\
Examples:
  mcp-stdio wrap -- npx -y @modelcontextprotocol/server-filesystem ~/app
  mcp-stdio wrap --hide write_file,move_file -- npx -y @modelcontextprotocol/server-filesystem ~/app
  mcp-stdio wrap --only git_status,git_log --pin ~/.local/state/git.pins -- uvx mcp-server-git";

/// From the moment the proxy has to end to the moment it has. What cannot be ended by then is ended by the
/// guardian, which outlives this process.
const LAST: Duration = Duration::from_millis(650);

/// Flags of `wrap`.
#[derive(Args, Debug)]
pub(crate) struct Wrap {
    /// Role of the client
    #[arg(long, value_name = "ROLE", default_value = "orchestrator")]
    role: String,

    /// Only these tools of those that the role may use, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,

    /// None of these tools, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    hide: Vec<String>,

    /// How long a request may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    time_limit: Duration,

    /// The same for calls of one tool; give it several times for several
    #[arg(long, value_name = "TOOL=SECONDS", value_parser = tool_seconds)]
    tool_time_limit: Vec<(String, Duration)>,

    /// How long a request waits for a server that is down, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    reconnect_limit: Duration,

    /// Record the tools' definitions in this file at the first use, and compare them with it later
    #[arg(long, value_name = "FILE")]
    pin: Option<PathBuf>,

    /// What to do with a tool whose definition is not the recorded one
    #[arg(long, value_name = "MODE", default_value = "refuse", requires = "pin")]
    pin_mode: Mode,

    /// The server to start, and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Hide the tool and refuse calls of it
    Refuse,
    /// Offer it and log the difference
    Warn,
    /// Offer it and record it
    Update,
}

impl From<Mode> for PinMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Refuse => Self::Refuse,
            Mode::Warn => Self::Warn,
            Mode::Update => Self::Update,
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    /// A day: longer than any client waits, and no overflow anywhere.
    const LONGEST: f64 = 86_400.0;
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= LONGEST => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("expected seconds, more than 0 and at most {LONGEST}")),
    }
}

fn tool_seconds(text: &str) -> Result<(String, Duration), String> {
    let (tool, limit) = text.split_once('=').ok_or("expected TOOL=SECONDS")?;
    Ok((tool.to_owned(), seconds(limit)?))
}

/// Runs the proxy until its client is gone.
pub(crate) fn wrap(wrap: Wrap, level: Option<&str>) -> Result<ExitCode, String> {
    let redactor = Redactor::new(Options::default()).map_err(|error| error.to_string())?;
    let _log = log::start(level.unwrap_or("warn"), redactor)?;
    let folder =
        std::env::current_dir().map_err(|error| format!("cannot find the current folder: {error}"))?;
    let guardian = Guardian::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let runner = Runner::builder().guardian(guardian).build();

    let mut command = wrap.command.into_iter();
    let program = command.next().ok_or("name the server to start after `--`")?;
    let ends = || -> std::io::Result<_> {
        let input = std::io::stdin().as_fd().try_clone_to_owned()?;
        let output = std::io::stdout().as_fd().try_clone_to_owned()?;
        Ok(((input, output), std::io::stderr().as_fd().try_clone_to_owned()?))
    };
    let (ends, stderr) = ends().map_err(|error| format!("a standard stream is closed: {error}"))?;
    // What configures us is not the server's.
    let ours = |name: &OsString| name.to_string_lossy().starts_with("CORETOOLS_");
    let without = std::env::vars_os().map(|(name, _)| name).filter(ours).collect();
    let child = Child { program, arguments: command.collect(), folder, without, stderr };

    let limits = Limits {
        call: wrap.time_limit,
        tools: wrap.tool_time_limit.into_iter().collect(),
        reconnect: wrap.reconnect_limit,
        ..Limits::default()
    };
    let narrowing =
        Narrowing { only: wrap.only.into_iter().collect(), hidden: wrap.hide.into_iter().collect() };
    let mut proxy = Proxy::new(PolicyHandle::new(Policy::allow_all()), Caller::new(wrap.role))
        .narrowing(narrowing)
        .limits(limits);
    if let Some(file) = wrap.pin {
        proxy = proxy.pins(file, wrap.pin_mode.into());
    }

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the runtime: {error}"))?;
    let ended = runtime.block_on(async {
        let end = CancellationToken::new();
        let signals = tokio::spawn(crate::serve::signals(end.clone()));
        let last_moment = async {
            end.cancelled().await;
            tokio::time::sleep(LAST).await;
        };
        let ended = tokio::select! {
            ended = proxy.run(child, &runner, ends, end.clone(), std::future::pending) => ended,
            () = last_moment => {
                tracing::warn!("something did not end in time; leaving it to the guardian");
                Ok(())
            }
        };
        signals.abort();
        ended
    });
    runtime.shutdown_background();
    ended.map(|()| ExitCode::SUCCESS).map_err(|error| error.to_string())
}
