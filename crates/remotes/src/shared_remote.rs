//! [`SharedRemote`]: opens the channel of a remote, creates what the channel needs, and watches its end.

use crate::channel::{self, Channel, ChannelOptions, StartedConnect};
use crate::commands::RemoteCommands;
use crate::connection::{Connection, end_unused};
use crate::error::Error;
use crate::lease::Lease;
use crate::lost_channel::{LostChannel, RemoteSession};
use crate::making::Maker;
use crate::opening::{OpenRequest, OpenSession};
use crate::options::RemoteOptions;
use crate::reaping;
use crate::settings::RemoteSettings;
use crate::warm::{WarmRemote, WarmRemotes};
use error_causes::chain;
use process_runner::CancellationToken;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Mutex, OwnedMutexGuard, watch};

/// The exit code of a shell for a program that is not there (POSIX: 127), and of engines that run one there.
const NOT_FOUND: [u32; 2] = [127, 126];

/// The parts of a remote that its tasks share with it.
pub(crate) struct SharedRemote {
    pub(crate) settings: RemoteSettings,
    pub(crate) options: RemoteOptions,
    pub(crate) warm: WarmRemotes,
    /// The first message of the next channel.
    pub(crate) request: StdMutex<OpenRequest>,
    pub(crate) connection: Arc<Mutex<Connection>>,
    /// True if the first message has changed since the channel was opened.
    pub(crate) is_outdated: AtomicBool,
    pub(crate) ending: CancellationToken,
    /// Counts the changes of what runs there.
    pub(crate) changes: watch::Sender<u64>,
    /// True once somebody is told of the changes.
    pub(crate) is_watched: AtomicBool,
}

impl SharedRemote {
    fn maker(&self) -> Maker<'_> {
        Maker { settings: &self.settings, options: &self.options, caller: &self.options.caller }
    }

    /// Opens a channel as [`open`](Self::open) does, unless the remote ends meanwhile: then nobody else would destroy what was
    /// created.
    pub(crate) async fn open_unless_ending(
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
        self.connected(connection, channel).await
    }

    /// Opens a channel to the server there that has outlived the one before.
    pub(crate) async fn resume(self: &Arc<Self>, connection: &mut Connection) -> Result<Arc<Channel>, Error> {
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
                    channel.note_state().await;
                }
                connection.lost = None;
                tracing::info!("connected again to {}, which has lived on", self.settings.label());
                self.connected(connection, channel).await
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
        self.connected(connection, channel).await
    }

    /// Notes a channel that has been opened.
    async fn connected(
        self: &Arc<Self>,
        connection: &mut Connection,
        channel: Channel,
    ) -> Result<Arc<Channel>, Error> {
        if let Some(lease) = &mut connection.lease {
            // A kind that creates with the connection has created now.
            lease.note_created().await?;
        }
        let channel = Arc::new(channel);
        let answer = channel.answer();
        tokio::spawn(watch_end(Arc::downgrade(self), Arc::downgrade(&channel), channel.ended(), {
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
            changes: &self.changes,
        };
        channel::open(started, options).await
    }

    pub(crate) async fn end_lease(&self, connection: &mut Connection) {
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

/// Destroys what was created for a channel once that has ended, or its life is over: nobody may call for a long time. The
/// next call creates anew.
async fn watch_end(
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
            Ok(_) | Err(Error::NoSession) => {
                // Something may have ended meanwhile, or everything has.
                shared.changes.send_modify(|count| *count = count.wrapping_add(1));
                return;
            }
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
