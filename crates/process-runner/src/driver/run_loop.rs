//! The loop of a run's task.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::capture::{CaptureLimits, OutputCapture};
use crate::command::{Command, LineCallback};
use crate::confine::{Confinement, ConfinementStatus};
use crate::events::{EventGranularity, EventQueue, RunEvent};
use crate::leftover::{LeftoverDecision, LeftoverRegistry, LeftoverTree, RunOwner};
use crate::limits::{LeftoverPolicy, Limits};
use crate::outcome::{LeftoverProcess, Output, Stream, Termination};
use crate::reaper::{self, MemberAction, TreeEndOutcome, TreeInspection};
use crate::secrets::SecretValues;
use crate::tree::{ExitWatch, LaunchedProgram, LimitWatch, ReapedLeader};

use super::deadline::DeadlineTimer;
use super::output::{OutputProgress, OutputPump, OutputStream};
use super::phase::{RunPhase, RunWakeup, StopReason};
use super::run_state::{DriverResult, RunFailure, RunState, StopRequest};
use super::stdin_copy::StdinCopy;

/// The time for which the streams are read on after their last holders were killed.
const FLUSH_TIME: Duration = Duration::from_millis(100);
/// The time between two inspections of the processes that use the grace time.
const INSPECTION_INTERVAL: Duration = Duration::from_millis(25);
/// The age of a run at which orphans are first looked for, and the longest interval later. The guardian ends only those
/// that were found while this process lived.
const FIRST_LOOK: Duration = Duration::from_millis(250);
const MAX_LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// The time for which a run is surveyed again while it is not decided what it has left alive.
const SURVEY_TIME: Duration = Duration::from_millis(250);
/// The time for which a run waits for a slow disk before it finishes a spill file.
const SPILL_TIMEOUT: Duration = Duration::from_secs(1);

/// The time after which the driver kills the process group itself.
// The reaper searches `/proc` before it kills, and reading about a process that hangs in the kernel can hang too.
const REAPER_SLOW: Duration = Duration::from_millis(250);
/// The time after which the run ends without the reaper's answer. It is longer than the reaper itself tries.
const REAPER_STUCK: Duration = Duration::from_secs(3);

/// The task of one run: it reads the streams, keeps the limits, and leaves the result in [`RunState`].
pub(crate) struct RunDriver {
    shared: Arc<RunState>,
    limits: Limits,
    label: String,
    queued: Duration,
    cancel: CancellationToken,
    exit: ExitWatch,
    streams: [OutputStream; 2],
    stdin: StdinCopy,
    events: Option<Arc<EventQueue>>,
    on_line: Option<LineCallback>,
    confinement: Option<ConfinementStatus>,
    /// Notices limits that the programs of the run's owner meet.
    limit_watch: Option<LimitWatch>,
    last_output: Instant,

    /// The time when the leader's exit was seen.
    exited: Option<Instant>,
    /// The first reason that the run must end early. Later ones do not change it.
    stop_reason: Option<StopReason>,
    cancel_seen: bool,
    escalated: bool,
    phase: RunPhase,
    leftovers: Vec<LeftoverProcess>,
    unkillable: Vec<u32>,
    leftover_registry: Arc<LeftoverRegistry>,
    /// The caller for whom the run was started.
    owner: Option<Arc<dyn RunOwner>>,
    /// The time of the next look for orphans, if this process adopts them.
    next_look: Option<Instant>,
    /// True if processes of the run are alive after its end. Its leader is not reaped then.
    leaves_tree: bool,

    /// The run's permit and registration, which last as long as the driver.
    _run_guard: Box<dyn Any + Send>,
}

impl RunDriver {
    pub(crate) fn new(
        launched: LaunchedProgram,
        command: &Command,
        limits: Limits,
        secrets: &SecretValues,
        queued: Duration,
        events: Option<Arc<EventQueue>>,
        run_guard: Box<dyn Any + Send>,
    ) -> Box<Self> {
        let LaunchedProgram { leader, exit, stdin, stdout, stderr, started, limit_watch } = launched;
        let capture_limits = CaptureLimits::new(limits.capture);
        let capture_limits = match &limits.spill {
            Some(spill) => capture_limits.spill(spill.clone()),
            None => capture_limits,
        };
        // The output stream hides secrets once, for the capture and the events, so the capture has none to hide.
        let capture = || Some(OutputCapture::new(&capture_limits, &SecretValues::default()));
        let (stdin, piped) = StdinCopy::new(stdin, &command.stdin);
        let shared = Arc::new(RunState::new(leader, started, piped, [capture(), capture()]));
        let by_line = command.on_line.is_some()
            || events.as_ref().is_some_and(|events| events.options().granularity == EventGranularity::Line);
        let stream = |stream, pipe| {
            OutputStream::new(stream, pipe, secrets.redactor(), by_line.then_some(limits.max_line))
        };
        let streams = [stream(Stream::Stdout, Some(stdout)), stream(Stream::Stderr, stderr)];
        Box::new(Self {
            shared,
            label: command.label_text(),
            queued,
            cancel: command.cancel.clone(),
            exit,
            streams,
            stdin,
            events,
            on_line: command.on_line.clone(),
            confinement: command.confinement.as_ref().map(Confinement::status),
            limit_watch,
            last_output: started,
            exited: None,
            stop_reason: None,
            cancel_seen: false,
            escalated: false,
            phase: RunPhase::Running,
            leftovers: Vec::new(),
            unkillable: Vec::new(),
            leftover_registry: Arc::default(),
            owner: command.owner.clone(),
            next_look: crate::tree::adopts_orphans().then(|| started + FIRST_LOOK),
            leaves_tree: false,
            limits,
            _run_guard: run_guard,
        })
    }

    /// Registers what the run leaves alive there.
    pub(crate) fn register_leftovers(&mut self, registry: &Arc<LeftoverRegistry>) {
        self.leftover_registry = Arc::clone(registry);
    }

    /// Returns the state that the run's handle shares.
    pub(crate) fn shared(&self) -> &Arc<RunState> {
        &self.shared
    }

    /// Follows the run to its end.
    pub(crate) async fn run(mut self: Box<Self>) {
        self.send(RunEvent::Started { pid: self.shared.leader.pid_number() });
        let cancel = self.cancel.clone();
        let mut cancelled = pin!(cancel.cancelled());
        let mut timer = DeadlineTimer::new();
        loop {
            let deadline = self.deadline();
            let wakeup = self.next_wakeup(cancelled.as_mut(), &mut timer, deadline).await;
            let failure = self.react(wakeup).err();
            if failure.is_some() || matches!(self.phase, RunPhase::Done) {
                return self.finish(failure).await;
            }
        }
    }

    /// Waits for the next thing that happens. It loses nothing if it is dropped.
    async fn next_wakeup(
        &mut self,
        cancelled: Pin<&mut impl Future<Output = ()>>,
        timer: &mut DeadlineTimer,
        deadline: Option<Instant>,
    ) -> RunWakeup {
        let Self { exit, streams, stdin, shared, events, on_line, exited, phase, limits, .. } = self;
        let mut pump =
            OutputPump { shared, limits, events: events.as_deref(), on_line, exited: exited.is_some() };
        let watch_cancel = !self.cancel_seen;
        let last_output = &mut self.last_output;
        // The order is a decision: the caller's requests come first, and an exit comes before the deadlines, so that a
        // program which has exited in time has not timed out.
        tokio::select! {
            biased;
            request = shared.next_stop_request() => RunWakeup::StopRequested(request),
            () = exit.exited(), if exited.is_none() => RunWakeup::Exited,
            () = cancelled, if watch_cancel => RunWakeup::Cancelled,
            wakeup = phase.reaper_answer() => wakeup,
            progress = poll_fn(|context| {
                let stdin_failed = stdin.poll(context);
                let mut moved = false;
                let mut progress = OutputProgress { failed: stdin_failed, ..OutputProgress::default() };
                for stream in streams.iter_mut() {
                    moved |= pump.poll(stream, context, &mut progress);
                }
                if moved {
                    *last_output = Instant::now();
                }
                if moved || progress.failed.is_some() { Poll::Ready(progress) } else { Poll::Pending }
            }) => RunWakeup::Output(progress),
            () = timer.wait_until(deadline) => RunWakeup::Deadline,
        }
    }

    /// Returns when the phase must change if nothing else happens.
    fn deadline(&self) -> Option<Instant> {
        match &self.phase {
            RunPhase::Running => {
                let timeout = self.limits.timeout.and_then(|limit| self.shared.started.checked_add(limit));
                let idle = self.limits.idle_timeout.and_then(|limit| self.last_output.checked_add(limit));
                timeout.into_iter().chain(idle).chain(self.next_look).min()
            }
            RunPhase::Terminating { kill_at, next_inspection, .. } => {
                Some(next_inspection.map_or(*kill_at, |inspection| inspection.min(*kill_at)))
            }
            RunPhase::Draining { since } => {
                let idle = self.last_output.max(*since).checked_add(self.limits.drain_idle);
                let max = since.checked_add(self.limits.drain_max);
                idle.into_iter().chain(max).min()
            }
            RunPhase::Flushing { until } => Some(*until),
            RunPhase::Ending { since, group_killed: false, .. } => since.checked_add(REAPER_SLOW),
            RunPhase::Ending { since, .. }
            | RunPhase::CheckingHolders { since, .. }
            | RunPhase::Surveying { since, .. } => since.checked_add(REAPER_STUCK),
            RunPhase::Done => None,
        }
    }

    fn react(&mut self, wakeup: RunWakeup) -> Result<(), RunFailure> {
        match wakeup {
            RunWakeup::StopRequested(StopRequest::Terminate { grace }) => {
                self.terminate(StopReason::Cancelled, grace);
            }
            RunWakeup::StopRequested(StopRequest::Kill) => self.kill(StopReason::Cancelled),
            RunWakeup::Cancelled => {
                self.cancel_seen = true;
                self.terminate(StopReason::Cancelled, None);
            }
            RunWakeup::Exited => self.on_exit(),
            RunWakeup::Inspected(inspection) => self.on_inspected(inspection),
            RunWakeup::TreeEnded(end) => self.on_tree_ended(end),
            RunWakeup::Deadline => self.on_deadline(),
            RunWakeup::Output(progress) => return self.on_output(progress),
        }
        Ok(())
    }

    fn on_exit(&mut self) {
        let now = Instant::now();
        self.exited = Some(now);
        self.stdin.close(true);
        if let Some(events) = &self.events {
            events.send(RunEvent::Exited { status: self.shared.leader.exit_status() });
        }
        match &mut self.phase {
            RunPhase::Running => {
                self.phase = RunPhase::Draining { since: now };
                self.advance_if_drained();
            }
            // The others have the rest of the grace time. An inspection shows whether there are any.
            RunPhase::Terminating { next_inspection, .. } => *next_inspection = Some(now),
            _ => {}
        }
    }

    /// Goes on to the next phase if both streams have ended, as nobody needs to be waited for then.
    fn advance_if_drained(&mut self) {
        if self.streams.iter().any(|stream| stream.pipe.is_some()) {
            return;
        }
        match self.phase {
            RunPhase::Draining { .. } if self.limits.leftovers == LeftoverPolicy::KillAll => self.end(),
            RunPhase::Draining { .. } | RunPhase::Flushing { .. } => self.conclude(),
            _ => {}
        }
    }

    fn on_output(&mut self, progress: OutputProgress) -> Result<(), RunFailure> {
        if let Some(panic) = progress.panic {
            // A callback that has panicked is in an unknown state and is not called again.
            self.on_line = None;
            self.streams.iter_mut().for_each(OutputStream::stop_lines);
            self.shared.lock().panic = Some(panic);
            self.kill(StopReason::Cancelled);
        }
        if let Some(stream) = progress.over_limit {
            self.kill(StopReason::OutputLimit(stream));
        }
        if let Some(source) = progress.failed {
            reaper::abandon(Arc::clone(&self.shared.leader));
            return Err(RunFailure { stage: "reading its output", source: Arc::new(source) });
        }
        // A program that ends closes its streams a moment before its exit can be seen. Asking now mostly saves a
        // wakeup.
        let closed = self.streams.iter().all(|stream| stream.pipe.is_none());
        if closed && self.exited.is_none() && self.shared.leader.exit_status().is_some() {
            self.on_exit();
        }
        self.advance_if_drained();
        Ok(())
    }

    fn on_deadline(&mut self) {
        let now = Instant::now();
        // Output may have moved the deadline after the timer was set.
        if self.deadline().is_none_or(|deadline| deadline > now) {
            return;
        }
        match &mut self.phase {
            RunPhase::Running => {
                if self.next_look.is_some_and(|look| look <= now) {
                    reaper::look_for_orphans(&self.shared.leader);
                    let age = now.duration_since(self.shared.started);
                    self.next_look = Some(now + (age / 4).clamp(FIRST_LOOK, MAX_LOOK_INTERVAL));
                }
                let timeout =
                    self.limits.timeout.filter(|limit| now.duration_since(self.shared.started) >= *limit);
                match (timeout, self.limits.idle_timeout) {
                    (Some(limit), _) => self.terminate(StopReason::Timeout(limit), None),
                    (None, Some(limit)) if now.duration_since(self.last_output) >= limit => {
                        self.terminate(StopReason::Idle(limit), None);
                    }
                    (None, Some(_)) => {}
                    (None, None) => {}
                }
            }
            RunPhase::Terminating { kill_at, inspection, next_inspection } => {
                if *kill_at <= now {
                    self.escalated = true;
                    self.end();
                } else {
                    *next_inspection = None;
                    let leader = Arc::clone(&self.shared.leader);
                    *inspection = Some(reaper::inspect(leader, MemberAction::None, Vec::new()));
                }
            }
            RunPhase::Draining { since } => {
                let since = *since;
                let past_drain_max = now.duration_since(since) >= self.limits.drain_max;
                // Before that a holder that is busy may yet print something, and is spared.
                let kill =
                    if past_drain_max { MemberAction::KillHolders } else { MemberAction::KillIdleHolders };
                for stream in &mut self.streams {
                    stream.cut_short = stream.pipe.is_some();
                }
                match self.limits.leftovers {
                    LeftoverPolicy::KillAll => self.end(),
                    // Where the holders cannot be told from others, all processes of the run are killed.
                    LeftoverPolicy::KillHolders if !crate::tree::SEES_HOLDERS => self.end(),
                    LeftoverPolicy::KillHolders => self.check_holders(kill, since, past_drain_max),
                    LeftoverPolicy::Leave => self.check_holders(MemberAction::None, since, past_drain_max),
                }
            }
            RunPhase::Flushing { .. } => self.conclude(),
            RunPhase::Ending { group_killed: group_killed @ false, .. } => {
                *group_killed = true;
                self.shared.leader.kill_group();
            }
            RunPhase::Ending { .. } => {
                let leader = &self.shared.leader;
                let alive = leader.exit_status().is_none().then(|| leader.pid_number()).into_iter().collect();
                self.on_tree_ended(TreeEndOutcome { killed: Vec::new(), alive });
            }
            RunPhase::CheckingHolders { .. } | RunPhase::Surveying { .. } => {
                self.on_inspected(TreeInspection::default());
            }
            RunPhase::Done => {}
        }
    }

    /// Asks the reaper for the processes that hold a stream, and to do `action` with them.
    fn check_holders(&mut self, action: MemberAction, draining_since: Instant, past_drain_max: bool) {
        let pipes =
            self.streams.iter().filter_map(|stream| crate::tree::pipe_id(stream.pipe.as_ref()?)).collect();
        let inspection = reaper::inspect(Arc::clone(&self.shared.leader), action, pipes);
        self.phase =
            RunPhase::CheckingHolders { inspection, since: Instant::now(), draining_since, past_drain_max };
    }

    fn on_inspected(&mut self, found: TreeInspection) {
        let now = Instant::now();
        match &mut self.phase {
            RunPhase::Terminating { inspection, next_inspection, .. } => {
                *inspection = None;
                if self.exited.is_none() {
                    return; // it was asked for only to pass SIGTERM on to those outside the group
                }
                if found.members.is_empty() {
                    self.end();
                } else {
                    *next_inspection = Some(now + INSPECTION_INTERVAL);
                }
            }
            // A busy holder is not silent but waits for a processor, and a loaded machine must not cost output. The
            // idle clock starts again, and only `drain_max` still counts.
            RunPhase::CheckingHolders { draining_since: since, past_drain_max, .. }
                if (found.busy || found.undecided) && !*past_drain_max
                    || found.undecided && now.duration_since(*since) < self.limits.drain_max + FLUSH_TIME =>
            {
                self.phase = RunPhase::Draining { since: *since };
                self.last_output = now;
                self.note_leftovers(found.members.into_iter().filter(|member| member.killed));
                for stream in &mut self.streams {
                    stream.cut_short = false;
                }
                self.advance_if_drained();
            }
            RunPhase::Surveying { since, .. } => {
                let since = *since;
                self.on_surveyed(found, since);
            }
            RunPhase::CheckingHolders { .. } => {
                let killed = found.members.iter().any(|leftover| leftover.killed);
                self.note_leftovers(found.members);
                self.phase = RunPhase::Flushing { until: if killed { now + FLUSH_TIME } else { now } };
                self.advance_if_drained();
            }
            _ => {}
        }
    }

    /// Ends the run, or first looks for what a program that ended by itself has left alive.
    fn conclude(&mut self) {
        let ended_alone = self.stop_reason.is_none() && self.exited.is_some() && self.unkillable.is_empty();
        let everything_killed = self.limits.leftovers == LeftoverPolicy::KillAll;
        if ended_alone && !everything_killed && crate::tree::may_have_orphans() {
            self.survey(Instant::now());
        } else {
            self.phase = RunPhase::Done;
        }
    }

    fn survey(&mut self, since: Instant) {
        let inspection = reaper::inspect(Arc::clone(&self.shared.leader), MemberAction::Survey, Vec::new());
        self.phase = RunPhase::Surveying { inspection, since };
    }

    fn on_surveyed(&mut self, found: TreeInspection, since: Instant) {
        // A process that cannot be judged yet must not keep the caller waiting for long. It is adopted, and a later
        // look finds it.
        let repeat = found.undecided && since.elapsed() < SURVEY_TIME;
        let is_alive = found.members.iter().any(|member| !member.killed);
        self.note_leftovers(found.members);
        if repeat {
            return self.survey(since);
        }
        self.leaves_tree = is_alive || found.undecided;
        self.phase = RunPhase::Done;
    }

    fn on_tree_ended(&mut self, end: TreeEndOutcome) {
        self.note_leftovers(end.killed);
        self.unkillable = end.alive;
        self.phase = RunPhase::Flushing { until: Instant::now() + FLUSH_TIME };
        self.advance_if_drained();
    }

    fn note_leftovers(&mut self, found: impl IntoIterator<Item = LeftoverProcess>) {
        for leftover in found {
            match self.leftovers.iter_mut().find(|known| known.pid == leftover.pid) {
                Some(known) => {
                    known.killed |= leftover.killed;
                    known.command_line = leftover.command_line.or(known.command_line.take());
                }
                None => self.leftovers.push(leftover),
            }
        }
    }

    /// Asks the run to end, and kills it after the grace time.
    fn terminate(&mut self, reason: StopReason, grace: Option<Duration>) {
        match &mut self.phase {
            RunPhase::Running => {
                self.stop_reason = Some(reason);
                self.send(RunEvent::Terminating);
                self.shared.leader.terminate_group();
                // The signal to the group misses those that have left it.
                let leader = Arc::clone(&self.shared.leader);
                let inspection = reaper::inspect(leader, MemberAction::TerminateEscaped, Vec::new());
                let now = Instant::now();
                let kill_at = now.checked_add(grace.unwrap_or(self.limits.term_grace)).unwrap_or(now);
                self.phase =
                    RunPhase::Terminating { kill_at, inspection: Some(inspection), next_inspection: None };
            }
            RunPhase::Terminating { kill_at, .. } => {
                if let Some(sooner) = grace.and_then(|grace| Instant::now().checked_add(grace)) {
                    *kill_at = sooner.min(*kill_at);
                }
            }
            // The program itself has ended, and what it left behind gets no grace time.
            RunPhase::Draining { .. } | RunPhase::CheckingHolders { .. } | RunPhase::Surveying { .. } => {
                self.stop_reason.get_or_insert(reason);
                self.end();
            }
            RunPhase::Ending { .. } | RunPhase::Flushing { .. } | RunPhase::Done => {}
        }
    }

    /// Kills the run.
    fn kill(&mut self, reason: StopReason) {
        match self.phase {
            RunPhase::Ending { .. } | RunPhase::Flushing { .. } | RunPhase::Done => return,
            RunPhase::Running => self.send(RunEvent::Terminating),
            _ => {}
        }
        self.stop_reason.get_or_insert(reason);
        self.escalated |= self.exited.is_none();
        self.end();
    }

    /// Has the reaper kill everything that belongs to the run.
    fn end(&mut self) {
        let end = reaper::end(Arc::clone(&self.shared.leader));
        self.phase = RunPhase::Ending { end, since: Instant::now(), group_killed: false };
    }

    fn send(&self, event: RunEvent) {
        if let Some(events) = &self.events {
            events.send(event);
        }
    }

    async fn finish(&mut self, failure: Option<RunFailure>) {
        if self.limits.spill.is_some() {
            self.drain_spill().await;
        }
        let reaped = self.reap().await;
        self.publish_result(reaped, failure);
    }

    /// Reaps the leader. It has ended by now, unless it could not be killed or following the run failed.
    async fn reap(&mut self) -> Option<ReapedLeader> {
        if self.exited.is_none() && self.unkillable.is_empty() {
            let _ = tokio::time::timeout(FLUSH_TIME, self.exit.exited()).await;
            self.exited = Some(Instant::now());
        }
        if self.leaves_tree {
            return self.shared.leader.status_without_reaping();
        }
        self.shared.leader.reap()
    }

    /// Waits until the spill files are written, up to a limit.
    // `Capture::finish` waits too, but it blocks the thread, so most of the wait happens here.
    async fn drain_spill(&mut self) {
        for stream in Stream::BOTH {
            let drained = self.shared.lock().captures[stream.index()].as_ref().map(OutputCapture::drained);
            if let Some(drained) = drained {
                let _ = tokio::time::timeout(SPILL_TIMEOUT, drained).await;
            }
        }
    }

    /// Puts the result together, leaves it in the shared state, and wakes everybody who waits for it.
    fn publish_result(&mut self, reaped: Option<ReapedLeader>, failure: Option<RunFailure>) {
        let mut pump = OutputPump {
            shared: &self.shared,
            limits: &self.limits,
            events: self.events.as_deref(),
            on_line: &self.on_line,
            exited: true,
        };
        let mut progress = OutputProgress::default();
        for stream in &mut self.streams {
            pump.flush(stream, &mut progress);
        }
        let status = reaped.map(|reaped| reaped.status);
        let unkillable = std::mem::take(&mut self.unkillable);
        let escalated = self.escalated;
        let termination = match (self.stop_reason, status) {
            _ if !unkillable.is_empty() => Termination::Unkillable { pids: unkillable },
            (Some(StopReason::Timeout(after)), _) => Termination::TimedOut { after, escalated },
            (Some(StopReason::Idle(after)), _) => Termination::IdleTimedOut { after, escalated },
            (Some(StopReason::Cancelled), _) => Termination::Cancelled { escalated },
            (Some(StopReason::OutputLimit(stream)), _) => Termination::OutputLimit { stream },
            (None, Some(status)) => status.into(),
            (None, None) => Termination::Unknown,
        };
        let stdin = self.stdin.report(&self.shared);
        if self.leaves_tree {
            let alive = self.leftovers.iter().filter(|process| !process.killed).cloned().collect();
            let leader = Arc::clone(&self.shared.leader);
            let tree = LeftoverTree::new(leader, self.label.clone(), self.shared.started, alive);
            // The end of the caller may have come in the meantime.
            if self.cancel.is_cancelled() {
                tree.kill();
            } else if let LeftoverDecision::End { reason } =
                self.leftover_registry.add(&tree, self.owner.as_deref())
            {
                for process in self.leftovers.iter_mut().filter(|process| !process.killed) {
                    (process.killed, process.refused) = (true, Some(reason.clone()));
                }
            }
        }
        if let Some(used) = reaped.and_then(|reaped| reaped.usage) {
            self.shared.set_used(used);
        }
        let mut state = self.shared.lock();
        let [stdout, stderr] = [0, 1].map(|index| {
            let complete = self.streams[index].complete;
            match state.captures[index].take() {
                Some(capture) => capture.finish(complete),
                None => OutputCapture::new(&CaptureLimits::new(0), &SecretValues::default()).finish(complete),
            }
        });
        let output = Output {
            label: std::mem::take(&mut self.label),
            termination,
            status,
            pid: Some(self.shared.leader.pid_number()),
            stdout,
            stderr,
            stdin,
            elapsed: self.shared.started.elapsed(),
            to_exit: self.exited.map(|exited| exited.duration_since(self.shared.started)),
            queued: self.queued,
            usage: reaped.and_then(|reaped| reaped.usage),
            leftovers: std::mem::take(&mut self.leftovers),
            containment: self.shared.leader.containment(),
            confinement: self.confinement.take(),
            exceeded_limits: self.limit_watch.as_ref().map(LimitWatch::exceeded).unwrap_or_default(),
        };
        state.result = Some(DriverResult { output: Arc::new(output), failure });
        if let Some(panic) = progress.panic {
            state.panic.get_or_insert(panic);
        }
        drop(state);
        self.phase = RunPhase::Done;
        self.send(RunEvent::Finished);
        self.shared.set_finished();
    }
}

impl Drop for RunDriver {
    /// Leaves an unfinished run to the reaper: its runtime is shutting down, or its handle was dropped.
    fn drop(&mut self) {
        if self.shared.is_finished() {
            return;
        }
        reaper::abandon(Arc::clone(&self.shared.leader));
        self.stop_reason.get_or_insert(StopReason::Cancelled);
        self.escalated = true;
        let source = Arc::new(io::Error::other("the runtime was shut down"));
        self.publish_result(None, Some(RunFailure { stage: "running it", source }));
        if let Some(events) = &self.events {
            events.end();
        }
        if self.shared.abandoned.load(Ordering::Acquire)
            && let Some(result) = self.shared.result()
        {
            // The handle was dropped, so nobody will ever learn the names of these files.
            for file in [&result.output.stdout.spill, &result.output.stderr.spill].into_iter().flatten() {
                #[allow(
                    clippy::disallowed_methods,
                    reason = "a spill file of this run, under a name drawn at random"
                )]
                let _ = std::fs::remove_file(file);
            }
        }
    }
}
