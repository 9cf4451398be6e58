//! Waits for what a background command does: output, a port, its end.

use super::port;
use super::process::{BackgroundCommand, CommandReadStart};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The interval at which a port is looked for.
const PORT_INTERVAL: Duration = Duration::from_millis(50);
/// The time without output after which an answer is not held back any more: what is printed in one go is read in one.
const QUIET: Duration = Duration::from_millis(100);
/// The longest time for which a command that goes on printing holds an answer back.
const MAX_SETTLE: Duration = Duration::from_secs(1);

/// The bounds of a wait: a time, and a cancelled call.
#[derive(Clone, Copy)]
pub(super) struct ReadinessWaitLimit<'a> {
    deadline: Instant,
    cancel: &'a CancellationToken,
}

impl<'a> ReadinessWaitLimit<'a> {
    /// Waits for at most `time`.
    pub(super) fn new(time: Duration, cancel: &'a CancellationToken) -> Self {
        Self { deadline: Instant::now() + time, cancel }
    }

    fn within(self, time: Duration) -> Self {
        Self { deadline: self.deadline.min(Instant::now() + time), ..self }
    }

    /// Returns this limit, or one a moment away if it has passed.
    pub(super) fn or_at_least_a_moment(self) -> Self {
        Self { deadline: self.deadline.max(Instant::now() + QUIET).min(Instant::now() + MAX_SETTLE), ..self }
    }

    /// Returns true if the time is up.
    pub(super) fn has_passed(self) -> bool {
        Instant::now() >= self.deadline
    }

    async fn passed(self) {
        tokio::select! {
            () = tokio::time::sleep_until(self.deadline) => {}
            () = self.cancel.cancelled() => {}
        }
    }
}

impl BackgroundCommand {
    /// Waits until `is_met`, the command has ended, or the limit has passed. Returns true if `is_met`.
    pub(super) async fn wait_until(
        &self,
        limit: ReadinessWaitLimit<'_>,
        is_met: impl Fn(&Self) -> bool,
    ) -> bool {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            // Registered before the look: a change between look and wait would be missed otherwise.
            changed.as_mut().enable();
            if is_met(self) {
                return true;
            }
            if self.has_ended() {
                return false;
            }
            tokio::select! {
                () = changed => {}
                () = limit.passed() => return is_met(self),
            }
        }
    }

    /// Waits for output that has not been read, and for the rest of what is printed with it.
    pub(super) async fn wait_for_output(&self, from: CommandReadStart, limit: ReadinessWaitLimit<'_>) {
        if self.has_ended() || limit.has_passed() {
            return;
        }
        if self.wait_until(limit, |command| command.has_news(from)).await {
            self.settle(limit.within(MAX_SETTLE)).await;
        }
    }

    /// Waits for the end.
    pub(super) async fn wait_for_end(&self, limit: ReadinessWaitLimit<'_>) {
        self.wait_until(limit, Self::has_ended).await;
    }

    /// Waits until nothing has been printed for a moment.
    pub(super) async fn settle(&self, limit: ReadinessWaitLimit<'_>) {
        loop {
            let seen = self.changes();
            let quiet = limit.within(QUIET);
            let printed = self.wait_until(quiet, |command| command.changes() != seen).await;
            if !printed || limit.has_passed() {
                return;
            }
        }
    }

    /// Waits until a port is listened on. Returns true if it is.
    pub(super) async fn wait_for_port(&self, port: u16, limit: ReadinessWaitLimit<'_>) -> bool {
        loop {
            // Before the port: a command that has ended listens on none, whoever else does.
            if self.has_ended() {
                return false;
            }
            if port::is_listening(port).await {
                return !self.has_ended();
            }
            if limit.has_passed() || limit.cancel.is_cancelled() {
                return false;
            }
            self.wait_until(limit.within(PORT_INTERVAL), Self::has_ended).await;
        }
    }

    /// Waits until `text` is printed. Returns true if it was.
    pub(super) async fn wait_for_text(&self, text: &str, limit: ReadinessWaitLimit<'_>) -> bool {
        self.wait_until(limit, |command| command.has_printed(text)).await
    }
}
