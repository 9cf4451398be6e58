//! Work on a few threads at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The stack of a thread. The tokenizer uses a megabyte of it on each thread that counts.
const STACK_BYTES: usize = 4 << 20;

/// Returns the number of threads to use by default: as many as the machine has, at most 8.
pub(crate) fn default_threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(8)
}

/// Returns a builder of threads that may count tokens.
pub(crate) fn thread_builder() -> thread::Builder {
    thread::Builder::new().name("context-compiler".into()).stack_size(STACK_BYTES)
}

/// Runs `work` on `threads` threads, this one among them, and returns when all have ended.
///
/// If the system gives no more threads, there are fewer. So `work` must take its tasks from a shared queue.
pub(crate) fn run_on_threads(threads: usize, work: impl Fn() + Sync) {
    thread::scope(|scope| {
        // This thread works too, so one fewer is started.
        for _ in 1..threads {
            if thread_builder().spawn_scoped(scope, &work).is_err() {
                break;
            }
        }
        work();
    });
}

/// Calls `work` with each number below `count` on `threads` threads, and returns the results in the order of the numbers.
///
/// The first argument of `work` belongs to its thread and begins as `T::default()`. All of them are returned as well.
pub(crate) fn map_in_order<T, R>(
    threads: usize,
    count: usize,
    work: impl Fn(&mut T, usize) -> R + Sync,
) -> (Vec<R>, Vec<T>)
where
    T: Default + Send,
    R: Send,
{
    /// The numbers that a thread takes at once, so that threads rarely contend for the counter.
    const BATCH: usize = 16;
    let next = AtomicUsize::new(0);
    let done = Mutex::new((Vec::with_capacity(count), Vec::new()));
    run_on_threads(threads.max(1), || {
        let (mut local, mut results) = (T::default(), Vec::new());
        loop {
            // Relaxed: the number alone is shared, and the results go through the lock.
            let start = next.fetch_add(BATCH, Ordering::Relaxed);
            if start >= count {
                break;
            }
            let batch = start..count.min(start + BATCH);
            results.extend(batch.map(|number| (number, work(&mut local, number))));
        }
        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
        done.0.append(&mut results);
        done.1.push(local);
    });
    let (mut results, locals) = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Batches come in the order in which the threads finish.
    results.sort_unstable_by_key(|&(number, _)| number);
    (results.into_iter().map(|(_, result)| result).collect(), locals)
}
