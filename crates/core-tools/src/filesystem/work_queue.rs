//! A stack of tasks that several threads work off, and to which they add.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The tasks that wait. The newest is taken first: a walk then goes deep before it goes wide, and few folders
/// are open at once.
pub(super) struct WalkQueue<T> {
    state: Mutex<WalkQueueState<T>>,
    changed: Condvar,
}

struct WalkQueueState<T> {
    waiting: Vec<T>,
    /// Tasks that wait or are being worked on. A task that is being worked on may add others, so the queue is
    /// finished only when this is 0.
    unfinished: usize,
}

impl<T> WalkQueue<T> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(WalkQueueState { waiting: Vec::new(), unfinished: 0 }),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, WalkQueueState<T>> {
        // No code that can panic runs under the lock, so a poisoned one holds a sound state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds tasks, and wakes as many threads as they need.
    pub(super) fn push(&self, tasks: impl IntoIterator<Item = T>) {
        let mut state = self.state();
        let before = state.waiting.len();
        state.waiting.extend(tasks);
        let added = state.waiting.len() - before;
        state.unfinished += added;
        // Woken threads would only wait for the lock.
        drop(state);
        match added {
            0 => {}
            1 => self.changed.notify_one(),
            _ => self.changed.notify_all(),
        }
    }

    /// Waits for a task and takes it; it is finished when the guard is dropped. Returns nothing once all tasks
    /// are finished.
    pub(super) fn take(&self) -> Option<(T, WalkTaskGuard<'_, T>)> {
        let mut state = self.state();
        loop {
            if let Some(task) = state.waiting.pop() {
                return Some((task, WalkTaskGuard(self)));
            }
            if state.unfinished == 0 {
                return None;
            }
            // Tasks that others work on may still add to the queue.
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Drops the tasks that wait.
    pub(super) fn clear(&self) {
        let mut state = self.state();
        state.unfinished -= state.waiting.len();
        state.waiting.clear();
    }
}

/// Marks a task as finished when it is dropped.
///
/// It is dropped also when the work panics: the other threads would otherwise wait for ever.
pub(super) struct WalkTaskGuard<'a, T>(&'a WalkQueue<T>);

impl<T> Drop for WalkTaskGuard<'_, T> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.unfinished -= 1;
        if state.unfinished == 0 {
            self.0.changed.notify_all();
        }
    }
}
