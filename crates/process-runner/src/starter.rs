//! The threads on which programs are started.
//!
//! A start holds its thread until the new program is in place. On a busy machine that takes milliseconds, and on a
//! file system that hangs it takes for ever, so it must not happen on a thread of the runtime. tokio's blocking
//! threads will not do either: a runtime that is shut down waits for them.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::oneshot;

/// A start in progress, a future of its result.
///
/// Dropping it before it is ready abandons the start. The thread goes on with it, and drops the result when it comes.
pub(crate) struct PendingStart<T> {
    result: oneshot::Receiver<T>,
    is_ready: bool,
    progress: Arc<StartProgress>,
}

/// The state of a start, shared by its future and its thread.
struct StartProgress {
    /// One of [`PENDING`], [`ABANDONED`] and [`DONE`].
    state: AtomicU8,
    /// The number of abandoned starts of the runner that still go on.
    stuck: Arc<AtomicUsize>,
}

const PENDING: u8 = 0;
const ABANDONED: u8 = 1;
const DONE: u8 = 2;

/// Does `work` on another thread. `work` gets a function that returns true once the start is abandoned.
///
/// # Errors
/// If there is no thread and none can be made.
pub(crate) fn start_on_thread<T: Send + 'static>(
    stuck: &Arc<AtomicUsize>,
    work: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> T + Send + 'static,
) -> io::Result<PendingStart<T>> {
    let (sender, result) = oneshot::channel();
    let progress = Arc::new(StartProgress { state: AtomicU8::new(PENDING), stuck: Arc::clone(stuck) });
    let thread_progress = Arc::clone(&progress);
    submit(Box::new(move || {
        let value = work(&|| thread_progress.state.load(Ordering::Acquire) == ABANDONED);
        // If nobody waits any more the value comes back as the error and is dropped here, which ends the program.
        drop(sender.send(value));
        if thread_progress.state.swap(DONE, Ordering::AcqRel) == ABANDONED {
            thread_progress.stuck.fetch_sub(1, Ordering::AcqRel);
        }
    }))?;
    Ok(PendingStart { result, is_ready: false, progress })
}

impl<T> Future for PendingStart<T> {
    /// `None` if the work panicked.
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let result = Pin::new(&mut self.result).poll(context).map(Result::ok);
        self.is_ready |= result.is_ready();
        result
    }
}

impl<T> Drop for PendingStart<T> {
    fn drop(&mut self) {
        if self.is_ready {
            return;
        }
        // Counted before the state changes: the thread subtracts as soon as it sees the state, and the count must not
        // go below zero.
        self.progress.stuck.fetch_add(1, Ordering::AcqRel);
        if self.progress.state.swap(ABANDONED, Ordering::AcqRel) == DONE {
            self.progress.stuck.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

type StartJob = Box<dyn FnOnce() + Send>;

/// The queue of starts and the number of threads that work on it.
#[derive(Default)]
struct StartPool {
    jobs: VecDeque<StartJob>,
    threads: usize,
    idle_threads: usize,
}

static START_POOL: Mutex<StartPool> =
    Mutex::new(StartPool { jobs: VecDeque::new(), threads: 0, idle_threads: 0 });
static JOB_SUBMITTED: Condvar = Condvar::new();
/// The time after which a thread without a job ends.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

fn pool() -> MutexGuard<'static, StartPool> {
    START_POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

fn submit(job: StartJob) -> io::Result<()> {
    let mut pool = pool();
    pool.jobs.push_back(job);
    // An idle thread for each job, or else a new one: a job must not wait behind a start that hangs.
    if pool.idle_threads >= pool.jobs.len() {
        drop(pool);
        JOB_SUBMITTED.notify_one();
        return Ok(());
    }
    match std::thread::Builder::new().name("process-starter".into()).spawn(run_jobs) {
        Ok(_) => pool.threads += 1,
        // The next thread that is free takes the job. If all of them hang, the start times out.
        Err(_) if pool.threads > 0 => {}
        Err(error) => {
            pool.jobs.pop_back();
            return Err(error);
        }
    }
    Ok(())
}

/// Does the jobs of the queue until none has come for [`IDLE_TIMEOUT`]. It is the body of each thread.
fn run_jobs() {
    /// Keeps the number of threads right when a job panics.
    struct ThreadCount;
    impl Drop for ThreadCount {
        fn drop(&mut self) {
            pool().threads -= 1;
        }
    }
    let count = ThreadCount;
    let mut timed_out = false;
    loop {
        let mut state = pool();
        let Some(job) = state.jobs.pop_front() else {
            // A thread that has children would leave them to the main thread, which would then look like one that has
            // adopted orphans.
            if timed_out && !(crate::tree::adopts_orphans() && crate::tree::thread_has_children()) {
                // Under the same lock as the look at the queue, so that no job is left to a thread that ends. The
                // guard would lock again.
                state.threads -= 1;
                std::mem::forget(count);
                return;
            }
            state.idle_threads += 1;
            let (mut state, waited) =
                JOB_SUBMITTED.wait_timeout(state, IDLE_TIMEOUT).unwrap_or_else(PoisonError::into_inner);
            state.idle_threads -= 1;
            timed_out = waited.timed_out();
            continue;
        };
        drop(state);
        job();
        timed_out = false;
    }
}
