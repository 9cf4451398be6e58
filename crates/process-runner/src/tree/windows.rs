//! Windows: every run in a job object, by `process-wrap`.
//!
//! A job holds everything that comes of a process, nothing leaves it, and it ends when its last handle is
//! closed, which our own death does too. There is no polite signal: ending a run kills it.
#![allow(clippy::disallowed_methods, reason = "process-runner is the one crate that starts processes")]

use std::ffi::{OsStr, OsString};
use std::future::poll_fn;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use process_wrap::tokio::{ChildWrapper, CommandWrap, JobObject, KillOnDrop};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::runtime::Handle;

use super::{Reaped, RunNumber};
use crate::command::{Command, Stdin};
use crate::environment::Inherited;
use crate::error::{Resource, SpawnError, SpawnErrorKind};
use crate::outcome::{Containment, ExitStatus};

/// Whether the holders of a pipe can be told from others.
pub(crate) const SEES_HOLDERS: bool = false;

/// Our end of the child's standard input.
pub(crate) type StdinPipe = ChildStdin;

/// Our end of one of its output streams.
#[derive(Debug)]
pub(crate) enum OutputPipe {
    Stdout(ChildStdout),
    Stderr(ChildStderr),
}

impl tokio::io::AsyncRead for OutputPipe {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Stdout(pipe) => std::pin::Pin::new(pipe).poll_read(context, buffer),
            Self::Stderr(pipe) => std::pin::Pin::new(pipe).poll_read(context, buffer),
        }
    }
}

/// The process that was started, and its job.
#[derive(Debug)]
pub(crate) struct Leader {
    pid: u32,
    child: Mutex<Box<dyn ChildWrapper>>,
}

/// The runtime that the pipes belong to: they are made with the start.
pub(crate) struct ChildEnds(Handle);

/// See `launch.rs`.
pub(crate) struct OurEnds;

/// See `launch.rs`.
pub(crate) struct Started {
    pub(crate) leader: Arc<Leader>,
    at: Instant,
    stdin: Option<StdinPipe>,
    stdout: OutputPipe,
    stderr: Option<OutputPipe>,
}

/// See `launch.rs`.
pub(crate) struct Launched {
    pub(crate) leader: Arc<Leader>,
    pub(crate) exit: ExitWatch,
    pub(crate) stdin: Option<StdinPipe>,
    pub(crate) stdout: OutputPipe,
    pub(crate) stderr: Option<OutputPipe>,
    pub(crate) started: Instant,
}

/// Tells when the leader has ended.
pub(crate) struct ExitWatch(Arc<Leader>);

impl ExitWatch {
    pub(crate) async fn exited(&mut self) {
        // The process alone, not its job. tokio keeps the state of the wait in the child, so a future for
        // each poll loses nothing.
        poll_fn(|context| self.0.lock().inner_mut().wait().as_mut().poll(context).map(drop)).await;
    }
}

impl Leader {
    fn lock(&self) -> MutexGuard<'_, Box<dyn ChildWrapper>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn pid_number(&self) -> u32 {
        self.pid
    }

    pub(crate) fn containment(&self) -> Containment {
        Containment::JobObject
    }

    pub(crate) fn kill_group(&self) {
        // It fails if the job has ended already.
        let _ = self.lock().start_kill();
    }

    pub(crate) fn terminate_group(&self) {
        self.kill_group();
    }

    pub(crate) fn signal(&self, _signal: i32) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn exit_status(&self) -> Option<ExitStatus> {
        self.reap().map(|reaped| reaped.status)
    }

    pub(crate) fn reap(&self) -> Option<Reaped> {
        let status = self.lock().try_wait().ok()??;
        let status = match status.code() {
            Some(code) => ExitStatus::Exited { code: code.cast_unsigned() },
            None => ExitStatus::Unknown,
        };
        Some(Reaped { status, usage: None })
    }
}

/// Checks what can be checked without starting.
pub(crate) fn validate(command: &Command, inherited: &Inherited) -> Result<(), SpawnError> {
    find(command, inherited)?;
    check_folder(command)
}

#[allow(clippy::unnecessary_wraps, reason = "as on Unix, where it can fail")]
pub(crate) fn open_pipes(_command: &Command) -> Result<(ChildEnds, OurEnds), SpawnError> {
    Ok((ChildEnds(Handle::current()), OurEnds))
}

#[allow(clippy::unnecessary_wraps, reason = "as on Unix, where it can fail")]
pub(crate) fn connect(_: &Command, started: Started, _: OurEnds) -> Result<Launched, SpawnError> {
    let Started { leader, at: started, stdin, stdout, stderr } = started;
    Ok(Launched { exit: ExitWatch(Arc::clone(&leader)), leader, stdin, stdout, stderr, started })
}

/// Starts a command. Blocks for as long as the system takes.
pub(crate) fn launch(
    command: &Command,
    inherited: &Inherited,
    _busy_retry: Duration,
    run: RunNumber,
    ChildEnds(runtime): ChildEnds,
    given_up: &(dyn Fn() -> bool + Sync),
) -> Result<Started, SpawnError> {
    let _registers_there = runtime.enter();
    let program = find(command, inherited)?;
    check_folder(command)?;
    if given_up() {
        return Err(command.error(SpawnErrorKind::Other, None));
    }
    let system = |error: io::Error| {
        let kind =
            exhausted(&error).map_or(SpawnErrorKind::Other, |which| SpawnErrorKind::ResourceLimit { which });
        command.error(kind, Some(error))
    };
    let mut merged = None;
    let mut wrap = CommandWrap::with_new(&program, |_| ());
    {
        let started = wrap.command_mut();
        started.args(command.arguments.iter().map(|argument| &argument.value));
        started.current_dir(&command.folder.path);
        started.env_clear();
        let entries = command.environment.entries(inherited);
        started.envs(entries.map(|entry| (entry.name(), entry.value())));
        if command.marker {
            started.env(run.marker(), "1");
        }
        match &command.stdin {
            Stdin::Null => started.stdin(Stdio::null()),
            Stdin::File(file) => started.stdin(file.try_clone().map_err(system)?),
            Stdin::Bytes(_) | Stdin::Reader(_) | Stdin::Piped => started.stdin(Stdio::piped()),
        };
        if command.merge_stderr {
            let (reader, writer) = io::pipe().map_err(system)?;
            started.stdout(writer.try_clone().map_err(system)?).stderr(writer);
            let handle: std::os::windows::io::OwnedHandle = reader.into();
            merged = Some(ChildStdout::from_std(handle.into()).map_err(system)?);
        } else {
            started.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
    }
    wrap.wrap(KillOnDrop).wrap(JobObject);
    let mut child = wrap.spawn().map_err(|error| match error.kind() {
        // std refuses what cmd.exe would read as more than an argument (CVE-2024-24576, CVE-2024-43402).
        io::ErrorKind::InvalidInput => command.error(SpawnErrorKind::UnsafeBatchArgument, Some(error)),
        _ => system(error),
    })?;
    drop(wrap); // and with it our copies of the merged pipe's end
    let at = Instant::now();
    let stdin = child.stdin().take();
    let stderr = child.stderr().take().map(OutputPipe::Stderr);
    let stdout = match merged {
        Some(merged) => Some(merged),
        None => child.stdout().take(),
    };
    let stdout = stdout.ok_or_else(|| command.error(SpawnErrorKind::Other, None))?;
    let leader = Arc::new(Leader { pid: child.id().unwrap_or_default(), child: Mutex::new(child) });
    Ok(Started { leader, at, stdin, stdout: OutputPipe::Stdout(stdout), stderr })
}

/// The file to start: a path as it stands, a name by the child's `PATH` and `PATHEXT`.
fn find(command: &Command, inherited: &Inherited) -> Result<PathBuf, SpawnError> {
    let variable = |wanted: &str| {
        let mut entries = command.environment.entries(inherited);
        let found = entries.find(|entry| entry.name().eq_ignore_ascii_case(wanted));
        found.map(|entry| entry.value().to_owned()).unwrap_or_default()
    };
    let extensions = extensions(&variable("PATHEXT"));
    let name = PathBuf::from(&command.program);
    let (folders, searched) = if name.components().count() > 1 {
        (vec![command.folder.path.clone()], Vec::new())
    } else {
        let folders: Vec<PathBuf> =
            std::env::split_paths(&variable("PATH")).filter(|folder| folder.is_absolute()).collect();
        (folders.clone(), folders)
    };
    for folder in &folders {
        let candidate = folder.join(&name);
        let with_extension = extensions.iter().map(|extension| {
            let mut path = candidate.clone().into_os_string();
            path.push(extension);
            PathBuf::from(path)
        });
        let as_named = name.extension().is_some().then(|| candidate.clone());
        if let Some(found) = as_named.into_iter().chain(with_extension).find(|path| path.is_file()) {
            return Ok(found);
        }
    }
    Err(command.error(SpawnErrorKind::NotFound { searched, did_you_mean: None }, None))
}

/// What `PATHEXT` lists. Some installers have broken it to ".CPL"; programs without `.EXE` make no sense.
fn extensions(listed: &OsStr) -> Vec<OsString> {
    let listed = listed.to_string_lossy();
    let mut extensions: Vec<OsString> =
        listed.split(';').filter(|item| item.starts_with('.')).map(Into::into).collect();
    for needed in [".COM", ".EXE", ".BAT", ".CMD"] {
        if !extensions.iter().any(|extension| extension.eq_ignore_ascii_case(needed)) {
            extensions.push(needed.into());
        }
    }
    extensions
}

fn check_folder(command: &Command) -> Result<(), SpawnError> {
    let kind = match command.folder.path.metadata() {
        Ok(metadata) if metadata.is_dir() => return Ok(()),
        Ok(_) => SpawnErrorKind::CwdNotDirectory,
        Err(error) if error.kind() == io::ErrorKind::NotFound => SpawnErrorKind::CwdNotFound,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => SpawnErrorKind::CwdDenied,
        Err(error) => return Err(command.error(SpawnErrorKind::Other, Some(error))),
    };
    Err(command.error(kind, None))
}

/// Which resource `error` says there is not enough of.
pub(crate) fn exhausted(error: &io::Error) -> Option<Resource> {
    (error.kind() == io::ErrorKind::OutOfMemory).then_some(Resource::Memory)
}

/// Runs at once unless the caller says how many.
pub(crate) fn default_concurrency() -> usize {
    64
}

pub(crate) fn pipe_id(_pipe: &OutputPipe) -> Option<u64> {
    None
}

/// What `reaper.rs` is elsewhere: here the job does the work.
pub(crate) mod reaper {
    use super::{Arc, Leader, io};
    use crate::outcome::Leftover;
    use tokio::sync::oneshot;

    /// See `reaper.rs`.
    #[derive(Debug, Default)]
    pub(crate) struct Ended {
        pub(crate) killed: Vec<Leftover>,
        pub(crate) alive: Vec<u32>,
    }

    /// See `reaper.rs`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Do {
        Nothing,
        TerminateEscaped,
        KillIdleHolders,
        KillHolders,
    }

    /// See `reaper.rs`.
    #[derive(Debug, Default)]
    pub(crate) struct Found {
        pub(crate) members: Vec<Leftover>,
        pub(crate) busy: bool,
        pub(crate) undecided: bool,
    }

    pub(crate) fn ensure() -> io::Result<()> {
        Ok(())
    }

    #[allow(clippy::needless_pass_by_value, reason = "as in `reaper.rs`, where it is kept")]
    pub(crate) fn abandon(leader: Arc<Leader>) {
        leader.kill_group();
    }

    #[allow(clippy::needless_pass_by_value, reason = "as in `reaper.rs`, where it is kept")]
    pub(crate) fn end(leader: Arc<Leader>) -> oneshot::Receiver<Ended> {
        leader.kill_group();
        answer(Ended::default())
    }

    pub(crate) fn look(_leader: Arc<Leader>, _action: Do, _pipes: Vec<u64>) -> oneshot::Receiver<Found> {
        answer(Found::default())
    }

    fn answer<T>(value: T) -> oneshot::Receiver<T> {
        let (sender, receiver) = oneshot::channel();
        let _ = sender.send(value);
        receiver
    }
}
