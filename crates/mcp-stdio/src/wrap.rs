//! The subcommand `wrap`: runs another MCP server behind a policy.
#![allow(clippy::disallowed_methods, reason = "the user names the file of headers")]
#![allow(clippy::doc_markdown, reason = "the comments are what --help prints")]

use crate::error::Error;
use crate::serve::{SHUTDOWN_LIMIT, cancel_on_signal};
use clap::{Args, ValueEnum};
use core_tools::mcp::{Audit, CallDecision, CallRecord, Outcome, WorkspaceEffects, resource_limits};
use core_tools::redact::Redactor;
use core_tools::workspace::Workspace;
use mcp_proxy::{
    CallEnd, McpProxyLimits, ObservedCall, PinMode, PolicyHandle, Proxy, ProxyApprovals, ProxyDecision,
    ProxyObserver, RemoteServer, ToolFilter, Upstream, UpstreamCommand,
};
use process_runner::guardian::GuardianProgram;
use process_runner::{CancellationToken, ResourceLimits, Runner};
use role_policy::{EffectResolver, Policy, ResolveError};
use server_setup::settings::Settings;
use server_setup::{audit, identity, policy, protected_files, resources, toolsets};
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

/// The arguments of `wrap`.
#[derive(Args, Debug)]
pub(crate) struct WrapArguments {
    /// Tools to show, of those that the role may use; separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,

    /// Tools to hide, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    hide: Vec<String>,

    /// Time limit of a request, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    time_limit: Duration,

    /// Time limit of calls of one tool; repeat it for several tools
    #[arg(long, value_name = "TOOL=SECONDS", value_parser = tool_seconds)]
    tool_time_limit: Vec<(String, Duration)>,

    /// Time that a request waits for a server that is down, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    reconnect_limit: Duration,

    /// File to record the definitions of the tools in at first use, and to compare them with later
    #[arg(long, value_name = "FILE")]
    pin: Option<PathBuf>,

    /// Treatment of a tool whose definition differs from the recorded one
    #[arg(long, value_name = "MODE", default_value = "refuse", requires = "pin")]
    pin_mode: PinModeArgument,

    /// URL of a server to connect to instead of starting one: https, or http to this machine (Streamable HTTP)
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    url: Option<String>,

    /// Header for the server, with its value from an environment variable; repeat it for several headers
    #[arg(long, value_name = "NAME=VARIABLE", requires = "url")]
    header_env: Vec<String>,

    /// File of headers for the server, one `Name: value` on a line, which only its owner may read
    #[arg(long, value_name = "FILE", requires = "url")]
    headers_file: Option<PathBuf>,

    /// Server to start, and its arguments
    #[arg(required_unless_present = "url", last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PinModeArgument {
    /// Hide the tool and refuse calls of it
    Refuse,
    /// Show it and log the difference
    Warn,
    /// Show it and record the new definition
    Update,
}

impl From<PinModeArgument> for PinMode {
    fn from(mode: PinModeArgument) -> Self {
        match mode {
            PinModeArgument::Refuse => Self::Refuse,
            PinModeArgument::Warn => Self::Warn,
            PinModeArgument::Update => Self::Update,
        }
    }
}

/// A day: longer than any client waits, and no sum of times overflows.
const MAX_SECONDS: f64 = 86_400.0;

/// A time limit that cannot be used.
#[derive(Debug, thiserror::Error)]
enum InvalidTimeLimit {
    #[error("expected seconds, more than 0 and at most {MAX_SECONDS}")]
    Seconds,
    #[error("expected TOOL=SECONDS")]
    Pair,
}

fn seconds(text: &str) -> Result<Duration, InvalidTimeLimit> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= MAX_SECONDS => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(InvalidTimeLimit::Seconds),
    }
}

fn tool_seconds(text: &str) -> Result<(String, Duration), InvalidTimeLimit> {
    let (tool, limit) = text.split_once('=').ok_or(InvalidTimeLimit::Pair)?;
    Ok((tool.to_owned(), seconds(limit)?))
}

/// Runs the proxy until its client is gone.
pub(crate) fn wrap(arguments: WrapArguments, settings: &Settings) -> Result<ExitCode, Error> {
    let closed = || Error::system("a standard stream is closed");
    let streams = (
        // Copies, which the proxy closes when it ends; the standard streams stay open.
        std::io::stdin().as_fd().try_clone_to_owned().map_err(closed())?,
        std::io::stdout().as_fd().try_clone_to_owned().map_err(closed())?,
    );
    let folder = std::env::current_dir().map_err(Error::system("cannot find the current folder"))?;
    let remote = match &arguments.url {
        Some(url) => Some(remote(url, &arguments.header_env, arguments.headers_file.as_deref())?),
        None => None,
    };
    let mut limits = McpProxyLimits::default();
    limits.request_timeout = arguments.time_limit;
    limits.tool_timeouts = arguments.tool_time_limit.into_iter().collect();
    limits.reconnect_timeout = arguments.reconnect_limit;
    let filter = ToolFilter::default().only(arguments.only).hidden(arguments.hide);
    let workspace = Arc::new(resources::workspace(settings)?);
    // One policy file may name our own tools and those of the wrapped server.
    let tools = toolsets::facts(settings, &workspace, &resources::runner(settings)?)?;
    let loaded = policy::configured(settings, &tools)?;
    loaded.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    protected_files::check_marker_key(settings, &workspace)?;
    // A server that is started here means the same files by the same paths; those of a remote one are unknown.
    let local = arguments.url.is_none().then(|| {
        (Arc::clone(&workspace), WorkspaceEffects::new(Arc::clone(&workspace), std::env::var_os("PATH")))
    });
    let caller = identity::caller(settings, &loaded.policy).caller;
    let checked = caller.clone();
    let check = move |policy: &Policy| match &local {
        Some((workspace, effects)) => policy::check_exclusions(policy, &checked, workspace, effects),
        None => Ok(()),
    };
    check(&loaded.policy)?;
    let server = match remote {
        Some(remote) => Upstream::Remote(remote),
        None => {
            let limits = resource_limits(loaded.policy.limits(&caller));
            child(arguments.command, folder.clone(), limits)?
        }
    };
    let policy = PolicyHandle::new(loaded.policy);
    let approvals = server_setup::approvals::of_one(settings, &workspace);
    let mut proxy = Proxy::new(policy.clone(), caller).filter(filter).limits(limits);
    if arguments.url.is_none() {
        let workspace = WorkspaceEffects::new(workspace, std::env::var_os("PATH"));
        proxy = proxy.effects(Arc::new(ServerEffects { workspace, folder }));
    }
    if let Some(audit) = audit::open(settings)? {
        let redactor = settings.redactor.clone();
        proxy = proxy.observer(Arc::new(AuditObserver { audit, redactor }));
    }
    let redactor = settings.redactor.clone();
    let redact = move |text: &str| redactor.redact(text).into_owned();
    let asked = ProxyApprovals::new(approvals.queue.clone(), approvals.timeout, redact);
    proxy =
        proxy.approvals(asked.asks_client(approvals.asks_client()).asks_operator(approvals.asks_operator()));
    if let Some(file) = arguments.pin {
        proxy = proxy.pins(file, arguments.pin_mode.into());
    }

    // One thread: the lines are read on threads of the proxy's own, and nothing else here waits for the processor.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::system("cannot start the runtime"))?;
    let ended = runtime.block_on(async {
        let ending = CancellationToken::new();
        let signals = tokio::spawn(cancel_on_signal(ending.clone()));
        let reloaded = Arc::new(Notify::new());
        let reloads = settings.config.policy.file.value.clone().map(|path| {
            let reloaded = Arc::clone(&reloaded);
            tokio::spawn(policy::watch(path, tools, check, move |changed| {
                policy.replace(changed);
                reloaded.notify_one();
            }))
        });
        let shutdown_deadline = async {
            ending.cancelled().await;
            tokio::time::sleep(SHUTDOWN_LIMIT).await;
        };
        let ended = tokio::select! {
            ended = proxy.run(server, streams, ending.clone(), || reloaded.notified()) => ended,
            () = shutdown_deadline => {
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
    // Not dropped: that would wait for its threads, and one may hang in the file system.
    runtime.shutdown_background();
    ended.map(|()| ExitCode::SUCCESS).map_err(Error::from)
}

/// Resolves the paths of a server that runs in `folder`.
struct ServerEffects {
    workspace: WorkspaceEffects,
    folder: PathBuf,
}

/// The reason why a path of a wrapped server cannot be judged.
#[derive(Debug, thiserror::Error)]
enum ServerPathError {
    #[error("a home folder or a URL cannot be judged; give an absolute path")]
    NoFile,
    #[error("the folder that it is relative to is not valid UTF-8; give an absolute path")]
    FolderNotUtf8,
}

impl EffectResolver for ServerEffects {
    /// Refuses what some servers read as something else than a path: it cannot be judged as one.
    fn resolve_path(&self, path: &str) -> Result<String, ResolveError> {
        if path.starts_with('~') || path.contains("://") {
            return Err(ResolveError::other(ServerPathError::NoFile));
        }
        if path.is_empty() || Path::new(path).is_absolute() {
            return self.workspace.resolve_path(path);
        }
        match self.folder.join(path).to_str() {
            Some(path) => self.workspace.resolve_path(path),
            None => Err(ResolveError::other(ServerPathError::FolderNotUtf8)),
        }
    }

    fn resolve_program(&self, word: &str) -> Result<String, ResolveError> {
        self.workspace.resolve_program(word)
    }

    fn split_command(&self, line: &str) -> Result<Vec<String>, ResolveError> {
        self.workspace.split_command(line)
    }
}

/// Writes the calls that the proxy observes to the audit.
struct AuditObserver {
    audit: Audit,
    redactor: Redactor,
}

impl ProxyObserver for AuditObserver {
    fn starts(&self, call: &ObservedCall<'_>) -> std::io::Result<()> {
        let tool = self.redactor.redact(call.tool);
        let record = CallRecord::new(call.caller, &tool, CallDecision::Allowed, Outcome::NotRun)
            .arguments(call.arguments, call.bytes_in);
        self.audit.start(&record)
    }

    fn ended(&self, call: &ObservedCall<'_>, end: &CallEnd) {
        let decision = match call.decision {
            ProxyDecision::Allowed => CallDecision::Allowed,
            ProxyDecision::Hidden => CallDecision::Hidden,
            ProxyDecision::Unknown => CallDecision::Unknown,
            ProxyDecision::Invalid => CallDecision::Invalid,
            // A decision that this version does not know was not to send the call.
            _ => CallDecision::Refused,
        };
        let outcome = match end.outcome {
            mcp_proxy::ObservedCallOutcome::Ok => Outcome::Ok,
            mcp_proxy::ObservedCallOutcome::Failed => Outcome::Failed,
            mcp_proxy::ObservedCallOutcome::NotRun => Outcome::NotRun,
        };
        // A name that no server has may hold anything.
        let tool = self.redactor.redact(call.tool);
        let record = CallRecord::new(call.caller, &tool, decision, outcome)
            .rule(call.rule)
            .duration(end.duration)
            .arguments(call.arguments, call.bytes_in)
            .bytes_out(end.bytes_out);
        self.audit.end(&record);
    }
}

/// Returns what resolves the paths of a server that is started here.
pub(crate) fn effects(workspace: Arc<Workspace>) -> Result<impl EffectResolver, Error> {
    let folder = std::env::current_dir().map_err(Error::system("cannot find the current folder"))?;
    let workspace = WorkspaceEffects::new(workspace, std::env::var_os("PATH"));
    Ok(ServerEffects { workspace, folder })
}

/// Returns the server that is started as a child, in this folder and with our environment.
pub(crate) fn child(
    command: Vec<OsString>,
    folder: PathBuf,
    limits: ResourceLimits,
) -> Result<Upstream, Error> {
    let guardian = GuardianProgram::current_exe()
        .map_err(Error::system("cannot find out which file this program was started from"))?;
    let runner = Runner::builder().guardian(guardian).adopt_orphans().build();
    let mut command = command.into_iter();
    let program =
        command.next().ok_or_else(|| Error::Argument("name the server to start after `--`".to_owned()))?;
    let stderr = std::io::stderr().as_fd().try_clone_to_owned();
    let stderr = stderr.map_err(Error::system("standard error is closed"))?;
    // The variables that configure us are not for the server.
    let is_own = |name: &OsString| name.to_string_lossy().starts_with("CORETOOLS_");
    let own_variables = std::env::vars_os().map(|(name, _)| name).filter(is_own);
    let child = UpstreamCommand::new(program)
        .args(command)
        .current_dir(folder)
        .stderr(stderr)
        .resource_limits(limits);
    Ok(Upstream::Child(own_variables.fold(child, UpstreamCommand::env_remove), runner))
}

/// Returns the server at `url`. The values of headers come from the environment or a file, since every user of the machine
/// can see command lines.
fn remote(url: &str, from_environment: &[String], file: Option<&Path>) -> Result<RemoteServer, Error> {
    let mut remote =
        RemoteServer::new(url).map_err(|problem| Error::Argument(format!("--url: {problem}")))?;
    for pair in from_environment {
        let (name, variable) = pair
            .split_once('=')
            .ok_or_else(|| Error::Argument("--header-env: expected NAME=VARIABLE".to_owned()))?;
        let value = std::env::var(variable).map_err(|_| {
            Error::Argument(format!(
                "--header-env: the environment variable {variable} is not set, or no text"
            ))
        })?;
        remote = remote
            .header(name, value.trim())
            .map_err(|problem| Error::Argument(format!("--header-env: {problem}")))?;
    }
    if let Some(file) = file {
        let text = read_private(file)?;
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let invalid = |problem: &dyn std::fmt::Display| {
                Error::Argument(format!("{}, line {}: {problem}", file.display(), number + 1))
            };
            let pair = line.split_once(':').ok_or_else(|| invalid(&"expected `Name: value`"))?;
            remote = remote.header(pair.0.trim(), pair.1.trim()).map_err(|error| invalid(&error))?;
        }
    }
    Ok(remote)
}

/// Reads a small file that nobody but its owner may read or write.
fn read_private(path: &Path) -> Result<String, Error> {
    const MAX_BYTES: u64 = 64 * 1024;
    trusted_file::read_private(path, MAX_BYTES).map_err(|error| match error {
        trusted_file::Error::Io(error) => Error::system(path.display().to_string())(error),
        refusal => Error::Argument(format!("{}: {refusal}", path.display())),
    })
}
