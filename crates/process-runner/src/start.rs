//! The threads on which programs are started.
//!
//! A start holds its thread until the new program is in place, which a busy machine makes milliseconds of
//! and a file system that hangs makes for ever. So it never happens on a thread of the runtime; nor on
//! tokio's blocking threads, because a runtime that is shut down waits for those.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::oneshot;

/// A start that is being made. Dropped before its end it is given up: the thread is left with it, and what
/// comes of it is dropped there.
pub(crate) struct Start<T> {
    answer: oneshot::Receiver<T>,
    answered: bool,
    ticket: Arc<Ticket>,
}

/// What both sides know of a start.
struct Ticket {
    state: AtomicU8,
    /// Starts of this runner that were given up and go on.
    stuck: Arc<AtomicUsize>,
}

const GOES_ON: u8 = 0;
const GIVEN_UP: u8 = 1;
const OVER: u8 = 2;

/// Does `work` on another thread. It is told whether anybody still waits for it.
///
/// # Errors
/// If there is no thread and none can be made.
pub(crate) fn on_thread<T: Send + 'static>(
    stuck: &Arc<AtomicUsize>,
    work: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> T + Send + 'static,
) -> io::Result<Start<T>> {
    let (sender, answer) = oneshot::channel();
    let ticket = Arc::new(Ticket { state: AtomicU8::new(GOES_ON), stuck: Arc::clone(stuck) });
    let own = Arc::clone(&ticket);
    submit(Box::new(move || {
        let value = work(&|| own.state.load(Ordering::Acquire) == GIVEN_UP);
        drop(sender.send(value)); // with the value, if nobody waits
        if own.state.swap(OVER, Ordering::AcqRel) == GIVEN_UP {
            own.stuck.fetch_sub(1, Ordering::AcqRel);
        }
    }))?;
    Ok(Start { answer, answered: false, ticket })
}

impl<T> Future for Start<T> {
    /// Nothing if the work has panicked.
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = Pin::new(&mut self.answer).poll(context).map(Result::ok);
        self.answered |= answer.is_ready();
        answer
    }
}

impl<T> Drop for Start<T> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        // Counted first, so that the thread never takes away what is not there.
        self.ticket.stuck.fetch_add(1, Ordering::AcqRel);
        if self.ticket.state.swap(GIVEN_UP, Ordering::AcqRel) == OVER {
            self.ticket.stuck.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Pool {
    jobs: VecDeque<Job>,
    /// Threads that there are, and those that wait for a job.
    threads: usize,
    idle: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { jobs: VecDeque::new(), threads: 0, idle: 0 });
static ARRIVED: Condvar = Condvar::new();
/// How long a thread waits for another job.
const LINGER: Duration = Duration::from_secs(10);

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

fn submit(job: Job) -> io::Result<()> {
    let mut pool = pool();
    pool.jobs.push_back(job);
    if pool.idle >= pool.jobs.len() {
        drop(pool);
        ARRIVED.notify_one();
        return Ok(());
    }
    match std::thread::Builder::new().name("process-starter".into()).spawn(work_off) {
        Ok(_) => pool.threads += 1,
        // One of the others takes it when it is free; if they all hang, the start times out.
        Err(_) if pool.threads > 0 => {}
        Err(error) => {
            pool.jobs.pop_back();
            return Err(error);
        }
    }
    Ok(())
}

/// One thread's life.
fn work_off() {
    struct Alive;
    impl Drop for Alive {
        fn drop(&mut self) {
            pool().threads -= 1;
        }
    }
    let alive = Alive;
    let mut waited_in_vain = false;
    loop {
        let mut state = pool();
        let Some(job) = state.jobs.pop_front() else {
            if waited_in_vain {
                state.threads -= 1;
                std::mem::forget(alive);
                return;
            }
            state.idle += 1;
            let (mut state, waited) =
                ARRIVED.wait_timeout(state, LINGER).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
            waited_in_vain = waited.timed_out();
            continue;
        };
        drop(state);
        job();
        waited_in_vain = false;
    }
}
