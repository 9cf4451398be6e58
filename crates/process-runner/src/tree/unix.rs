//! The process that was started, and what is found of those that came of it, on Unix.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use super::sys::{self, Ended};
use super::{Reaped, RunNumber};
use crate::error::Resource;
use crate::outcome::{Containment, ExitStatus, Usage};

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
    /// Where there are pidfds, once it is watched.
    pidfd: OnceLock<Arc<OwnedFd>>,
    reaped: Mutex<Option<Reaped>>,
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

    pub(super) fn new(leader: &Arc<Leader>) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Ok(pidfd) = rustix::process::pidfd_open(leader.pid, rustix::process::PidfdFlags::empty()) {
            // Not reaped yet, so the pid still stands for it.
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

impl Leader {
    pub(super) fn new(pid: Pid, run: RunNumber, marked: bool) -> Self {
        Self { pid, run, marked, pidfd: OnceLock::new(), reaped: Mutex::new(None) }
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    pub(crate) fn pid_number(&self) -> u32 {
        number(self.pid)
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
            *reaped = match sys::reap(self.pid.as_raw_nonzero().get(), self.pidfd.get().map(|fd| fd.as_fd()))
            {
                Ok(None) => None,
                Ok(Some((ended, usage))) => Some(Reaped {
                    status: match ended {
                        Ended::Exited(code) => ExitStatus::Exited { code },
                        Ended::Signaled { signal, core } => ExitStatus::Signaled { signal, core },
                    },
                    usage: Some(Usage {
                        user: usage.user,
                        system: usage.system,
                        max_rss: sys::exceeds_own_max_rss(usage.max_rss).then_some(usage.max_rss),
                    }),
                }),
                Err(_) => Some(Reaped { status: ExitStatus::Unknown, usage: None }),
            };
        }
        *reaped
    }
}

/// What a scan of all processes looks for. Each answer is a number of the caller's choice, by which it knows its runs.
pub(crate) struct Search<'a> {
    /// Processes that started before this ([`start_time`]) are none of ours; their environment is not read.
    pub(crate) since: u64,
    /// Whose session this is.
    pub(crate) by_session: &'a dyn Fn(Pid) -> Option<usize>,
    /// What the names of the markers begin with.
    pub(crate) prefix: &'a str,
    /// Whose marker has this number after the prefix.
    pub(crate) by_marker: &'a dyn Fn(u64) -> Option<usize>,
}

/// A living process that belongs to a run and is not its leader.
#[derive(Debug)]
pub(crate) struct Member {
    /// What the [`Search`] answered.
    pub(crate) owner: usize,
    pub(crate) pid: Pid,
    pub(crate) group: Option<Pid>,
    pub(crate) name: String,
    /// It runs, waits for a processor, or for a disk.
    pub(crate) busy: bool,
    /// Pins the process, where the kernel has pidfds.
    pub(super) pidfd: Option<OwnedFd>,
}

impl Member {
    /// True if the signal was sent, or there was nobody left to get it.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        let sent = match &self.pidfd {
            #[cfg(target_os = "linux")]
            Some(pidfd) => rustix::process::pidfd_send_signal(pidfd, signal),
            _ => rustix::process::kill_process(self.pid, signal),
        };
        matches!(sent, Ok(()) | Err(Errno::SRCH))
    }

    pub(crate) fn pid_number(&self) -> u32 {
        number(self.pid)
    }
}

/// What one pass has found.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) members: Vec<Member>,
    /// Somebody was between two programs, and may be one of them: to be asked again.
    pub(crate) undecided: bool,
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().cast_unsigned()
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

/// Runs at once unless the caller says how many: with 4 descriptors each, half of what this process may have.
pub(crate) fn default_concurrency() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let descriptors = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    (descriptors / 8).clamp(1, 64)
}
