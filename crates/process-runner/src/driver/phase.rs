//! The phases of a run, and what wakes its driver.

use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::output::OutputProgress;
use super::run_state::StopRequest;
use crate::outcome::Stream;
use crate::reaper::{TreeEndOutcome, TreeInspection};

/// The reason that a run must end early.
#[derive(Clone, Copy, Debug)]
pub(super) enum StopReason {
    Timeout(Duration),
    Idle(Duration),
    Cancelled,
    OutputLimit(Stream),
}

/// The phase of a run.
pub(super) enum RunPhase {
    /// The leader runs.
    Running,
    /// `SIGTERM` was sent, and `SIGKILL` follows at `kill_at`. After the leader's exit the reaper inspects the others
    /// again and again, since they may use the grace time too.
    Terminating {
        kill_at: Instant,
        inspection: Option<oneshot::Receiver<TreeInspection>>,
        next_inspection: Option<Instant>,
    },
    /// The leader has ended, and the streams are read while others may hold them.
    Draining { since: Instant },
    /// The reaper kills everything that belongs to the run.
    Ending {
        end: oneshot::Receiver<TreeEndOutcome>,
        since: Instant,
        /// True once the driver has killed the group itself, because the reaper was slow.
        group_killed: bool,
    },
    /// The reaper looks for the processes that hold a stream, and may kill them.
    CheckingHolders {
        inspection: oneshot::Receiver<TreeInspection>,
        since: Instant,
        draining_since: Instant,
        /// True if `drain_max` has passed, so that draining cannot go on.
        past_drain_max: bool,
    },
    /// The reaper looks for processes that the program has left alive.
    Surveying { inspection: oneshot::Receiver<TreeInspection>, since: Instant },
    /// The processes are dead or left alone, and what is still in the pipes is read.
    Flushing { until: Instant },
    /// Nothing is left to wait for.
    Done,
}

/// The event for which the driver woke.
pub(super) enum RunWakeup {
    StopRequested(StopRequest),
    Cancelled,
    Exited,
    TreeEnded(TreeEndOutcome),
    Inspected(TreeInspection),
    Output(OutputProgress),
    Deadline,
}

impl RunPhase {
    /// Waits for the reaper's answer to the request of this phase. It never ends in a phase without a request.
    pub(super) async fn reaper_answer(&mut self) -> RunWakeup {
        match self {
            // Without an answer the reaper's thread has panicked. The run then goes on as if nothing was found.
            Self::Terminating { inspection: Some(inspection), .. }
            | Self::CheckingHolders { inspection, .. }
            | Self::Surveying { inspection, .. } => {
                RunWakeup::Inspected(inspection.await.unwrap_or_default())
            }
            Self::Ending { end, .. } => RunWakeup::TreeEnded(end.await.unwrap_or_default()),
            _ => std::future::pending().await,
        }
    }
}
