//! The messages to a client while its call runs: progress, a heartbeat, and the log.
#![allow(
    deprecated,
    reason = "SEP-2577 takes logging out of the protocol one day, and today's clients have it"
)]

use super::message_queue::{ClientMessage, MessageQueue};
use super::progress::ProgressReporter;
use crate::redact::Redactor;
use rmcp::RoleServer;
use rmcp::model::{LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior};

/// The shortest time between two notifications about a state.
const INTERVAL: Duration = Duration::from_secs(1);

/// The longest time between two notifications. Clients give up on a silent call after 10 to 60 s.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// The progress of a heartbeat beyond that of the last step. The protocol wants each notification to have more.
const HEARTBEAT_STEP: f64 = 1e-6;

/// The messages of one call, and where they go.
pub(super) struct CallMessages<'a> {
    pub(super) progress: ProgressReporter,
    pub(super) messages: MessageQueue,
    /// The token of the client's progress notifications, if it asked for them.
    pub(super) token: Option<ProgressToken>,
    pub(super) request: &'a RequestContext<RoleServer>,
    pub(super) redactor: &'a Redactor,
}

/// Waits for `step` and meanwhile sends the client what the call reports: each step and log message at once, the tool's
/// latest state at most once a second, and a heartbeat where there is none. Nothing is sent once the client has cancelled.
pub(super) async fn with_messages<T>(step: impl Future<Output = T>, to: CallMessages<'_>) -> T {
    let mut step = std::pin::pin!(step);
    let started = Instant::now();
    let mut last_sent = started;
    // The progress of the last step. Without steps, the seconds that the call runs are its progress.
    let mut last_step: Option<f64> = None;
    let mut ticks = tokio::time::interval_at(started + INTERVAL, INTERVAL);
    // After a pause of the runtime, one notification is enough.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            // The answer first: no notification may follow it.
            biased;
            ended = &mut step => {
                to.send_queued(&mut last_step).await;
                return ended;
            }
            () = to.messages.added() => {
                if to.send_queued(&mut last_step).await {
                    last_sent = Instant::now();
                }
            }
            now = ticks.tick(), if to.token.is_some() => {
                let latest = to.progress.take();
                if latest.is_none() && now - last_sent < HEARTBEAT {
                    continue;
                }
                last_sent = now;
                let seconds = (now - started).as_secs_f64();
                let message = latest.unwrap_or_else(|| format!("running for {seconds:.0} s"));
                let done = match &mut last_step {
                    Some(step) => {
                        *step += HEARTBEAT_STEP;
                        *step
                    }
                    None => seconds,
                };
                to.send_progress(done, None, Some(message)).await;
            }
        }
    }
}

impl CallMessages<'_> {
    /// Sends what waits. Returns true if something was sent.
    async fn send_queued(&self, last_step: &mut Option<f64>) -> bool {
        let queued = self.messages.take();
        let any = !queued.is_empty();
        for message in queued {
            match message {
                ClientMessage::Progress { progress, total, message } => {
                    *last_step = Some(progress);
                    self.send_progress(progress, total, message).await;
                }
                ClientMessage::Log { level, mut data } if !self.request.ct.is_cancelled() => {
                    self.redactor.redact_json(&mut data);
                    let message = LoggingMessageNotificationParam::new(level.to_protocol(), data);
                    // A client that has gone away is seen by the transport; the call ends with it.
                    let _ = self.request.peer.notify_logging_message(message).await;
                }
                ClientMessage::Log { .. } => {}
            }
        }
        any
    }

    async fn send_progress(&self, done: f64, total: Option<f64>, message: Option<String>) {
        let Some(token) = self.token.clone().filter(|_| !self.request.ct.is_cancelled()) else { return };
        let mut notification = ProgressNotificationParam::new(token, done);
        if let Some(total) = total {
            notification = notification.with_total(total);
        }
        if let Some(message) = message {
            notification = notification.with_message(self.redactor.redact(&message).into_owned());
        }
        let _ = self.request.peer.notify_progress(notification).await;
    }
}
