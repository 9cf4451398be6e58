//! What happens in a run, while it happens.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::outcome::{ExitStatus, Stream};

/// What a run tells while it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The program has started.
    Started {
        /// Its process id.
        pid: u32,
    },
    /// It printed a line ([`By::Line`]).
    Line {
        /// Where.
        stream: Stream,
        /// The line without its end; what is not UTF-8 is replaced by U+FFFD.
        text: String,
        /// It was longer than [`Limits::max_line`](crate::Limits::max_line); the rest is gone.
        truncated: bool,
        /// Since the start of the program.
        at: Duration,
    },
    /// It printed bytes ([`By::Chunk`]).
    Chunk {
        /// Where.
        stream: Stream,
        /// At most 64 KiB of them, cut wherever the pipe was.
        bytes: Vec<u8>,
        /// Since the start of the program.
        at: Duration,
    },
    /// The receiver was too slow for [`Lag::Drop`], and so many bytes of this stream were left out here.
    Lagged {
        /// Where.
        stream: Stream,
        /// How many.
        bytes: u64,
    },
    /// The run is being ended early; the outcome says why.
    Terminating,
    /// The program has ended; its streams may go on for a moment.
    Exited {
        /// How.
        status: Option<ExitStatus>,
    },
    /// The outcome is there. The last event.
    Finished,
}

/// How output is cut into events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// One event a line.
    #[default]
    Line,
    /// One event for what was read at once: the least work, and a prompt without a line end is seen.
    Chunk,
}

/// What happens when the receiver of the events is slower than the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lag {
    /// Events are left out and [`Event::Lagged`] counts them; the program is not slowed down.
    #[default]
    Drop,
    /// The stream is not read until there is room again, so that the program waits when it writes to it.
    /// The other stream goes on. After the program's exit up to 1 MiB more is queued, so that nothing of
    /// what it left in the pipe is lost.
    Block,
}

/// How a run tells what happens: [`Command::events`](crate::Command::events).
#[derive(Clone, Copy, Debug)]
pub struct EventOptions {
    /// By line, or as it comes.
    pub by: By,
    /// What happens when the receiver is slow.
    pub lag: Lag,
    /// Bytes of each stream that wait for the receiver at most. 1 MiB.
    pub buffer: usize,
}

impl Default for EventOptions {
    fn default() -> Self {
        Self { by: By::default(), lag: Lag::default(), buffer: 1024 * 1024 }
    }
}

/// The receiver of a run's events; see [`Running::events`](crate::Running::events).
///
/// Dropping it ends the events and nothing else.
#[derive(Debug)]
pub struct Events {
    queue: Arc<EventQueue>,
}

impl Events {
    /// The next event; `None` after [`Event::Finished`]. Loses nothing if it is dropped while it waits.
    pub async fn recv(&mut self) -> Option<Event> {
        std::future::poll_fn(|context| self.poll_recv(context)).await
    }

    /// The same for a hand-written `Stream`.
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut queue = self.queue.lock();
        let Some((event, cost)) = queue.events.pop_front() else {
            if queue.ended {
                return Poll::Ready(None);
            }
            queue.receiver = Some(context.waker().clone());
            return Poll::Pending;
        };
        if let Some((stream, bytes)) = cost {
            queue.waiting[stream.index()] -= bytes;
        }
        if let Some(reader) = queue.reader.take() {
            drop(queue);
            reader.wake();
        }
        Poll::Ready(Some(event))
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let mut queue = self.queue.lock();
        queue.abandoned = true;
        queue.events.clear();
        queue.waiting = [0; 2];
        let reader = queue.reader.take();
        drop(queue);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

/// One queue for both streams, so that their order is kept, with a budget for each, so that a full one
/// does not stop the other.
#[derive(Debug)]
pub(crate) struct EventQueue {
    state: Mutex<Queue>,
    options: EventOptions,
}

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<(Event, Option<(Stream, usize)>)>,
    /// Bytes in `events`, by stream.
    waiting: [usize; 2],
    /// Bytes that were left out since the last event of the stream.
    lagged: [u64; 2],
    receiver: Option<Waker>,
    reader: Option<Waker>,
    ended: bool,
    abandoned: bool,
}

/// What each event costs apart from its text, so that a flood of empty lines is bounded too.
const EVENT_COST: usize = 64;
/// What may be queued beyond the budget once the program has ended.
const AFTER_EXIT: usize = 1024 * 1024;

impl EventQueue {
    pub(crate) fn new(options: EventOptions) -> (Arc<Self>, Events) {
        let queue = Arc::new(Self { state: Mutex::default(), options });
        (Arc::clone(&queue), Events { queue })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn options(&self) -> EventOptions {
        self.options
    }

    /// There is room for more of this stream; if not, the task is woken when there may be.
    pub(crate) fn poll_room(&self, stream: Stream, context: &mut Context<'_>) -> Poll<()> {
        if self.options.lag == Lag::Drop {
            return Poll::Ready(());
        }
        let mut queue = self.lock();
        if queue.abandoned || queue.waiting[stream.index()] < self.options.buffer {
            return Poll::Ready(());
        }
        queue.reader = Some(context.waker().clone());
        Poll::Pending
    }

    /// Queues what a stream printed; `event` is only made if there is room for its `bytes`.
    pub(crate) fn send_output(
        &self,
        stream: Stream,
        bytes: usize,
        exited: bool,
        event: impl FnOnce() -> Event,
    ) {
        let cost = bytes + EVENT_COST;
        let mut queue = self.lock();
        if queue.abandoned {
            return;
        }
        let budget = match self.options.lag {
            Lag::Drop => self.options.buffer,
            // One read may bring more than there is room for; `poll_room` stops the next one.
            Lag::Block if exited => self.options.buffer + AFTER_EXIT,
            Lag::Block => usize::MAX,
        };
        if queue.waiting[stream.index()] >= budget {
            queue.lagged[stream.index()] += bytes as u64;
            return;
        }
        queue.report_lag(stream);
        queue.waiting[stream.index()] += cost;
        queue.events.push_back((event(), Some((stream, cost))));
        Self::wake_receiver(queue);
    }

    pub(crate) fn send(&self, event: Event) {
        let mut queue = self.lock();
        if queue.abandoned {
            return;
        }
        if event == Event::Finished {
            for stream in Stream::BOTH {
                queue.report_lag(stream);
            }
            queue.ended = true;
        }
        queue.events.push_back((event, None));
        Self::wake_receiver(queue);
    }

    /// No more events, also if the run was broken off.
    pub(crate) fn end(&self) {
        let mut queue = self.lock();
        queue.ended = true;
        Self::wake_receiver(queue);
    }

    fn wake_receiver(mut queue: std::sync::MutexGuard<'_, Queue>) {
        let receiver = queue.receiver.take();
        drop(queue);
        if let Some(receiver) = receiver {
            receiver.wake();
        }
    }
}

impl Queue {
    fn report_lag(&mut self, stream: Stream) {
        let bytes = std::mem::take(&mut self.lagged[stream.index()]);
        if bytes > 0 {
            self.events.push_back((Event::Lagged { stream, bytes }, None));
        }
    }
}
