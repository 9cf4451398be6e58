//! The one timer of a run.

use std::pin::Pin;
use std::time::Instant;

use tokio::time::{Sleep, sleep_until};

/// A timer for a deadline that moves.
// Output moves some deadlines with every read. Setting tokio's timer again each time would cost more than the read, so
// it is set again only for an earlier deadline; the caller checks whether one that has passed was moved since.
pub(super) struct DeadlineTimer {
    sleep: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl DeadlineTimer {
    pub(super) fn new() -> Self {
        Self { sleep: None }
    }

    /// Waits until `deadline`, or until an earlier one that was given before.
    pub(super) async fn wait_until(&mut self, deadline: Option<Instant>) {
        let Some(deadline) = deadline else { return std::future::pending().await };
        match &mut self.sleep {
            Some((set, _)) if *set <= deadline => {}
            Some((set, sleep)) => {
                *set = deadline;
                sleep.as_mut().reset(deadline.into());
            }
            None => self.sleep = Some((deadline, Box::pin(sleep_until(deadline.into())))),
        }
        if let Some((_, sleep)) = &mut self.sleep {
            sleep.as_mut().await;
            self.sleep = None;
        }
    }
}
