//! The growing delay between two starts of a server, and the waits that a session shares.

use super::session::ProxySession;
use process_runner::CancellationToken;
use std::time::{Duration, Instant};

/// The delay before the second start. It doubles with each start, up to [`MAX_DELAY`].
const FIRST_DELAY: Duration = Duration::from_millis(50);
/// The longest delay between two starts.
const MAX_DELAY: Duration = Duration::from_secs(30);
/// The running time after which a server begins again with the first delay.
const STABLE_AFTER: Duration = Duration::from_secs(60);

/// The delay before the next start of a server.
#[derive(Debug)]
pub(super) struct Backoff(Duration);

impl Backoff {
    /// Begins with the first delay.
    pub(super) fn new() -> Self {
        Self(FIRST_DELAY)
    }

    /// Returns the delay after a server that was started at `started_at`, and doubles the one after it.
    pub(super) fn next_delay(&mut self, started_at: Instant) -> Duration {
        if started_at.elapsed() >= STABLE_AFTER {
            self.0 = FIRST_DELAY;
        }
        let delay = self.0;
        self.0 = (delay * 2).min(MAX_DELAY);
        delay
    }
}

/// Waits before the next start; returns true if the client has gone meanwhile.
pub(super) async fn pause(session: &ProxySession, wait: Duration, end: &CancellationToken) -> bool {
    let resumes_at = Instant::now() + wait;
    loop {
        // Requests that wait for the server have deadlines also while there is none.
        let supervision = session.tick(Instant::now());
        if supervision.is_over {
            return true;
        }
        tokio::select! {
            () = tokio::time::sleep_until(resumes_at.into()) => return false,
            () = end.cancelled() => return true,
            () = session.wait() => {}
            () = until(supervision.next_check) => {}
        }
    }
}

/// Waits until `time`, or for ever.
pub(super) async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}
