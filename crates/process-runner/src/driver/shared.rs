//! What a run has found so far, outside any future that a caller might drop, and what its handle asks.

use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::capture::Capture;
use crate::outcome::{Output, Stream};
use crate::tree::{Leader, StdinPipe};

/// What the handle of a run may ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    /// `SIGTERM`, this long, `SIGKILL`.
    Terminate(Option<Duration>),
    Kill,
}

/// What a run has found so far.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) leader: Arc<Leader>,
    pub(crate) started: Instant,
    state: Mutex<State>,
    /// There is an order in the state.
    ordered: Notify,
    finished: AtomicBool,
    has_finished: Notify,
    /// The pipe of [`Stdin::Piped`](crate::Stdin::Piped), while it is open.
    pub(crate) stdin: tokio::sync::Mutex<Option<StdinPipe>>,
    pub(crate) stdin_written: AtomicU64,
    /// The handle was dropped before the end.
    pub(crate) abandoned: AtomicBool,
}

#[derive(Default)]
pub(super) struct State {
    orders: VecDeque<Order>,
    /// Each stream as it comes, until `result` has it.
    pub(super) captures: [Option<Capture>; 2],
    pub(super) result: Option<RunResult>,
    pub(super) panic: Option<Box<dyn Any + Send>>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("finished", &self.result.is_some()).finish_non_exhaustive()
    }
}

/// What the driver leaves behind.
#[derive(Clone, Debug)]
pub(crate) struct RunResult {
    pub(crate) output: Arc<Output>,
    /// What our own part failed at, if it did.
    pub(crate) broken: Option<Broken>,
}

#[derive(Clone, Debug)]
pub(crate) struct Broken {
    pub(crate) stage: &'static str,
    pub(crate) source: Arc<io::Error>,
}

impl Shared {
    pub(super) fn new(
        leader: Arc<Leader>,
        started: Instant,
        stdin: Option<StdinPipe>,
        captures: [Option<Capture>; 2],
    ) -> Self {
        Self {
            leader,
            started,
            state: Mutex::new(State { captures, ..State::default() }),
            ordered: Notify::new(),
            finished: AtomicBool::new(false),
            has_finished: Notify::new(),
            stdin: tokio::sync::Mutex::new(stdin),
            stdin_written: AtomicU64::new(0),
            abandoned: AtomicBool::new(false),
        }
    }

    /// Asks the driver for something. Nothing comes of it when the run is over.
    pub(crate) fn order(&self, order: Order) {
        self.lock().orders.push_back(order);
        self.ordered.notify_one();
    }

    /// The next order, in turn. Only the driver takes them.
    pub(super) async fn next_order(&self) -> Order {
        loop {
            if let Some(order) = self.lock().orders.pop_front() {
                return order;
            }
            self.ordered.notified().await;
        }
    }

    /// The result is there.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    pub(super) fn set_finished(&self) {
        self.finished.store(true, Ordering::Release);
        self.has_finished.notify_waiters();
    }

    /// Waits for the result.
    pub(crate) async fn finished(&self) {
        let mut told = pin!(self.has_finished.notified());
        // Listens before it looks, so that an end in between is heard.
        told.as_mut().enable();
        if !self.is_finished() {
            told.await;
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn result(&self) -> Option<RunResult> {
        self.lock().result.clone()
    }

    pub(crate) fn take_result(&self) -> Option<RunResult> {
        self.lock().result.take()
    }

    pub(crate) fn take_panic(&self) -> Option<Box<dyn Any + Send>> {
        self.lock().panic.take()
    }

    pub(crate) fn snapshot(&self, stream: Stream, cursor: u64, max_bytes: usize) -> crate::Snapshot {
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
            None => crate::Snapshot::default(),
        }
    }
}
