//! The loop that takes one started program to its outcome.
//!
//! *Running -> (Terminating ->) exit seen, leader unreaped -> Draining -> Ending -> reaped -> outcome.*
//! One task a run; everything it has found stands in [`Shared`], outside any future that a caller might
//! drop. The leader is reaped last: until then its pid pins the group and the session that are signalled.

mod alarm;
mod output;
mod shared;
mod stdin;

use std::any::Any;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::capture::{Capture, CaptureLimits};
use crate::command::{Command, LineCallback};
use crate::confine::{Confinement, InForce};
use crate::events::{By, Event, EventQueue};
use crate::guardian::Ward;
use crate::limits::{Leftovers, Limits};
use crate::outcome::{Leftover, Output, Stream, Termination};
use crate::reaper::{self, Do, Ended, Found};
use crate::secrets::Secrets;
use crate::tree::{ExitWatch, Launched, Reaped};

use alarm::Alarm;
use output::{OutputStream, Progress, Pump};
use shared::Broken;
pub(crate) use shared::{Order, RunResult, Shared};
use stdin::StdinCopy;

/// One read, and the size of a Linux pipe: larger ones buy nothing.
const READ: usize = 64 * 1024;
/// How long the streams are read on after their last holders were killed.
const AFTER_KILL: Duration = Duration::from_millis(100);

/// The reaper looks before it kills, and reading about a process that hangs in the kernel can hang too: then
/// the group is killed from here.
const REAPER_SLOW: Duration = Duration::from_millis(250);
/// And then the run ends without the answer. Longer than the reaper itself tries.
const REAPER_STUCK: Duration = Duration::from_secs(3);

/// Something that is given back by being dropped.
pub(crate) type Held = Box<dyn Any + Send>;

pub(crate) struct Driver {
    shared: Arc<Shared>,
    limits: Limits,
    label: String,
    queued: Duration,
    cancel: CancellationToken,
    exit: ExitWatch,
    streams: [OutputStream; 2],
    stdin: StdinCopy,
    events: Option<Arc<EventQueue>>,
    on_line: Option<LineCallback>,
    confinement: Option<InForce>,
    last_output: Instant,

    exited: Option<Instant>,
    /// Why the run must end early. The first reason stands.
    reason: Option<Reason>,
    cancel_seen: bool,
    escalated: bool,
    phase: Phase,
    leftovers: Vec<Leftover>,
    unkillable: Vec<u32>,

    /// The guardian's care, given back before the leader's pid is.
    ward: Option<Ward>,
    _place: Held,
}

#[derive(Clone, Copy, Debug)]
enum Reason {
    Timeout(Duration),
    Idle(Duration),
    Cancelled,
    OutputLimit(Stream),
}

enum Phase {
    Running,
    /// `SIGTERM` was sent; `SIGKILL` follows then. After the leader's exit the others are looked at again
    /// and again, since they may use the time too.
    Terminating {
        kill_at: Instant,
        look: Option<oneshot::Receiver<Found>>,
        next_look: Option<Instant>,
    },
    /// The leader has ended; the streams may go on.
    Draining {
        since: Instant,
    },
    /// The reaper kills all.
    Ending {
        ended: oneshot::Receiver<Ended>,
        since: Instant,
        hurried: bool,
    },
    /// The reaper kills those that hold a stream, or only says who they are.
    Holders {
        found: oneshot::Receiver<Found>,
        since: Instant,
        drained_since: Instant,
        last_call: bool,
    },
    /// All is dead, or left alone; what is still in the pipes is read.
    LastWords {
        until: Instant,
    },
    Done,
}

enum Wake {
    Order(Order),
    Cancelled,
    Exited,
    Ended(Ended),
    Looked(Found),
    Output(Progress),
    Deadline,
}

impl Driver {
    #[allow(clippy::too_many_arguments, reason = "the one place where a run is put together")]
    pub(crate) fn new(
        launched: Launched,
        command: &Command,
        limits: Limits,
        secrets: &Secrets,
        queued: Duration,
        events: Option<Arc<EventQueue>>,
        ward: Option<Ward>,
        place: Held,
    ) -> Box<Self> {
        let Launched { leader, exit, stdin, stdout, stderr, started } = launched;
        let capture_limits = CaptureLimits::new(limits.capture);
        let capture_limits = match &limits.spill {
            Some(spill) => capture_limits.spill(spill.clone()),
            None => capture_limits,
        };
        // Secrets are hidden here, once for the capture and the events, so the capture has none to hide.
        let capture = || Some(Capture::new(&capture_limits, &Secrets::default()));
        let (stdin, piped) = StdinCopy::new(stdin, &command.stdin);
        let shared = Arc::new(Shared::new(leader, started, piped, [capture(), capture()]));
        let by_line = command.on_line.is_some()
            || events.as_ref().is_some_and(|events| events.options().by == By::Line);
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
            confinement: command.confinement.as_ref().map(Confinement::in_force),
            last_output: started,
            exited: None,
            reason: None,
            cancel_seen: false,
            escalated: false,
            phase: Phase::Running,
            leftovers: Vec::new(),
            unkillable: Vec::new(),
            limits,
            ward,
            _place: place,
        })
    }

    /// What the handle needs.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) async fn run(mut self: Box<Self>) {
        self.send(Event::Started { pid: self.shared.leader.pid_number() });
        let cancel = self.cancel.clone();
        let mut cancelled = pin!(cancel.cancelled());
        let mut alarm = Alarm::new();
        loop {
            let deadline = self.deadline();
            let wake = self.next(cancelled.as_mut(), &mut alarm, deadline).await;
            let broken = self.react(wake).err();
            if broken.is_some() || matches!(self.phase, Phase::Done) {
                return self.finish(broken).await;
            }
        }
    }

    /// The next thing that happens. Loses nothing if it is dropped.
    async fn next(
        &mut self,
        cancelled: Pin<&mut impl Future<Output = ()>>,
        alarm: &mut Alarm,
        deadline: Option<Instant>,
    ) -> Wake {
        let Self { exit, streams, stdin, shared, events, on_line, exited, phase, limits, .. } = self;
        let mut pump = Pump { shared, limits, events: events.as_deref(), on_line, exited: exited.is_some() };
        let watch_cancel = !self.cancel_seen;
        let last_output = &mut self.last_output;
        tokio::select! {
            biased;
            order = shared.next_order() => Wake::Order(order),
            // Before the deadlines: an exit that was seen is an exit.
            () = exit.exited(), if exited.is_none() => Wake::Exited,
            () = cancelled, if watch_cancel => Wake::Cancelled,
            wake = phase.answer() => wake,
            progress = poll_fn(|context| {
                let stdin_failed = stdin.poll(context);
                let mut moved = false;
                let mut progress = Progress { failed: stdin_failed, ..Progress::default() };
                for stream in streams.iter_mut() {
                    moved |= pump.poll(stream, context, &mut progress);
                }
                if moved {
                    *last_output = Instant::now();
                }
                if moved || progress.failed.is_some() { Poll::Ready(progress) } else { Poll::Pending }
            }) => Wake::Output(progress),
            () = alarm.ring(deadline) => Wake::Deadline,
        }
    }

    /// When something happens if nothing else does.
    fn deadline(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Running => {
                let timeout = self.limits.timeout.and_then(|limit| self.shared.started.checked_add(limit));
                let idle = self.limits.idle_timeout.and_then(|limit| self.last_output.checked_add(limit));
                timeout.into_iter().chain(idle).min()
            }
            Phase::Terminating { kill_at, next_look, .. } => {
                Some(next_look.map_or(*kill_at, |look| look.min(*kill_at)))
            }
            Phase::Draining { since } => {
                let idle = self.last_output.max(*since).checked_add(self.limits.drain_idle);
                let max = since.checked_add(self.limits.drain_max);
                idle.into_iter().chain(max).min()
            }
            Phase::LastWords { until } => Some(*until),
            Phase::Ending { since, hurried: false, .. } => since.checked_add(REAPER_SLOW),
            Phase::Ending { since, .. } | Phase::Holders { since, .. } => since.checked_add(REAPER_STUCK),
            Phase::Done => None,
        }
    }

    fn react(&mut self, wake: Wake) -> Result<(), Broken> {
        match wake {
            Wake::Order(Order::Terminate(grace)) => self.terminate(Reason::Cancelled, grace),
            Wake::Order(Order::Kill) => self.kill(Reason::Cancelled),
            Wake::Cancelled => {
                self.cancel_seen = true;
                self.terminate(Reason::Cancelled, None);
            }
            Wake::Exited => self.on_exit(),
            Wake::Looked(found) => self.on_look(found),
            Wake::Ended(ended) => self.on_ended(ended),
            Wake::Deadline => self.on_deadline(),
            Wake::Output(progress) => return self.on_output(progress),
        }
        Ok(())
    }

    fn on_exit(&mut self) {
        let now = Instant::now();
        self.exited = Some(now);
        self.stdin.close(true);
        if let Some(events) = &self.events {
            events.send(Event::Exited { status: self.shared.leader.exit_status() });
        }
        match &mut self.phase {
            Phase::Running => {
                self.phase = Phase::Draining { since: now };
                self.drained();
            }
            // The others have what is left of the grace time.
            Phase::Terminating { next_look, .. } => *next_look = Some(now),
            _ => {}
        }
    }

    /// Both streams have ended, if they have: nobody needs to be waited for.
    fn drained(&mut self) {
        if self.streams.iter().any(|stream| stream.pipe.is_some()) {
            return;
        }
        match self.phase {
            Phase::Draining { .. } if self.limits.leftovers == Leftovers::KillAll => self.end(),
            Phase::Draining { .. } | Phase::LastWords { .. } => self.phase = Phase::Done,
            _ => {}
        }
    }

    fn on_output(&mut self, progress: Progress) -> Result<(), Broken> {
        if let Some(panic) = progress.panic {
            self.on_line = None;
            self.streams.iter_mut().for_each(OutputStream::stop_lines);
            self.shared.lock().panic = Some(panic);
            self.kill(Reason::Cancelled);
        }
        if let Some(stream) = progress.over_limit {
            self.kill(Reason::OutputLimit(stream));
        }
        if let Some(source) = progress.failed {
            reaper::abandon(Arc::clone(&self.shared.leader));
            return Err(Broken { stage: "reading its output", source: Arc::new(source) });
        }
        // A program that ends closes its streams a moment before: looking now mostly saves a waking.
        let closed = self.streams.iter().all(|stream| stream.pipe.is_none());
        if closed && self.exited.is_none() && self.shared.leader.exit_status().is_some() {
            self.on_exit();
        }
        self.drained();
        Ok(())
    }

    fn on_deadline(&mut self) {
        let now = Instant::now();
        // Output re-arms some deadlines after the alarm was set.
        if self.deadline().is_none_or(|deadline| deadline > now) {
            return;
        }
        match &mut self.phase {
            Phase::Running => {
                let timeout =
                    self.limits.timeout.filter(|limit| now.duration_since(self.shared.started) >= *limit);
                match (timeout, self.limits.idle_timeout) {
                    (Some(limit), _) => self.terminate(Reason::Timeout(limit), None),
                    (None, Some(limit)) => self.terminate(Reason::Idle(limit), None),
                    (None, None) => {}
                }
            }
            Phase::Terminating { kill_at, look, next_look } => {
                if *kill_at <= now {
                    self.escalated = true;
                    self.end();
                } else {
                    *next_look = None;
                    *look = Some(reaper::look(Arc::clone(&self.shared.leader), Do::Nothing, Vec::new()));
                }
            }
            Phase::Draining { since } => {
                let since = *since;
                // When both clocks have run out nothing is waited for any more.
                let last_call = now.duration_since(since) >= self.limits.drain_max;
                let kill = if last_call { Do::KillHolders } else { Do::KillIdleHolders };
                let look = |this: &mut Self, action| this.look_at_holders(action, since, last_call);
                for stream in &mut self.streams {
                    stream.cut_short = stream.pipe.is_some();
                }
                match self.limits.leftovers {
                    Leftovers::KillAll => self.end(),
                    // Where they cannot be told from the others, all of them end.
                    Leftovers::KillHolders if !crate::tree::SEES_HOLDERS => self.end(),
                    Leftovers::KillHolders => look(self, kill),
                    Leftovers::Leave => look(self, Do::Nothing),
                }
            }
            Phase::LastWords { .. } => self.phase = Phase::Done,
            Phase::Ending { hurried: hurried @ false, .. } => {
                *hurried = true;
                self.shared.leader.kill_group();
            }
            Phase::Ending { .. } => {
                let leader = &self.shared.leader;
                let alive = leader.exit_status().is_none().then(|| leader.pid_number()).into_iter().collect();
                self.on_ended(Ended { killed: Vec::new(), alive });
            }
            Phase::Holders { .. } => self.on_look(Found::default()),
            Phase::Done => {}
        }
    }

    fn look_at_holders(&mut self, action: Do, drained_since: Instant, last_call: bool) {
        let pipes =
            self.streams.iter().filter_map(|stream| crate::tree::pipe_id(stream.pipe.as_ref()?)).collect();
        let found = reaper::look(Arc::clone(&self.shared.leader), action, pipes);
        self.phase = Phase::Holders { found, since: Instant::now(), drained_since, last_call };
    }

    fn on_look(&mut self, found: Found) {
        let now = Instant::now();
        match &mut self.phase {
            Phase::Terminating { look, next_look, .. } => {
                *look = None;
                if self.exited.is_none() {
                    return; // the answer to the signal
                }
                if found.members.is_empty() {
                    self.end();
                } else {
                    *next_look = Some(now + Duration::from_millis(25));
                }
            }
            // Not silent but starved: a loaded machine must not cost output. Only the other clock counts.
            Phase::Holders { drained_since: since, last_call, .. }
                if (found.busy || found.undecided) && !*last_call
                    || found.undecided && now.duration_since(*since) < self.limits.drain_max + AFTER_KILL =>
            {
                self.phase = Phase::Draining { since: *since };
                self.last_output = now;
                self.note_leftovers(found.members.into_iter().filter(|member| member.killed));
                for stream in &mut self.streams {
                    stream.cut_short = false;
                }
                self.drained();
            }
            Phase::Holders { .. } => {
                let killed = found.members.iter().any(|leftover| leftover.killed);
                self.note_leftovers(found.members);
                self.phase = Phase::LastWords { until: if killed { now + AFTER_KILL } else { now } };
                self.drained();
            }
            _ => {}
        }
    }

    fn on_ended(&mut self, ended: Ended) {
        self.note_leftovers(ended.killed);
        self.unkillable = ended.alive;
        self.phase = Phase::LastWords { until: Instant::now() + AFTER_KILL };
        self.drained();
    }

    fn note_leftovers(&mut self, found: impl IntoIterator<Item = Leftover>) {
        for leftover in found {
            match self.leftovers.iter_mut().find(|known| known.pid == leftover.pid) {
                Some(known) => known.killed |= leftover.killed,
                None => self.leftovers.push(leftover),
            }
        }
    }

    /// Ends the run politely.
    fn terminate(&mut self, reason: Reason, grace: Option<Duration>) {
        match &mut self.phase {
            Phase::Running => {
                self.reason = Some(reason);
                self.send(Event::Terminating);
                self.shared.leader.terminate_group();
                let look = reaper::look(Arc::clone(&self.shared.leader), Do::TerminateEscaped, Vec::new());
                let now = Instant::now();
                let kill_at = now.checked_add(grace.unwrap_or(self.limits.term_grace)).unwrap_or(now);
                self.phase = Phase::Terminating { kill_at, look: Some(look), next_look: None };
            }
            Phase::Terminating { kill_at, .. } => {
                if let Some(sooner) = grace.and_then(|grace| Instant::now().checked_add(grace)) {
                    *kill_at = sooner.min(*kill_at);
                }
            }
            // The program has ended, and what is left of it has no claim to more time.
            Phase::Draining { .. } | Phase::Holders { .. } => {
                self.reason.get_or_insert(reason);
                self.end();
            }
            Phase::Ending { .. } | Phase::LastWords { .. } | Phase::Done => {}
        }
    }

    /// Ends the run now.
    fn kill(&mut self, reason: Reason) {
        match self.phase {
            Phase::Ending { .. } | Phase::LastWords { .. } | Phase::Done => return,
            Phase::Running => self.send(Event::Terminating),
            _ => {}
        }
        self.reason.get_or_insert(reason);
        self.escalated |= self.exited.is_none();
        self.end();
    }

    fn end(&mut self) {
        let ended = reaper::end(Arc::clone(&self.shared.leader));
        self.phase = Phase::Ending { ended, since: Instant::now(), hurried: false };
    }

    fn send(&self, event: Event) {
        if let Some(events) = &self.events {
            events.send(event);
        }
    }

    async fn finish(&mut self, broken: Option<Broken>) {
        if self.limits.spill.is_some() {
            self.let_spill_catch_up().await;
        }
        let reaped = self.reap().await;
        self.conclude(reaped, broken);
    }

    /// The leader has ended, so its status is there; unless it could not be killed, or is being killed.
    async fn reap(&mut self) -> Option<Reaped> {
        if self.exited.is_none() && self.unkillable.is_empty() {
            let _ = tokio::time::timeout(AFTER_KILL, self.exit.exited()).await;
            self.exited = Some(Instant::now());
        }
        self.ward = None;
        self.shared.leader.reap()
    }

    /// Waiting for a slow disk blocks, so most of it is done here.
    async fn let_spill_catch_up(&mut self) {
        for stream in Stream::BOTH {
            let drained = self.shared.lock().captures[stream.index()].as_ref().map(Capture::drained);
            if let Some(drained) = drained {
                let _ = tokio::time::timeout(Duration::from_secs(1), drained).await;
            }
        }
    }

    fn conclude(&mut self, reaped: Option<Reaped>, broken: Option<Broken>) {
        let mut pump = Pump {
            shared: &self.shared,
            limits: &self.limits,
            events: self.events.as_deref(),
            on_line: &self.on_line,
            exited: true,
        };
        let mut progress = Progress::default();
        for stream in &mut self.streams {
            pump.flush(stream, &mut progress);
        }
        let status = reaped.map(|reaped| reaped.status);
        let unkillable = std::mem::take(&mut self.unkillable);
        let escalated = self.escalated;
        let termination = match (self.reason, status) {
            _ if !unkillable.is_empty() => Termination::Unkillable { pids: unkillable },
            (Some(Reason::Timeout(after)), _) => Termination::TimedOut { after, escalated },
            (Some(Reason::Idle(after)), _) => Termination::IdleTimedOut { after, escalated },
            (Some(Reason::Cancelled), _) => Termination::Cancelled { escalated },
            (Some(Reason::OutputLimit(stream)), _) => Termination::OutputLimit { stream },
            (None, Some(status)) => status.into(),
            (None, None) => Termination::Unknown,
        };
        let stdin = self.stdin.report(&self.shared);
        let mut state = self.shared.lock();
        let [stdout, stderr] = [0, 1].map(|index| {
            let complete = self.streams[index].complete;
            match state.captures[index].take() {
                Some(capture) => capture.finish(complete),
                None => Capture::new(&CaptureLimits::new(0), &Secrets::default()).finish(complete),
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
        };
        state.result = Some(RunResult { output: Arc::new(output), broken });
        if let Some(panic) = progress.panic {
            state.panic.get_or_insert(panic);
        }
        drop(state);
        self.phase = Phase::Done;
        self.send(Event::Finished);
        self.shared.set_finished();
    }
}

/// The runtime is going, or the handle is gone: the reaper has the rest.
impl Drop for Driver {
    fn drop(&mut self) {
        if self.shared.is_finished() {
            return;
        }
        reaper::abandon(Arc::clone(&self.shared.leader));
        self.ward = None;
        self.reason.get_or_insert(Reason::Cancelled);
        self.escalated = true;
        let source = Arc::new(io::Error::other("the runtime was shut down"));
        self.conclude(None, Some(Broken { stage: "running it", source }));
        if let Some(events) = &self.events {
            events.end();
        }
        if self.shared.abandoned.load(Ordering::Acquire)
            && let Some(result) = self.shared.result()
        {
            // Nobody will ever hear of these files.
            for file in [&result.output.stdout.spill, &result.output.stderr.spill].into_iter().flatten() {
                #[allow(clippy::disallowed_methods, reason = "our own file, under a name that we have drawn")]
                let _ = std::fs::remove_file(file);
            }
        }
    }
}

impl Phase {
    /// What the reaper answers to what this phase has asked it.
    async fn answer(&mut self) -> Wake {
        match self {
            Self::Terminating { look: Some(found), .. } | Self::Holders { found, .. } => match found.await {
                Ok(found) => Wake::Looked(found),
                Err(_) => Wake::Looked(Found::default()),
            },
            Self::Ending { ended, .. } => Wake::Ended(ended.await.unwrap_or_default()),
            _ => std::future::pending().await,
        }
    }
}
