//! Starting a command on Unix: what `posix_spawn(3)` needs, and the pipes.

use std::borrow::Cow;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::Pid;
use tokio::net::unix::pipe;

use super::sys::{self, Directory, SpawnRequest};
use super::unix::{ExitWatch, Leader, exhausted};
use super::{AGAIN_RETRIES, RunNumber};
use crate::command::{Command, Stdin};
use crate::environment::{Entry, Inherited, c_variable};
use crate::error::{SpawnError, SpawnErrorKind};
use crate::resolve;

/// Our end of the child's standard input.
pub(crate) type StdinPipe = pipe::Sender;
/// Our end of one of its output streams.
pub(crate) type OutputPipe = pipe::Receiver;

/// The ends of the pipes that the child gets, and the file in place of one.
pub(crate) struct ChildEnds {
    /// `/dev/null` if there is none.
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    /// That of `stdout` if there is none.
    stderr: Option<OwnedFd>,
}

/// Our ends.
pub(crate) struct OurEnds {
    stdin: Option<StdinPipe>,
    stdout: OutputPipe,
    stderr: Option<OutputPipe>,
}

/// What [`launch`] started.
pub(crate) struct Started {
    pub(crate) leader: Arc<Leader>,
    at: Instant,
}

/// What was started, and all that is needed to follow it.
pub(crate) struct Launched {
    pub(crate) leader: Arc<Leader>,
    pub(crate) exit: ExitWatch,
    pub(crate) stdin: Option<StdinPipe>,
    pub(crate) stdout: OutputPipe,
    pub(crate) stderr: Option<OutputPipe>,
    pub(crate) started: Instant,
}

/// Everything about a command that is decided before the system is asked to start it.
struct Prepared<'a> {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<Cow<'a, CStr>>,
    folder: Cow<'a, CStr>,
}

/// `MAX_ARG_STRLEN` of Linux: 32 pages for one argument or variable with its NUL (execve(2)).
const LONGEST_ARGUMENT: usize = 32 * 4096 - 1;

impl<'a> Prepared<'a> {
    fn new(
        command: &'a Command,
        inherited: &'a Inherited,
        marker: Option<String>,
    ) -> Result<Self, SpawnError> {
        let nul = |_| command.error(SpawnErrorKind::Other, None); // `check_input` has refused it before
        let c_string = |text: &OsStr| CString::new(text.as_bytes()).map_err(nul);
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
            && let Some((index, long)) =
                arguments.iter().enumerate().find(|(_, text)| text.count_bytes() > LONGEST_ARGUMENT)
        {
            let length = long.count_bytes();
            let kind = SpawnErrorKind::ArgTooLong { index, length, limit: LONGEST_ARGUMENT };
            return Err(command.error(kind, Some(Errno::TOOBIG.into())));
        }
        let entries = command.environment.entries(inherited);
        // Room for all there can be: growing by steps would cost more than the rest of this function.
        let mut environment = Vec::with_capacity(command.environment.longest(inherited) + 1);
        for entry in entries {
            environment.push(match entry {
                Entry::Inherited(variable) => Cow::Borrowed(variable.text.as_c_str()),
                Entry::Set(name, value) => Cow::Owned(c_variable(name, value).map_err(nul)?),
            });
        }
        if let Some(marker) = marker {
            environment.push(Cow::Owned(c_variable(marker.as_ref(), "1".as_ref()).map_err(nul)?));
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

    /// What the kernel counts against its limit: strings and their pointers.
    fn length(&self) -> usize {
        let arguments = self.arguments.iter().map(|text| text.count_bytes());
        let environment = self.environment.iter().map(|text| text.count_bytes());
        arguments.chain(environment).map(|length| length + 1 + size_of::<usize>()).sum()
    }
}

/// Checks what can be checked without starting.
pub(crate) fn validate(command: &Command, inherited: &Inherited) -> Result<(), SpawnError> {
    let prepared = Prepared::new(command, inherited, None)?;
    resolve::check_folder(command)?;
    resolve::check_program(command, prepared.program())
}

/// Makes the pipes of a run, and registers our ends with the runtime: what fails here has started nothing.
/// Nothing in it can hang.
pub(crate) fn open_pipes(command: &Command) -> Result<(ChildEnds, OurEnds), SpawnError> {
    let open = || -> io::Result<_> {
        let (our_stdout, stdout) = pipe_ends()?;
        let stdout = match &command.stdout {
            // The run's own pipe then ends at once.
            Some(file) => above_stdio(file.as_fd())?,
            None => stdout,
        };
        let (our_stderr, stderr) = if command.merge_stderr { None } else { Some(pipe_ends()?) }.unzip();
        let (stdin, our_stdin) = match &command.stdin {
            Stdin::Bytes(_) | Stdin::Reader(_) | Stdin::Piped => Some(pipe_ends()?).unzip(),
            // Above 2, whatever number the caller's has.
            Stdin::File(file) => (Some(above_stdio(file.as_fd())?), None),
            // That one is opened in the child.
            Stdin::Null | Stdin::Terminal(_) => (None, None),
        };
        let ours = OurEnds {
            stdin: our_stdin.map(sender).transpose()?,
            stdout: receiver(our_stdout)?,
            stderr: our_stderr.map(receiver).transpose()?,
        };
        Ok((ChildEnds { stdin, stdout, stderr }, ours))
    };
    open().map_err(|error| resource_error(command, error))
}

/// Starts a command. Blocks for as long as the system takes: call it on a thread that may.
///
/// `given_up` ends the attempts of a start that is refused for the moment.
pub(crate) fn launch(
    command: &Command,
    inherited: &Inherited,
    busy_retry: Duration,
    run: RunNumber,
    ends: ChildEnds,
    given_up: &(dyn Fn() -> bool + Sync),
) -> Result<Started, SpawnError> {
    let prepared = Prepared::new(command, inherited, command.marker.then(|| run.marker()))?;
    let stdin = match &ends.stdin {
        Some(stdin) => stdin.as_fd(),
        None => dev_null().map_err(|error| resource_error(command, error))?,
    };
    let terminal = match &command.stdin {
        Stdin::Terminal(path) => Some(CString::new(path.as_os_str().as_bytes()).map_err(|_| {
            let place = "the terminal".to_owned();
            command.error(SpawnErrorKind::InvalidInput { place, problem: "has a NUL byte" }, None)
        })?),
        _ => None,
    };
    let request = SpawnRequest {
        program: &prepared.program,
        arguments: &prepared.arguments,
        environment: &prepared.environment,
        directory: match &command.folder.handle {
            // It is used in the child before descriptors 0 to 2 are set, so its number does not matter.
            Some(handle) => Directory::Handle(handle.as_fd()),
            None => Directory::Path(&prepared.folder),
        },
        stdio: [stdin, ends.stdout.as_fd(), ends.stderr.as_ref().unwrap_or(&ends.stdout).as_fd()],
        terminal: terminal.as_deref(),
    };
    let started =
        super::confined(command.confinement.as_ref(), || spawn_patiently(&request, busy_retry, given_up));
    // The child has its ends; ours would only count against our limit.
    drop(ends);
    let (pid, at) = started.map_err(|refused| match refused {
        super::Refused::Confinement(error) => not_confined(command, error),
        super::Refused::Start(error) => {
            resolve::explain(command, prepared.program(), prepared.length(), error)
        }
    })?;
    Ok(Started { at, leader: Arc::new(Leader::new(pid, run, command.marker)) })
}

/// Watches what was started. If there is not one way to see it end, it must not go on.
pub(crate) fn connect(command: &Command, started: Started, ours: OurEnds) -> Result<Launched, SpawnError> {
    let Started { leader, at: started } = started;
    let OurEnds { stdin, stdout, stderr } = ours;
    match ExitWatch::new(&leader) {
        Ok(exit) => Ok(Launched { leader, exit, stdin, stdout, stderr, started }),
        Err(error) => {
            crate::reaper::abandon(leader);
            Err(resource_error(command, error))
        }
    }
}

/// Starts our own helper, which is not a run: it has an environment of its own and no output.
pub(crate) fn launch_helper(
    program: &Path,
    arguments: &[OsString],
    environment: &[(String, String)],
    stdin: BorrowedFd<'_>,
) -> io::Result<Arc<Leader>> {
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
        directory: Directory::Path(c"/"),
        stdio: [stdin, dev_null()?, dev_null()?],
        terminal: None,
    };
    let (pid, _) = spawn_patiently(&request, Duration::from_secs(2), &|| false)?;
    Ok(Arc::new(Leader::new(pid, RunNumber(0), false)))
}

fn not_confined(command: &Command, error: io::Error) -> SpawnError {
    let kind = match exhausted(&error) {
        Some(which) => SpawnErrorKind::ResourceLimit { which },
        None => SpawnErrorKind::Confinement { problem: "the system refused".into() },
    };
    command.error(kind, Some(error))
}

/// Gives the pid, and when the attempt that succeeded was begun.
fn spawn_patiently(
    request: &SpawnRequest<'_>,
    busy_retry: Duration,
    given_up: &(dyn Fn() -> bool + Sync),
) -> io::Result<(Pid, Instant)> {
    let begun = Instant::now();
    let mut busy_wait = Duration::from_millis(1);
    let mut again = AGAIN_RETRIES.into_iter();
    loop {
        // Not after it: the program may run for a while before this thread does again.
        let at = Instant::now();
        let error = match sys::spawn(request) {
            Ok(pid) => {
                // posix_spawn gives a pid above 0 when it succeeds.
                let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
                return Ok((pid, at));
            }
            Err(error) => error,
        };
        if given_up() {
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
