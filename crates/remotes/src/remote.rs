//! [`Remote`]: a remote of one caller, whose channel is opened when it is needed.

use crate::binary::{COPY_TIMEOUT, CopiedBinary, copied_binary};
use crate::channel::{self, Channel, ChannelOptions, OnProgress};
use crate::commands::{CommandValues, RemoteCommands};
use crate::connection::{Connection, end_unused};
use crate::error::Error;
use crate::lease::{Lease, LeaseFolder};
use crate::opening::{OpenAnswer, OpenRequest};
use crate::reaping;
use crate::settings::RemoteSettings;
use error_causes::chain;
use process_runner::{CancellationToken, Runner};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, OwnedMutexGuard};

#[cfg(test)]
mod tests;

/// The exit code of a shell for a program that is not there (POSIX: 127), and of engines that run one there.
const NOT_FOUND: [u32; 2] = [127, 126];

/// The parts of a [`Remote`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RemoteOptions {
    /// The name of this program.
    pub program: &'static str,
    /// The version of this program, which the server there must have too.
    pub version: &'static str,
    /// The name of the caller, as the commands of the kind get it ([`caller_slug`](crate::caller_slug)).
    pub caller: String,
    /// Runs the commands of the kind.
    pub runner: Runner,
    /// The folder of leases. Without it no kind can be used that creates anything.
    pub leases: Option<LeaseFolder>,
    /// The remotes of the configuration, which leases of other servers may name.
    pub configured: Vec<RemoteSettings>,
}

impl RemoteOptions {
    /// The options of a program of one local caller.
    pub fn new(program: &'static str, version: &'static str, runner: Runner) -> Self {
        Self { program, version, caller: "local".to_owned(), runner, leases: None, configured: Vec::new() }
    }
}

/// A remote of one caller. It is connected with the first call, and again after a connection has ended. Cheap to clone.
#[derive(Clone)]
pub struct Remote {
    shared: Arc<SharedRemote>,
}

struct SharedRemote {
    settings: RemoteSettings,
    options: RemoteOptions,
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
    /// Creates a remote, which is not connected yet. `request` is the first message to the server there.
    pub fn new(settings: RemoteSettings, request: OpenRequest, options: RemoteOptions) -> Self {
        let shared = SharedRemote {
            settings,
            options,
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
                connection.lease.is_some() || connection.channel.as_ref().is_some_and(is_open)
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
            let (reason, keeps_state) = (channel.end_reason().unwrap_or_default(), channel.keeps_state());
            connection.channel = None;
            if keeps_state {
                // Told once. The next call gets a new connection.
                return Err(Error::StateLost { reason });
            }
        }
        on_progress(&format!("connecting to {}", self.shared.settings.name));
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
            }
            self.shared.end_lease(&mut connection).await;
            if let Some(leases) = &self.shared.options.leases {
                reaping::finished(leases).await;
            }
        });
        if ended.await.is_err() {
            tracing::warn!("remote {} did not end in time", self.shared.settings.name);
        }
    }
}

impl SharedRemote {
    fn values(&self) -> CommandValues<'_> {
        CommandValues {
            program: self.options.program,
            caller: &self.options.caller,
            ..CommandValues::default()
        }
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
        let was_created = connection.lease.is_some();
        if connection.lease.as_ref().is_some_and(Lease::is_over)
            // Such a kind creates with each connection.
            || was_created && self.settings.kind.commands.create.is_none()
        {
            self.end_lease(&mut connection).await;
        }
        if self.settings.copy_binary && connection.copied.is_none() {
            // A command that tells the architecture is of a kind that creates nothing.
            let architecture = match &self.settings.kind.commands.architecture {
                None => None,
                Some(_) => RemoteCommands::new(&self.settings, &self.values())?.architecture,
            };
            let RemoteOptions { runner, program, version, .. } = &self.options;
            let copied =
                copied_binary(&self.settings, architecture.as_ref(), runner, program, version).await?;
            connection.copied = Some(copied);
        }
        let reuses = connection.lease.is_some();
        match self.open_once(&mut connection).await {
            Ok(channel) => Ok(channel),
            // What was created earlier may be gone. What was created just now is no better a second time.
            Err(error) if reuses => {
                tracing::warn!("remote {} is made again: {}", self.settings.name, chain(&error));
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

    async fn create_and_connect(
        self: &Arc<Self>,
        connection: &mut Connection,
    ) -> Result<Arc<Channel>, Error> {
        let copied = connection.copied.clone();
        let copied_names = copied.as_ref().map(|copied| (copied.name.as_str(), copied.sha256.as_str()));
        let values = CommandValues { copied: copied_names, ..self.values() };
        let mut is_new = false;
        if self.settings.kind.has_lease() && connection.lease.is_none() {
            let leases = self.options.leases.as_ref().ok_or(Error::NoLeaseFolder)?;
            connection.lease = leases.begin(&self.settings, &values)?;
            is_new = true;
        }
        let commands = match &connection.lease {
            Some(lease) => lease.commands.clone(),
            None => RemoteCommands::new(&self.settings, &values)?,
        };
        if is_new {
            let created = self.create(&commands).await;
            match (&mut connection.lease, &created) {
                // Such a kind creates with the connection.
                (Some(_), Ok(())) if commands.create.is_none() => {}
                (Some(lease), Ok(())) => lease.note_created()?,
                // An engine whose command was ended may go on.
                (Some(lease), Err(error)) if !matches!(error, Error::TimedOut { .. }) => {
                    lease.note_not_created();
                }
                _ => {}
            }
            created?;
        }
        let channel = match (self.connect(&commands).await, &copied) {
            (Err(error), Some(copied)) if is_missing_program(&error) => {
                self.copy(&commands, copied).await?;
                self.connect(&commands).await?
            }
            (connected, _) => connected?,
        };
        if let Some(lease) = connection.lease.as_mut().filter(|_| is_new && commands.create.is_none()) {
            lease.note_created()?;
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
            self.settings.name,
            answer.system,
            answer.architecture,
            answer.confinement
        );
        connection.channel = Some(Arc::clone(&channel));
        Ok(channel)
    }

    async fn connect(&self, commands: &RemoteCommands) -> Result<Channel, Error> {
        let request = {
            let request = self.request.lock().unwrap_or_else(PoisonError::into_inner);
            // The flag is cleared under the lock of the request, so that a change after the copy sets it again.
            self.is_outdated.store(false, Ordering::Release);
            request.clone()
        };
        let options = ChannelOptions {
            runner: &self.options.runner,
            request: &request,
            client: self.options.program,
            timeout: self.settings.connect_timeout,
            idle: self.settings.idle,
        };
        channel::open(&commands.connect, options).await
    }

    /// Creates what `connect` connects to, and waits until it is ready.
    async fn create(&self, commands: &RemoteCommands) -> Result<(), Error> {
        const FIRST_DELAY: Duration = Duration::from_millis(100);
        // The delay doubles, because a container is ready in milliseconds and a virtual machine in minutes.
        const MAX_DELAY: Duration = Duration::from_secs(2);
        let limit = self.settings.create_timeout;
        let deadline = Instant::now() + limit;
        // A command that begins at the deadline still gets a moment, so that it fails by its own message.
        let left = || deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        if let Some(create) = &commands.create {
            create.run(&self.options.runner, None, left()).await?;
        }
        let Some(ready) = &commands.ready else { return Ok(()) };
        let mut delay = FIRST_DELAY;
        loop {
            match ready.run(&self.options.runner, None, left()).await {
                Ok(_) => return Ok(()),
                Err(last) if Instant::now() + delay >= deadline => {
                    return Err(Error::NotReady { seconds: limit.as_secs(), last: Box::new(last) });
                }
                Err(_) => tokio::time::sleep(delay).await,
            }
            delay = (delay * 2).min(MAX_DELAY);
        }
    }

    async fn copy(&self, commands: &RemoteCommands, copied: &CopiedBinary) -> Result<(), Error> {
        let Some(copy) = &commands.copy else {
            return Err(Error::Copy("this kind has no command `copy`".to_owned()));
        };
        tracing::info!("copying {} to {}", copied.name, self.settings.name);
        let bytes = copied.bytes()?;
        copy.run(&self.options.runner, Some(bytes), COPY_TIMEOUT).await.map(drop)
    }

    async fn end_lease(&self, connection: &mut Connection) {
        connection.end_lease(&self.options.runner).await;
    }
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
    }
}

/// Returns true if the program was not there.
fn is_missing_program(error: &Error) -> bool {
    matches!(error, Error::NotOpened { exit_code: Some(code), .. } if NOT_FOUND.contains(code))
}
