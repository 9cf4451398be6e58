//! The guardian's side: waits for the end of the server, and kills its runs.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

use super::message::{GUARDIAN_VARIABLE, GuardianMessage, PROCESS_NAME};
use crate::tree::{self, ProcessScan, ProcessStamp, RunToken, ScanQuery};

/// The time for which messages are collected. They come in bursts, and reading them together costs one wakeup.
const BATCH_INTERVAL: Duration = Duration::from_millis(10);
/// The passes in a row that must find nothing. One pass can miss a process that is forked meanwhile, and many in a row one
/// that forks all the time.
const EMPTY_PASSES_NEEDED: u32 = 3;
const EMPTY_PASSES_OF_FORKING: u32 = 50;
/// The passes with something alive after which it is something that forks all the time.
const PASSES_OF_FORKING: u32 = 3;
/// The pause between two passes.
const PASS_INTERVAL: Duration = Duration::from_millis(1);
/// The time after which the guardian gives up on what cannot be killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(30);

/// Becomes the guardian if this process was started as one, and then does not return. In any other process it does
/// nothing.
///
/// Call it at the very start of `main`, before threads and runtimes.
#[allow(clippy::disallowed_methods, reason = "the environment says that this is a guardian")]
pub fn run_if_requested() {
    let named = std::env::args_os().next().is_some_and(|name| name == PROCESS_NAME);
    if !named || std::env::var_os(GUARDIAN_VARIABLE).is_none() {
        return;
    }
    // Only a pipe can be the server's. A person who types this by hand gets the usual program.
    if io::stdin().is_terminal() {
        return;
    }
    // The signals that end a server reach its guardian too, by the terminal or a service manager. It has work to do
    // then.
    tree::ignore_termination_signals();
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_name(c"runner-guardian");
    let runs = wait_for_server_end();
    kill_all(&runs);
    // Not a return: `main` would go on as a second server.
    std::process::exit(0);
}

/// The runs that the server has reported.
#[derive(Default)]
struct ReportedRuns {
    live: BTreeMap<u64, AnnouncedRun>,
    /// The orphans of live runs that nothing else shows.
    adopted: BTreeMap<ProcessStamp, u64>,
}

/// A live run, which is announced before it starts.
struct AnnouncedRun {
    token: RunToken,
    /// Its session, once it has started.
    session: Option<Pid>,
}

impl ReportedRuns {
    fn apply(&mut self, message: GuardianMessage) {
        match message {
            GuardianMessage::Announced { run, token } => {
                self.live.insert(run, AnnouncedRun { token, session: None });
            }
            GuardianMessage::Started { run, session } => {
                if let Some(reported) = self.live.get_mut(&run) {
                    reported.session = Some(session);
                }
            }
            GuardianMessage::Adopted { run, process } => {
                self.adopted.insert(process, run);
            }
            GuardianMessage::Ended { run } => {
                self.live.remove(&run);
                self.adopted.retain(|_, of| *of != run);
            }
        }
    }
}

/// Reads messages until the server has ended.
fn wait_for_server_end() -> ReportedRuns {
    let stdin = io::stdin();
    let parent = WatchedServer::new();
    let mut runs = ReportedRuns::default();
    let mut pending = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if parent.ended_first(stdin.as_fd()) {
            return runs;
        }
        match rustix::io::read(&stdin, &mut buffer) {
            Ok(0) => return runs,
            Ok(length) => pending.extend_from_slice(&buffer[..length]),
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(_) => return runs,
        }
        while let Some(end) = memchr::memchr(b'\n', &pending) {
            let line = std::str::from_utf8(&pending[..end]).ok();
            if let Some(message) = line.and_then(GuardianMessage::parse) {
                runs.apply(message);
            }
            pending.drain(..=end);
        }
        std::thread::sleep(BATCH_INTERVAL);
    }
}

/// The server's process. It is watched beside the pipe, which something else may hold open: a fork of the server that
/// never calls `execve(2)`.
struct WatchedServer {
    #[cfg(target_os = "linux")]
    pidfd: Option<OwnedFd>,
}

impl WatchedServer {
    #[cfg(target_os = "linux")]
    fn new() -> Self {
        use rustix::process::{PidfdFlags, getppid, pidfd_open};
        let parent = getppid();
        let pidfd = parent.and_then(|parent| pidfd_open(parent, PidfdFlags::empty()).ok());
        // If the server died in between, the pid may be another's by now. The pipe ends then, which is enough.
        Self { pidfd: pidfd.filter(|_| getppid() == parent) }
    }

    #[cfg(not(target_os = "linux"))]
    fn new() -> Self {
        Self {}
    }

    /// Waits for a message. Returns true if there is none and the server has ended.
    fn ended_first(&self, pipe: BorrowedFd<'_>) -> bool {
        let mut watched = vec![PollFd::from_borrowed_fd(pipe, PollFlags::IN)];
        #[cfg(target_os = "linux")]
        watched.extend(self.pidfd.as_ref().map(|pidfd| PollFd::new(pidfd, PollFlags::IN)));
        match poll(&mut watched, None) {
            Ok(_) => watched[0].revents().is_empty() && watched.len() > 1 && !watched[1].revents().is_empty(),
            Err(_) => false,
        }
    }
}

/// Kills everything that belongs to the runs, until several passes find nothing.
fn kill_all(runs: &ReportedRuns) {
    let started_at = Instant::now();
    let (mut empty_passes, mut passes_with_members) = (0, 0);
    let mut needed = EMPTY_PASSES_NEEDED;
    while empty_passes < needed && started_at.elapsed() < KILL_TIMEOUT {
        for session in runs.live.values().filter_map(|run| run.session) {
            // The server reports the end of a run before it reaps the leader, so the number is still the leader's.
            let _ = kill_process_group(session, Signal::KILL);
        }
        let query = ScanQuery {
            started_since: 0,
            by_session: &|session| runs.live.values().any(|run| run.session == Some(session)).then_some(0),
            by_adoption: &|pid, start_ticks| {
                let process = ProcessStamp { pid: pid.as_raw_nonzero().get(), start_ticks };
                runs.adopted.contains_key(&process).then_some(0)
            },
            adopters: &[],
            by_marker: &|token, _| runs.live.values().any(|run| run.token == token).then_some(0),
        };
        let ProcessScan { members, undecided, .. } = tree::scan(&query);
        for member in &members {
            member.signal(Signal::KILL);
        }
        empty_passes = if members.is_empty() && !undecided { empty_passes + 1 } else { 0 };
        passes_with_members += u32::from(!members.is_empty());
        if passes_with_members > PASSES_OF_FORKING {
            // At once, to be there before it forks again.
            needed = EMPTY_PASSES_OF_FORKING;
        } else {
            std::thread::sleep(PASS_INTERVAL);
        }
    }
}
