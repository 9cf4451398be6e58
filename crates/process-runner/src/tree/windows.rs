//! Windows: every run has a job object, by `process-wrap`.
//!
//! A job holds everything that a process starts, nothing can leave it, and it ends when its last handle is closed,
//! which our own death does too. There is no signal that asks a program to end: ending a run kills it.
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

use super::exit::ReapedLeader;
use super::leader_hold::LeaderHold;
use super::run_id::RunId;
use crate::command::Command;
use crate::environment::InheritedEnv;
use crate::error::{SpawnError, SpawnErrorKind, SystemResource};
use crate::outcome::{Containment, ExitStatus};
use crate::stdin::Stdin;

/// False: the processes that hold a pipe cannot be told from others.
pub(crate) const SEES_HOLDERS: bool = false;

/// Our end of the child's standard input.
pub(crate) type StdinPipe = ChildStdin;

/// Our end of one of the child's output streams.
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

/// The process that was started, with its job.
#[derive(Debug)]
pub(crate) struct ProcessLeader {
    pid: u32,
    child: Mutex<Box<dyn ChildWrapper>>,
    /// The values that last until the run's processes have ended; see [`ProcessLeader::hold`].
    held: Mutex<Option<Box<dyn LeaderHold>>>,
    run: RunId,
    owner_name: Option<Arc<str>>,
}

/// The runtime to which the pipes belong. The pipes themselves are made by the start.
pub(crate) struct ChildPipeEnds(Handle);

/// Empty, as the pipes are made by the start (see `launch.rs`).
pub(crate) struct ParentPipeEnds;

/// A leader that [`launch`] started, with the pipes to it.
pub(crate) struct StartedLeader {
    pub(crate) leader: Arc<ProcessLeader>,
    at: Instant,
    stdin: Option<StdinPipe>,
    stdout: OutputPipe,
    stderr: Option<OutputPipe>,
}

/// A started leader with everything that is needed to follow it.
pub(crate) struct LaunchedProgram {
    pub(crate) leader: Arc<ProcessLeader>,
    pub(crate) exit: ExitWatch,
    pub(crate) stdin: Option<StdinPipe>,
    pub(crate) stdout: OutputPipe,
    pub(crate) stderr: Option<OutputPipe>,
    pub(crate) started: Instant,
    pub(crate) limit_watch: Option<super::LimitWatch>,
}

/// A wait for the leader's end.
pub(crate) struct ExitWatch(Arc<ProcessLeader>);

impl ExitWatch {
    pub(crate) async fn exited(&mut self) {
        // It waits for the process alone and not for its job. tokio keeps the state of the wait in the child, so a
        // new future for each poll loses nothing.
        poll_fn(|context| self.0.lock().inner_mut().wait().as_mut().poll(context).map(drop)).await;
    }
}

impl ProcessLeader {
    fn lock(&self) -> MutexGuard<'_, Box<dyn ChildWrapper>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps `held` until [`release`](Self::release) drops it.
    pub(crate) fn hold(&self, held: Box<dyn LeaderHold>) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
    }

    /// Drops what the leader holds.
    pub(crate) fn release(&self) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(held);
    }

    pub(crate) fn pid_number(&self) -> u32 {
        self.pid
    }

    pub(crate) fn run(&self) -> RunId {
        self.run
    }

    /// Returns the name of the caller whose run it is, if that is known.
    pub(crate) fn owner_name(&self) -> Option<&str> {
        self.owner_name.as_deref()
    }

    /// Returns the same as [`reap`](Self::reap): a job object leaves nothing alive for which the leader must stay.
    pub(crate) fn status_without_reaping(&self) -> Option<ReapedLeader> {
        self.reap()
    }

    pub(crate) fn is_reaped(&self) -> bool {
        self.exit_status().is_some()
    }

    pub(crate) fn containment(&self) -> Containment {
        Containment::JobObject
    }

    pub(crate) fn kill_group(&self) {
        // It fails if the job has ended already, which is as good.
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

    pub(crate) fn reap(&self) -> Option<ReapedLeader> {
        self.release();
        let status = self.lock().try_wait().ok()??;
        let status = match status.code() {
            Some(code) => ExitStatus::Exited { code: code.cast_unsigned() },
            None => ExitStatus::Unknown,
        };
        Some(ReapedLeader { status, usage: None })
    }
}

/// Checks everything that can be checked without a start.
pub(crate) fn validate(command: &Command, inherited: &InheritedEnv) -> Result<(), SpawnError> {
    find(command, inherited)?;
    check_folder(command)
}

#[allow(clippy::unnecessary_wraps, reason = "as on Unix, where it can fail")]
pub(crate) fn open_pipes(_command: &Command) -> Result<(ChildPipeEnds, ParentPipeEnds), SpawnError> {
    Ok((ChildPipeEnds(Handle::current()), ParentPipeEnds))
}

#[allow(clippy::unnecessary_wraps, reason = "as on Unix, where it can fail")]
pub(crate) fn connect(
    _: &Command,
    started: StartedLeader,
    _: ParentPipeEnds,
) -> Result<LaunchedProgram, SpawnError> {
    let StartedLeader { leader, at: started, stdin, stdout, stderr } = started;
    Ok(LaunchedProgram {
        exit: ExitWatch(Arc::clone(&leader)),
        leader,
        stdin,
        stdout,
        stderr,
        started,
        limit_watch: None,
    })
}

/// Starts a command. It blocks for as long as the system takes, so it is called on a thread of its own.
pub(crate) fn launch(
    command: &Command,
    inherited: &InheritedEnv,
    _busy_retry: Duration,
    run: RunId,
    ChildPipeEnds(runtime): &ChildPipeEnds,
    is_abandoned: &(dyn Fn() -> bool + Sync),
) -> Result<StartedLeader, SpawnError> {
    let _in_runtime = runtime.enter();
    let program = find(command, inherited)?;
    check_folder(command)?;
    if is_abandoned() {
        return Err(command.error(SpawnErrorKind::Other, None));
    }
    let system = |error: io::Error| {
        let kind = exhausted_resource(&error)
            .map_or(SpawnErrorKind::Other, |which| SpawnErrorKind::ResourceLimit { which });
        command.error(kind, Some(error))
    };
    let mut merged = None;
    let mut wrap = CommandWrap::with_new(&program, |_| ());
    {
        let started = wrap.command_mut();
        started.args(command.arguments.iter().map(|argument| &argument.value));
        started.current_dir(&command.folder.path);
        // Cleared, since `entries` has what is inherited already.
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
    // The job is assigned while the process is suspended, so that nothing it starts escapes.
    wrap.wrap(KillOnDrop).wrap(JobObject);
    let mut child = wrap.spawn().map_err(|error| match error.kind() {
        // std refuses what cmd.exe would read as more than an argument (CVE-2024-24576, CVE-2024-43402).
        io::ErrorKind::InvalidInput => command.error(SpawnErrorKind::UnsafeBatchArgument, Some(error)),
        _ => system(error),
    })?;
    // Drops our copies of the merged pipe's writing end, which would keep it from ending.
    drop(wrap);
    let at = Instant::now();
    let stdin = child.stdin().take();
    let stderr = child.stderr().take().map(OutputPipe::Stderr);
    let stdout = match merged {
        Some(merged) => Some(merged),
        None => child.stdout().take(),
    };
    let stdout = stdout.ok_or_else(|| command.error(SpawnErrorKind::Other, None))?;
    let leader = Arc::new(ProcessLeader {
        pid: child.id().unwrap_or_default(),
        child: Mutex::new(child),
        held: Mutex::new(None),
        run,
        owner_name: command.owner_name(),
    });
    Ok(StartedLeader { leader, at, stdin, stdout: OutputPipe::Stdout(stdout), stderr })
}

/// Returns the file to start: a path as it stands, a name by the child's `PATH` and `PATHEXT`.
fn find(command: &Command, inherited: &InheritedEnv) -> Result<PathBuf, SpawnError> {
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

/// Returns the extensions that `PATHEXT` lists, and the usual ones.
// Some installers have broken it to ".CPL" alone, with which nothing could be started.
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

/// Returns the resource that ran out if that is what `error` says.
pub(crate) fn exhausted_resource(error: &io::Error) -> Option<SystemResource> {
    (error.kind() == io::ErrorKind::OutOfMemory).then_some(SystemResource::Memory)
}

/// Returns how many runs may go on at once where the caller does not say.
pub(crate) fn default_concurrency() -> usize {
    64
}

pub(crate) fn pipe_id(_pipe: &OutputPipe) -> Option<u64> {
    None
}

/// The interface of `reaper.rs` on a system where the job object does the work.
pub(crate) mod reaper {
    use super::{Arc, ProcessLeader, io};
    use crate::outcome::LeftoverProcess;
    use tokio::sync::oneshot;

    /// The result of ending a tree; see `reaper.rs`.
    #[derive(Debug, Default)]
    pub(crate) struct TreeEndOutcome {
        pub(crate) killed: Vec<LeftoverProcess>,
        pub(crate) alive: Vec<u32>,
    }

    /// The action on the members that an inspection finds; see `reaper.rs`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum MemberAction {
        None,
        Survey,
        TerminateEscaped,
        KillIdleHolders,
        KillHolders,
    }

    /// The result of an inspection; see `reaper.rs`.
    #[derive(Debug, Default)]
    pub(crate) struct TreeInspection {
        pub(crate) members: Vec<LeftoverProcess>,
        pub(crate) busy: bool,
        pub(crate) undecided: bool,
    }

    pub(crate) fn ensure_running() -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn was_started() -> bool {
        false
    }

    #[allow(clippy::needless_pass_by_value, reason = "as in `reaper.rs`, where it is kept")]
    pub(crate) fn abandon(leader: Arc<ProcessLeader>) {
        leader.kill_group();
        leader.release();
    }

    #[allow(clippy::needless_pass_by_value, reason = "as in `reaper.rs`, where it is kept")]
    pub(crate) fn end(leader: Arc<ProcessLeader>) -> oneshot::Receiver<TreeEndOutcome> {
        leader.kill_group();
        answer(TreeEndOutcome::default())
    }

    pub(crate) fn inspect(
        _leader: Arc<ProcessLeader>,
        _action: MemberAction,
        _pipes: Vec<u64>,
    ) -> oneshot::Receiver<TreeInspection> {
        answer(TreeInspection::default())
    }

    /// Does nothing: a job object leaves nothing alive.
    pub(crate) fn watch(_tree: Arc<crate::leftover_state::LeftoverState>) {}

    pub(crate) fn look_for_orphans(_leader: &Arc<ProcessLeader>) {}

    pub(crate) fn sweep() -> oneshot::Receiver<bool> {
        answer(false)
    }

    fn answer<T>(value: T) -> oneshot::Receiver<T> {
        let (sender, receiver) = oneshot::channel();
        let _ = sender.send(value);
        receiver
    }
}
