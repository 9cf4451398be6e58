//! Starting, signalling and reaping on Unix.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use tokio::net::unix::pipe;

use super::sys::{self, Directory, Ended, SpawnRequest};
use super::{AGAIN_RETRIES, Reaped, RunNumber};
use crate::command::{Command, Stdin};
use crate::error::{Resource, SpawnError, SpawnErrorKind};
use crate::limits::Limits;
use crate::outcome::{Containment, ExitStatus, Usage};
use crate::resolve;

/// Our end of the child's standard input.
pub(crate) type StdinPipe = pipe::Sender;
/// Our end of one of its output streams.
pub(crate) type OutputPipe = pipe::Receiver;

/// The process that was started: the leader of its session and group.
///
/// Until it is reaped its pid, and so the ids of its group and session, cannot be given to another process.
/// That is why everything is signalled first and reaped last, under one lock.
#[derive(Debug)]
pub(crate) struct Leader {
    pid: Pid,
    run: RunNumber,
    /// It carries the environment marker.
    marked: bool,
    pidfd: Option<Arc<OwnedFd>>,
    reaped: Mutex<Option<Reaped>>,
}

/// What [`launch`] started. Dropping the leader's owner hands it to the reaper; see `run`.
pub(crate) struct Launched {
    pub(crate) leader: Arc<Leader>,
    pub(crate) exit: ExitWatch,
    pub(crate) stdin: Option<StdinPipe>,
    pub(crate) stdout: OutputPipe,
    pub(crate) stderr: Option<OutputPipe>,
    pub(crate) started: Instant,
}

/// Tells when the leader has ended, without reaping it.
pub(crate) enum ExitWatch {
    #[cfg(target_os = "linux")]
    Pidfd(tokio::io::unix::AsyncFd<Arc<OwnedFd>>),
    /// Where there is no pidfd (macOS, an old kernel, a seccomp filter, no free descriptor).
    Thread(tokio::sync::oneshot::Receiver<()>),
}

impl ExitWatch {
    pub(crate) async fn exited(&mut self) {
        match self {
            #[cfg(target_os = "linux")]
            // A failure to wait means that the runtime is going: the driver is dropped with it.
            Self::Pidfd(watch) => match watch.readable().await {
                Ok(mut guard) => guard.retain_ready(),
                Err(_) => std::future::pending().await,
            },
            Self::Thread(receiver) => {
                let _ = receiver.await;
            }
        }
    }

    fn new(leader: &Arc<Leader>) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Some(pidfd) = &leader.pidfd
            && let Ok(watch) = sys::watch_readable(Arc::clone(pidfd))
        {
            return Ok(Self::Pidfd(watch));
        }
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let leader = Arc::clone(leader);
        std::thread::Builder::new().name("process-waiter".into()).stack_size(64 * 1024).spawn(move || {
            leader.block_until_exit();
            let _ = sender.send(());
        })?;
        Ok(Self::Thread(receiver))
    }
}

impl Leader {
    fn new(pid: Pid, run: RunNumber, marked: bool) -> Self {
        #[cfg(target_os = "linux")]
        let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok().map(Arc::new);
        #[cfg(not(target_os = "linux"))]
        let pidfd = None;
        Self { pid, run, marked, pidfd, reaped: Mutex::new(None) }
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    pub(crate) fn pid_number(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// The number to look for in environments.
    pub(crate) fn marker(&self) -> Option<RunNumber> {
        self.marked.then_some(self.run)
    }

    /// The session to look for: only as long as the number is surely ours.
    pub(crate) fn session(&self) -> Option<Pid> {
        self.lock().is_none().then_some(self.pid)
    }

    pub(crate) fn containment(&self) -> Containment {
        super::platform::containment(self.marked)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Reaped>> {
        self.reaped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Signals the process group, in which the leader is. Nothing once it is reaped.
    pub(crate) fn signal_group(&self, signal: Signal) {
        let mut reaped = self.lock();
        self.peek(&mut reaped);
        if reaped.is_none() {
            // EPERM: none of them is ours to signal (sudo), or on macOS only a zombie is left. ESRCH: gone.
            let _ = rustix::process::kill_process_group(self.pid, signal);
        }
    }

    /// Asks the group to end; one that is stopped is woken to hear it.
    pub(crate) fn terminate_group(&self) {
        self.signal_group(Signal::TERM);
        self.signal_group(Signal::CONT);
    }

    pub(crate) fn kill_group(&self) {
        self.signal_group(Signal::KILL);
    }

    pub(crate) fn signal(&self, signal: i32) -> io::Result<()> {
        let signal = Signal::from_named_raw(signal).ok_or(io::ErrorKind::InvalidInput)?;
        self.signal_group(signal);
        Ok(())
    }

    /// How the leader has ended, whether or not it is reaped. `None` while it runs.
    pub(crate) fn exit_status(&self) -> Option<ExitStatus> {
        let mut reaped = self.lock();
        self.peek(&mut reaped)
    }

    /// Looks without reaping. If somebody else has reaped it, its pid may be another's by now: that is noted,
    /// and nothing is signalled any more.
    fn peek(&self, reaped: &mut Option<Reaped>) -> Option<ExitStatus> {
        if let Some(reaped) = reaped {
            return Some(reaped.status);
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let status = match waitid(WaitId::Pid(self.pid), options) {
            // macOS also reports stopped children here.
            Ok(status) => status?,
            Err(Errno::INTR) => return None,
            Err(_) => {
                *reaped = Some(Reaped { status: ExitStatus::Unknown, usage: None });
                return Some(ExitStatus::Unknown);
            }
        };
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Some(ExitStatus::Exited { code: code.cast_unsigned() }),
            (None, Some(signal)) => Some(ExitStatus::Signaled { signal, core: status.dumped() }),
            (None, None) => None,
        }
    }

    fn block_until_exit(&self) {
        while self.exit_status().is_none() {
            // Not under the lock. What it says is asked again above.
            let _ = waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            if cfg!(target_vendor = "apple") && self.exit_status().is_none() {
                std::thread::sleep(Duration::from_millis(20)); // it is stopped
            }
        }
    }

    /// Takes the leader's status, after which its pid may come again. `None` while it runs.
    pub(crate) fn reap(&self) -> Option<Reaped> {
        let mut reaped = self.lock();
        if reaped.is_none() {
            *reaped =
                match sys::reap(self.pid.as_raw_nonzero().get(), self.pidfd.as_ref().map(|fd| fd.as_fd())) {
                    Ok(None) => None,
                    Ok(Some((ended, usage))) => Some(Reaped {
                        status: match ended {
                            Ended::Exited(code) => ExitStatus::Exited { code },
                            Ended::Signaled { signal, core } => ExitStatus::Signaled { signal, core },
                        },
                        usage: Some(Usage {
                            user: usage.user,
                            system: usage.system,
                            max_rss: (usage.max_rss > sys::own_max_rss()).then_some(usage.max_rss),
                        }),
                    }),
                    Err(_) => Some(Reaped { status: ExitStatus::Unknown, usage: None }),
                };
        }
        *reaped
    }
}

/// Everything about a command that is decided before the system is asked to start it.
struct Prepared {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    folder: CString,
}

/// `MAX_ARG_STRLEN` of Linux: 32 pages for one argument or variable with its NUL (execve(2)).
const LONGEST_ARGUMENT: usize = 32 * 4096 - 1;

impl Prepared {
    fn new(command: &Command, marker: Option<String>) -> Result<Self, SpawnError> {
        let mut variables = command.environment.resolve();
        if let Some(marker) = marker {
            variables.push((marker.into(), "1".into()));
        }
        let path = variables.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
        let program = resolve::find(command, path)?;
        let nul = |_| command.error(SpawnErrorKind::Other, None); // `check_input` has refused it before
        let c_string = |text: OsString| CString::new(text.into_vec()).map_err(nul);
        let mut arguments = vec![c_string(command.program.clone())?];
        for argument in &command.arguments {
            arguments.push(c_string(argument.value.clone())?);
        }
        if cfg!(target_os = "linux")
            && let Some((index, long)) =
                arguments.iter().enumerate().find(|(_, text)| text.count_bytes() > LONGEST_ARGUMENT)
        {
            let length = long.count_bytes();
            let kind = SpawnErrorKind::ArgTooLong { index, length, limit: LONGEST_ARGUMENT };
            return Err(command.error(kind, Some(Errno::TOOBIG.into())));
        }
        let mut environment = Vec::with_capacity(variables.len());
        for (mut key, value) in variables {
            key.push("=");
            key.push(value);
            environment.push(c_string(key)?);
        }
        let folder = match command.folder.path.as_os_str() {
            path if path.is_empty() => OsString::from("."),
            path => path.to_owned(),
        };
        Ok(Self {
            program: c_string(program.into_os_string())?,
            arguments,
            environment,
            folder: c_string(folder)?,
        })
    }

    /// What the kernel counts against its limit: strings and their pointers.
    fn length(&self) -> usize {
        let strings = self.arguments.iter().chain(&self.environment);
        strings.map(|text| text.count_bytes() + 1 + size_of::<usize>()).sum()
    }
}

/// Checks what can be checked without starting.
pub(crate) fn validate(command: &Command) -> Result<(), SpawnError> {
    let prepared = Prepared::new(command, None)?;
    resolve::check_folder(command)?;
    resolve::check_program(command, OsStr::from_bytes(prepared.program.as_bytes()).as_ref())
}

/// Starts a command. Blocks for as long as the system takes: call it on a thread that may.
///
/// `abandoned` ends the attempts of a start that is refused for the moment.
pub(crate) fn launch(
    command: &Command,
    limits: &Limits,
    run: RunNumber,
    abandoned: &AtomicBool,
) -> Result<Launched, SpawnError> {
    let prepared = Prepared::new(command, command.marker.then(|| run.marker()))?;
    let system = |error: io::Error| resource_error(command, error);
    let (out_reader, out_writer) = pipe_ends().map_err(system)?;
    let (err_reader, err_writer) = if command.merge_stderr {
        (None, None)
    } else {
        let (reader, writer) = pipe_ends().map_err(system)?;
        (Some(reader), Some(writer))
    };
    let (in_reader, in_writer) = match &command.stdin {
        Stdin::Bytes(_) | Stdin::Reader(_) | Stdin::Piped => {
            let (reader, writer) = pipe_ends().map_err(system)?;
            (Some(reader), Some(writer))
        }
        Stdin::Null | Stdin::File(_) => (None, None),
    };
    let file = match &command.stdin {
        // Above 2, whatever number the caller's has.
        Stdin::File(file) => Some(above_stdio(file.as_fd()).map_err(system)?),
        _ => None,
    };
    let out_writer = match &command.stdout {
        // The run's own pipe then ends at once.
        Some(file) => above_stdio(file.as_fd()).map_err(system)?,
        None => out_writer,
    };
    // Registered before the start: what fails here has started nothing.
    let stdout = receiver(out_reader).map_err(system)?;
    let stderr = err_reader.map(receiver).transpose().map_err(system)?;
    let stdin = in_writer.map(sender).transpose().map_err(system)?;
    let in_descriptor = match (&in_reader, &file) {
        (Some(reader), _) => reader.as_fd(),
        (None, Some(file)) => file.as_fd(),
        (None, None) => dev_null().map_err(system)?,
    };
    let folder_handle = match &command.folder.handle {
        // It is used in the child before descriptors 0 to 2 are set, so its number does not matter.
        Some(handle) => Directory::Handle(handle.as_fd()),
        None => Directory::Path(&prepared.folder),
    };
    let request = SpawnRequest {
        program: &prepared.program,
        arguments: &prepared.arguments,
        environment: &prepared.environment,
        directory: folder_handle,
        stdio: [in_descriptor, out_writer.as_fd(), err_writer.as_ref().unwrap_or(&out_writer).as_fd()],
    };
    let started = spawn_patiently(&request, limits.busy_retry, abandoned);
    // The child has its ends; ours would only count against our limit.
    drop((in_reader, out_writer, err_writer, file));
    let pid = started.map_err(|error| {
        resolve::explain(
            command,
            OsStr::from_bytes(prepared.program.as_bytes()).as_ref(),
            prepared.length(),
            error,
        )
    })?;
    let started = Instant::now();
    let leader = Arc::new(Leader::new(pid, run, command.marker));
    match ExitWatch::new(&leader) {
        Ok(exit) => Ok(Launched { leader, exit, stdin, stdout, stderr, started }),
        Err(error) => {
            // Not one way is left to see it end, so it must not go on.
            crate::reaper::abandon(leader);
            Err(system(error))
        }
    }
}

/// Starts our own helper, which is not a run: it has an environment of its own and no output.
pub(crate) fn launch_helper(
    program: &std::path::Path,
    arguments: &[OsString],
    environment: &[(String, String)],
    stdin: BorrowedFd<'_>,
) -> io::Result<Arc<Leader>> {
    let c_string = |text: &OsStr| CString::new(text.as_bytes()).map_err(io::Error::from);
    let program = c_string(program.as_os_str())?;
    let arguments = arguments.iter().map(|text| c_string(text)).collect::<io::Result<Vec<_>>>()?;
    let environment = environment
        .iter()
        .map(|(key, value)| c_string(format!("{key}={value}").as_ref()))
        .collect::<io::Result<Vec<_>>>()?;
    let request = SpawnRequest {
        program: &program,
        arguments: &arguments,
        environment: &environment,
        directory: Directory::Path(c"/"),
        stdio: [stdin, dev_null()?, dev_null()?],
    };
    let pid = spawn_patiently(&request, Duration::from_secs(2), &AtomicBool::new(false))?;
    Ok(Arc::new(Leader::new(pid, RunNumber(0), false)))
}

fn spawn_patiently(
    request: &SpawnRequest<'_>,
    busy_retry: Duration,
    abandoned: &AtomicBool,
) -> io::Result<Pid> {
    let begun = Instant::now();
    let mut busy_wait = Duration::from_millis(1);
    let mut again = AGAIN_RETRIES.into_iter();
    loop {
        let error = match sys::spawn(request) {
            // posix_spawn gives a pid above 0 when it succeeds.
            Ok(pid) => return Pid::from_raw(pid).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData)),
            Err(error) => error,
        };
        if abandoned.load(Ordering::Relaxed) {
            return Err(error);
        }
        match Errno::from_io_error(&error) {
            // Another thread's child, between its fork and its exec, still holds the file that was written.
            Some(Errno::TXTBSY) if begun.elapsed() < busy_retry => {
                std::thread::sleep(busy_wait);
                busy_wait = (busy_wait * 2).min(Duration::from_millis(50));
            }
            Some(Errno::AGAIN) => match again.next() {
                Some(wait) => std::thread::sleep(wait),
                None => return Err(error),
            },
            _ => return Err(error),
        }
    }
}

/// Which resource `error` says there is not enough of.
pub(crate) fn exhausted(error: &io::Error) -> Option<Resource> {
    match Errno::from_io_error(error)? {
        Errno::MFILE | Errno::NFILE => Some(Resource::Descriptors),
        Errno::AGAIN => Some(Resource::Processes),
        Errno::NOMEM => Some(Resource::Memory),
        _ => None,
    }
}

fn resource_error(command: &Command, error: io::Error) -> SpawnError {
    let kind =
        exhausted(&error).map_or(SpawnErrorKind::Other, |which| SpawnErrorKind::ResourceLimit { which });
    command.error(kind, Some(error))
}

/// A pipe, both ends closed on exec and numbered above 2: a server that has closed its own standard
/// streams would otherwise get one of those.
pub(crate) fn pipe_ends() -> io::Result<(OwnedFd, OwnedFd)> {
    #[cfg(not(target_vendor = "apple"))]
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    #[cfg(target_vendor = "apple")]
    let (reader, writer) = {
        // A spawn by other code in between inherits them; ours do not (`POSIX_SPAWN_CLOEXEC_DEFAULT`).
        let (reader, writer) = rustix::pipe::pipe()?;
        rustix::io::fcntl_setfd(&reader, rustix::io::FdFlags::CLOEXEC)?;
        rustix::io::fcntl_setfd(&writer, rustix::io::FdFlags::CLOEXEC)?;
        (reader, writer)
    };
    Ok((raise(reader)?, raise(writer)?))
}

fn raise(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    use std::os::fd::AsRawFd;
    if descriptor.as_raw_fd() > 2 { Ok(descriptor) } else { above_stdio(descriptor.as_fd()) }
}

fn above_stdio(descriptor: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(descriptor, 3)?)
}

fn receiver(descriptor: OwnedFd) -> io::Result<pipe::Receiver> {
    rustix::io::ioctl_fionbio(&descriptor, true)?;
    pipe::Receiver::from_owned_fd_unchecked(descriptor)
}

fn sender(descriptor: OwnedFd) -> io::Result<pipe::Sender> {
    rustix::io::ioctl_fionbio(&descriptor, true)?;
    pipe::Sender::from_owned_fd_unchecked(descriptor)
}

/// `/dev/null`, opened once: the commonest standard input costs no descriptor a run.
fn dev_null() -> io::Result<BorrowedFd<'static>> {
    static NULL: OnceLock<OwnedFd> = OnceLock::new();
    if NULL.get().is_none() {
        use rustix::fs::{Mode, OFlags, open};
        let null = raise(open(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)?;
        let _ = NULL.set(null); // another thread was first
    }
    NULL.get().map(AsFd::as_fd).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
}

/// The descriptors above 2 that a child would inherit now. Only for a libc that cannot close them itself.
pub(crate) fn inheritable_descriptors() -> Vec<RawFd> {
    use std::os::fd::AsRawFd;
    let Ok(folder) = rustix::fs::open(
        c"/proc/self/fd",
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    ) else {
        return Vec::new();
    };
    let own = folder.as_raw_fd();
    let Ok(entries) = rustix::fs::Dir::new(folder) else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str().ok()?.parse().ok())
        .filter(|descriptor| *descriptor > 2 && *descriptor != own)
        .collect()
}

/// Runs at once unless the caller says how many: with 4 descriptors each, half of what this process may have.
pub(crate) fn default_concurrency() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let descriptors = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    (descriptors / 8).clamp(1, 64)
}
