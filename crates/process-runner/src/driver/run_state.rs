//! The state that a run's driver and its handle share.

use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::capture::OutputCapture;
use crate::outcome::{Output, ResourceUsage, Stream};
use crate::tree::{ProcessLeader, StdinPipe};

/// A request of the handle or the runner to end a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StopRequest {
    /// `SIGTERM`, then `SIGKILL` after this grace time, or after that of the run's limits.
    Terminate { grace: Option<Duration> },
    /// `SIGKILL`.
    Kill,
}

/// The state of a run that its driver and its handle share.
// It is outside the driver's future, so that a caller who drops a future loses nothing.
#[derive(Debug)]
pub(crate) struct RunState {
    pub(crate) leader: Arc<ProcessLeader>,
    pub(crate) started: Instant,
    state: Mutex<LockedRunState>,
    /// Notified when a stop request is queued.
    stop_requested: Notify,
    is_finished: AtomicBool,
    /// Notified when `is_finished` becomes true.
    finish: Notify,
    /// The pipe of [`Stdin::Piped`](crate::Stdin::Piped), while it is open.
    pub(crate) stdin: tokio::sync::Mutex<Option<StdinPipe>>,
    pub(crate) stdin_written: AtomicU64,
    /// True if the handle was dropped before the end.
    pub(crate) abandoned: AtomicBool,
    /// The resources that the program has used, once it was waited for.
    used: OnceLock<ResourceUsage>,
}

/// The part of [`RunState`] under its lock.
#[derive(Default)]
pub(super) struct LockedRunState {
    stop_requests: VecDeque<StopRequest>,
    /// The captures of both streams, until `result` has their contents.
    pub(super) captures: [Option<OutputCapture>; 2],
    pub(super) result: Option<DriverResult>,
    /// The panic of a line callback, to be resumed in the caller.
    pub(super) panic: Option<Box<dyn Any + Send>>,
}

impl std::fmt::Debug for LockedRunState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockedRunState").field("finished", &self.result.is_some()).finish_non_exhaustive()
    }
}

/// The result of a run, as the driver leaves it.
#[derive(Clone, Debug)]
pub(crate) struct DriverResult {
    pub(crate) output: Arc<Output>,
    /// Set if following the run failed, so that the output is incomplete.
    pub(crate) failure: Option<RunFailure>,
}

/// A failure to follow a run.
#[derive(Clone, Debug)]
pub(crate) struct RunFailure {
    /// The step that failed, to follow "while".
    pub(crate) stage: &'static str,
    pub(crate) source: Arc<io::Error>,
}

impl RunState {
    pub(super) fn new(
        leader: Arc<ProcessLeader>,
        started: Instant,
        stdin: Option<StdinPipe>,
        captures: [Option<OutputCapture>; 2],
    ) -> Self {
        Self {
            leader,
            started,
            state: Mutex::new(LockedRunState { captures, ..LockedRunState::default() }),
            stop_requested: Notify::new(),
            is_finished: AtomicBool::new(false),
            finish: Notify::new(),
            stdin: tokio::sync::Mutex::new(stdin),
            stdin_written: AtomicU64::new(0),
            abandoned: AtomicBool::new(false),
            used: OnceLock::new(),
        }
    }

    /// Returns the resources that the program has used, if they are known yet. The result may be taken before that is asked.
    pub(crate) fn used(&self) -> Option<ResourceUsage> {
        self.used.get().copied()
    }

    pub(super) fn set_used(&self, used: ResourceUsage) {
        // A run ends once.
        let _ = self.used.set(used);
    }

    /// Asks the driver to end the run. It has no effect once the run is over.
    pub(crate) fn request_stop(&self, request: StopRequest) {
        self.lock().stop_requests.push_back(request);
        self.stop_requested.notify_one();
    }

    /// Waits for the next stop request, in order. Only the driver calls it.
    pub(super) async fn next_stop_request(&self) -> StopRequest {
        loop {
            if let Some(request) = self.lock().stop_requests.pop_front() {
                return request;
            }
            // `notify_one` leaves a permit, so a request between the look and the wait is not missed.
            self.stop_requested.notified().await;
        }
    }

    /// Returns true once the result is there.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_finished.load(Ordering::Acquire)
    }

    pub(super) fn set_finished(&self) {
        self.is_finished.store(true, Ordering::Release);
        self.finish.notify_waiters();
    }

    /// Waits for the result.
    pub(crate) async fn finished(&self) {
        let mut notified = pin!(self.finish.notified());
        // Registered before the flag is read, so that an end in between is not missed.
        notified.as_mut().enable();
        if !self.is_finished() {
            notified.await;
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, LockedRunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn result(&self) -> Option<DriverResult> {
        self.lock().result.clone()
    }

    pub(crate) fn take_result(&self) -> Option<DriverResult> {
        self.lock().result.take()
    }

    pub(crate) fn take_panic(&self) -> Option<Box<dyn Any + Send>> {
        self.lock().panic.take()
    }

    pub(crate) fn snapshot(&self, stream: Stream, cursor: u64, max_bytes: usize) -> crate::OutputSnapshot {
        let state = self.lock();
        if let Some(capture) = &state.captures[stream.index()] {
            return capture.snapshot(cursor, max_bytes);
        }
        match &state.result {
            Some(result) => {
                let captured = match stream {
                    Stream::Stdout => &result.output.stdout,
                    Stream::Stderr => &result.output.stderr,
                };
                captured.snapshot(cursor, max_bytes)
            }
            None => crate::OutputSnapshot::default(),
        }
    }
}
