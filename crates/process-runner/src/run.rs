//! Running commands: the [`Runner`] that bounds how many run at once, and the handle of one that runs.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

use crate::capture::{Capture, CaptureLimits, Snapshot};
use crate::command::Command;
use crate::driver::{Driver, Order, RunResult, Shared};
use crate::environment::Inherited;
use crate::error::{Error, SpawnErrorKind};
use crate::events::{EventQueue, Events};
use crate::guardian::{Guardian, GuardianLink, Ward};
use crate::limits::Limits;
use crate::outcome::{Containment, Output, StdinReport, Stream, Termination};
use crate::reaper;
use crate::secrets::Secrets;
use crate::start;
use crate::tree::{self, RunNumber};

/// Runs commands, a bounded number at once.
///
/// Cheap to clone; clones share the bound and the [shutdown](Runner::shutdown). Every method must be called
/// within a tokio runtime with its I/O and time drivers on; either kind will do, and different calls may come
/// from different runtimes. A run belongs to the runtime that started it: if that is shut down, the run ends.
#[derive(Clone, Debug)]
pub struct Runner {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    limits: Limits,
    secrets: Secrets,
    environment: Arc<Inherited>,
    places: Arc<Semaphore>,
    queue_timeout: Option<Duration>,
    guardian: Option<GuardianLink>,
    runs: Mutex<Runs>,
    /// How many there are, with those that are being started.
    live: AtomicUsize,
    none_live: Notify,
    /// Starts that were given up and go on.
    stuck: Arc<AtomicUsize>,
    shut_down: AtomicBool,
}

/// The live runs of a runner, by a number of its own.
type Runs = HashMap<u64, Arc<Shared>>;

impl Inner {
    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn all_ended(&self) {
        loop {
            let mut told = pin!(self.none_live.notified());
            // Listens before it looks, so that an end in between is heard.
            told.as_mut().enable();
            if self.live.load(Ordering::Acquire) == 0 {
                return;
            }
            told.await;
        }
    }
}

/// Makes a [`Runner`]: [`Runner::builder`].
#[derive(Debug, Default)]
pub struct RunnerBuilder {
    limits: Limits,
    secrets: Secrets,
    max_concurrent: Option<usize>,
    queue_timeout: Option<Duration>,
    guardian: Option<Guardian>,
    withheld: Vec<OsString>,
}

impl RunnerBuilder {
    /// Runs at once; the others wait in the order in which they came. By default 64, or fewer if that many
    /// could need more than half of the file descriptors of this process (4 each).
    #[must_use]
    pub fn max_concurrent(mut self, runs: usize) -> Self {
        self.max_concurrent = Some(runs);
        self
    }

    /// How long a run waits for a place at most. For ever by default.
    #[must_use]
    pub fn queue_timeout(mut self, timeout: Duration) -> Self {
        self.queue_timeout = Some(timeout);
        self
    }

    /// Limits of the runs that have none of their own.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Values to keep out of everything that leaves the runs that name none of their own.
    #[must_use]
    pub fn secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// Has a small process end what runs if this one is killed. None by default; see
    /// [`guardian`](crate::guardian).
    #[must_use]
    pub fn guardian(mut self, guardian: Guardian) -> Self {
        self.guardian = Some(guardian);
        self
    }

    /// Variables of this process that no run inherits, whatever its [`EnvPolicy`](crate::EnvPolicy): what is meant
    /// for the server alone. A command can still be given one of that name.
    #[must_use]
    pub fn withhold(mut self, variables: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.withheld.extend(variables.into_iter().map(Into::into));
        self
    }

    /// The runner.
    pub fn build(self) -> Runner {
        let places = self.max_concurrent.unwrap_or_else(tree::default_concurrency);
        Runner {
            inner: Arc::new(Inner {
                limits: self.limits,
                secrets: self.secrets,
                environment: Arc::new(Inherited::without(&self.withheld)),
                places: Arc::new(Semaphore::new(places.clamp(1, Semaphore::MAX_PERMITS))),
                queue_timeout: self.queue_timeout,
                guardian: self.guardian.map(GuardianLink::new),
                runs: Mutex::default(),
                live: AtomicUsize::new(0),
                none_live: Notify::new(),
                stuck: Arc::default(),
                shut_down: AtomicBool::new(false),
            }),
        }
    }
}

impl Default for Runner {
    fn default() -> Self {
        Self::builder().build()
    }
}

impl Runner {
    /// A runner with the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// A runner of one's own making.
    pub fn builder() -> RunnerBuilder {
        RunnerBuilder::default()
    }

    /// The one behind [`Command::run`].
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Runner> = OnceLock::new();
        SHARED.get_or_init(Self::default)
    }

    /// The names of the variables that commands inherit under [`EnvPolicy::Inherit`](crate::EnvPolicy::Inherit),
    /// for a caller that takes some of them away by a pattern.
    pub fn environment_names(&self) -> impl Iterator<Item = &OsStr> {
        self.inner.environment.names()
    }

    /// Commands that run now.
    pub fn running(&self) -> usize {
        self.inner.runs().len()
    }

    /// Starts that were given up ([`Error::SpawnTimedOut`], a cancel, a dropped future) and that the system has
    /// not answered yet, because the program's file system hangs. Each keeps a thread, and its place among the
    /// [`max_concurrent`](RunnerBuilder::max_concurrent), so that they cannot become ever more. Whatever starts
    /// late is killed at once.
    pub fn stuck_starts(&self) -> usize {
        self.inner.stuck.load(Ordering::Acquire)
    }

    /// Runs a command to its end. Dropping the future ends it and all it started.
    ///
    /// # Errors
    /// If it never started, or our own part failed; see [`Error`]. Whatever the program did is an [`Output`].
    pub async fn run(&self, command: Command) -> Result<Output, Error> {
        self.start(command).await?.into_output().await
    }

    /// Starts a command, once there is a place for it, and gives its handle.
    ///
    /// A command that was cancelled before, or whose timeout is 0, does not start: the handle has its output
    /// at once.
    ///
    /// # Errors
    /// If it does not start; see [`Error`].
    pub async fn start(&self, command: Command) -> Result<Running, Error> {
        command.check_input()?;
        let command = Arc::new(command);
        let limits = command.limits.clone().unwrap_or_else(|| self.inner.limits.clone());
        let asked = Instant::now();
        if self.inner.shut_down.load(Ordering::Acquire) {
            return Err(Error::ShutDown);
        }
        if limits.timeout == Some(Duration::ZERO) {
            let termination = Termination::TimedOut { after: Duration::ZERO, escalated: false };
            return Ok(self.never_started(&command, termination, asked));
        }
        let cancelled = Termination::Cancelled { escalated: false };
        let place = tokio::select! {
            biased;
            () = command.cancel.cancelled() => return Ok(self.never_started(&command, cancelled, asked)),
            place = self.wait_for_place(&command) => place?,
        };
        let queued = asked.elapsed();
        let registered = Registered::new(&self.inner);

        reaper::ensure().map_err(|error| command.error(spawn_kind(&error), Some(error)))?;
        let run = RunNumber::next();
        let ward = match &self.inner.guardian {
            Some(guardian) => Some(
                guardian.watch(run).await.map_err(|error| command.error(spawn_kind(&error), Some(error)))?,
            ),
            None => None,
        };
        let (ends, ours) = tree::open_pipes(&command)?;
        // The place and the ward go with the start, and so stay taken if it hangs.
        let work = {
            let (command, busy_retry) = (Arc::clone(&command), limits.busy_retry);
            let inherited = Arc::clone(&self.inner.environment);
            move |given_up: &(dyn Fn() -> bool + Sync)| {
                let started = tree::launch(&command, &inherited, busy_retry, run, ends, given_up);
                // Dropping it ends what has started.
                (started.map(|started| StartGuard(Some(started))), place, ward)
            }
        };
        let start = start::on_thread(&self.inner.stuck, work)
            .map_err(|error| command.error(spawn_kind(&error), Some(error)))?;
        // The timeout counts from the start. A short one must not make an error of a start on a busy machine.
        let patience = limits.timeout.map(|timeout| timeout.max(SHORTEST_SPAWN_PATIENCE));
        let started = tokio::select! {
            biased;
            started = start => started,
            () = command.cancel.cancelled() => return Ok(self.never_started(&command, cancelled, asked)),
            () = sleep(patience) => {
                let program = command.program.to_string_lossy().into_owned();
                return Err(Error::SpawnTimedOut { program, after: patience.unwrap_or_default() });
            }
        };
        let lost = || command.error(SpawnErrorKind::Other, None);
        let (started, place, ward) = started.ok_or_else(lost)?;
        let started = started?.take().ok_or_else(lost)?;
        if let Some(ward) = &ward {
            ward.started(&started.leader);
        }
        let launched = tree::connect(&command, started, ours)?;
        Ok(self.follow(launched, &command, limits, queued, ward, (place, registered)))
    }

    async fn wait_for_place(&self, command: &Command) -> Result<OwnedSemaphorePermit, Error> {
        let place = Arc::clone(&self.inner.places).acquire_owned();
        tokio::select! {
            biased;
            place = place => place.map_err(|_| Error::ShutDown),
            () = sleep(self.inner.queue_timeout) => Err(Error::QueueTimedOut {
                label: command.label_text(),
                after: self.inner.queue_timeout.unwrap_or_default(),
            }),
        }
    }

    fn follow(
        &self,
        launched: tree::Launched,
        command: &Command,
        limits: Limits,
        queued: Duration,
        ward: Option<Ward>,
        (place, registered): (OwnedSemaphorePermit, Registered),
    ) -> Running {
        let (queue, events) = command.events.map(EventQueue::new).unzip();
        let secrets = command.secrets.as_ref().unwrap_or(&self.inner.secrets);
        let id = registered.id;
        let place = Box::new((place, registered));
        let driver = Driver::new(launched, command, limits, secrets, queued, queue, ward, place);
        let shared = Arc::clone(driver.shared());
        self.inner.runs().insert(id, Arc::clone(&shared));
        if self.inner.shut_down.load(Ordering::Acquire) {
            // Started while the others were told to end.
            shared.order(Order::Kill);
        }
        let task = tokio::spawn(driver.run()).abort_handle();
        Running { run: Run::Started { shared, task }, events }
    }

    fn never_started(&self, command: &Command, termination: Termination, asked: Instant) -> Running {
        let nothing = || Capture::new(&CaptureLimits::new(0), &Secrets::default()).finish(true);
        let output = Output {
            label: command.label_text(),
            termination,
            status: None,
            pid: None,
            stdout: nothing(),
            stderr: nothing(),
            stdin: StdinReport::default(),
            elapsed: Duration::ZERO,
            to_exit: None,
            queued: asked.elapsed(),
            usage: None,
            leftovers: Vec::new(),
            containment: if command.marker { Containment::SessionAndMarker } else { Containment::Session },
            confinement: None,
        };
        let events = command.events.map(|options| {
            let (queue, events) = EventQueue::new(options);
            queue.send(crate::Event::Finished);
            events
        });
        Running { run: Run::Never(Box::new(output)), events }
    }

    /// Ends all runs of this runner and its clones: `SIGTERM`, `grace`, `SIGKILL`. Those that wait for a
    /// place, and all later ones, get [`Error::ShutDown`]. Returns when all have ended, or 3 s after the grace
    /// time: then those whose runtime does not turn have been killed, and are left to the background thread.
    pub async fn shutdown(&self, grace: Duration) {
        self.inner.shut_down.store(true, Ordering::Release);
        self.inner.places.close();
        for run in self.inner.runs().values() {
            run.order(Order::Terminate(Some(grace)));
        }
        let patience = grace.saturating_add(SHUTDOWN_PATIENCE);
        if tokio::time::timeout(patience, self.inner.all_ended()).await.is_err() {
            for run in self.inner.runs().values() {
                reaper::abandon(Arc::clone(&run.leader));
            }
        }
        if let Some(guardian) = &self.inner.guardian {
            guardian.dismiss();
        }
    }
}

/// How long after the grace time a shutdown waits.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(3);
/// How long the system may take to start a program, should the timeout be shorter.
const SHORTEST_SPAWN_PATIENCE: Duration = Duration::from_secs(1);

fn spawn_kind(error: &io::Error) -> SpawnErrorKind {
    tree::exhausted(error).map_or(SpawnErrorKind::Other, |which| SpawnErrorKind::ResourceLimit { which })
}

async fn sleep(duration: Option<Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}

/// What was started on a thread. It ends unless it is taken over.
struct StartGuard(Option<tree::Started>);

impl StartGuard {
    fn take(mut self) -> Option<tree::Started> {
        self.0.take()
    }
}

impl Drop for StartGuard {
    fn drop(&mut self) {
        if let Some(started) = self.0.take() {
            reaper::abandon(started.leader);
        }
    }
}

/// A run's entry in its runner, for as long as its driver lives.
struct Registered {
    inner: Arc<Inner>,
    id: u64,
}

impl Registered {
    fn new(inner: &Arc<Inner>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        inner.live.fetch_add(1, Ordering::AcqRel);
        Self { inner: Arc::clone(inner), id: NEXT.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.inner.runs().remove(&self.id);
        if self.inner.live.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.inner.none_live.notify_waiters();
        }
    }
}

/// A command that was started.
///
/// Dropping it ends the program and all it started, at once and without waiting: a background thread kills
/// and reaps them. It keeps its [`Runner`] alive.
#[derive(Debug)]
pub struct Running {
    run: Run,
    events: Option<Events>,
}

#[derive(Debug)]
enum Run {
    Started {
        shared: Arc<Shared>,
        task: AbortHandle,
    },
    /// It was cancelled before it could start.
    Never(Box<Output>),
}

impl Running {
    /// The program's process id, if it was started. It stays the program's until the run is over.
    pub fn pid(&self) -> Option<u32> {
        match &self.run {
            Run::Started { shared, .. } => Some(shared.leader.pid_number()),
            Run::Never(_) => None,
        }
    }

    /// The time since its start, from which its time limit counts; it goes on after the end. Zero, if it never started.
    pub fn elapsed(&self) -> Duration {
        match &self.run {
            Run::Started { shared, .. } => shared.started.elapsed(),
            Run::Never(_) => Duration::ZERO,
        }
    }

    /// The outcome is there.
    pub fn is_finished(&self) -> bool {
        match &self.run {
            Run::Started { shared, .. } => shared.is_finished(),
            Run::Never(_) => true,
        }
    }

    /// Takes the receiver of the events that [`Command::events`] asked for. `None` if it did not, or if it
    /// was taken before.
    pub fn events(&mut self) -> Option<Events> {
        self.events.take()
    }

    /// What one stream has had from position `cursor` on, at most `max_bytes`. Begin with 0 and go on with
    /// the snapshot's `next_cursor`. Works after the end too, so that nothing of a short run is missed.
    pub fn snapshot(&self, stream: Stream, cursor: u64, max_bytes: usize) -> Snapshot {
        match &self.run {
            Run::Started { shared, .. } => shared.snapshot(stream, cursor, max_bytes),
            Run::Never(_) => Snapshot::default(),
        }
    }

    /// Writes to the standard input of a command with [`Stdin::Piped`](crate::Stdin::Piped); waits while its pipe is full. If the
    /// future is dropped, part of `bytes` may have been written.
    ///
    /// # Errors
    /// `BrokenPipe` if the program has ended or closed its end, or this side was closed before.
    pub async fn write_stdin(&self, bytes: &[u8]) -> io::Result<()> {
        let Run::Started { shared, .. } = &self.run else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let write = async {
            let mut stdin = shared.stdin.lock().await;
            let pipe = stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            let mut rest = bytes;
            while !rest.is_empty() {
                let written = pipe.write(rest).await?;
                shared.stdin_written.fetch_add(written as u64, Ordering::Relaxed);
                rest = &rest[written..];
            }
            Ok(())
        };
        tokio::select! {
            biased;
            written = write => written,
            // Something else that was left over may hold the other end.
            () = shared.finished() => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Closes the standard input of a command with [`Stdin::Piped`](crate::Stdin::Piped), once what is being written is. Nothing
    /// if it is closed.
    pub async fn close_stdin(&self) {
        if let Run::Started { shared, .. } = &self.run {
            shared.stdin.lock().await.take();
        }
    }

    /// Sends a signal, such as `2` for `SIGINT`, to the program and all in its process group.
    ///
    /// # Errors
    /// `InvalidInput` for what is not a named signal of this system; `Unsupported` on Windows.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        match &self.run {
            Run::Started { shared, .. } => shared.leader.signal(signal),
            Run::Never(_) => Ok(()),
        }
    }

    /// Ends the run: `SIGTERM`, the grace time of its limits, `SIGKILL`. Its outcome is `Cancelled`. Nothing
    /// if it is ending already.
    pub fn terminate(&self) {
        self.order(Order::Terminate(None));
    }

    /// The same with a grace time of its own.
    pub fn terminate_within(&self, grace: Duration) {
        self.order(Order::Terminate(Some(grace)));
    }

    /// Ends the run now, also if it is being ended politely.
    pub fn kill(&self) {
        self.order(Order::Kill);
    }

    fn order(&self, order: Order) {
        if let Run::Started { shared, .. } = &self.run {
            shared.order(order);
        }
    }

    /// The outcome, if it is there: for those who look at a run without waiting for it.
    pub fn output(&self) -> Option<Arc<Output>> {
        match &self.run {
            Run::Started { shared, .. } => shared.result().map(|result| result.output),
            Run::Never(output) => Some(Arc::new((**output).clone())),
        }
    }

    /// Waits until the outcome is there, and leaves an open standard input open.
    pub async fn finished(&self) {
        if let Run::Started { shared, .. } = &self.run {
            shared.finished().await;
        }
    }

    /// Waits for the end. Loses nothing if it is dropped, and may be called again, also after the end. An
    /// open standard input is closed first: the program may be waiting for its end.
    ///
    /// # Errors
    /// [`Error::Io`] if our own part failed.
    ///
    /// # Panics
    /// If a line callback did; once.
    pub async fn wait(&mut self) -> Result<Output, Error> {
        self.finish().await;
        match &self.run {
            Run::Never(output) => Ok((**output).clone()),
            Run::Started { shared, .. } => answer(shared, shared.result()),
        }
    }

    /// The same without a copy.
    async fn into_output(mut self) -> Result<Output, Error> {
        self.finish().await;
        match &mut self.run {
            Run::Never(output) => Ok((**output).clone()),
            Run::Started { shared, .. } => answer(shared, shared.take_result()),
        }
    }

    async fn finish(&self) {
        self.close_stdin().await;
        self.finished().await;
    }
}

fn answer(shared: &Shared, result: Option<RunResult>) -> Result<Output, Error> {
    if let Some(panic) = shared.take_panic() {
        std::panic::resume_unwind(panic);
    }
    let Some(RunResult { output, broken }) = result else {
        return Err(Error::ShutDown); // the driver always leaves one
    };
    let output = Arc::unwrap_or_clone(output);
    match broken {
        None => Ok(output),
        Some(broken) => Err(Error::Io {
            stage: broken.stage,
            partial: Box::new(output),
            source: io::Error::new(broken.source.kind(), broken.source),
        }),
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Run::Started { shared, task } = &self.run
            && !shared.is_finished()
        {
            // Not left to the task: its runtime may never turn again.
            shared.abandoned.store(true, Ordering::Release);
            reaper::abandon(Arc::clone(&shared.leader));
            task.abort();
        }
    }
}
