//! [`Remote`]: a remote of one caller, whose channel is opened when it is needed.

use crate::channel::{Channel, OnProgress};
use crate::error::Error;
use crate::lease::Lease;
use crate::opening::{OpenAnswer, OpenRequest};
use crate::options::RemoteOptions;
use crate::reaping;
use crate::settings::RemoteSettings;
use crate::shared_remote::SharedRemote;
use crate::warm::WarmRemotes;
use process_runner::CancellationToken;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;

#[cfg(test)]
mod tests;

/// A remote of one caller. It is connected with the first call, and again after a connection has ended. Cheap to clone.
#[derive(Clone)]
pub struct Remote {
    shared: Arc<SharedRemote>,
}

/// A handle of a [`Remote`] that does not keep it.
#[derive(Clone)]
pub struct WeakRemote(Weak<SharedRemote>);

impl WeakRemote {
    /// Returns the remote, if it is still there.
    pub fn upgrade(&self) -> Option<Remote> {
        self.0.upgrade().map(|shared| Remote { shared })
    }
}

impl fmt::Debug for WeakRemote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakRemote")
    }
}

/// A call of a tool of a remote.
pub struct RemoteCall<'a> {
    /// The canonical name of the tool.
    pub tool: &'a str,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// Cancels the call, here and there.
    pub cancel: CancellationToken,
    /// Gets the progress of the call, and that of connecting.
    pub on_progress: OnProgress,
    /// True if what the call starts may outlive it, so that a later loss of the connection is told.
    pub starts_background: bool,
}

impl fmt::Debug for RemoteCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteCall").field("tool", &self.tool).finish_non_exhaustive()
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("name", &self.shared.settings.name).finish_non_exhaustive()
    }
}

impl Remote {
    /// Creates a remote, which is not connected yet. `request` is the first message to the server there, and `warm` are those
    /// that were made ahead.
    pub fn new(
        settings: RemoteSettings,
        request: OpenRequest,
        options: RemoteOptions,
        warm: WarmRemotes,
    ) -> Self {
        let shared = SharedRemote {
            settings,
            options,
            warm,
            request: StdMutex::new(request),
            connection: Arc::default(),
            is_outdated: AtomicBool::new(false),
            ending: CancellationToken::new(),
            changes: watch::Sender::default(),
            is_watched: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the settings.
    pub fn settings(&self) -> &RemoteSettings {
        &self.shared.settings
    }

    /// Changes the first message of channels that are opened from now on. The channel that is open gives way to another one
    /// at the next call, unless something runs there.
    pub fn change_request(&self, change: impl FnOnce(&mut OpenRequest)) {
        let mut request = self.shared.request.lock().unwrap_or_else(PoisonError::into_inner);
        let before = request.clone();
        change(&mut request);
        if *request != before {
            // The flag is set while the request is locked, so that a channel which opens now cannot miss the change.
            self.shared.is_outdated.store(true, Ordering::Release);
        }
    }

    /// Makes remotes of these settings ahead from now on, as many as they say. To be called in a runtime.
    pub fn start_warm(&self) {
        self.shared.warm.start(&self.shared.settings, &self.shared.options);
    }

    /// Calls a tool there, and returns the result as it came: strictly parsed JSON, and nothing else is known of it.
    ///
    /// # Errors
    /// The remote cannot be reached, the connection ended, or the server there refused the call.
    pub async fn call(&self, call: RemoteCall<'_>) -> Result<Map<String, Value>, Error> {
        let mut is_second = false;
        loop {
            let connecting = self.channel(&call.on_progress);
            let channel = tokio::select! {
                channel = connecting => channel?,
                () = call.cancel.cancelled() => return Err(Error::Cancelled),
            };
            let RemoteCall { tool, arguments, cancel, on_progress, starts_background } = &call;
            let on_progress = Arc::clone(on_progress);
            let calling = channel.call_tool(tool, arguments, cancel, on_progress, *starts_background);
            match calling.await {
                // It ended just before, and nothing was sent.
                Err(Error::Closed { .. }) if !is_second => is_second = true,
                answered => return answered,
            }
        }
    }

    /// Connects, if there is no connection, and returns what the server there says of itself.
    ///
    /// # Errors
    /// The remote cannot be reached.
    pub async fn connect(&self) -> Result<OpenAnswer, Error> {
        let silent: OnProgress = Arc::new(|_: &str| {});
        Ok(self.channel(&silent).await?.answer().clone())
    }

    /// Returns true if it is connected, being connected, or something that was created for it is still there.
    pub fn is_in_use(&self) -> bool {
        match self.shared.connection.try_lock() {
            Ok(connection) => {
                let is_open =
                    |channel: &Arc<Channel>| channel.end_reason().is_none() || channel.keeps_state();
                connection.lease.is_some()
                    || connection.lost.as_ref().is_some_and(|lost| lost.keeps_state)
                    || connection.channel.as_ref().is_some_and(is_open)
            }
            // Whoever holds the lock is connecting.
            Err(_) => true,
        }
    }

    /// Returns what tells of changes of what runs there: of starts, of ends, and of the loss of a connection. What has changed
    /// is to be looked at: the server there is not believed. It ends with the remote, and is given to the first who asks.
    pub fn take_changes(&self) -> Option<watch::Receiver<u64>> {
        let is_first = !self.shared.is_watched.swap(true, Ordering::AcqRel);
        is_first.then(|| self.shared.changes.subscribe())
    }

    /// Returns true if nothing runs there any more: the connection was lost, and does not come back to what ran there. While it
    /// connects, nothing is known.
    pub fn is_state_gone(&self) -> bool {
        let Ok(connection) = self.shared.connection.try_lock() else { return false };
        match &connection.channel {
            // With a grace, it is about to be connected again.
            Some(channel) => channel.end_reason().is_some() && self.shared.settings.grace.is_none(),
            None => connection.lost.as_ref().is_none_or(|lost| lost.session().is_none()),
        }
    }

    /// Returns a handle that does not keep the remote.
    pub fn downgrade(&self) -> WeakRemote {
        WeakRemote(Arc::downgrade(&self.shared))
    }

    /// Calls a tool there if it is connected. None if it is not, or a connection is being made or lost.
    ///
    /// # Errors
    /// The connection ended, or the server there refused the call.
    pub async fn call_if_connected(&self, call: RemoteCall<'_>) -> Option<Result<Map<String, Value>, Error>> {
        let channel = {
            let connection = self.shared.connection.lock().await;
            connection.channel.as_ref().filter(|channel| channel.end_reason().is_none()).map(Arc::clone)?
        };
        let RemoteCall { tool, arguments, cancel, on_progress, starts_background } = call;
        Some(channel.call_tool(tool, &arguments, &cancel, on_progress, starts_background).await)
    }

    /// Returns true if something may run there that outlives calls. While it connects, nothing is known.
    pub fn keeps_state(&self) -> bool {
        let Ok(connection) = self.shared.connection.try_lock() else { return false };
        connection.lost.as_ref().is_some_and(|lost| lost.keeps_state)
            || connection.channel.as_ref().is_some_and(|channel| channel.keeps_state())
    }

    /// Returns the open channel, or opens one.
    async fn channel(&self, on_progress: &OnProgress) -> Result<Arc<Channel>, Error> {
        let mut connection = Arc::clone(&self.shared.connection).lock_owned().await;
        if self.shared.ending.is_cancelled() {
            return Err(Error::Ending);
        }
        if let Some(channel) = &connection.channel {
            let is_over = connection.lease.as_ref().is_some_and(Lease::is_over);
            let is_replaced = self.shared.is_outdated.load(Ordering::Acquire) && channel.is_unused();
            match channel.end_reason() {
                None if channel.is_closing() => channel.ended().cancelled().await,
                None if is_replaced => channel.close("its settings have changed").await,
                None if !is_over => return Ok(Arc::clone(channel)),
                None => channel.close("its life is over").await,
                Some(_) => {}
            }
            connection.note_end();
        }
        if let Some(lost) = connection.lost.take_if(|lost| lost.session().is_none())
            && lost.keeps_state
        {
            // Told once. The next call gets a new connection.
            return Err(Error::StateLost { reason: lost.reason });
        }
        on_progress(&format!("connecting to {}", self.shared.settings.label()));
        // A task of its own: a caller that gives up must not leave half of what is created behind.
        let shared = Arc::clone(&self.shared);
        let opened = tokio::spawn(async move { shared.open_unless_ending(connection).await }).await;
        opened.unwrap_or(Err(Error::Ending))
    }

    /// Ends the connection, and destroys what was created, within `limit`. No further call is made.
    ///
    /// A lease that cannot be destroyed in time stays written down, and the next server destroys it.
    pub async fn end(&self, limit: Duration) {
        self.shared.ending.cancel();
        let ended = tokio::time::timeout(limit, async {
            let mut connection = self.shared.connection.lock().await;
            if let Some(channel) = connection.channel.take() {
                channel.close("the server is ending").await;
            } else if connection.lost.as_ref().is_some_and(|lost| lost.session().is_some()) {
                // Otherwise what lives on there would end when its grace is over.
                if let Ok(channel) = self.shared.resume(&mut connection).await {
                    channel.close("the server is ending").await;
                }
            }
            self.shared.end_lease(&mut connection).await;
            if let Some(leases) = &self.shared.options.leases {
                reaping::finished(leases).await;
            }
        });
        if ended.await.is_err() {
            tracing::warn!("remote {} did not end in time", self.shared.settings.label());
        }
    }
}
