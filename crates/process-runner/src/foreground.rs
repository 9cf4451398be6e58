//! Runs a command in the foreground, as `timeout(1)` does: with the streams, the terminal and the signals of this process.

use std::io;
use std::time::Instant;

use rustix::process::Pid;

use crate::command::Command;
use crate::environment::InheritedEnv;
use crate::error::{Error, SpawnErrorKind};
use crate::guardian::{GuardianLink, GuardianProgram};
use crate::limits::Limits;
use crate::outcome::ExitStatus;
use crate::tree::RunId;
use crate::tree::foreground::{self, ForegroundTree, TreeOwner};

/// A run in the foreground: the command has the standard streams of this process, its controlling terminal, its process
/// group and its signals. The run ends together with all processes that the command has started.
///
/// The process that calls [`run`](Self::run) should exist only for this run. The calling process takes over all
/// signals, and becomes the parent of every orphan among its descendants (`PR_SET_CHILD_SUBREAPER`). Thereby the run
/// also finds a process that leaves its session and empties its environment. Linux only.
///
/// ```no_run
/// use process_runner::{Command, ForegroundRun, Limits};
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limits = Limits::default().timeout(Duration::from_secs(600));
/// let command = Command::new("make", std::env::current_dir()?).arg("test").limits(limits);
/// let end = ForegroundRun::new(command).run()?;
/// std::process::exit(process_runner::end_as(&end));
/// # }
/// ```
#[derive(Debug)]
pub struct ForegroundRun {
    command: Command,
    guardian: Option<GuardianProgram>,
    ends_with: Option<u32>,
}

/// Is told the end of a command whose background goes on.
type CommandEndCallback = Box<dyn FnOnce(&ForegroundEnd)>;

/// The end of a run in the foreground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForegroundEnd {
    /// The command ended by itself.
    Ended {
        /// The way in which it ended.
        status: ExitStatus,
        /// The processes that it left behind. They were killed, or go on where
        /// [`run_keeping_background`](ForegroundRun::run_keeping_background) says so.
        leftovers: usize,
    },
    /// The command ran longer than the time limit and was ended.
    TimedOut,
    /// Nothing in its tree did anything for the idle limit, and it was ended.
    IdleTimedOut,
    /// The process that it was to end with has ended.
    OwnerEnded,
}

impl ForegroundRun {
    /// Creates a run of `command`. The run uses the program, the arguments, the folder, the environment, the
    /// confinement, the network namespace and the resource limits of the command. In namespaces of its own, an interactive
    /// shell has no job control: it sees no process group outside. Of its [limits](crate::Command::limits), the run uses only the time limits. Without
    /// a time limit, the command may run forever.
    ///
    /// The run does not see the output. The idle limit is therefore reached when no process of the tree has used a
    /// processor, read or written for that time.
    pub fn new(command: Command) -> Self {
        Self { command, guardian: None, ends_with: None }
    }

    /// Sets the guardian, which ends the run if this process is killed.
    #[must_use]
    pub fn guardian(mut self, guardian: GuardianProgram) -> Self {
        self.guardian = Some(guardian);
        self
    }

    /// Sets a process with which the run ends, such as the client that asked for it.
    #[must_use]
    pub fn ends_with(mut self, pid: u32) -> Self {
        self.ends_with = Some(pid);
        self
    }

    /// Runs the command to its end.
    ///
    /// # Errors
    /// The command did not start, or cannot be followed.
    pub fn run(self) -> Result<ForegroundEnd, Error> {
        self.run_tree(None)
    }

    /// Runs the command to its end as [`run`](Self::run) does, and lets go on what it has left in the background. `on_end` is
    /// told the end of the command. The call returns when nothing is left; a signal that asks this process to end, such as
    /// `SIGTERM`, ends the background.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub fn run_keeping_background(
        self,
        on_end: impl FnOnce(&ForegroundEnd) + 'static,
    ) -> Result<ForegroundEnd, Error> {
        self.run_tree(Some(Box::new(on_end)))
    }

    fn run_tree(self, on_end: Option<CommandEndCallback>) -> Result<ForegroundEnd, Error> {
        self.command.check_input()?;
        let failed = |error: io::Error| Error::from(self.command.error(SpawnErrorKind::Other, Some(error)));
        let owner = match self.ends_with.and_then(|pid| Pid::from_raw(pid.cast_signed())) {
            Some(pid) => TreeOwner::watch(pid).map_err(failed)?,
            None => TreeOwner::none(),
        };
        if owner.has_ended() {
            return Ok(ForegroundEnd::OwnerEnded);
        }
        // The command stands in for this process, so that it gets the whole environment.
        let inherited = InheritedEnv::without(&[]);
        let run = RunId::next().map_err(failed)?;
        let guardian = self.guardian.clone().map(GuardianLink::new);
        // Announced before the start, so that no moment is unwatched.
        let supervised =
            guardian.as_ref().map(|guardian| guardian.watch_blocking(run)).transpose().map_err(failed)?;
        let mut tree = ForegroundTree::start(
            &self.command,
            &inherited,
            run,
            guardian.as_ref().and_then(GuardianLink::pid),
        )?;
        let end = self.follow(&mut tree, &owner);
        let ended_itself = matches!(end, ForegroundEnd::Ended { .. });
        let leftovers = match (on_end, end) {
            (Some(on_end), ForegroundEnd::Ended { status, .. }) => {
                on_end(&ForegroundEnd::Ended { status, leftovers: tree.background() });
                let limits = self.command.limits.clone().unwrap_or_else(Limits::unlimited);
                // `on_end` comes before the wait, because the caller must not wait for the background.
                tree.wait_for_background(limits.term_grace);
                tree.end(ended_itself)
            }
            (Some(on_end), end) => {
                let leftovers = tree.end(ended_itself);
                on_end(&end);
                leftovers
            }
            (None, _) => tree.end(ended_itself),
        };
        drop(supervised);
        if let Some(guardian) = guardian {
            guardian.dismiss();
        }
        Ok(match end {
            ForegroundEnd::Ended { status, .. } => ForegroundEnd::Ended { status, leftovers },
            end => end,
        })
    }

    /// Passes signals on until the command has ended or must end.
    fn follow(&self, tree: &mut ForegroundTree, owner: &TreeOwner) -> ForegroundEnd {
        let started = Instant::now();
        let limits = self.command.limits.clone().unwrap_or_else(Limits::unlimited);
        let deadline = limits.timeout.and_then(|timeout| started.checked_add(timeout));
        let mut idle = limits.idle_timeout.map(|timeout| foreground::IdleWatch::new(timeout, tree));
        loop {
            if let Some(status) = tree.exit_status() {
                return ForegroundEnd::Ended { status, leftovers: 0 };
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| deadline <= now) {
                tree.terminate(limits.term_grace);
                return ForegroundEnd::TimedOut;
            }
            if idle.as_mut().is_some_and(|idle| idle.is_over(now, tree)) {
                tree.terminate(limits.term_grace);
                return ForegroundEnd::IdleTimedOut;
            }
            if owner.has_ended() {
                tree.terminate(limits.term_grace);
                return ForegroundEnd::OwnerEnded;
            }
            let next = deadline.into_iter().chain(idle.as_ref().map(foreground::IdleWatch::next_look)).min();
            tree.wait(next.map(|next| next.saturating_duration_since(now)), owner);
            tree.pass_signals_on();
        }
    }
}

/// Gives the standard streams of this process back: `/dev/null` takes their place, so that nobody waits for their end.
///
/// # Errors
/// There is no `/dev/null`, or it cannot be opened.
pub fn release_standard_streams() -> io::Result<()> {
    foreground::release_standard_streams()
}

/// Calls `work` with all signals blocked in this thread. The threads that `work` starts keep the signals blocked.
///
/// A thread that runs beside a [`ForegroundRun`] must be started so: the run takes the signals of the process, and a thread
/// that does not block them would take them too.
pub fn with_signals_blocked<T>(work: impl FnOnce() -> T) -> T {
    foreground::with_signals_blocked(work)
}

/// The exit code of a command that was ended at a limit, which `timeout(1)` uses too.
const TIMED_OUT: i32 = 124;

/// Returns the exit code with which this process ends as the command did. If a signal ended the command, the same signal
/// ends this process, and the call does not return.
pub fn end_as(end: &ForegroundEnd) -> i32 {
    match end {
        ForegroundEnd::Ended { status: ExitStatus::Exited { code }, .. } => i32::try_from(*code).unwrap_or(1),
        ForegroundEnd::Ended { status: ExitStatus::Signaled { signal, .. }, .. } => {
            // A shell tells a signal from an exit code by how the process ended, which a code alone cannot imitate.
            foreground::die_by(*signal);
            128_i32.saturating_add(*signal)
        }
        ForegroundEnd::Ended { status: ExitStatus::Unknown, .. } => 1,
        ForegroundEnd::TimedOut | ForegroundEnd::IdleTimedOut => TIMED_OUT,
        // The code of a process that `SIGTERM` ended: 128 and the number of the signal.
        ForegroundEnd::OwnerEnded => 143,
    }
}
