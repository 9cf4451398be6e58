//! [`Remote`]: a remote of one caller, whose channel is opened when it is needed.

use crate::channel::{self, Channel, ChannelOptions, OnProgress, StartedConnect};
use crate::commands::RemoteCommands;
use crate::connection::{Connection, end_unused};
use crate::error::Error;
use crate::lease::Lease;
use crate::lost_channel::{LostChannel, RemoteSession};
use crate::making::Maker;
use crate::opening::{OpenAnswer, OpenRequest, OpenSession};
use crate::options::RemoteOptions;
use crate::reaping;
use crate::settings::RemoteSettings;
use crate::warm::{WarmRemote, WarmRemotes};
use error_causes::chain;
use process_runner::CancellationToken;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex, OwnedMutexGuard};

#[cfg(test)]
mod tests;
mod watching;

/// The exit code of a shell for a program that is not there (POSIX: 127), and of engines that run one there.
const NOT_FOUND: [u32; 2] = [127, 126];

/// A remote of one caller. It is connected with the first call, and again after a connection has ended. Cheap to clone.
#[derive(Clone)]
pub struct Remote {
    shared: Arc<SharedRemote>,
}

struct SharedRemote {
    settings: RemoteSettings,
    options: RemoteOptions,
    warm: WarmRemotes,
    /// The first message of the next channel.
    request: StdMutex<OpenRequest>,
    connection: Arc<Mutex<Connection>>,
    /// True if the first message has changed since the channel was opened.
    is_outdated: AtomicBool,
    ending: CancellationToken,
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

impl SharedRemote {
    fn maker(&self) -> Maker<'_> {
        Maker { settings: &self.settings, options: &self.options, caller: &self.options.caller }
    }

    /// Opens a channel as [`open`](Self::open) does, unless the remote ends meanwhile: then nobody else would destroy what was
    /// created.
    async fn open_unless_ending(
        self: &Arc<Self>,
        connection: OwnedMutexGuard<Connection>,
    ) -> Result<Arc<Channel>, Error> {
        let opened = self.open(connection).await;
        if !self.ending.is_cancelled() {
            return opened;
        }
        let mut connection = self.connection.lock().await;
        if let Some(channel) = connection.channel.take() {
            channel.close("the server is ending").await;
        }
        self.end_lease(&mut connection).await;
        Err(Error::Ending)
    }

    /// Opens a channel, and creates what it needs first.
    async fn open(
        self: &Arc<Self>,
        mut connection: OwnedMutexGuard<Connection>,
    ) -> Result<Arc<Channel>, Error> {
        if let Some(leases) = &self.options.leases {
            reaping::start(leases, &self.options.configured, &self.options.runner);
        }
        let lost_state = connection.lost.as_ref().map(|lost| lost.keeps_state);
        if let Some(keeps_state) = lost_state
            && !connection.lease.as_ref().is_some_and(Lease::is_over)
        {
            match self.resume(&mut connection).await {
                Ok(channel) => return Ok(channel),
                // What runs there may be reached by the next call.
                Err(error) if keeps_state && !matches!(error, Error::NoSession) => return Err(error),
                Err(_) => {}
            }
        }
        if let Some(LostChannel { reason, keeps_state: true, .. }) = connection.lost.take() {
            return Err(Error::StateLost { reason });
        }
        let was_created = connection.lease.is_some();
        if connection.lease.as_ref().is_some_and(Lease::is_over)
            // Such a kind creates with each connection.
            || was_created && self.settings.kind.commands.create.is_none()
        {
            self.end_lease(&mut connection).await;
        }
        if connection.lease.is_none()
            && let Some(warm) = self.warm.take(&self.settings)
        {
            match self.use_warm(&mut connection, warm).await {
                Ok(channel) => return Ok(channel),
                Err(error) => {
                    tracing::warn!("a warm remote {} is not used: {}", self.settings.label(), chain(&error));
                    self.end_lease(&mut connection).await;
                }
            }
        }
        if connection.copied.is_none() {
            connection.copied = self.maker().copied_binary().await?;
        }
        let reuses = connection.lease.is_some();
        match self.open_once(&mut connection).await {
            Ok(channel) => Ok(channel),
            // What was created earlier may be gone. What was created just now is no better a second time.
            Err(error) if reuses => {
                tracing::warn!("remote {} is made again: {}", self.settings.label(), chain(&error));
                self.end_lease(&mut connection).await;
                self.open_once(&mut connection).await
            }
            Err(error) => Err(error),
        }
    }

    async fn open_once(self: &Arc<Self>, connection: &mut Connection) -> Result<Arc<Channel>, Error> {
        let opened = self.create_and_connect(connection).await;
        if opened.is_err() {
            // Nobody uses it, and the next attempt begins anew.
            self.end_lease(connection).await;
        }
        opened
    }

    /// Opens the channel of a remote that was made ahead. It belongs to this caller from now on.
    async fn use_warm(
        self: &Arc<Self>,
        connection: &mut Connection,
        warm: WarmRemote,
    ) -> Result<Arc<Channel>, Error> {
        let WarmRemote { lease, copied, connect } = warm;
        (connection.lease, connection.copied) = (lease, copied.or(connection.copied.take()));
        connection.session = RemoteSession::new(&self.settings)?;
        let channel = self.open_channel(connect, opening(connection, false)).await?;
        self.connected(connection, channel)
    }

    /// Opens a channel to the server there that has outlived the one before.
    async fn resume(self: &Arc<Self>, connection: &mut Connection) -> Result<Arc<Channel>, Error> {
        let lost = connection.lost.as_ref();
        let Some((session, keeps_state)) =
            lost.and_then(|lost| Some((lost.session()?.clone(), lost.keeps_state)))
        else {
            return Err(Error::NoSession);
        };
        let commands = match &connection.lease {
            Some(lease) => lease.commands.clone(),
            None => RemoteCommands::new(&self.settings, &self.maker().values(connection.copied.as_ref()))?,
        };
        connection.session = Some(session);
        match self.connect(&commands, opening(connection, true)).await {
            Ok(channel) => {
                if keeps_state {
                    channel.note_state();
                }
                connection.lost = None;
                tracing::info!("connected again to {}, which has lived on", self.settings.label());
                self.connected(connection, channel)
            }
            Err(error) => {
                connection.session = None;
                if let (Error::NoSession | Error::Refused(_) | Error::Version { .. }, Some(lost)) =
                    (&error, &mut connection.lost)
                {
                    lost.note_end_of_session();
                    return Err(Error::NoSession);
                }
                Err(error)
            }
        }
    }

    async fn create_and_connect(
        self: &Arc<Self>,
        connection: &mut Connection,
    ) -> Result<Arc<Channel>, Error> {
        let copied = connection.copied.clone();
        let maker = self.maker();
        if connection.lease.is_none() {
            maker.make(copied.as_ref(), &mut connection.lease).await?;
        }
        let commands = match &connection.lease {
            Some(lease) => lease.commands.clone(),
            None => RemoteCommands::new(&self.settings, &maker.values(copied.as_ref()))?,
        };
        connection.session = RemoteSession::new(&self.settings)?;
        let session = opening(connection, false);
        let channel = match (self.connect(&commands, session.clone()).await, &copied) {
            (Err(error), Some(copied)) if is_missing_program(&error) => {
                maker.copy(&commands, copied).await?;
                self.connect(&commands, session).await?
            }
            (connected, _) => connected?,
        };
        self.connected(connection, channel)
    }

    /// Notes a channel that has been opened.
    fn connected(
        self: &Arc<Self>,
        connection: &mut Connection,
        channel: Channel,
    ) -> Result<Arc<Channel>, Error> {
        if let Some(lease) = &mut connection.lease {
            // A kind that creates with the connection has created now.
            lease.note_created()?;
        }
        let channel = Arc::new(channel);
        let answer = channel.answer();
        tokio::spawn(watching::watch_end(Arc::downgrade(self), Arc::downgrade(&channel), channel.ended(), {
            connection.lease.as_ref().and_then(Lease::remaining_life)
        }));
        if let Some(lease) = &connection.lease {
            let channel = (Arc::downgrade(&channel), channel.ended());
            let (lease, idle) = (lease.id().to_owned(), self.settings.idle);
            let runner = self.options.runner.clone();
            tokio::spawn(end_unused(Arc::downgrade(&self.connection), channel, lease, idle, runner));
        }
        tracing::info!(
            "connected to {}: {} {}, confinement: {}",
            self.settings.label(),
            answer.system,
            answer.architecture,
            answer.confinement
        );
        connection.channel = Some(Arc::clone(&channel));
        Ok(channel)
    }

    async fn connect(
        &self,
        commands: &RemoteCommands,
        session: Option<OpenSession>,
    ) -> Result<Channel, Error> {
        let started = channel::start_connect(&commands.connect, &self.options.runner).await?;
        self.open_channel(started, session).await
    }

    async fn open_channel(
        &self,
        started: StartedConnect,
        session: Option<OpenSession>,
    ) -> Result<Channel, Error> {
        let mut request = {
            let request = self.request.lock().unwrap_or_else(PoisonError::into_inner);
            // The flag is cleared under the lock of the request, so that a change after the copy sets it again.
            self.is_outdated.store(false, Ordering::Release);
            request.clone()
        };
        request.session = session;
        let options = ChannelOptions {
            request: &request,
            client: self.options.program,
            timeout: self.settings.connect_timeout,
            idle: self.settings.idle,
        };
        channel::open(started, options).await
    }

    async fn end_lease(&self, connection: &mut Connection) {
        connection.end_lease(&self.options.runner).await;
    }
}

/// Returns the session of a connection as the first message names it.
fn opening(connection: &Connection, resumes: bool) -> Option<OpenSession> {
    connection.session.as_ref().map(|session| session.opening(resumes))
}

/// Returns true if the program was not there.
fn is_missing_program(error: &Error) -> bool {
    matches!(error, Error::NotOpened { exit_code: Some(code), .. } if NOT_FOUND.contains(code))
}
