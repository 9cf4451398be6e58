//! Progress notifications while a call runs.

use super::answer::Answer;
use super::progress::ProgressReporter;
use crate::redact::Redactor;
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior};

/// The shortest time between two notifications.
const INTERVAL: Duration = Duration::from_secs(1);

/// The longest time between two notifications. Clients give up on a silent call after 10 to 60 s.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Waits for `call` and meanwhile sends the client its progress: the tool's latest message, at most once
/// a second, and a heartbeat where there is none. Nothing is sent once the client has cancelled.
pub(super) async fn with_progress<E>(
    call: impl Future<Output = Result<Answer, E>>,
    progress: &ProgressReporter,
    token: ProgressToken,
    request: &RequestContext<RoleServer>,
    redactor: &Redactor,
) -> Result<Answer, E> {
    let mut call = std::pin::pin!(call);
    let started = Instant::now();
    let mut last_sent = started;
    let mut ticks = tokio::time::interval_at(started + INTERVAL, INTERVAL);
    // After a pause of the runtime, one notification is enough.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            // The answer first: no notification may follow it.
            biased;
            answer = &mut call => return answer,
            now = ticks.tick() => {
                let latest = progress.take();
                if request.ct.is_cancelled() || (latest.is_none() && now - last_sent < HEARTBEAT) {
                    continue;
                }
                last_sent = now;
                let seconds = (now - started).as_secs_f64();
                let message = latest.unwrap_or_else(|| format!("running for {seconds:.0} s"));
                let message = redactor.redact(&message).into_owned();
                let notification = ProgressNotificationParam::new(token.clone(), seconds).with_message(message);
                // A client that has gone away is seen by the transport; the call ends with it.
                let _ = request.peer.notify_progress(notification).await;
            }
        }
    }
}
