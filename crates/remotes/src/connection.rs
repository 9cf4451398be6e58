//! [`Connection`]: the connection of a remote, and what was created for it.

use crate::binary::CopiedBinary;
use crate::channel::Channel;
use crate::lease::Lease;
use crate::lost_channel::{LostChannel, RemoteSession};
use crate::making::destroy;
use process_runner::{CancellationToken, Runner};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// The connection of a remote, and what was created for it.
#[derive(Default)]
pub(crate) struct Connection {
    pub(crate) channel: Option<Arc<Channel>>,
    /// The session of the channel there.
    pub(crate) session: Option<RemoteSession>,
    /// The channel before, if it was lost and nobody was told yet.
    pub(crate) lost: Option<LostChannel>,
    pub(crate) lease: Option<Lease>,
    pub(crate) copied: Option<CopiedBinary>,
}

impl Connection {
    /// Notes that the channel has ended.
    pub(crate) fn note_end(&mut self) {
        if let Some(channel) = self.channel.take() {
            self.lost = Some(LostChannel::new(&channel, self.session.take()));
        }
    }

    /// Destroys what was created. If that fails, the lease stays written down.
    pub(crate) async fn end_lease(&mut self, runner: &Runner) {
        let Some(lease) = self.lease.take() else { return };
        if let Some(lost) = &mut self.lost {
            // The server there ends with what was created.
            lost.note_end_of_session();
        }
        destroy(lease, runner).await;
    }

    /// Returns the time for which what runs there is still waited for.
    fn remaining_grace(&self) -> Option<Duration> {
        self.lost.as_ref().filter(|lost| lost.keeps_state).and_then(LostChannel::remaining_grace)
    }
}

/// Waits until the channel has ended. If no other is opened, destroys what was created once its life is over or it was
/// unused for `idle`: a connection that was lost is made again only by a call, and nobody may call.
pub(crate) async fn end_unused(
    connection: Weak<Mutex<Connection>>,
    (channel, ended): (Weak<Channel>, CancellationToken),
    lease: String,
    idle: Option<Duration>,
    runner: Runner,
) {
    ended.cancelled().await;
    let since = Instant::now();
    loop {
        let wait = {
            let Some(connection) = connection.upgrade() else { return };
            let mut connection = connection.lock().await;
            let is_other = |current: &Arc<Channel>| !Weak::ptr_eq(&Arc::downgrade(current), &channel);
            if connection.channel.as_ref().is_some_and(is_other) {
                // The other channel is watched, too.
                return;
            }
            let Some(current) = connection.lease.as_ref().filter(|current| current.id() == lease) else {
                return;
            };
            // What runs there is used until its grace is over.
            let grace = connection.remaining_grace().unwrap_or_default();
            let idle = idle.map(|idle| idle.saturating_sub(since.elapsed()).max(grace));
            if current.is_over() || idle.is_some_and(|idle| idle.is_zero()) {
                tracing::info!("{lease} was not used any more since its connection was lost");
                connection.end_lease(&runner).await;
                return;
            }
            [current.remaining_life(), idle].into_iter().flatten().min()
        };
        match wait {
            // A moment later, since the end of its life is a time of another clock.
            Some(wait) => tokio::time::sleep(wait + Duration::from_millis(10)).await,
            None => return,
        }
    }
}
