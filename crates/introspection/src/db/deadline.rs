//! The time limit of one statement, and its cancellation.

use super::Error;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The time that a statement has to end after it was told to stop.
const STOP_GRACE: Duration = Duration::from_secs(3);
/// The pause between two requests to stop. One is not enough: it has no effect if it arrives between two of our own
/// statements, while the connection is idle.
const STOP_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Runs `work` until it is done, `limit` has passed or `cancel` is cancelled.
///
/// In the last two cases it calls `stop`, which makes the engine end the statement, again and again until `work` has
/// ended. If `work` succeeds nevertheless, because it finished in the last moment, its result is returned: the
/// database was changed, and the caller must know.
///
/// # Errors
/// The error of `work`; [`Error::TimedOut`] or [`Error::Cancelled`] where the statement was stopped.
pub(super) async fn run_bounded<T, Stopped: Future>(
    limit: Duration,
    cancel: &CancellationToken,
    work: impl Future<Output = Result<T, Error>>,
    stop: impl Fn() -> Stopped,
) -> Result<T, Error> {
    tokio::pin!(work);
    // Branches are polled in random order. If the work and the limit are ready at once, either may win; the loop below
    // still returns the result of the work.
    let error = tokio::select! {
        result = &mut work => return result,
        () = cancel.cancelled() => Error::Cancelled,
        () = tokio::time::sleep(limit) => {
            Error::TimedOut { limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX) }
        }
    };
    // After the grace period a server that does not answer is abandoned; its own limit ends the statement.
    let grace = tokio::time::sleep(STOP_GRACE);
    tokio::pin!(grace);
    loop {
        let stopping = async {
            stop().await;
            tokio::time::sleep(STOP_RETRY_INTERVAL).await;
        };
        tokio::select! {
            result = &mut work => return result.or(Err(error)),
            () = &mut grace => return Err(error),
            () = stopping => {}
        }
    }
}
