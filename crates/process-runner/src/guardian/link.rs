//! The server's side: starts the guardian and reports the runs to it.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;

use super::message::{GUARDIAN_VARIABLE, GuardianMessage, PROCESS_NAME};
use super::program::GuardianProgram;
use crate::tree::{self, ProcessLeader, ProcessStamp, RunId, RunToken};
use crate::{reaper, starter};

/// The link from one runner to its guardian.
#[derive(Clone, Debug)]
pub(crate) struct GuardianLink(Arc<SharedLink>);

/// The state that the clones of a link and its runs share.
#[derive(Debug)]
struct SharedLink {
    guardian: GuardianProgram,
    state: Mutex<GuardianState>,
}

/// The running guardian and the live runs.
#[derive(Debug, Default)]
struct GuardianState {
    process: Option<GuardianProcess>,
    /// The live runs, of which a new guardian must learn.
    live: BTreeMap<u64, ReportedRun>,
}

/// The marker and the processes that were reported of a live run.
#[derive(Clone, Debug)]
struct ReportedRun {
    token: RunToken,
    session: Option<Pid>,
    adopted: Vec<ProcessStamp>,
}

impl ReportedRun {
    fn new(run: RunId) -> Self {
        Self { token: run.token, session: None, adopted: Vec::new() }
    }
}

/// The guardian's process and our end of the pipe to it. Dropping it kills the process.
#[derive(Debug)]
struct GuardianProcess {
    pipe: OwnedFd,
    leader: Arc<ProcessLeader>,
}

impl Drop for GuardianProcess {
    fn drop(&mut self) {
        reaper::abandon(Arc::clone(&self.leader));
    }
}

/// A run that the guardian supervises. Dropping it ends the supervision.
#[derive(Debug)]
pub(crate) struct SupervisedTree {
    link: Arc<SharedLink>,
    run: RunId,
}

impl GuardianLink {
    pub(crate) fn new(guardian: GuardianProgram) -> Self {
        Self(Arc::new(SharedLink { guardian, state: Mutex::default() }))
    }

    /// Announces a run that is about to start, and starts the guardian if there is none.
    ///
    /// # Errors
    /// If the guardian does not start or does not read.
    pub(crate) async fn watch(&self, run: RunId) -> io::Result<SupervisedTree> {
        let link = Arc::clone(&self.0);
        let announced = {
            let mut state = link.lock();
            state.live.insert(run.number, ReportedRun::new(run));
            state.send(GuardianMessage::Announced { run: run.number, token: run.token })
        };
        let supervised = SupervisedTree { link, run };
        if !announced {
            // Starting a process blocks, so it happens on a thread for that, which lasts as long as the process.
            let link = Arc::clone(&supervised.link);
            let started = starter::start_on_thread(&Arc::default(), move |_| link.ensure_process())?.await;
            started.ok_or_else(|| io::Error::other("the guardian's start panicked"))??;
        }
        Ok(supervised)
    }

    /// Announces a run as [`watch`](Self::watch) does, and blocks while the guardian starts. The guardian finds the run by
    /// its marker alone.
    #[cfg(target_os = "linux")]
    pub(crate) fn watch_blocking(&self, run: RunId) -> io::Result<SupervisedTree> {
        self.0.lock().live.insert(run.number, ReportedRun::new(run));
        let supervised = SupervisedTree { link: Arc::clone(&self.0), run };
        supervised.link.ensure_process()?;
        Ok(supervised)
    }

    /// Returns the process of the guardian.
    #[cfg(target_os = "linux")]
    pub(crate) fn pid(&self) -> Option<Pid> {
        self.0.lock().process.as_ref().map(|process| process.leader.pid())
    }

    /// Ends the guardian. It must be called only when no run is live.
    pub(crate) fn dismiss(&self) {
        self.0.lock().process = None;
    }
}

impl SupervisedTree {
    /// Reports that the run has started.
    pub(crate) fn started(&self, leader: &ProcessLeader) {
        let mut state = self.link.lock();
        state.live.entry(self.run.number).or_insert_with(|| ReportedRun::new(self.run)).session =
            Some(leader.pid());
        // If the guardian is gone, the next run starts another, which learns of this run then.
        state.send(GuardianMessage::Started { run: self.run.number, session: leader.pid() });
    }

    /// Reports an orphan of the run that nothing else shows.
    pub(crate) fn adopted(&self, process: ProcessStamp) {
        let mut state = self.link.lock();
        state.live.entry(self.run.number).or_insert_with(|| ReportedRun::new(self.run)).adopted.push(process);
        state.send(GuardianMessage::Adopted { run: self.run.number, process });
    }
}

impl Drop for SupervisedTree {
    fn drop(&mut self) {
        let mut state = self.link.lock();
        state.live.remove(&self.run.number);
        state.send(GuardianMessage::Ended { run: self.run.number });
    }
}

impl SharedLink {
    fn lock(&self) -> MutexGuard<'_, GuardianState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the guardian if there is none, and reports all live runs to it.
    fn ensure_process(&self) -> io::Result<()> {
        let mut state = self.lock();
        if state.process.is_some() {
            return Ok(()); // another run started it meanwhile and reported this one
        }
        state.process = Some(GuardianProcess::start(self.guardian.path())?);
        let mut all_sent = true;
        for (run, ReportedRun { token, session, adopted }) in state.live.clone() {
            all_sent &= state.send(GuardianMessage::Announced { run, token });
            if let Some(session) = session {
                all_sent &= state.send(GuardianMessage::Started { run, session });
            }
            for process in adopted {
                all_sent &= state.send(GuardianMessage::Adopted { run, process });
            }
        }
        if all_sent { Ok(()) } else { Err(io::Error::other("the guardian does not read its messages")) }
    }
}

impl GuardianState {
    /// Sends a message. Returns false if there is no guardian that takes it; one that does not is ended.
    // Each message is one write of less than `PIPE_BUF` bytes, which is atomic (pipe(7)).
    fn send(&mut self, message: GuardianMessage) -> bool {
        let Some(process) = &self.process else { return false };
        let line = message.to_string();
        let written = rustix::io::retry_on_intr(|| rustix::io::write(&process.pipe, line.as_bytes()));
        if written != Ok(line.len()) {
            self.process = None;
        }
        self.process.is_some()
    }
}

impl GuardianProcess {
    fn start(program: &Path) -> io::Result<Self> {
        let (reader, pipe) = tree::pipe_above_stdio()?;
        // A guardian that does not read must not block a run.
        rustix::io::ioctl_fionbio(&pipe, true)?;
        let environment = [(GUARDIAN_VARIABLE.to_owned(), "1".to_owned())];
        let leader = tree::launch_helper(program, &[PROCESS_NAME.into()], &environment, reader.as_fd())?;
        Ok(Self { pipe, leader })
    }
}
