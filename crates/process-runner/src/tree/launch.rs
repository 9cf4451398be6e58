//! Starts a command on Unix: makes the pipes, and gives `posix_spawn(3)` what it needs.

use std::borrow::Cow;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::pipe;

use super::descriptors::{dev_null, duplicate_above_stdio, pipe_above_stdio};
use super::leader::{ExitWatch, ProcessLeader, StartedProcess};
use super::resolve;
use super::resources::exhausted_resource;
use super::run_id::RunId;
use super::sys::{self, ChildFolder, SpawnPlacement, SpawnRequest};
use super::{LimitWatch, ResourceBoundary, StartAttempt, StartBoundary, StartFailure, StartTicket, start};
use crate::command::{Command, TerminalSize};
use crate::confine::ConfinementProblem;
use crate::environment::{EnvironmentEntry, InheritedEnv, c_variable};
use crate::error::{SpawnError, SpawnErrorKind};
use crate::stdin::Stdin;
use crate::terminal::{PseudoTerminal, TerminalDevice};

/// Our end of the child's standard input.
pub(crate) type StdinPipe = pipe::Sender;
/// Our end of one of the child's output streams.
pub(crate) enum OutputPipe {
    Pipe(pipe::Receiver),
    Terminal(PseudoTerminal),
}

impl AsyncRead for OutputPipe {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_read(context, buffer),
            Self::Terminal(terminal) => terminal.poll_read_buf(context, buffer),
        }
    }
}

impl AsFd for OutputPipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Pipe(pipe) => pipe.as_fd(),
            Self::Terminal(terminal) => terminal.as_fd(),
        }
    }
}

/// The descriptors that become the child's standard streams: ends of pipes, or files of the caller.
pub(crate) struct ChildPipeEnds {
    /// `None` for `/dev/null`.
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    /// `None` for the same as `stdout`.
    stderr: Option<OwnedFd>,
    /// The terminal that the child opens as its standard input.
    terminal: Option<PathBuf>,
}

/// The ends of the pipes that stay in this process.
pub(crate) struct ParentPipeEnds {
    stdin: Option<StdinPipe>,
    stdout: OutputPipe,
    stderr: Option<OutputPipe>,
}

/// A leader that [`launch`] started, and the time of its start.
pub(crate) struct StartedLeader {
    pub(crate) leader: Arc<ProcessLeader>,
    at: Instant,
    limit_watch: Option<LimitWatch>,
}

/// A started leader with everything that is needed to follow it.
pub(crate) struct LaunchedProgram {
    pub(crate) leader: Arc<ProcessLeader>,
    pub(crate) exit: ExitWatch,
    pub(crate) stdin: Option<StdinPipe>,
    pub(crate) stdout: OutputPipe,
    pub(crate) stderr: Option<OutputPipe>,
    pub(crate) started: Instant,
    pub(crate) limit_watch: Option<LimitWatch>,
}

/// A command as `posix_spawn(3)` takes it: the file to start, and C strings.
struct SpawnArguments<'a> {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<Cow<'a, CStr>>,
    folder: Cow<'a, CStr>,
}

/// The most bytes of one argument or variable on Linux without its NUL: `MAX_ARG_STRLEN` is 32 pages (execve(2)).
const MAX_ARGUMENT_BYTES: usize = 32 * 4096 - 1;

impl<'a> SpawnArguments<'a> {
    fn new(
        command: &'a Command,
        inherited: &'a InheritedEnv,
        marker: Option<String>,
    ) -> Result<Self, SpawnError> {
        let nul_error = |_| command.error(SpawnErrorKind::Other, None); // `check_input` refused a NUL byte before
        let c_string = |text: &OsStr| CString::new(text.as_bytes()).map_err(nul_error);
        let program = resolve::find(command, || {
            let path = command.environment.entries(inherited).find(|entry| entry.name() == "PATH");
            path.map(|entry| entry.value())
        })?;
        let mut arguments = Vec::with_capacity(1 + command.arguments.len());
        arguments.push(c_string(&command.program)?);
        for argument in &command.arguments {
            arguments.push(c_string(&argument.value)?);
        }
        if cfg!(target_os = "linux")
            // Named here: for the kernel it is the same error as too much in total.
            && let Some((index, long)) =
                arguments.iter().enumerate().find(|(_, text)| text.count_bytes() > MAX_ARGUMENT_BYTES)
        {
            let length = long.count_bytes();
            let kind = SpawnErrorKind::ArgTooLong { index, length, limit: MAX_ARGUMENT_BYTES };
            return Err(command.error(kind, Some(Errno::TOOBIG.into())));
        }
        let entries = command.environment.entries(inherited);
        // With room for all of it: growing step by step would cost more than the rest of this function.
        let mut environment = Vec::with_capacity(command.environment.max_entries(inherited) + 1);
        for entry in entries {
            environment.push(match entry {
                EnvironmentEntry::Inherited(variable) => Cow::Borrowed(variable.text.as_c_str()),
                EnvironmentEntry::Set(name, value) => Cow::Owned(c_variable(name, value).map_err(nul_error)?),
            });
        }
        if let Some(marker) = marker {
            environment.push(Cow::Owned(c_variable(marker.as_ref(), "1".as_ref()).map_err(nul_error)?));
        }
        let folder = match command.folder.path.as_os_str() {
            path if path.is_empty() => Cow::Borrowed(c"."),
            path => Cow::Owned(c_string(path)?),
        };
        Ok(Self { program: c_string(program.as_os_str())?, arguments, environment, folder })
    }

    fn program(&self) -> &Path {
        OsStr::from_bytes(self.program.as_bytes()).as_ref()
    }

    /// Returns the bytes that the kernel counts against its limit: all strings and their pointers (execve(2)).
    fn length(&self) -> usize {
        let arguments = self.arguments.iter().map(|text| text.count_bytes());
        let environment = self.environment.iter().map(|text| text.count_bytes());
        arguments.chain(environment).map(|length| length + 1 + size_of::<usize>()).sum()
    }
}

/// Checks everything that can be checked without a start.
pub(crate) fn validate(command: &Command, inherited: &InheritedEnv) -> Result<(), SpawnError> {
    let prepared = SpawnArguments::new(command, inherited, None)?;
    resolve::check_folder(command)?;
    resolve::check_program(command, prepared.program())
}

/// Makes the pipes of a run and registers our ends with the runtime.
// Before the start and apart from it: what fails here has started nothing, and nothing here can hang.
pub(crate) fn open_pipes(command: &Command) -> Result<(ChildPipeEnds, ParentPipeEnds), SpawnError> {
    let open = || -> io::Result<_> {
        if let Some(size) = command.terminal {
            return open_terminal(&command.stdin, size);
        }
        let (our_stdout, stdout) = pipe_above_stdio()?;
        let stdout = match &command.stdout {
            // Nobody holds the writing end of the run's own pipe then, so it reads as ended.
            Some(file) => duplicate_above_stdio(file.as_fd())?,
            None => stdout,
        };
        let (our_stderr, stderr) =
            if command.merge_stderr { None } else { Some(pipe_above_stdio()?) }.unzip();
        let (stdin, our_stdin) = match &command.stdin {
            Stdin::Bytes(_) | Stdin::Reader(_) | Stdin::Piped => Some(pipe_above_stdio()?).unzip(),
            Stdin::File(file) => (Some(duplicate_above_stdio(file.as_fd())?), None),
            // `/dev/null` is shared by all runs, and a terminal is opened in the child.
            Stdin::Null | Stdin::Terminal(_) => (None, None),
        };
        let parent_ends = ParentPipeEnds {
            stdin: our_stdin.map(sender).transpose()?,
            stdout: receiver(our_stdout)?,
            stderr: our_stderr.map(receiver).transpose()?,
        };
        let terminal = match &command.stdin {
            Stdin::Terminal(path) => Some(path.clone()),
            _ => None,
        };
        Ok((ChildPipeEnds { stdin, stdout, stderr, terminal }, parent_ends))
    };
    open().map_err(|error| resource_error(command, error))
}

/// Opens a terminal in place of pipes.
fn open_terminal(stdin: &Stdin, size: TerminalSize) -> io::Result<(ChildPipeEnds, ParentPipeEnds)> {
    let (ours, TerminalDevice { path, file }) = PseudoTerminal::open(size)?;
    let typed = match stdin {
        Stdin::Bytes(_) | Stdin::Reader(_) | Stdin::Piped => Some(sender(ours.duplicate()?)?),
        Stdin::Null | Stdin::File(_) | Stdin::Terminal(_) => None,
    };
    let stdout = duplicate_above_stdio(file.as_fd())?;
    Ok((
        ChildPipeEnds { stdin: None, stdout, stderr: None, terminal: Some(path) },
        ParentPipeEnds { stdin: typed, stdout: OutputPipe::Terminal(ours), stderr: None },
    ))
}

/// Starts a command. It blocks for as long as the system takes, so it is called on a thread of its own.
///
/// A start that the system refuses for the moment is tried again until `is_abandoned` returns true.
pub(crate) fn launch(
    command: &Command,
    inherited: &InheritedEnv,
    busy_retry: Duration,
    run: RunId,
    ends: &ChildPipeEnds,
    is_abandoned: &(dyn Fn() -> bool + Sync),
) -> Result<StartedLeader, SpawnError> {
    let prepared = SpawnArguments::new(command, inherited, command.marker.then(|| run.marker()))?;
    let stdin = match &ends.stdin {
        Some(stdin) => stdin.as_fd(),
        None => dev_null().map_err(|error| resource_error(command, error))?,
    };
    let terminal = match &ends.terminal {
        Some(path) => Some(CString::new(path.as_os_str().as_bytes()).map_err(|_| {
            let part = "the terminal".to_owned();
            command.error(SpawnErrorKind::InvalidInput { part, problem: "has a NUL byte" }, None)
        })?),
        None => None,
    };
    let request = SpawnRequest {
        program: &prepared.program,
        arguments: &prepared.arguments,
        environment: &prepared.environment,
        directory: match &command.folder.handle {
            // The child uses it before descriptors 0 to 2 are set, so its number does not matter.
            Some(handle) => ChildFolder::Handle(handle.as_fd()),
            None => ChildFolder::Path(&prepared.folder),
        },
        stdio: [stdin, ends.stdout.as_fd(), ends.stderr.as_ref().unwrap_or(&ends.stdout).as_fd()],
        terminal: terminal.as_deref(),
        placement: SpawnPlacement::OwnSession,
    };
    // Nobody else can name the terminal that was opened for this run, so the program may use it.
    let granted_terminal = ends.terminal.as_deref().filter(|_| command.terminal.is_some());
    let resources = ResourceBoundary::prepare(command.resource_limits, command.owner_name());
    let resources = resources.map_err(|error| resource_error(command, error))?;
    // From before the start, so that nothing is missed.
    let limit_watch = resources.as_ref().and_then(ResourceBoundary::watch);
    let boundary = StartBoundary {
        confinement: command.confinement.as_ref(),
        network: command.network_namespace.as_ref(),
        terminal: granted_terminal,
        resources: resources.as_ref(),
        owner: command.owner_name(),
    };
    let attempts = |attempt: &mut StartAttempt<'_>| start_with_retries(busy_retry, is_abandoned, attempt);
    let started = start_leader(command, &prepared, run, &boundary, &request, attempts)?;
    Ok(StartedLeader { limit_watch, ..started })
}

/// Starts the program of `command` behind `boundary`, and records it as the leader of `run`.
fn start_leader(
    command: &Command,
    prepared: &SpawnArguments<'_>,
    run: RunId,
    boundary: &StartBoundary<'_>,
    request: &SpawnRequest<'_>,
    attempts: impl FnOnce(&mut StartAttempt<'_>) -> Result<(StartedProcess, Instant), StartFailure> + Send,
) -> Result<StartedLeader, SpawnError> {
    // From the first attempt on, and not while the layers are prepared: that can hang for as long as a file system does.
    let mut ticket = None;
    let with_ticket = |attempt: &mut StartAttempt<'_>| {
        attempts(&mut || {
            ticket.get_or_insert_with(StartTicket::new);
            attempt()
        })
    };
    let (process, at) = start(boundary, request, with_ticket).map_err(|failure| match failure {
        StartFailure::Confinement(error) => confinement_error(command, error),
        StartFailure::FolderOutside => {
            command.error(SpawnErrorKind::Confinement { problem: ConfinementProblem::FolderOutside }, None)
        }
        StartFailure::Start(error) => resolve::explain(command, prepared.program(), prepared.length(), error),
    })?;
    let leader = ProcessLeader::new(process, run, command.marker, command.owner_name());
    let leader = Arc::new(leader.with_daemons(command.starts_daemons));
    if let Some(ticket) = ticket {
        ticket.started(&leader);
    }
    Ok(StartedLeader { at, leader, limit_watch: None })
}

/// Starts a command in the foreground: beside this process, with its streams. `mask` are the signals to block in it.
#[cfg(target_os = "linux")]
pub(super) fn launch_in_foreground(
    command: &Command,
    inherited: &InheritedEnv,
    run: RunId,
    mask: &sys::SignalMask,
) -> Result<Arc<ProcessLeader>, SpawnError> {
    let prepared = SpawnArguments::new(command, inherited, command.marker.then(|| run.marker()))?;
    let unused = dev_null().map_err(|error| resource_error(command, error))?;
    let request = SpawnRequest {
        program: &prepared.program,
        arguments: &prepared.arguments,
        environment: &prepared.environment,
        directory: ChildFolder::Path(&prepared.folder),
        stdio: [unused; 3],
        terminal: None,
        placement: SpawnPlacement::Foreground(mask),
    };
    let resources = ResourceBoundary::prepare(command.resource_limits, command.owner_name());
    let resources = resources.map_err(|error| resource_error(command, error))?;
    let boundary = StartBoundary {
        confinement: command.confinement.as_ref(),
        network: command.network_namespace.as_ref(),
        terminal: None,
        resources: resources.as_ref(),
        owner: command.owner_name(),
    };
    let once = |attempt: &mut StartAttempt<'_>| Ok((attempt()?, Instant::now()));
    Ok(start_leader(command, &prepared, run, &boundary, &request, once)?.leader)
}

/// Begins to watch what was started.
///
/// # Errors
/// If there is no way to see it end. The caller must end it then.
pub(crate) fn connect(
    command: &Command,
    started: StartedLeader,
    parent_ends: ParentPipeEnds,
) -> Result<LaunchedProgram, SpawnError> {
    let StartedLeader { leader, at: started, limit_watch } = started;
    let ParentPipeEnds { stdin, stdout, stderr } = parent_ends;
    let exit = ExitWatch::new(&leader).map_err(|error| resource_error(command, error))?;
    Ok(LaunchedProgram { leader, exit, stdin, stdout, stderr, started, limit_watch })
}

/// Starts a helper of our own. It is not a run: it gets only `environment`, and its output goes to `/dev/null`.
pub(crate) fn launch_helper(
    program: &Path,
    arguments: &[OsString],
    environment: &[(String, String)],
    stdin: BorrowedFd<'_>,
) -> io::Result<Arc<ProcessLeader>> {
    let c_string = |text: &OsStr| CString::new(text.as_bytes()).map_err(io::Error::from);
    let program = c_string(program.as_os_str())?;
    let arguments = arguments.iter().map(|text| c_string(text)).collect::<io::Result<Vec<_>>>()?;
    let environment = environment
        .iter()
        .map(|(key, value)| Ok(Cow::Owned(c_string(format!("{key}={value}").as_ref())?)))
        .collect::<io::Result<Vec<_>>>()?;
    let request = SpawnRequest {
        program: &program,
        arguments: &arguments,
        environment: &environment,
        directory: ChildFolder::Path(c"/"),
        stdio: [stdin, dev_null()?, dev_null()?],
        terminal: None,
        placement: SpawnPlacement::OwnSession,
    };
    let ticket = StartTicket::new();
    let mut attempt = || sys::spawn(&request).and_then(StartedProcess::beside).map_err(StartFailure::Start);
    let started = start_with_retries(HELPER_BUSY_RETRY, &|| false, &mut attempt);
    let (process, _) = started.map_err(|failure| match failure {
        StartFailure::Confinement(error) | StartFailure::Start(error) => error,
        StartFailure::FolderOutside => Errno::NOENT.into(),
    })?;
    let leader = Arc::new(ProcessLeader::new(process, RunId::HELPER, false, None));
    ticket.started(&leader);
    Ok(leader)
}

fn confinement_error(command: &Command, error: io::Error) -> SpawnError {
    let kind = match exhausted_resource(&error) {
        Some(which) => SpawnErrorKind::ResourceLimit { which },
        None => SpawnErrorKind::Confinement { problem: ConfinementProblem::SystemRefused },
    };
    command.error(kind, Some(error))
}

/// The time for which the start of a helper is tried again while its file is being written.
const HELPER_BUSY_RETRY: Duration = Duration::from_secs(2);
/// The waits before the attempts of a start that the system refuses for the moment (`EAGAIN`).
const AGAIN_BACKOFF: [Duration; 3] =
    [Duration::from_millis(5), Duration::from_millis(25), Duration::from_millis(125)];
/// The first and the longest wait between two attempts while the program's file is being written (`ETXTBSY`).
const BUSY_BACKOFF: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// Calls `attempt` until it starts the program, fails for good, or is abandoned. Returns the process and the time when
/// the successful attempt began.
fn start_with_retries(
    busy_retry: Duration,
    is_abandoned: &(dyn Fn() -> bool + Sync),
    attempt: &mut StartAttempt<'_>,
) -> Result<(StartedProcess, Instant), StartFailure> {
    let first_attempt = Instant::now();
    let (mut busy_wait, max_busy_wait) = BUSY_BACKOFF;
    let mut again_backoff = AGAIN_BACKOFF.into_iter();
    loop {
        // Taken before the call: the program may run for a while before this thread goes on.
        let at = Instant::now();
        let error = match attempt() {
            Ok(process) => return Ok((process, at)),
            Err(StartFailure::Start(error)) => error,
            Err(failure) => return Err(failure),
        };
        if is_abandoned() {
            return Err(StartFailure::Start(error));
        }
        match Errno::from_io_error(&error) {
            // The file was just written, and another thread's child between its fork and its exec holds a copy of
            // the descriptor. It goes away by itself.
            Some(Errno::TXTBSY) if first_attempt.elapsed() < busy_retry => {
                std::thread::sleep(busy_wait);
                busy_wait = (busy_wait * 2).min(max_busy_wait);
            }
            Some(Errno::AGAIN) => match again_backoff.next() {
                Some(wait) => std::thread::sleep(wait),
                None => return Err(StartFailure::Start(error)),
            },
            _ => return Err(StartFailure::Start(error)),
        }
    }
}

fn resource_error(command: &Command, error: io::Error) -> SpawnError {
    let kind = exhausted_resource(&error)
        .map_or(SpawnErrorKind::Other, |which| SpawnErrorKind::ResourceLimit { which });
    command.error(kind, Some(error))
}

fn receiver(descriptor: OwnedFd) -> io::Result<OutputPipe> {
    rustix::io::ioctl_fionbio(&descriptor, true)?;
    Ok(OutputPipe::Pipe(pipe::Receiver::from_owned_fd_unchecked(descriptor)?))
}

fn sender(descriptor: OwnedFd) -> io::Result<pipe::Sender> {
    rustix::io::ioctl_fionbio(&descriptor, true)?;
    pipe::Sender::from_owned_fd_unchecked(descriptor)
}
