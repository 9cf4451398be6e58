//! What ends the runs when this process cannot: after a `SIGKILL`, a crash, the kernel out of memory.
//!
//! A runner ends what it has started whenever it has the chance: at a timeout, when a future is dropped, at
//! [`Runner::shutdown`](crate::Runner::shutdown). Killed itself, it has none, and Linux has nothing that does
//! it safely: the parent-death signal belongs to the *thread* that started the child, and a runtime's
//! threads come and go. So a program may opt in to one more process, the guardian, which holds the other end
//! of a pipe. When that closes and runs were still live, it kills them.
//!
//! ```no_run
//! # use process_runner::{Runner, guardian::{self, Guardian}};
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     guardian::run_if_requested(); // before anything else: it does not return in the guardian
//!     let runner = Runner::builder().guardian(Guardian::current_exe()?).build();
//!     // ...
//!     # drop(runner);
//!     Ok(())
//! }
//! ```
//!
//! # What holds
//!
//! - With a guardian: when this process dies in any way, every program of a live run is killed within about
//!   100 ms, with all that is in its session or carries its marker; on macOS, all in its process group. What
//!   a *finished* run has left alone (a gpg-agent, say) stays alone.
//! - One process for each [`Runner`](crate::Runner), not for each run. It is started before the first run
//!   (a run does not start without it), in a session of its own with `/dev/null` for its output, keeps none
//!   of our descriptors, and ignores `SIGTERM`, `SIGINT`, `SIGHUP` and `SIGQUIT`. It ends with the runner.
//! - Not if the guardian is killed first, which whoever kills by name or by cgroup may do; killing by cgroup
//!   (a container that stops, a systemd unit) ends the programs too.
//! - Without a guardian: the programs of live runs outlive a `SIGKILL` of this process; they get `SIGPIPE`
//!   when they next write.
//! - On Windows a job object does all this without help, and a guardian is not started.

use std::io;
use std::path::PathBuf;

/// The program that is started as the guardian.
#[derive(Clone, Debug)]
pub struct Guardian {
    program: PathBuf,
}

impl Guardian {
    /// This program itself, whose `main` must call [`run_if_requested`] first of all.
    ///
    /// # Errors
    /// If the system does not say which file this program is.
    pub fn current_exe() -> io::Result<Self> {
        if cfg!(target_os = "linux") {
            // The same file even if another has taken its name since, as after an update.
            return Ok(Self { program: "/proc/self/exe".into() });
        }
        std::env::current_exe().map(Self::program)
    }

    /// Another program whose `main` calls [`run_if_requested`]: a small one starts faster and needs less
    /// memory.
    pub fn program(path: impl Into<PathBuf>) -> Self {
        Self { program: path.into() }
    }
}

#[cfg(not(unix))]
pub use elsewhere::run_if_requested;
#[cfg(not(unix))]
pub(crate) use elsewhere::{GuardianLink, Ward};
#[cfg(unix)]
pub use unix::run_if_requested;
#[cfg(unix)]
pub(crate) use unix::{GuardianLink, Ward};

#[cfg(unix)]
mod unix {
    use std::collections::BTreeMap;
    use std::io::{self, IsTerminal};
    use std::os::fd::{AsFd, OwnedFd};
    use std::path::Path;
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
    use std::time::{Duration, Instant};

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::Errno;
    use rustix::process::{Pid, Signal, kill_process_group};

    use super::Guardian;
    use crate::reaper;
    use crate::tree::{self, Leader, RunNumber, Scan, Search};

    /// What the guardian is called, so that it is recognised among processes, and recognises itself.
    const NAME: &str = "process-runner-guardian";
    /// Tells it the prefix of the markers.
    const VARIABLE: &str = "PROCESS_RUNNER_GUARDIAN";
    /// Messages come in bursts; read together they cost it one waking.
    const BATCH: Duration = Duration::from_millis(10);
    /// Passes in a row that must find nothing, and the time between two.
    const QUIET_PASSES: u32 = 3;
    const PAUSE: Duration = Duration::from_millis(5);
    /// How long it kills before it gives up on what cannot be killed.
    const PATIENCE: Duration = Duration::from_secs(10);

    /// Our end of the pipe to the guardian of one runner.
    ///
    /// Messages are lines: `+RUN` before a start, `=RUN SESSION` after it, `-RUN` at its end. Each is written
    /// at once, and a write of less than `PIPE_BUF` bytes is atomic (pipe(7)).
    #[derive(Clone, Debug)]
    pub(crate) struct GuardianLink(Arc<Link>);

    #[derive(Debug)]
    struct Link {
        guardian: Guardian,
        state: Mutex<State>,
    }

    #[derive(Debug, Default)]
    struct State {
        process: Option<Process>,
        /// What a new guardian must be told.
        live: BTreeMap<u64, Option<Pid>>,
    }

    #[derive(Debug)]
    struct Process {
        pipe: OwnedFd,
        leader: Arc<Leader>,
    }

    impl Drop for Process {
        fn drop(&mut self) {
            reaper::abandon(Arc::clone(&self.leader));
        }
    }

    /// One run in the guardian's care, until it is dropped.
    #[derive(Debug)]
    pub(crate) struct Ward {
        link: Arc<Link>,
        run: RunNumber,
    }

    impl GuardianLink {
        pub(crate) fn new(guardian: Guardian) -> Self {
            Self(Arc::new(Link { guardian, state: Mutex::default() }))
        }

        /// Announces a run that is about to start, and starts the guardian if there is none.
        pub(crate) async fn watch(&self, run: RunNumber) -> io::Result<Ward> {
            let link = Arc::clone(&self.0);
            let announced = {
                let mut state = link.lock();
                state.live.insert(run.0, None);
                state.tell(&format!("+{}\n", run.0))
            };
            let ward = Ward { link, run };
            if !announced {
                let link = Arc::clone(&ward.link);
                let started = tokio::task::spawn_blocking(move || link.ensure_process()).await;
                started.map_err(io::Error::other)??;
            }
            Ok(ward)
        }

        /// Ends the guardian: nothing runs any more.
        pub(crate) fn dismiss(&self) {
            self.0.lock().process = None;
        }
    }

    impl Ward {
        pub(crate) fn started(&self, leader: &Leader) {
            let mut state = self.link.lock();
            state.live.insert(self.run.0, Some(leader.pid()));
            // If it is gone, the next run starts another and tells it all.
            state.tell(&format!("={} {}\n", self.run.0, leader.pid_number()));
        }
    }

    impl Drop for Ward {
        fn drop(&mut self) {
            let mut state = self.link.lock();
            state.live.remove(&self.run.0);
            state.tell(&format!("-{}\n", self.run.0));
        }
    }

    impl Link {
        fn lock(&self) -> MutexGuard<'_, State> {
            self.state.lock().unwrap_or_else(PoisonError::into_inner)
        }

        fn ensure_process(&self) -> io::Result<()> {
            let mut state = self.lock();
            if state.process.is_some() {
                return Ok(()); // another run was first; it has told of this one
            }
            state.process = Some(Process::start(&self.guardian.program)?);
            let mut told = true;
            for (run, session) in state.live.clone() {
                told &= state.tell(&format!("+{run}\n"));
                if let Some(session) = session {
                    told &= state.tell(&format!("={run} {}\n", session.as_raw_nonzero()));
                }
            }
            if told { Ok(()) } else { Err(io::Error::other("the guardian does not take messages")) }
        }
    }

    impl State {
        /// False if there is no guardian that takes the message; one that does not is given up.
        fn tell(&mut self, message: &str) -> bool {
            let Some(process) = &self.process else { return false };
            let told = rustix::io::retry_on_intr(|| rustix::io::write(&process.pipe, message.as_bytes()));
            if told != Ok(message.len()) {
                self.process = None;
            }
            self.process.is_some()
        }
    }

    impl Process {
        fn start(program: &Path) -> io::Result<Self> {
            let (reader, pipe) = tree::pipe_ends()?;
            rustix::io::ioctl_fionbio(&pipe, true)?;
            let environment = [(VARIABLE.to_owned(), tree::marker_prefix().to_owned())];
            let leader = tree::launch_helper(program, &[NAME.into()], &environment, reader.as_fd())?;
            Ok(Self { pipe, leader })
        }
    }

    /// Becomes the guardian if this process was started to be one, and then does not return.
    ///
    /// To be called at the very start of `main`, before threads and runtimes. In any other process it does
    /// nothing.
    #[allow(clippy::disallowed_methods, reason = "the one message that comes by the environment is for this")]
    pub fn run_if_requested() {
        let named = std::env::args_os().next().is_some_and(|name| name == NAME);
        let Some(prefix) = std::env::var(VARIABLE).ok().filter(|_| named) else { return };
        // A person who types this by hand gets the usual program.
        if io::stdin().is_terminal() {
            return;
        }
        tree::ignore_polite_signals();
        #[cfg(target_os = "linux")]
        let _ = rustix::thread::set_name(c"runner-guardian");
        let live = watch_until_end();
        kill_all(&prefix, &live);
        std::process::exit(0);
    }

    /// What the server has told when it ended.
    #[derive(Default)]
    struct Told {
        live: BTreeMap<u64, Option<Pid>>,
        /// Runs with a higher number were about to be announced.
        highest: u64,
    }

    impl Told {
        fn hear(&mut self, message: &str) {
            let number = |text: &str| text.parse().ok();
            match message.split_at_checked(1) {
                Some(("+", run)) => {
                    if let Some(run) = number(run) {
                        self.highest = self.highest.max(run);
                        self.live.entry(run).or_default();
                    }
                }
                Some(("=", rest)) => {
                    if let Some((run, session)) = rest.split_once(' ')
                        && let Some(run) = number(run)
                    {
                        self.live.insert(run, session.parse().ok().and_then(Pid::from_raw));
                    }
                }
                Some(("-", run)) => {
                    if let Some(run) = number(run) {
                        self.live.remove(&run);
                    }
                }
                _ => {}
            }
        }
    }

    fn watch_until_end() -> Told {
        let stdin = io::stdin();
        let parent = Parent::new();
        let mut told = Told::default();
        let mut pending = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            if parent.ended_first(stdin.as_fd()) {
                return told;
            }
            match rustix::io::read(&stdin, &mut buffer) {
                Ok(0) => return told,
                Ok(length) => pending.extend_from_slice(&buffer[..length]),
                Err(Errno::INTR | Errno::AGAIN) => continue,
                Err(_) => return told,
            }
            while let Some(end) = memchr::memchr(b'\n', &pending) {
                if let Ok(message) = std::str::from_utf8(&pending[..end]) {
                    told.hear(message);
                }
                pending.drain(..=end);
            }
            std::thread::sleep(BATCH);
        }
    }

    /// The server itself, should something else hold the pipe open (a fork of it that never execs).
    struct Parent {
        #[cfg(target_os = "linux")]
        pidfd: Option<OwnedFd>,
    }

    impl Parent {
        #[cfg(target_os = "linux")]
        fn new() -> Self {
            use rustix::process::{PidfdFlags, getppid, pidfd_open};
            let parent = getppid();
            let pidfd = parent.and_then(|parent| pidfd_open(parent, PidfdFlags::empty()).ok());
            // If it died in between, the pid may be another's by now, and the pipe tells.
            Self { pidfd: pidfd.filter(|_| getppid() == parent) }
        }

        #[cfg(not(target_os = "linux"))]
        fn new() -> Self {
            Self {}
        }

        /// Waits for a message. True if there is none and the server has ended.
        fn ended_first(&self, pipe: std::os::fd::BorrowedFd<'_>) -> bool {
            let mut watched = vec![PollFd::from_borrowed_fd(pipe, PollFlags::IN)];
            #[cfg(target_os = "linux")]
            watched.extend(self.pidfd.as_ref().map(|pidfd| PollFd::new(pidfd, PollFlags::IN)));
            match poll(&mut watched, None) {
                Ok(_) => {
                    watched[0].revents().is_empty() && watched.len() > 1 && !watched[1].revents().is_empty()
                }
                Err(_) => false,
            }
        }
    }

    fn kill_all(prefix: &str, told: &Told) {
        let begun = Instant::now();
        let mut quiet = 0;
        while quiet < QUIET_PASSES && begun.elapsed() < PATIENCE {
            for session in told.live.values().flatten() {
                // The leader is the server's child until the server has said `-`, so the number is still its.
                let _ = kill_process_group(*session, Signal::KILL);
            }
            let search = Search {
                since: 0,
                by_session: &|session| told.live.values().any(|live| *live == Some(session)).then_some(0),
                prefix,
                by_marker: &|run| (told.live.contains_key(&run) || run > told.highest).then_some(0),
            };
            let Scan { members, undecided } = tree::scan(&search);
            for member in &members {
                member.signal(Signal::KILL);
            }
            quiet = if members.is_empty() && !undecided { quiet + 1 } else { 0 };
            std::thread::sleep(PAUSE);
        }
    }
}

#[cfg(not(unix))]
mod elsewhere {
    use std::io;

    use super::Guardian;
    use crate::tree::{Leader, RunNumber};

    /// Job objects need no guardian.
    #[derive(Clone, Debug)]
    pub(crate) struct GuardianLink;

    #[derive(Debug)]
    pub(crate) struct Ward;

    impl GuardianLink {
        pub(crate) fn new(guardian: Guardian) -> Self {
            drop(guardian.program);
            Self
        }

        pub(crate) async fn watch(&self, _run: RunNumber) -> io::Result<Ward> {
            Ok(Ward)
        }

        pub(crate) fn dismiss(&self) {}
    }

    impl Ward {
        pub(crate) fn started(&self, _leader: &Leader) {}
    }

    /// Does nothing on this system.
    pub fn run_if_requested() {}
}
