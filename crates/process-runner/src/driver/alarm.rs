//! The one timer of a run.

use std::pin::Pin;
use std::time::Instant;

use tokio::time::{Sleep, sleep_until};

/// A timer that is set anew only when it must ring sooner: deadlines that output re-arms move all the time.
pub(super) struct Alarm {
    sleep: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl Alarm {
    pub(super) fn new() -> Self {
        Self { sleep: None }
    }

    /// Rings at `deadline` or sooner.
    pub(super) async fn ring(&mut self, deadline: Option<Instant>) {
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
