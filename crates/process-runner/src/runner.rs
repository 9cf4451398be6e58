//! Starts commands, a bounded number at once.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::capture::{CaptureLimits, OutputCapture};
use crate::command::Command;
use crate::driver::{RunDriver, RunState, StopRequest};
use crate::environment::InheritedEnv;
use crate::error::{Error, SpawnError, SpawnErrorKind};
use crate::events::EventQueue;
use crate::guardian::{GuardianLink, GuardianProgram, SupervisedTree};
use crate::leftover::{self, LeftoverRegistry, LeftoverTree};
use crate::limits::Limits;
use crate::outcome::{Containment, Output, StdinReport, Termination};
use crate::program_usage::{self, EndedRuns, ProgramUsage, UsageAccount};
use crate::reaper;
use crate::running::Running;
use crate::secrets::SecretValues;
use crate::starter;
use crate::tree::{self, LeaderHold, ProcessLeader, ProcessStamp, RunId};

/// Runs commands, a bounded number at once.
///
/// A runner is cheap to clone. Clones share the bound and the [shutdown](Runner::shutdown). Every method must be called
/// within a tokio runtime of either kind, with its I/O and time drivers enabled; different calls may come from
/// different runtimes. A run belongs to the runtime that started it. If the runtime is shut down, the run ends.
#[derive(Clone, Debug)]
pub struct Runner {
    inner: Arc<RunnerState>,
}

/// The state that the clones of a [`Runner`] share.
#[derive(Debug)]
struct RunnerState {
    limits: Limits,
    secrets: SecretValues,
    environment: Arc<InheritedEnv>,
    /// One permit for each run that may go on at once.
    permits: Arc<Semaphore>,
    queue_timeout: Option<Duration>,
    guardian: Option<GuardianLink>,
    leftovers: Arc<LeftoverRegistry>,
    runs: Mutex<LiveRuns>,
    ended_runs: EndedRuns,
    /// The number of [`LiveRun`]s.
    live: AtomicUsize,
    /// Notified when `live` falls to 0.
    all_ended: Notify,
    /// The number of abandoned starts that still go on.
    stuck: Arc<AtomicUsize>,
    shut_down: AtomicBool,
}

/// The live runs of a runner, by their registration number.
type LiveRuns = HashMap<u64, RegisteredRun>;

/// A live run, and for whom it goes on.
#[derive(Debug)]
struct RegisteredRun {
    state: Arc<RunState>,
    account: UsageAccount,
}

impl RunnerState {
    fn runs(&self) -> MutexGuard<'_, LiveRuns> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no run is live, and no process of one that was given up.
    async fn wait_until_idle(&self) {
        loop {
            let mut notified = pin!(self.all_ended.notified());
            // Registered before the counter is read, so that an end in between is not missed.
            notified.as_mut().enable();
            if self.live.load(Ordering::Acquire) == 0 {
                return;
            }
            notified.await;
        }
    }
}

/// A builder of a [`Runner`]; see [`Runner::builder`].
#[derive(Debug, Default)]
pub struct RunnerBuilder {
    limits: Limits,
    secrets: SecretValues,
    max_concurrent: Option<usize>,
    queue_timeout: Option<Duration>,
    guardian: Option<GuardianProgram>,
    withheld_variables: Vec<OsString>,
}

impl RunnerBuilder {
    /// Sets how many runs may go on at once; the others wait, first come, first served. The default is 64, or fewer if
    /// that many could need more than half of the file descriptors of this process (4 each).
    #[must_use]
    pub fn max_concurrent(mut self, runs: usize) -> Self {
        self.max_concurrent = Some(runs);
        self
    }

    /// Sets the longest time that a run waits for others to end. The default is no limit.
    #[must_use]
    pub fn queue_timeout(mut self, timeout: Duration) -> Self {
        self.queue_timeout = Some(timeout);
        self
    }

    /// Sets the limits of commands that have none of their own.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the values to hide in everything that leaves a run, for commands that have none of their own.
    #[must_use]
    pub fn secrets(mut self, secrets: SecretValues) -> Self {
        self.secrets = secrets;
        self
    }

    /// Starts a small process that ends all runs if this one is killed. There is none by default; see
    /// [`guardian`](crate::guardian).
    #[must_use]
    pub fn guardian(mut self, guardian: GuardianProgram) -> Self {
        self.guardian = Some(guardian);
        self
    }

    /// Names variables of this process that no run inherits, whatever its [`EnvPolicy`](crate::EnvPolicy), such as the
    /// server's own secrets. A command can still set a variable of that name.
    #[must_use]
    pub fn withhold(mut self, variables: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.withheld_variables.extend(variables.into_iter().map(Into::into));
        self
    }

    /// Makes this process the parent of every process whose own parent has ended, among all that it starts (prctl(2),
    /// `PR_SET_CHILD_SUBREAPER`), so that no process leaves its run by a session and an environment of its own.
    /// Processes that outlive a program that ends by itself are then in the list of [leftover
    /// trees](Runner::leftover_trees), and end with the runner. An orphan is killed if its run is over, or if it shows
    /// no run and runs of several [owners](crate::owned_by) may have started it.
    ///
    /// The setting applies to this whole process until its end, and is therefore only for programs that start all
    /// processes by runners. On systems without child subreapers, the setting does nothing.
    #[must_use]
    pub fn adopt_orphans(self) -> Self {
        // Without it everything works, and `Containment` says what does not.
        let _ = tree::adopt_orphans();
        self
    }

    /// Builds the runner, and reads the environment of this process for it.
    pub fn build(self) -> Runner {
        let permits = self.max_concurrent.unwrap_or_else(tree::default_concurrency);
        Runner {
            inner: Arc::new(RunnerState {
                limits: self.limits,
                secrets: self.secrets,
                environment: Arc::new(InheritedEnv::without(&self.withheld_variables)),
                permits: Arc::new(Semaphore::new(permits.clamp(1, Semaphore::MAX_PERMITS))),
                queue_timeout: self.queue_timeout,
                guardian: self.guardian.map(GuardianLink::new),
                leftovers: Arc::default(),
                runs: Mutex::default(),
                ended_runs: EndedRuns::default(),
                live: AtomicUsize::new(0),
                all_ended: Notify::new(),
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
    /// Returns a runner with the defaults of [`RunnerBuilder`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a builder with the defaults.
    pub fn builder() -> RunnerBuilder {
        RunnerBuilder::default()
    }

    /// Returns the runner of [`Command::run`].
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Runner> = OnceLock::new();
        SHARED.get_or_init(Self::default)
    }

    /// Returns the names of the variables that commands inherit under
    /// [`EnvPolicy::Inherit`](crate::EnvPolicy::Inherit), for a caller that removes some of them by a pattern.
    pub fn environment_names(&self) -> impl Iterator<Item = &OsStr> {
        self.inner.environment.names()
    }

    /// Returns the value of a variable that commands inherit under
    /// [`EnvPolicy::Inherit`](crate::EnvPolicy::Inherit), for a caller that adds to it.
    pub fn environment_value(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.inner.environment.value(name.as_ref())
    }

    /// Returns how many runs have started and are not over.
    pub fn running(&self) -> usize {
        self.inner.runs().len()
    }

    /// Returns what the programs use now, and have used since this runner was built, for each owner and purpose; see
    /// [`owned_by`](crate::owned_by). Runs without an owner are counted together.
    ///
    /// It reads all of `/proc`, which takes about 6 µs for each process of the machine. Where there is none, only the CPU
    /// time of finished runs is known.
    pub fn usage(&self) -> Vec<ProgramUsage> {
        let mut live: Vec<(UsageAccount, Arc<ProcessLeader>)> = self
            .inner
            .runs()
            .values()
            .map(|run| (run.account.clone(), Arc::clone(&run.state.leader)))
            .collect();
        live.extend(self.inner.leftovers.alive().iter().map(UsageAccount::of_leftover));
        program_usage::measure(&live, &self.inner.ended_runs)
    }

    /// Returns the processes that finished runs have left alive, if this process [adopts
    /// orphans](RunnerBuilder::adopt_orphans).
    pub fn leftover_trees(&self) -> Vec<LeftoverTree> {
        self.inner.leftovers.alive()
    }

    /// Returns how many starts were abandoned ([`Error::SpawnTimedOut`], a cancel, a dropped future) while the system
    /// has not completed them, because the program's file system hangs.
    ///
    /// Each keeps a thread, and its permit among the [`max_concurrent`](RunnerBuilder::max_concurrent), so that their
    /// number is bounded. A program that starts late is killed at once.
    pub fn stuck_starts(&self) -> usize {
        self.inner.stuck.load(Ordering::Acquire)
    }

    /// Runs a command to its end. Dropping the future ends the program and all it started.
    ///
    /// # Errors
    /// If the program never started, or following it failed; see [`Error`]. A program that failed is an [`Output`].
    pub async fn run(&self, command: Command) -> Result<Output, Error> {
        self.start(command).await?.wait_with_output().await
    }

    /// Starts a command as soon as the bound allows, and returns its handle.
    ///
    /// A command that is already cancelled, or whose timeout is 0, does not start. Its handle has an output at once.
    ///
    /// # Errors
    /// If the program does not start; see [`Error`].
    pub async fn start(&self, mut command: Command) -> Result<Running, Error> {
        command.check_input()?;
        command.owner = leftover::current_owner();
        // Shared with the thread that starts the program, which may outlive this future.
        let command = Arc::new(command);
        let limits = command.limits.clone().unwrap_or_else(|| self.inner.limits.clone());
        let requested_at = Instant::now();
        if self.inner.shut_down.load(Ordering::Acquire) {
            return Err(Error::ShutDown);
        }
        if limits.timeout == Some(Duration::ZERO) {
            let termination = Termination::TimedOut { after: Duration::ZERO, escalated: false };
            return Ok(self.never_started(&command, termination, requested_at));
        }
        let cancelled = Termination::Cancelled { escalated: false };
        // Biased: a command that is cancelled while it waits must not start just because a permit came too.
        let permit = tokio::select! {
            biased;
            () = command.cancel.cancelled() => return Ok(self.never_started(&command, cancelled, requested_at)),
            permit = self.acquire_permit(&command) => permit?,
        };
        let queued = requested_at.elapsed();
        let registration = RunRegistration::new(&self.inner);

        // Before the start: what has started must be certain of an end.
        reaper::ensure_running().map_err(|error| command.error(spawn_kind(&error), Some(error)))?;
        let run = RunId::next().map_err(|error| command.error(SpawnErrorKind::Other, Some(error)))?;
        // The guardian knows of the run before it starts, so that no death of this process falls in between.
        let supervised = match &self.inner.guardian {
            Some(guardian) => Some(
                guardian.watch(run).await.map_err(|error| command.error(spawn_kind(&error), Some(error)))?,
            ),
            None => None,
        };
        let (child_ends, parent_ends) = tree::open_pipes(&command)?;
        // The permit, the supervision and the count of live runs move into the work, so that they last while a start
        // that was given up goes on, and until what it has started is dead. Otherwise a shutdown meanwhile would
        // dismiss the guardian, and the program would outlive this process.
        let work = {
            let (command, busy_retry) = (Arc::clone(&command), limits.busy_retry);
            let inherited = Arc::clone(&self.inner.environment);
            let live = LiveRun::new(&self.inner);
            move |is_abandoned: &(dyn Fn() -> bool + Sync)| {
                let is_over = || is_abandoned() || command.cancel.is_cancelled();
                let started = tree::launch(&command, &inherited, busy_retry, run, &child_ends, &is_over);
                // Only the child may hold them: their end tells that nobody writes any more.
                drop(child_ends);
                let started = started.map(|started| {
                    if let Some(supervised) = &supervised {
                        supervised.started(&started.leader);
                    }
                    started.leader.hold(Box::new(RunHold { supervised, _live: live }));
                    StartGuard(Some(started))
                });
                (started, permit)
            }
        };
        let mut start = starter::start_on_thread(&self.inner.stuck, work)
            .map_err(|error| command.error(spawn_kind(&error), Some(error)))?;
        // The run's timeout counts from its start. For the start itself a short one would be an error on every busy
        // machine.
        let start_timeout = limits.timeout.map(|timeout| timeout.max(MIN_START_TIMEOUT));
        let started = tokio::select! {
            biased;
            started = &mut start => started,
            () = command.cancel.cancelled() => {
                // The program may run already, on a busy machine for a while before this is known. Then it is a run that
                // is cancelled, with what it has printed.
                match tokio::time::timeout(MIN_START_TIMEOUT, start).await {
                    Ok(started) => started,
                    Err(_) => return Ok(self.never_started(&command, cancelled, requested_at)),
                }
            }
            () = sleep_or_pend(start_timeout) => {
                let program = command.program.to_string_lossy().into_owned();
                return Err(Error::SpawnTimedOut { program, after: start_timeout.unwrap_or_default() });
            }
        };
        let lost = || command.error(SpawnErrorKind::Other, None);
        let (started, permit) = started.ok_or_else(lost)?;
        if started.is_err() && command.cancel.is_cancelled() {
            return Ok(self.never_started(&command, cancelled, requested_at));
        }
        let started = started?.take().ok_or_else(lost)?;
        let leader = Arc::clone(&started.leader);
        // A program whose end cannot be seen must not go on.
        let launched =
            tree::connect(&command, started, parent_ends).inspect_err(|_| reaper::abandon(leader))?;
        Ok(self.spawn_driver(launched, &command, limits, queued, (permit, registration)))
    }

    async fn acquire_permit(&self, command: &Command) -> Result<OwnedSemaphorePermit, Error> {
        let permit = Arc::clone(&self.inner.permits).acquire_owned();
        tokio::select! {
            biased;
            permit = permit => permit.map_err(|_| Error::ShutDown),
            () = sleep_or_pend(self.inner.queue_timeout) => Err(Error::QueueTimedOut {
                label: command.label_text(),
                after: self.inner.queue_timeout.unwrap_or_default(),
            }),
        }
    }

    /// Starts the task that takes a started program to its outcome.
    fn spawn_driver(
        &self,
        launched: tree::LaunchedProgram,
        command: &Command,
        limits: Limits,
        queued: Duration,
        (permit, registration): (OwnedSemaphorePermit, RunRegistration),
    ) -> Running {
        // The queue exists before the task does, so that no event is missed.
        let (queue, events) = command.events.map(EventQueue::new).unzip();
        let secrets = command.secrets.as_ref().unwrap_or(&self.inner.secrets);
        let id = registration.id;
        let run_guard = Box::new((permit, registration));
        let mut driver = RunDriver::new(launched, command, limits, secrets, queued, queue, run_guard);
        driver.register_leftovers(&self.inner.leftovers);
        let shared = Arc::clone(driver.shared());
        let account = UsageAccount::of(command.owner.as_deref());
        self.inner.runs().insert(id, RegisteredRun { state: Arc::clone(&shared), account });
        if self.inner.shut_down.load(Ordering::Acquire) {
            // It was started while `shutdown` stopped the others, and is not among those.
            shared.request_stop(StopRequest::Kill);
        }
        let task = tokio::spawn(driver.run()).abort_handle();
        Running::started(shared, task, events)
    }

    /// Returns the handle of a run that was over before its program could start.
    fn never_started(&self, command: &Command, termination: Termination, requested_at: Instant) -> Running {
        let empty = || OutputCapture::new(&CaptureLimits::new(0), &SecretValues::default()).finish(true);
        let output = Output {
            label: command.label_text(),
            termination,
            status: None,
            pid: None,
            stdout: empty(),
            stderr: empty(),
            stdin: StdinReport::default(),
            elapsed: Duration::ZERO,
            to_exit: None,
            queued: requested_at.elapsed(),
            usage: None,
            leftovers: Vec::new(),
            containment: if command.marker { Containment::SessionAndMarker } else { Containment::Session },
            confinement: None,
            exceeded_limits: Vec::new(),
        };
        let events = command.events.map(|options| {
            let (queue, events) = EventQueue::new(options);
            queue.send(crate::RunEvent::Finished);
            events
        });
        Running::never_started(output, events)
    }

    /// Ends all runs of this runner and its clones, by `SIGTERM`, and by `SIGKILL` after `grace`. Runs that wait in the
    /// queue, and all later runs, fail with [`Error::ShutDown`].
    ///
    /// The method returns when all runs are over and the processes of dropped runs have ended, at the latest 3 s after
    /// the grace time. By then, a run whose runtime is not polled has been killed, and the background thread reaps it.
    pub async fn shutdown(&self, grace: Duration) {
        // The flag first: a run that gets its permit before the semaphore closes sees it when it registers.
        self.inner.shut_down.store(true, Ordering::Release);
        self.inner.permits.close();
        for RegisteredRun { state: run, .. } in self.inner.runs().values() {
            run.request_stop(StopRequest::Terminate { grace: Some(grace) });
        }
        for tree in self.inner.leftovers.close() {
            tokio::spawn(async move { tree.end(grace).await });
        }
        let timeout = grace.saturating_add(SHUTDOWN_MARGIN);
        if tokio::time::timeout(timeout, self.inner.wait_until_idle()).await.is_err() {
            for RegisteredRun { state: run, .. } in self.inner.runs().values() {
                reaper::abandon(Arc::clone(&run.leader));
            }
            // The guardian stays: it ends what still lives when this process ends.
            return;
        }
        sweep_orphans().await;
        if let Some(guardian) = &self.inner.guardian {
            guardian.dismiss();
        }
    }
}

/// Kills the adopted orphans of runs that are over, until none is left.
async fn sweep_orphans() {
    // Nothing was ever started: the pass would look at every process of the machine in vain.
    if !reaper::was_started() {
        return;
    }
    let give_up_at = Instant::now() + SWEEP_TIME;
    while tree::adopts_orphans() && reaper::ensure_running().is_ok() && Instant::now() < give_up_at {
        match reaper::sweep().await {
            Ok(true) => tokio::time::sleep(Duration::from_millis(1)).await,
            Ok(false) | Err(_) => return,
        }
    }
}

/// The time for which orphans are killed at a shutdown.
const SWEEP_TIME: Duration = Duration::from_secs(1);
/// The time that a shutdown waits after the grace time.
const SHUTDOWN_MARGIN: Duration = Duration::from_secs(3);
/// The shortest time that the system is given to start a program.
const MIN_START_TIMEOUT: Duration = Duration::from_secs(1);

/// Returns the kind of a start error that came from the system.
fn spawn_kind(error: &io::Error) -> SpawnErrorKind {
    tree::exhausted_resource(error)
        .map_or(SpawnErrorKind::Other, |which| SpawnErrorKind::ResourceLimit { which })
}

/// Sleeps for `duration`, or for ever if there is none.
async fn sleep_or_pend(duration: Option<Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}

/// A program that was started on another thread. Dropping the guard kills it, unless it was taken out.
struct StartGuard(Option<tree::StartedLeader>);

impl StartGuard {
    fn take(mut self) -> Option<tree::StartedLeader> {
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

/// A share in the count of live runs. A run that is followed has one, and so have a start in progress and the processes
/// of each run: a shutdown waits for all of them.
#[derive(Debug)]
struct LiveRun(Arc<RunnerState>);

impl LiveRun {
    fn new(inner: &Arc<RunnerState>) -> Self {
        inner.live.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(inner))
    }
}

impl Drop for LiveRun {
    fn drop(&mut self) {
        if self.0.live.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.all_ended.notify_waiters();
        }
    }
}

/// The supervision of a run and its share in the count of live runs, which last until its processes have ended.
#[derive(Debug)]
struct RunHold {
    supervised: Option<SupervisedTree>,
    _live: LiveRun,
}

impl LeaderHold for RunHold {
    fn adopted(&self, process: ProcessStamp) {
        if let Some(supervised) = &self.supervised {
            supervised.adopted(process);
        }
    }
}

/// The registration of a run with its runner. Dropping it removes the run.
struct RunRegistration {
    live: LiveRun,
    id: u64,
}

impl RunRegistration {
    fn new(inner: &Arc<RunnerState>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { live: LiveRun::new(inner), id: NEXT.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for RunRegistration {
    fn drop(&mut self) {
        let run = self.live.0.runs().remove(&self.id);
        if let Some(RegisteredRun { state, account }) = run {
            // Nothing is known of a program that was given up.
            let used = state.used().unwrap_or_default();
            self.live.0.ended_runs.add(account, used.user + used.system);
        }
    }
}

impl Command {
    /// Runs the command to its end, with a [`Runner`] that all callers in this process share: default limits, and at
    /// most as many runs at once as a default runner allows. Dropping the future ends the program and all it started.
    ///
    /// # Errors
    /// If the program never started, or following it failed; see [`Error`]. A program that failed is an [`Output`].
    pub async fn run(self) -> Result<Output, Error> {
        Runner::shared().run(self).await
    }

    /// Checks everything that can be checked without starting the program.
    ///
    /// # Errors
    /// The error that [`run`](Command::run) would return.
    pub fn validate(&self) -> Result<(), SpawnError> {
        self.check_input()?;
        tree::validate(self, &InheritedEnv::without(&[]))
    }
}
