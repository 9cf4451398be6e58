//! A tree in the foreground: found by descent from this process, which every orphan below it becomes a child of.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, getpgrp, getpid, kill_process, pidfd_open,
    set_child_subreaper, waitid, waitpid,
};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

use super::adoption::current_children;
use super::launch::launch_in_foreground;
use super::leader::ProcessLeader;
use super::leader_hold::ProcessStamp;
use super::linux::scan;
use super::run_id::RunId;
use super::scan::{ProcessScan, ScanQuery, TreeMember};
use super::sys::{self, ReceivedSignal};
use crate::command::Command;
use crate::environment::InheritedEnv;
use crate::error::{Error, SpawnErrorKind};
use crate::outcome::ExitStatus;

pub(crate) use super::child::with_signals_blocked;
pub(crate) use super::sys::{die_by, release_standard_streams};

/// The signals that are passed on to the command if another process sends them. A key of the terminal, and a change of its
/// size, reach the command without help: it is in the same process group.
const PASSED_ON: [i32; 10] = [
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGWINCH,
    libc::SIGCONT,
    libc::SIGTSTP,
];

/// The time for which processes that were killed are waited for.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// The longest wait for a signal: what has no event, such as an owner without a pidfd, is looked at then.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The process with which a tree ends.
#[derive(Debug)]
pub(crate) struct TreeOwner {
    pidfd: Option<OwnedFd>,
    was_gone: bool,
}

impl TreeOwner {
    pub(crate) fn none() -> Self {
        Self { pidfd: None, was_gone: false }
    }

    /// Watches the process `pid`. One that is not there has ended.
    pub(crate) fn watch(pid: Pid) -> std::io::Result<Self> {
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Self { pidfd: Some(pidfd), was_gone: false }),
            Err(Errno::SRCH) => Ok(Self { pidfd: None, was_gone: true }),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        let Some(pidfd) = &self.pidfd else { return self.was_gone };
        let mut watched = [PollFd::new(pidfd, PollFlags::IN)];
        poll(&mut watched, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}

/// The state of the terminal before the command.
struct SavedTerminal {
    modes: Option<Termios>,
    is_foreground: bool,
}

impl SavedTerminal {
    fn save() -> Option<Self> {
        let stdin = std::io::stdin();
        if !isatty(&stdin) {
            return None;
        }
        let is_foreground = tcgetpgrp(&stdin).is_ok_and(|group| group == getpgrp());
        Some(Self { modes: tcgetattr(&stdin).ok(), is_foreground })
    }

    /// Puts the terminal back: a command that was killed has left it as it needed it.
    fn restore(&self) {
        let stdin = std::io::stdin();
        if !self.is_foreground {
            return;
        }
        // SIGTTOU is blocked here, so neither call stops this process.
        let _ = tcsetpgrp(&stdin, getpgrp());
        if let Some(modes) = &self.modes {
            let _ = tcsetattr(&stdin, OptionalActions::Now, modes);
        }
    }
}

/// A command in the foreground, and everything below it.
pub(crate) struct ForegroundTree {
    leader: Arc<ProcessLeader>,
    signals: OwnedFd,
    guardian: Option<Pid>,
    /// The children that this process had before the command, such as those of a shell that became this program.
    inherited: Vec<Pid>,
    terminal: Option<SavedTerminal>,
}

impl ForegroundTree {
    /// Starts `command`.
    pub(crate) fn start(
        command: &Command,
        inherited: &InheritedEnv,
        run: RunId,
        guardian: Option<Pid>,
    ) -> Result<Self, Error> {
        let failed = |error: std::io::Error| Error::from(command.error(SpawnErrorKind::Other, Some(error)));
        set_child_subreaper(Some(getpid())).map_err(|error| failed(error.into()))?;
        let all: Vec<i32> = PASSED_ON.iter().copied().chain([libc::SIGCHLD, libc::SIGTTOU]).collect();
        let (signals, mask) = sys::receive_signals(&all).map_err(failed)?;
        let terminal = SavedTerminal::save();
        let earlier = current_children().into_iter().filter_map(|child| Pid::from_raw(child.pid)).collect();
        let leader = launch_in_foreground(command, inherited, run, &mask)?;
        Ok(Self { leader, signals, guardian, inherited: earlier, terminal })
    }

    /// Returns how the command has ended. `None` while it runs.
    pub(crate) fn exit_status(&self) -> Option<ExitStatus> {
        self.leader.exit_status()
    }

    /// Waits for a signal, for the end of the owner, or for `time`.
    pub(crate) fn wait(&self, time: Option<Duration>, owner: &TreeOwner) {
        let mut watched = vec![PollFd::new(&self.signals, PollFlags::IN)];
        watched.extend(owner.pidfd.as_ref().map(|pidfd| PollFd::new(pidfd, PollFlags::IN)));
        // Without a limit it waits for a signal alone: an idle supervisor costs nothing.
        let time = time.map(|time| time.min(MAX_WAIT));
        let timeout = time.and_then(|time| Timespec::try_from(time).ok());
        // An interrupted wait is one that is over.
        let _ = poll(&mut watched, timeout.as_ref());
    }

    /// Passes the signals on that have come, and follows the command when it stops.
    pub(crate) fn pass_signals_on(&self) {
        while let Some(signal) = sys::next_signal(self.signals.as_fd()) {
            match signal.number {
                libc::SIGCHLD => {
                    self.reap_orphans();
                    self.stop_with_command();
                }
                number if PASSED_ON.contains(&number) => self.pass_on(signal),
                _ => {}
            }
        }
    }

    fn pass_on(&self, signal: ReceivedSignal) {
        // The command has it already if the kernel sent it to the group. One from below was sent to the group as well.
        let Some(sender) = signal.sender.and_then(Pid::from_raw) else { return };
        if self.members().iter().any(|member| member.pid == sender) {
            return;
        }
        if let Some(named) = Signal::from_named_raw(signal.number) {
            self.signal_leader(named);
        }
    }

    fn signal_leader(&self, signal: Signal) {
        // Not reaped yet, so the number is still the command's.
        if self.leader.exit_status().is_none() {
            let _ = kill_process(self.leader.pid(), signal);
        }
    }

    /// Stops this process if the command was stopped, so that the shell above sees a job that is stopped.
    fn stop_with_command(&self) {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        let stopped = waitid(WaitId::Pid(self.leader.pid()), options);
        let is_stopped = matches!(stopped, Ok(Some(status)) if status.stopped());
        // Without a terminal nobody would continue it, and no limit would ever be looked at.
        if is_stopped && self.terminal.as_ref().is_some_and(|terminal| terminal.is_foreground) {
            let _ = kill_process(getpid(), Signal::STOP);
            // Continued. The shell has continued the whole group; if it has not, the command is still stopped.
            self.signal_leader(Signal::CONT);
        }
    }

    /// Asks everything in the tree to end, and waits until the command has, at most `grace`.
    pub(crate) fn terminate(&mut self, grace: Duration) {
        for member in self.members() {
            member.signal(Signal::TERM);
            // A stopped process acts on SIGTERM only once it is continued.
            member.signal(Signal::CONT);
        }
        let deadline = Instant::now() + grace;
        while self.leader.exit_status().is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.wait(Some(left), &TreeOwner::none());
            while sys::next_signal(self.signals.as_fd()).is_some() {}
        }
    }

    /// Returns the number of processes that the command, which has ended, has left behind.
    pub(crate) fn background(&self) -> usize {
        self.reap_orphans();
        self.members().iter().filter(|member| self.is_leftover(member.pid)).count()
    }

    /// Waits until nothing is left of the tree, or a signal asks this process to end: then the tree is asked to, and has
    /// `grace` for it.
    pub(crate) fn wait_for_background(&self, grace: Duration) {
        let mut deadline = None;
        while self.background() > 0 {
            let left = deadline.map(|deadline: Instant| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return;
            }
            // The children of this process are orphans or were, so their ends are announced by SIGCHLD.
            self.wait(left, &TreeOwner::none());
            while let Some(signal) = sys::next_signal(self.signals.as_fd()) {
                let asks =
                    [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT].contains(&signal.number);
                if asks && deadline.is_none() {
                    deadline = Some(Instant::now() + grace);
                    for member in self.members() {
                        member.signal(Signal::TERM);
                        member.signal(Signal::CONT);
                    }
                }
            }
        }
    }

    /// Kills what is left of the tree, and returns how many processes that were beside the command. A terminal that a
    /// killed command has left changed is put back.
    pub(crate) fn end(&mut self, ended_itself: bool) -> usize {
        let mut killed = HashSet::new();
        let deadline = Instant::now() + KILL_TIMEOUT;
        let mut pause = Duration::from_micros(200);
        loop {
            self.reap_orphans();
            let has_children = self.children().is_none_or(|children| !children.is_empty());
            let runs = self.leader.exit_status().is_none();
            if !has_children && !runs {
                break;
            }
            for member in self.members() {
                member.signal(Signal::KILL);
                if self.is_leftover(member.pid) {
                    killed.insert(member.stamp());
                }
            }
            if Instant::now() > deadline {
                break;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(10));
        }
        self.leader.reap();
        // A command that ended by itself, even by a signal, leaves the terminal as it would without us.
        if !ended_itself && let Some(terminal) = &self.terminal {
            terminal.restore();
        }
        killed.len()
    }

    /// Returns true for a process of the tree that is neither the command nor the first process of its PID namespace.
    fn is_leftover(&self, pid: Pid) -> bool {
        pid != self.leader.pid() && Some(pid) != self.leader.namespace_init()
    }

    /// Takes the status of orphans that have ended.
    fn reap_orphans(&self) {
        for child in self.children().unwrap_or_default() {
            let _ = waitpid(Some(child), WaitOptions::NOHANG);
        }
    }

    /// Returns the children of this process but the command and the guardian, or `None` if the kernel does not list them.
    #[allow(clippy::disallowed_methods, reason = "a file of /proc about this process")]
    fn children(&self) -> Option<Vec<Pid>> {
        let own = getpid().as_raw_nonzero();
        let text = std::fs::read_to_string(format!("/proc/self/task/{own}/children")).ok()?;
        let pids = text.split_ascii_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?));
        let is_own = |pid: &Pid| *pid != self.leader.pid() && !self.is_foreign(pid.as_raw_nonzero().get());
        Some(pids.filter(is_own).collect())
    }

    /// Returns true for a child of this process that is no part of the tree.
    fn is_foreign(&self, child: i32) -> bool {
        let number = |pid: &Pid| pid.as_raw_nonzero().get();
        self.guardian.as_ref().map(number) == Some(child)
            || self.inherited.iter().map(number).any(|pid| pid == child)
    }

    /// Returns the living processes of the tree, the command among them, each pinned where the kernel has pidfds.
    fn members(&self) -> Vec<TreeMember> {
        let own: HashSet<ProcessStamp> =
            current_children().into_iter().filter(|child| !self.is_foreign(child.pid)).collect();
        let adopters = [getpid()];
        let query = ScanQuery {
            started_since: 0,
            by_session: &|_| None,
            by_adoption: &|pid, start_ticks| {
                own.contains(&ProcessStamp { pid: pid.as_raw_nonzero().get(), start_ticks }).then_some(0)
            },
            adopters: &adopters,
            by_marker: &|_, _| None,
        };
        let ProcessScan { members, orphans, .. } = scan(&query);
        // An orphan came to this process after its children were listed.
        let came = orphans.into_iter().filter(|orphan| !self.is_foreign(orphan.stamp().pid));
        members.into_iter().chain(came).collect()
    }

    /// Returns a number that changes when anything in the tree uses a processor, reads or writes.
    fn activity(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        let mut members: Vec<_> = self.members().iter().map(|member| member.stamp().pid).collect();
        members.sort_unstable();
        for pid in members {
            pid.hash(&mut hasher);
            usage(pid).hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// A look at a tree from time to time, for an idle limit.
pub(crate) struct IdleWatch {
    timeout: Duration,
    interval: Duration,
    activity: u64,
    active_at: Instant,
    next_look: Instant,
}

impl IdleWatch {
    pub(crate) fn new(timeout: Duration, tree: &ForegroundTree) -> Self {
        let now = Instant::now();
        let interval = (timeout / 8).clamp(Duration::from_millis(20), Duration::from_secs(1));
        Self { timeout, interval, activity: tree.activity(), active_at: now, next_look: now + interval }
    }

    pub(crate) fn next_look(&self) -> Instant {
        self.next_look
    }

    /// Returns true if nothing has happened for the time limit.
    pub(crate) fn is_over(&mut self, now: Instant, tree: &ForegroundTree) -> bool {
        if now < self.next_look {
            return false;
        }
        self.next_look = now + self.interval;
        let activity = tree.activity();
        if activity != self.activity {
            self.activity = activity;
            self.active_at = now;
        }
        now.duration_since(self.active_at) >= self.timeout
    }
}

/// Returns the text of what a process has used so far: processor time, and bytes read and written.
#[allow(clippy::disallowed_methods, reason = "files of /proc about one process")]
fn usage(pid: i32) -> String {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    let times: Vec<&str> = stat
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_ascii_whitespace().skip(11).take(4).collect())
        .unwrap_or_default();
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let bytes: Vec<&str> =
        io.lines().filter(|line| line.starts_with("rchar") || line.starts_with("wchar")).collect();
    format!("{times:?} {bytes:?}")
}
