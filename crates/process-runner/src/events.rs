//! The events of a run, and the queue from its driver to their receiver.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::outcome::{ExitStatus, Stream};

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunEvent {
    /// The program has started.
    Started {
        /// Its process id.
        pid: u32,
    },
    /// The program printed a line ([`EventGranularity::Line`]).
    Line {
        /// The stream.
        stream: Stream,
        /// The line without its end; what is not UTF-8 is replaced by U+FFFD.
        text: String,
        /// True if the line was longer than [`Limits::max_line`](crate::Limits::max_line). The rest was dropped.
        truncated: bool,
        /// The time since the start of the program.
        at: Duration,
    },
    /// The program printed bytes ([`EventGranularity::Chunk`]).
    Chunk {
        /// The stream.
        stream: Stream,
        /// The bytes that one read returned, at most 64 KiB. It may end within a line or a character.
        bytes: Vec<u8>,
        /// The time since the start of the program.
        at: Duration,
    },
    /// The receiver was too slow, and output was left out here ([`LagPolicy::Drop`]).
    Lagged {
        /// The stream.
        stream: Stream,
        /// The bytes that were left out.
        bytes: u64,
    },
    /// The run is being ended early. [`Output::termination`](crate::Output::termination) will say why.
    Terminating,
    /// The program has ended. Others may still print to its streams for a moment.
    Exited {
        /// The end of the program. `None` if it is not known yet.
        status: Option<ExitStatus>,
    },
    /// The run is over. This is the last event.
    Finished,
}

/// The amount of output in one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventGranularity {
    /// One event for each line.
    #[default]
    Line,
    /// One event for each read. Events for reads cost the least, and show a prompt that has no line end.
    Chunk,
}

/// The behaviour of a run whose events are received more slowly than the program prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LagPolicy {
    /// Leaves output events out and counts their bytes in [`RunEvent::Lagged`]. The program is not slowed down.
    #[default]
    Drop,
    /// Reads no more of the stream until there is room again, so that the program waits when it writes to it.
    /// The other stream goes on. After the program's exit up to 1 MiB more is queued, so that nothing of
    /// what it left in the pipe is lost.
    Block,
}

/// The options of a run's events; see [`Command::events`](crate::Command::events).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct EventOptions {
    /// The amount of output in one event. A line by default.
    pub granularity: EventGranularity,
    /// The behaviour when the receiver is slow. Events are dropped by default.
    pub lag: LagPolicy,
    /// The most bytes of each stream that wait for the receiver. 1 MiB by default.
    pub max_buffered_bytes: usize,
}

impl Default for EventOptions {
    fn default() -> Self {
        Self {
            granularity: EventGranularity::default(),
            lag: LagPolicy::default(),
            max_buffered_bytes: 1024 * 1024,
        }
    }
}

impl EventOptions {
    /// Sets [`EventOptions::granularity`].
    #[must_use]
    pub fn granularity(mut self, granularity: EventGranularity) -> Self {
        self.granularity = granularity;
        self
    }

    /// Sets [`EventOptions::lag`].
    #[must_use]
    pub fn lag(mut self, policy: LagPolicy) -> Self {
        self.lag = policy;
        self
    }

    /// Sets [`EventOptions::max_buffered_bytes`].
    #[must_use]
    pub fn max_buffered_bytes(mut self, bytes: usize) -> Self {
        self.max_buffered_bytes = bytes;
        self
    }
}

/// The receiver of a run's events; see [`Running::events`](crate::Running::events).
///
/// Dropping it ends the events and nothing else.
#[derive(Debug)]
pub struct EventReceiver {
    queue: Arc<EventQueue>,
}

impl EventReceiver {
    /// Waits for the next event. Returns `None` after [`RunEvent::Finished`]. If the future is dropped, no event is
    /// lost.
    pub async fn recv(&mut self) -> Option<RunEvent> {
        std::future::poll_fn(|context| self.poll_recv(context)).await
    }

    fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        let mut queue = self.queue.lock();
        let Some((event, cost)) = queue.events.pop_front() else {
            if queue.ended {
                return Poll::Ready(None);
            }
            queue.receiver_waker = Some(context.waker().clone());
            return Poll::Pending;
        };
        // Subtracted when it is received, so that the budget counts what the receiver has not seen.
        if let Some((stream, bytes)) = cost {
            queue.queued_bytes[stream.index()] -= bytes;
        }
        if let Some(driver) = queue.driver_waker.take() {
            drop(queue);
            driver.wake();
        }
        Poll::Ready(Some(event))
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        let mut queue = self.queue.lock();
        queue.abandoned = true;
        queue.events.clear();
        queue.queued_bytes = [0; 2];
        let driver = queue.driver_waker.take();
        drop(queue);
        if let Some(driver) = driver {
            driver.wake();
        }
    }
}

/// The queue of a run's events.
// One queue for both streams, so that their order is kept, with a budget for each, so that a full one does not stop
// the other.
#[derive(Debug)]
pub(crate) struct EventQueue {
    state: Mutex<EventQueueState>,
    options: EventOptions,
}

/// The part of [`EventQueue`] under its lock.
#[derive(Debug, Default)]
struct EventQueueState {
    events: VecDeque<(RunEvent, Option<(Stream, usize)>)>,
    /// The cost of the events in `events`, by stream.
    queued_bytes: [usize; 2],
    /// The bytes that were left out since the last event of the stream.
    lagged_bytes: [u64; 2],
    /// Wakes the receiver when there is an event.
    receiver_waker: Option<Waker>,
    /// Wakes the driver when there is room.
    driver_waker: Option<Waker>,
    ended: bool,
    /// True once the receiver was dropped.
    abandoned: bool,
}

/// The cost of an event beside its text, so that a flood of empty lines is bounded too.
const EVENT_OVERHEAD: usize = 64;
/// The bytes that may be queued beyond the budget once the program has ended. A full pipe is 64 KiB, or 1 MiB where the
/// program enlarged it.
const EXTRA_AFTER_EXIT: usize = 1024 * 1024;

impl EventQueue {
    pub(crate) fn new(options: EventOptions) -> (Arc<Self>, EventReceiver) {
        let queue = Arc::new(Self { state: Mutex::default(), options });
        (Arc::clone(&queue), EventReceiver { queue })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, EventQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn options(&self) -> EventOptions {
        self.options
    }

    /// Is ready if there is room for more of this stream. If not, the task is woken when there may be.
    pub(crate) fn poll_room(&self, stream: Stream, context: &mut Context<'_>) -> Poll<()> {
        if self.options.lag == LagPolicy::Drop {
            return Poll::Ready(());
        }
        let mut queue = self.lock();
        // An abandoned queue has room for ever: its events are thrown away.
        if queue.abandoned || queue.queued_bytes[stream.index()] < self.options.max_buffered_bytes {
            return Poll::Ready(());
        }
        queue.driver_waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Queues the event of output. `event` is only called if there is room for its `bytes`.
    pub(crate) fn send_output(
        &self,
        stream: Stream,
        bytes: usize,
        exited: bool,
        event: impl FnOnce() -> RunEvent,
    ) {
        let cost = bytes + EVENT_OVERHEAD;
        let mut queue = self.lock();
        if queue.abandoned {
            return;
        }
        let budget = match self.options.lag {
            LagPolicy::Drop => self.options.max_buffered_bytes,
            // One read may return more than there is room for, and `poll_room` then stops the next. After the exit
            // nothing stops it, so the budget must.
            LagPolicy::Block if exited => self.options.max_buffered_bytes + EXTRA_AFTER_EXIT,
            LagPolicy::Block => usize::MAX,
        };
        if queue.queued_bytes[stream.index()] >= budget {
            queue.lagged_bytes[stream.index()] += bytes as u64;
            return;
        }
        queue.report_lag(stream);
        queue.queued_bytes[stream.index()] += cost;
        queue.events.push_back((event(), Some((stream, cost))));
        Self::wake_receiver(queue);
    }

    /// Queues an event that is not output.
    pub(crate) fn send(&self, event: RunEvent) {
        let mut queue = self.lock();
        if queue.abandoned {
            return;
        }
        if event == RunEvent::Finished {
            for stream in Stream::BOTH {
                queue.report_lag(stream);
            }
            queue.ended = true;
        }
        queue.events.push_back((event, None));
        Self::wake_receiver(queue);
    }

    /// Ends the events of a run that gave up before [`RunEvent::Finished`].
    pub(crate) fn end(&self) {
        let mut queue = self.lock();
        queue.ended = true;
        Self::wake_receiver(queue);
    }

    fn wake_receiver(mut queue: std::sync::MutexGuard<'_, EventQueueState>) {
        // Woken without the lock, which the receiver takes first of all.
        let receiver = queue.receiver_waker.take();
        drop(queue);
        if let Some(receiver) = receiver {
            receiver.wake();
        }
    }
}

impl EventQueueState {
    /// Queues the count of bytes that were left out since the stream's last event.
    fn report_lag(&mut self, stream: Stream) {
        let bytes = std::mem::take(&mut self.lagged_bytes[stream.index()]);
        if bytes > 0 {
            self.events.push_back((RunEvent::Lagged { stream, bytes }, None));
        }
    }
}
