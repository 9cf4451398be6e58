//! The process that was started, on Unix: signalling it, waiting for it, reaping it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use super::exit::ReapedLeader;
use super::leader_hold::{LeaderHold, ProcessStamp};
use super::run_id::RunId;
use super::sys::{self, WaitEffect, WaitStatus};
use crate::outcome::{Containment, ExitStatus, ResourceUsage};

/// The process that was started. It leads its session and its process group.
///
/// Until it is reaped its pid, and so the ids of its group and session, cannot be given to another process.
/// That is why everything is signalled first and the leader is reaped last, and why both happen under one lock.
#[derive(Debug)]
pub(crate) struct ProcessLeader {
    pid: Pid,
    run: RunId,
    /// The name of the caller whose run it is, if that is known.
    owner_name: Option<Arc<str>>,
    /// True if it carries the environment marker.
    marked: bool,
    /// True if its program starts daemons that are not part of the run.
    starts_daemons: bool,
    /// The process that adopts the run's orphans in its place, if it is in a PID namespace: the first one there.
    namespace_init: Option<Pid>,
    /// Set once the leader is watched, where the kernel has pidfds.
    pidfd: OnceLock<Arc<OwnedFd>>,
    reaped: Mutex<Option<ReapedLeader>>,
    /// Called once the leader is reaped.
    forget: OnceLock<fn(&Self)>,
    /// The values that last until the run's processes have ended; see [`ProcessLeader::hold`].
    held: Mutex<Vec<Box<dyn LeaderHold>>>,
}

/// A process that was started.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartedProcess {
    pub(super) pid: Pid,
    /// The first process of its PID namespace, if it is in one of its own.
    pub(super) namespace_init: Option<Pid>,
}

impl StartedProcess {
    /// Describes the process `pid` in the PID namespace of this process.
    ///
    /// # Errors
    /// `pid` is no number of a process. A start that succeeds gives one.
    pub(super) fn beside(pid: libc::pid_t) -> io::Result<Self> {
        let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { pid, namespace_init: None })
    }
}

/// A wait for the leader's end that does not reap it.
pub(crate) enum ExitWatch {
    #[cfg(target_os = "linux")]
    Pidfd(tokio::io::unix::AsyncFd<Arc<OwnedFd>>),
    /// A thread that waits, where there is no pidfd (macOS, an old kernel, a seccomp filter, no free descriptor).
    Thread(tokio::sync::oneshot::Receiver<()>),
}

impl ExitWatch {
    /// Waits until the leader has ended. It may be called again after that.
    pub(crate) async fn exited(&mut self) {
        match self {
            #[cfg(target_os = "linux")]
            // An error means that the runtime is shutting down, and the driver is dropped with it.
            Self::Pidfd(watch) => match watch.readable().await {
                Ok(mut guard) => guard.retain_ready(),
                Err(_) => std::future::pending().await,
            },
            Self::Thread(receiver) => {
                let _ = receiver.await;
            }
        }
    }

    /// Starts to watch `leader`.
    ///
    /// # Errors
    /// If there is neither a pidfd nor a thread for it.
    pub(super) fn new(leader: &Arc<ProcessLeader>) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Ok(pidfd) = rustix::process::pidfd_open(leader.pid, rustix::process::PidfdFlags::empty()) {
            // The leader is not reaped yet, so its pid cannot be another's.
            let pidfd = Arc::clone(leader.pidfd.get_or_init(|| Arc::new(pidfd)));
            if let Ok(watch) = sys::watch_readable(pidfd) {
                return Ok(Self::Pidfd(watch));
            }
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

impl ProcessLeader {
    pub(super) fn new(
        StartedProcess { pid, namespace_init }: StartedProcess,
        run: RunId,
        marked: bool,
        owner_name: Option<Arc<str>>,
    ) -> Self {
        Self {
            pid,
            run,
            owner_name,
            marked,
            starts_daemons: false,
            namespace_init,
            pidfd: OnceLock::new(),
            reaped: Mutex::new(None),
            forget: OnceLock::new(),
            held: Mutex::default(),
        }
    }

    /// Returns the run.
    pub(crate) fn run(&self) -> RunId {
        self.run
    }

    /// Returns false for a helper of our own.
    #[cfg(target_os = "linux")]
    pub(super) fn is_run(&self) -> bool {
        self.run != RunId::HELPER
    }

    /// Sets whether the program starts daemons that are not part of the run.
    pub(super) fn with_daemons(mut self, starts_daemons: bool) -> Self {
        self.starts_daemons = starts_daemons;
        self
    }

    /// Returns true if the program starts daemons that are not part of the run.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only adoption asks"))]
    pub(super) fn starts_daemons(&self) -> bool {
        self.starts_daemons
    }

    /// Returns the name of the caller whose run it is, if that is known.
    pub(crate) fn owner_name(&self) -> Option<&str> {
        self.owner_name.as_deref()
    }

    /// Calls `forget` with the leader when it is reaped.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only adoption asks"))]
    pub(super) fn on_reaped(&self, forget: fn(&Self)) {
        // It is told once, by what started it.
        let _ = self.forget.set(forget);
    }

    /// Passes on that an orphan of the run was adopted.
    pub(crate) fn report_adopted(&self, process: ProcessStamp) {
        for held in self.held.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            held.adopted(process);
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    pub(crate) fn pid_number(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// Returns the first process of the PID namespace that the run is in, or `None` if it is in that of this process.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only adoption asks"))]
    pub(crate) fn namespace_init(&self) -> Option<Pid> {
        self.namespace_init
    }

    /// Returns the run whose marker the leader carries, if it carries one.
    pub(crate) fn marker(&self) -> Option<RunId> {
        self.marked.then_some(self.run)
    }

    /// Returns the session of the run, or `None` once the leader is reaped and the number may be another's.
    pub(crate) fn session(&self) -> Option<Pid> {
        self.lock().is_none().then_some(self.pid)
    }

    pub(crate) fn containment(&self) -> Containment {
        super::platform::containment(self.marked)
    }

    /// Keeps `held` until [`release`](Self::release) or [`reap`](Self::reap) drops it.
    pub(crate) fn hold(&self, held: Box<dyn LeaderHold>) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).push(held);
    }

    /// Drops what the leader holds.
    pub(crate) fn release(&self) {
        // Dropped after the lock is free: it may end another process.
        let held = std::mem::take(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner));
        drop(held);
    }

    fn lock(&self) -> MutexGuard<'_, Option<ReapedLeader>> {
        self.reaped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends `signal` to the leader's process group. It does nothing once the leader is reaped.
    pub(crate) fn signal_group(&self, signal: Signal) {
        let mut reaped = self.lock();
        self.peek(&mut reaped);
        if reaped.is_none() {
            // EPERM: none of them is ours to signal (sudo), or only a zombie is left (macOS). ESRCH: all are gone.
            let _ = rustix::process::kill_process_group(self.pid, signal);
        }
    }

    /// Asks the group to end.
    pub(crate) fn terminate_group(&self) {
        self.signal_group(Signal::TERM);
        // A stopped process acts on SIGTERM only once it is continued.
        self.signal_group(Signal::CONT);
    }

    pub(crate) fn kill_group(&self) {
        self.signal_group(Signal::KILL);
    }

    /// Sends the signal of this number to the group.
    ///
    /// # Errors
    /// `InvalidInput` for a number that has no name on this system.
    pub(crate) fn signal(&self, signal: i32) -> io::Result<()> {
        let signal = Signal::from_named_raw(signal).ok_or(io::ErrorKind::InvalidInput)?;
        self.signal_group(signal);
        Ok(())
    }

    /// Returns how the leader has ended, whether or not it is reaped. `None` while it runs.
    pub(crate) fn exit_status(&self) -> Option<ExitStatus> {
        let mut reaped = self.lock();
        self.peek(&mut reaped)
    }

    /// Returns the exit status without reaping.
    ///
    /// If another part of this process has reaped the leader, its pid may belong to a stranger. The status is then
    /// recorded as unknown, so that nothing is signalled any more.
    fn peek(&self, reaped: &mut Option<ReapedLeader>) -> Option<ExitStatus> {
        if let Some(reaped) = reaped {
            return Some(reaped.status);
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let status = match waitid(WaitId::Pid(self.pid), options) {
            // macOS also reports stopped children here, whose status is neither of the two below.
            Ok(status) => status?,
            Err(Errno::INTR) => return None,
            Err(_) => {
                *reaped = Some(ReapedLeader { status: ExitStatus::Unknown, usage: None });
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
            // Without the lock, or nothing could be signalled meanwhile. Its answer is not used: `exit_status` asks
            // again under the lock.
            let _ = waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            if cfg!(target_vendor = "apple") && self.exit_status().is_none() {
                std::thread::sleep(Duration::from_millis(20)); // it is stopped, and `waitid` returns at once
            }
        }
    }

    /// Takes the leader's status, which frees its pid for other processes. `None` while it runs.
    pub(crate) fn reap(&self) -> Option<ReapedLeader> {
        // First, since the guardian must forget the run before the pid can be a stranger's.
        self.release();
        let mut reaped = self.lock();
        if reaped.is_none() {
            *reaped = self.wait(WaitEffect::Reap);
            if reaped.is_some()
                && let Some(forget) = self.forget.get()
            {
                forget(self);
            }
        }
        *reaped
    }

    /// Returns what [`reap`](Self::reap) would, and leaves the leader as it is: its pid and its session stay its own
    /// while processes of the run are alive.
    pub(crate) fn status_without_reaping(&self) -> Option<ReapedLeader> {
        let reaped = self.lock();
        if reaped.is_some() { *reaped } else { self.wait(WaitEffect::Keep) }
    }

    /// Returns true once the leader is reaped.
    pub(crate) fn is_reaped(&self) -> bool {
        self.lock().is_some()
    }

    fn wait(&self, effect: WaitEffect) -> Option<ReapedLeader> {
        let pidfd = self.pidfd.get().map(|fd| fd.as_fd());
        match sys::wait(self.pid.as_raw_nonzero().get(), pidfd, effect) {
            Ok(None) => None,
            Ok(Some((ended, usage))) => Some(ReapedLeader {
                status: match ended {
                    WaitStatus::Exited(code) => ExitStatus::Exited { code },
                    WaitStatus::Signaled { signal, core } => ExitStatus::Signaled { signal, core },
                },
                usage: Some(ResourceUsage {
                    user: usage.user,
                    system: usage.system,
                    max_rss: sys::exceeds_own_max_rss(usage.max_rss).then_some(usage.max_rss),
                }),
            }),
            Err(_) => Some(ReapedLeader { status: ExitStatus::Unknown, usage: None }),
        }
    }
}
