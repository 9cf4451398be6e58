//! The time limit of one statement, and its cancellation.

use super::error::StatementOutcome;
use super::{DbAction, DbBridge, Error};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The time that a statement has to end after it was told to stop.
const STOP_GRACE: Duration = Duration::from_secs(3);
/// The time that it has after its connection was ended, which a busy server may need to take the request.
const END_GRACE: Duration = Duration::from_secs(15);
/// The pause between two requests to stop. One is not enough: it has no effect if it arrives between two of our own
/// statements, while the connection is idle.
const STOP_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// The ways to stop a statement.
pub(super) struct StatementStopSteps<Stop, End> {
    /// Makes the engine end the statement. It is called again and again until the statement has ended.
    pub(super) stop: Stop,
    /// Ends the connection of a statement that went on nevertheless.
    pub(super) end: End,
}

/// Runs `work` until it is done, its time limit has passed or `cancel` is cancelled; then the statement is stopped.
///
/// If a seed succeeds nevertheless, because it finished in the last moment, its result is returned: the database was
/// changed, and the caller must know. The rows of a query are not: functions such as `BENCHMARK` return a value when they
/// are interrupted, and it is a wrong one.
///
/// # Errors
/// The error of `work`; [`Error::TimedOut`] or [`Error::Cancelled`] where the statement was stopped.
pub(super) async fn run_bounded<T, Stopped: Future, Ended: Future>(
    request: &DbBridge,
    cancel: &CancellationToken,
    work: impl Future<Output = Result<T, Error>>,
    steps: StatementStopSteps<impl Fn() -> Stopped, impl Fn() -> Ended>,
) -> Result<T, Error> {
    let limit = request.time_limit();
    tokio::pin!(work);
    // Branches are polled in random order. If the work and the limit are ready at once, either may win; `stopped` below
    // still returns the result of a seed.
    let is_cancelled = tokio::select! {
        result = &mut work => return result,
        () = cancel.cancelled() => true,
        () = tokio::time::sleep(limit) => false,
    };
    let error = |end| {
        if is_cancelled {
            Error::Cancelled
        } else {
            Error::TimedOut { limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX), end }
        }
    };
    let stopped = |result: Result<T, Error>, end| match result {
        Ok(result) if request.action == DbAction::Seed => Ok(result),
        // It says more than the time limit does.
        Err(locked @ Error::Locked { .. }) => Err(locked),
        _ => Err(error(end)),
    };
    if let Some(result) = until_done(&mut work, steps.stop, STOP_GRACE).await {
        return stopped(result, StatementOutcome::Stopped);
    }
    if let Some(result) = until_done(&mut work, steps.end, END_GRACE).await {
        return stopped(result, StatementOutcome::ConnectionEnded);
    }
    // A server that does not answer is abandoned.
    Err(error(StatementOutcome::Unconfirmed))
}

/// Calls `step` again and again until `work` is done; `None` after `grace`.
async fn until_done<T, Done: Future>(
    mut work: impl Future<Output = T> + Unpin,
    step: impl Fn() -> Done,
    grace: Duration,
) -> Option<T> {
    let grace = tokio::time::sleep(grace);
    tokio::pin!(grace);
    loop {
        let stopping = async {
            step().await;
            tokio::time::sleep(STOP_RETRY_INTERVAL).await;
        };
        tokio::select! {
            result = &mut work => return Some(result),
            () = &mut grace => return None,
            () = stopping => {}
        }
    }
}
