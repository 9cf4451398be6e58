//! The end of what was created, if its connection was lost and nobody calls again.

use super::SharedRemote;
use crate::channel::Channel;
use process_runner::CancellationToken;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Waits until the channel has ended. If no other is opened, destroys what was created once its life is over or it was
/// unused for as long as it may be idle.
pub(super) async fn end_unused(
    shared: Weak<SharedRemote>,
    channel: Weak<Channel>,
    ended: CancellationToken,
    lease: String,
) {
    ended.cancelled().await;
    let since = Instant::now();
    loop {
        let wait = {
            let Some(shared) = shared.upgrade() else { return };
            let mut connection = shared.connection.lock().await;
            let is_other = |current: &Arc<Channel>| !Weak::ptr_eq(&Arc::downgrade(current), &channel);
            let is_replaced = connection.channel.as_ref().is_some_and(is_other);
            let Some(current) = connection.lease.as_ref().filter(|current| current.id() == lease) else {
                return;
            };
            if is_replaced {
                // The other channel is watched, too.
                return;
            }
            let idle = shared.settings.idle.map(|idle| idle.saturating_sub(since.elapsed()));
            let left = [current.remaining_life(), idle].into_iter().flatten().min();
            if current.is_over() || idle.is_some_and(|idle| idle.is_zero()) {
                tracing::info!("{lease} is not used any more since its connection was lost");
                shared.end_lease(&mut connection).await;
                return;
            }
            left
        };
        match wait {
            // A moment later, since the end of its life is a time of another clock.
            Some(wait) => tokio::time::sleep(wait + Duration::from_millis(10)).await,
            None => return,
        }
    }
}
