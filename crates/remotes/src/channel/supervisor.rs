//! The end of a channel: of its command, for silence, for idleness.

use super::pending::{PendingCalls, Silence};
use crate::commands::outcome;
use process_runner::{CancellationToken, Running};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The reason of a channel that has ended because nobody called.
pub(super) const IDLE: &str = "it was idle for as long as it may be";

/// The silence of a server there, while a call is open, after which the channel is taken for broken. It sends a sign of
/// life every 5 s.
const MAX_SILENCE: Duration = Duration::from_secs(60);

/// The time that `connect` has to end once the input of the server there has: that ends what it has started meanwhile.
const END_GRACE: Duration = Duration::from_secs(2);

/// The time from `SIGTERM` to `SIGKILL` after that.
const TERM_GRACE: Duration = Duration::from_secs(1);

/// The end of a command's output, for messages.
#[derive(Clone, Debug, Default)]
pub(super) struct LastLines(Arc<Mutex<Vec<String>>>);

impl LastLines {
    const MAX: usize = 3;

    pub(super) fn push(&self, line: &str) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == Self::MAX {
            lines.remove(0);
        }
        lines.push(line.chars().take(300).collect());
    }

    /// Returns the lines, joined.
    pub(super) fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).join("; ")
    }
}

/// Waits for the end of a channel, and ends its command.
pub(super) async fn supervise(
    mut running: Running,
    pending: Arc<PendingCalls>,
    idle: Option<Duration>,
    closing: CancellationToken,
    ended: CancellationToken,
    mut reading: tokio::task::JoinHandle<()>,
) {
    let mut is_read = false;
    loop {
        let (limit, reason) = match pending.silence() {
            Silence::Waiting { since } => (Some(since + MAX_SILENCE), "nothing was heard of it for a minute"),
            Silence::Idle { since, keeps_state: false } => (idle.map(|idle| since + idle), IDLE),
            // Background commands there would end with the channel, so that idleness does not end the channel.
            Silence::Idle { keeps_state: true, .. } => (None, ""),
        };
        if limit.is_some_and(|limit| limit <= Instant::now()) {
            match reason == IDLE {
                true => pending.close(reason),
                false => pending.end(reason),
            }
            closing.cancel();
            break;
        }
        // A call that begins meanwhile moves the limit: it is looked at again at least this often.
        let next = Instant::now() + Duration::from_secs(5);
        let wake = limit.map_or(next, |limit| limit.min(next));
        tokio::select! {
            () = running.finished() => break,
            () = closing.cancelled() => break,
            // The server there has closed its output.
            _ = &mut reading => {
                is_read = true;
                break;
            }
            () = tokio::time::sleep_until(wake.into()) => {}
        }
    }
    if !is_read && !closing.is_cancelled() {
        // Its last answers are still in the pipe.
        let _ = tokio::time::timeout(END_GRACE, reading).await;
    }
    closing.cancel();
    if tokio::time::timeout(END_GRACE, running.finished()).await.is_err() {
        running.terminate_within(TERM_GRACE);
        running.finished().await;
    }
    let reason = match running.wait().await {
        Ok(output) => format!("`connect` {}", outcome(&output)),
        Err(error) => error.to_string(),
    };
    tracing::info!("a channel to a remote has ended: {reason}");
    pending.end(&reason);
    ended.cancel();
}
