//! `mcp-stdio wrap`: a role's policy in front of another MCP server.
#![allow(clippy::doc_markdown, reason = "the comments are what --help prints")]

use crate::identity;
use clap::{Args, ValueEnum};
use core_tools::mcp::{Audit, Outcome, Record, WorkspaceEffects};
use core_tools::redact::Redactor;
use process_runner::guardian::Guardian;
use process_runner::{CancellationToken, Runner};
use role_policy::Effects;
use role_policy::Policy;
use role_policy::proxy::{
    self, Child, Ended, Limits, Narrowing, Observed, Observer, PinMode, PolicyHandle, Proxy, Remote, Server,
};
use server_setup::settings::Settings;
use server_setup::{setup, toolsets};
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

pub(crate) const EXAMPLES: &str = "\
Examples:
  mcp-stdio wrap -- npx -y @modelcontextprotocol/server-filesystem ~/app
  mcp-stdio wrap --hide write_file,move_file -- npx -y @modelcontextprotocol/server-filesystem ~/app
  mcp-stdio wrap --only git_status,git_log --pin ~/.local/state/git.pins -- uvx mcp-server-git
  mcp-stdio wrap --url https://example.com/mcp --header-env Authorization=EXAMPLE_AUTHORIZATION";

/// From the moment the proxy has to end to the moment it has. What cannot be ended by then is ended by the
/// guardian, which outlives this process.
const LAST: Duration = Duration::from_millis(650);

/// Flags of `wrap`.
#[derive(Args, Debug)]
pub(crate) struct Wrap {
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

    /// A server to reach instead of starting one: https, or http to this machine (Streamable HTTP)
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    url: Option<String>,

    /// Header for the server, its value from an environment variable; give it several times for several
    #[arg(long, value_name = "NAME=VARIABLE", requires = "url")]
    header_env: Vec<String>,

    /// Headers for the server, one `Name: value` to a line, in a file that only its owner may read
    #[arg(long, value_name = "FILE", requires = "url")]
    headers_file: Option<PathBuf>,

    /// The server to start, and its arguments
    #[arg(required_unless_present = "url", last = true, value_name = "COMMAND")]
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
pub(crate) fn wrap(wrap: Wrap, settings: &Settings) -> Result<ExitCode, String> {
    let closed = |error: std::io::Error| format!("a standard stream is closed: {error}");
    let ends = (
        std::io::stdin().as_fd().try_clone_to_owned().map_err(closed)?,
        std::io::stdout().as_fd().try_clone_to_owned().map_err(closed)?,
    );
    let folder =
        std::env::current_dir().map_err(|error| format!("cannot find the current folder: {error}"))?;
    let server = match &wrap.url {
        Some(url) => Server::Remote(remote(url, &wrap.header_env, wrap.headers_file.as_deref())?),
        None => child(wrap.command, folder.clone())?,
    };
    let limits = Limits {
        call: wrap.time_limit,
        tools: wrap.tool_time_limit.into_iter().collect(),
        reconnect: wrap.reconnect_limit,
        ..Limits::default()
    };
    let narrowing =
        Narrowing { only: wrap.only.into_iter().collect(), hidden: wrap.hide.into_iter().collect() };
    let workspace = Arc::new(setup::workspace(settings)?);
    // One file may speak of our own tools and of a wrapped server's.
    let tools = toolsets::facts(settings, &workspace, &setup::runner(settings)?)?;
    let loaded = identity::policy(settings, &tools)?;
    loaded.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    identity::check_key(settings, &workspace)?;
    // A server that is started here means the same files by the same paths; another's are unknown.
    let local = wrap.url.is_none().then(|| {
        (Arc::clone(&workspace), WorkspaceEffects::new(Arc::clone(&workspace), std::env::var_os("PATH")))
    });
    let caller = identity::caller(settings, &loaded.policy).caller;
    let checked = caller.clone();
    let check = move |policy: &Policy| match &local {
        Some((workspace, effects)) => identity::check_places(policy, &checked, workspace, effects),
        None => Ok(()),
    };
    check(&loaded.policy)?;
    let policy = PolicyHandle::new(loaded.policy);
    let mut proxy = Proxy::new(policy.clone(), caller).narrowing(narrowing).limits(limits);
    if wrap.url.is_none() {
        let workspace = WorkspaceEffects::new(workspace, std::env::var_os("PATH"));
        proxy = proxy.effects(Arc::new(FromFolder { workspace, folder }));
    }
    if let Some(audit) = identity::audit(settings)? {
        let redactor = settings.redactor.clone();
        proxy = proxy.observer(Arc::new(Recorder { audit, redactor }));
    }
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
        let reloaded = Arc::new(Notify::new());
        let reloads = settings.config.policy.file.value.clone().map(|path| {
            let reloaded = Arc::clone(&reloaded);
            tokio::spawn(identity::watch(path, tools, check, move |changed| {
                policy.replace(changed);
                reloaded.notify_one();
            }))
        });
        let last_moment = async {
            end.cancelled().await;
            tokio::time::sleep(LAST).await;
        };
        let ended = tokio::select! {
            ended = proxy.run(server, ends, end.clone(), || reloaded.notified()) => ended,
            () = last_moment => {
                tracing::warn!("something did not end in time; leaving it to the guardian");
                Ok(())
            }
        };
        signals.abort();
        if let Some(reloads) = reloads {
            reloads.abort();
        }
        ended
    });
    runtime.shutdown_background();
    ended.map(|()| ExitCode::SUCCESS).map_err(|error| error.to_string())
}

/// Where the paths of a server lead that runs in `folder`.
struct FromFolder {
    workspace: WorkspaceEffects,
    folder: PathBuf,
}

impl Effects for FromFolder {
    /// What some servers read as something else than a path is no path that can be judged.
    fn resolve_path(&self, path: &str) -> Result<String, String> {
        if path.starts_with('~') || path.contains("://") {
            return Err("a home folder or a URL cannot be judged; give an absolute path".to_owned());
        }
        if path.is_empty() || Path::new(path).is_absolute() {
            return self.workspace.resolve_path(path);
        }
        match self.folder.join(path).to_str() {
            Some(path) => self.workspace.resolve_path(path),
            None => {
                Err("the folder that it is relative to is not valid UTF-8; give an absolute path".to_owned())
            }
        }
    }

    fn resolve_program(&self, word: &str) -> Result<String, String> {
        self.workspace.resolve_program(word)
    }

    fn split_command(&self, line: &str) -> Result<Vec<String>, String> {
        self.workspace.split_command(line)
    }
}

/// Writes what the proxy tells of calls to the audit.
struct Recorder {
    audit: Audit,
    redactor: Redactor,
}

impl Observer for Recorder {
    fn starts(&self, call: &Observed<'_>) -> std::io::Result<()> {
        self.audit.start(call.caller, &self.redactor.redact(call.tool), call.arguments, call.bytes_in)
    }

    fn ended(&self, call: &Observed<'_>, end: &Ended) {
        self.audit.end(&Record {
            caller: call.caller,
            // A name that no server has may hold anything.
            tool: &self.redactor.redact(call.tool),
            decision: call.decision,
            rule: call.rule,
            outcome: match end.outcome {
                proxy::Outcome::Ok => Outcome::Ok,
                proxy::Outcome::Failed => Outcome::Failed,
                proxy::Outcome::NotRun => Outcome::NotRun,
            },
            duration: end.duration,
            arguments: call.arguments,
            bytes_in: call.bytes_in,
            bytes_out: end.bytes_out,
        });
    }
}

/// The server as a child, in this folder and our environment.
fn child(command: Vec<OsString>, folder: PathBuf) -> Result<Server, String> {
    let guardian = Guardian::current_exe()
        .map_err(|error| format!("cannot find out which file this program was started from: {error}"))?;
    let runner = Runner::builder().guardian(guardian).build();
    let mut command = command.into_iter();
    let program = command.next().ok_or("name the server to start after `--`")?;
    let stderr = std::io::stderr().as_fd().try_clone_to_owned();
    let stderr = stderr.map_err(|error| format!("standard error is closed: {error}"))?;
    // What configures us is not the server's.
    let ours = |name: &OsString| name.to_string_lossy().starts_with("CORETOOLS_");
    let without = std::env::vars_os().map(|(name, _)| name).filter(ours).collect();
    Ok(Server::Child(Child { program, arguments: command.collect(), folder, without, stderr }, runner))
}

/// The server by URL. Values of headers come from where other users of the machine do not see them.
fn remote(url: &str, from_environment: &[String], file: Option<&Path>) -> Result<Remote, String> {
    let mut remote = Remote::new(url).map_err(|problem| format!("--url: {problem}"))?;
    for pair in from_environment {
        let (name, variable) = pair.split_once('=').ok_or("--header-env: expected NAME=VARIABLE")?;
        let value = std::env::var(variable).map_err(|_| {
            format!("--header-env: the environment variable {variable} is not set, or no text")
        })?;
        remote = remote.header(name, value.trim()).map_err(|problem| format!("--header-env: {problem}"))?;
    }
    if let Some(file) = file {
        let text = private_text(file).map_err(|problem| format!("{}: {problem}", file.display()))?;
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let place = |problem: String| format!("{}, line {}: {problem}", file.display(), number + 1);
            let pair = line.split_once(':').ok_or_else(|| place("expected `Name: value`".to_owned()))?;
            remote = remote.header(pair.0.trim(), pair.1.trim()).map_err(place)?;
        }
    }
    Ok(remote)
}

/// A small file that nobody but its owner may read or write.
fn private_text(path: &Path) -> Result<String, String> {
    use std::io::Read;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    const LARGEST: u64 = 64 * 1024;
    /// O_NONBLOCK (open(2)): a pipe in its place must not hang us.
    const O_NONBLOCK: i32 = if cfg!(target_os = "linux") { 0o4000 } else { 4 };
    let open = std::fs::OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path);
    let mut file = open.map_err(|error| error.to_string())?;
    let found = file.metadata().map_err(|error| error.to_string())?;
    if !found.is_file() || found.len() > LARGEST {
        return Err(format!("it is no file of at most {LARGEST} bytes"));
    }
    if found.mode() & 0o077 != 0 {
        return Err("others may read it; chmod 600".to_owned());
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}
