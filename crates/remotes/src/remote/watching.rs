//! The tasks that watch the end of a channel.

use super::SharedRemote;
use crate::channel::Channel;
use crate::error::Error;
use crate::lease::Lease;
use error_causes::chain;
use process_runner::CancellationToken;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Destroys what was created for a channel once that has ended, or its life is over: nobody may call for a long time. The
/// next call creates anew.
pub(super) async fn watch_end(
    shared: Weak<SharedRemote>,
    channel: Weak<Channel>,
    ended: CancellationToken,
    life: Option<Duration>,
) {
    let life_is_over = async {
        match life {
            // A moment later, since the end is a time of another clock.
            Some(life) => tokio::time::sleep(life + Duration::from_millis(10)).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = ended.cancelled() => {}
        () = life_is_over => {}
    }
    let Some(shared) = shared.upgrade() else { return };
    let mut connection = shared.connection.lock().await;
    let is_current =
        connection.channel.as_ref().is_some_and(|current| Weak::ptr_eq(&Arc::downgrade(current), &channel));
    if !is_current || shared.ending.is_cancelled() {
        return;
    }
    let Some(channel) = connection.channel.clone() else { return };
    // A connection that was lost, and not ended here, is made again to what was created.
    let is_idle_or_over = channel.is_idle() || connection.lease.as_ref().is_some_and(Lease::is_over);
    // Kept, for its reason: the next call may have to be told what is lost.
    channel.close("its life is over").await;
    if is_idle_or_over {
        shared.end_lease(&mut connection).await;
        return;
    }
    if channel.keeps_state() && !channel.is_closed_here() && shared.settings.grace.is_some() {
        connection.note_end();
        drop(connection);
        resume_in_time(shared).await;
    }
}

/// Connects again to a server there on which something runs, before its grace is over: nobody may call in that time.
///
/// Boxed: an opened channel is watched by a task that may open another.
fn resume_in_time(shared: Arc<SharedRemote>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(resume_until_over(shared))
}

async fn resume_until_over(shared: Arc<SharedRemote>) {
    const PAUSE: Duration = Duration::from_millis(500);
    loop {
        let mut connection = shared.connection.lock().await;
        let is_over = shared.ending.is_cancelled()
            || connection.lost.as_ref().is_none_or(|lost| lost.session().is_none());
        if is_over {
            return;
        }
        match shared.resume(&mut connection).await {
            // The next call is told.
            Ok(_) | Err(Error::NoSession) => return,
            Err(error) => tracing::warn!(
                "remote {} cannot be reached, and is tried again: {}",
                shared.settings.label(),
                chain(&error)
            ),
        }
        drop(connection);
        tokio::time::sleep(PAUSE).await;
    }
}
