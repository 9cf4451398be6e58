//! [`Availability`]: a switch for tools, prompts and resources that come and go while a server runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// A switch for tools, prompts and resources that come and go while a server runs. Cheap to clone: all clones are one
/// switch. What is off is neither listed nor callable, and clients are told of the change.
#[derive(Clone, Debug)]
pub struct Availability(Arc<Switch>);

#[derive(Debug)]
struct Switch {
    is_on: AtomicBool,
    changes: watch::Sender<u64>,
}

impl Availability {
    /// A switch that is on or off at first.
    pub fn new(is_on: bool) -> Self {
        Self(Arc::new(Switch { is_on: AtomicBool::new(is_on), changes: watch::Sender::new(0) }))
    }

    /// Returns true while it is on.
    pub fn is_on(&self) -> bool {
        self.0.is_on.load(Ordering::Acquire)
    }

    /// Turns it on or off.
    pub fn set(&self, is_on: bool) {
        if self.0.is_on.swap(is_on, Ordering::AcqRel) != is_on {
            // After the switch, so that a task which wakes finds the new state.
            self.0.changes.send_modify(|changes| *changes += 1);
        }
    }

    /// Returns a receiver that wakes at each change.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Returns true if both are one switch.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_wakes_and_no_change_does_not() {
        let availability = Availability::new(true);
        let mut changes = availability.changes();
        availability.clone().set(true);
        assert!(!changes.has_changed().unwrap());
        availability.clone().set(false);
        assert!(changes.has_changed().unwrap() && !availability.is_on());
        changes.borrow_and_update();
    }
}
