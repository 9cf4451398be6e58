//! The same work on a few threads at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Enough for the tokenizer, which puts a megabyte on the stack of each thread that counts.
const STACK: usize = 4 << 20;

/// How many threads are used where the caller does not say: as many as the machine has, at most 8.
pub(crate) fn default_threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(8)
}

/// A thread that may count tokens.
pub(crate) fn builder() -> thread::Builder {
    thread::Builder::new().name("context-compiler".into()).stack_size(STACK)
}

/// Runs `work` on this thread and on others, `threads` in all, and returns when all have ended.
///
/// Where the system gives no more threads there are fewer; `work` must take what it does from a shared place.
pub(crate) fn together(threads: usize, work: impl Fn() + Sync) {
    thread::scope(|scope| {
        for _ in 1..threads {
            if builder().spawn_scoped(scope, &work).is_err() {
                break;
            }
        }
        work();
    });
}

/// `work` of each number below `count`, in their order, done on `threads` threads as they come to it.
///
/// The first argument is what each thread keeps for itself, at first `T::default()`; all of them come back too.
pub(crate) fn in_order<T, R>(
    threads: usize,
    count: usize,
    work: impl Fn(&mut T, usize) -> R + Sync,
) -> (Vec<R>, Vec<T>)
where
    T: Default + Send,
    R: Send,
{
    /// What a thread takes at once: enough to meet the others rarely.
    const TAKEN: usize = 16;
    let next = AtomicUsize::new(0);
    let done = Mutex::new((Vec::with_capacity(count), Vec::new()));
    together(threads.max(1), || {
        let (mut own, mut mine) = (T::default(), Vec::new());
        loop {
            let start = next.fetch_add(TAKEN, Ordering::Relaxed);
            if start >= count {
                break;
            }
            mine.extend((start..count.min(start + TAKEN)).map(|at| (at, work(&mut own, at))));
        }
        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
        done.0.append(&mut mine);
        done.1.push(own);
    });
    let (mut results, own) = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|&(at, _)| at);
    (results.into_iter().map(|(_, result)| result).collect(), own)
}
