//! [`WarmRemotes`]: remotes that are made ahead, so that the first call of a caller waits for nothing.
//!
//! A warm remote was created and written down as a lease like any other. Its `connect` has started and was told nothing, so
//! that it belongs to no caller yet. It is given to one caller, and never back.

use crate::binary::CopiedBinary;
use crate::channel::{StartedConnect, start_connect};
use crate::commands::RemoteCommands;
use crate::error::Error;
use crate::lease::Lease;
use crate::making::{Maker, destroy};
use crate::options::RemoteOptions;
use crate::reaping;
use crate::settings::RemoteSettings;
use error_causes::chain;
use process_runner::CancellationToken;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, Semaphore};

/// The time between two looks at the warm remotes.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The pause after a remote that could not be made. It doubles with each failure, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The time in which a `connect` whose program is missing there ends.
const MISSING_TIME: Duration = Duration::from_secs(1);

/// The name of the caller of a remote that has none yet.
const CALLER: &str = "warm";

/// The remotes that are made ahead: none until they are [started](Self::start). Cheap to clone.
#[derive(Clone, Default)]
pub struct WarmRemotes(Arc<Mutex<Vec<Arc<WarmPool>>>>);

/// The warm remotes of one `[remotes.NAME]`.
struct WarmPool {
    settings: RemoteSettings,
    options: RemoteOptions,
    ready: Mutex<Vec<WarmRemote>>,
    /// Notified when one was taken.
    taken: Notify,
    ending: CancellationToken,
    /// Its one permit is held by the task that makes remotes.
    making: Semaphore,
}

/// A remote that was made ahead.
pub(crate) struct WarmRemote {
    pub(crate) lease: Option<Lease>,
    pub(crate) copied: Option<CopiedBinary>,
    pub(crate) connect: StartedConnect,
}

impl fmt::Debug for WarmRemotes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ready: Vec<usize> = self.pools().iter().map(|pool| pool.ready().len()).collect();
        f.debug_struct("WarmRemotes").field("ready", &ready).finish()
    }
}

impl WarmRemotes {
    fn pools(&self) -> MutexGuard<'_, Vec<Arc<WarmPool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes remotes of `settings` ahead from now on, as many as they say, by `options`. Does nothing for settings that have
    /// begun already. To be called in a runtime.
    pub fn start(&self, settings: &RemoteSettings, options: &RemoteOptions) {
        let mut pools = self.pools();
        if settings.warm == 0 || pools.iter().any(|pool| pool.settings == *settings) {
            return;
        }
        let pool = Arc::new(WarmPool {
            settings: settings.clone(),
            options: RemoteOptions { caller: CALLER.to_owned(), ..options.clone() },
            ready: Mutex::default(),
            taken: Notify::new(),
            ending: CancellationToken::new(),
            making: Semaphore::new(1),
        });
        pools.push(Arc::clone(&pool));
        tokio::spawn(pool.keep_full());
    }

    /// Takes a warm remote of exactly these settings.
    pub(crate) fn take(&self, settings: &RemoteSettings) -> Option<WarmRemote> {
        let pool = Arc::clone(self.pools().iter().find(|pool| pool.settings == *settings)?);
        if pool.ending.is_cancelled() {
            return None;
        }
        let mut ready = pool.ready();
        // The oldest first. One that has died meanwhile is left to the task, which destroys it.
        let index = ready.iter().position(WarmRemote::is_usable)?;
        let warm = ready.remove(index);
        drop(ready);
        pool.taken.notify_one();
        Some(warm)
    }

    /// Destroys the remotes that nobody has taken, within `limit`. No other is made. One that cannot be destroyed in time
    /// stays written down, and the next server destroys it.
    pub async fn end(&self, limit: Duration) {
        let pools = self.pools().clone();
        let ending: Vec<_> = pools.into_iter().map(|pool| tokio::spawn(pool.end(limit))).collect();
        for task in ending {
            if let Err(error) = task.await {
                tracing::error!(%error, "warm remotes may not have ended");
            }
        }
    }

    /// Returns true if something was made ahead that an engine has to destroy.
    pub fn have_leases(&self) -> bool {
        self.pools().iter().any(|pool| pool.settings.kind.has_lease())
    }
}

impl WarmRemote {
    /// Returns true if it lives, and its life is not over before somebody can use it.
    fn is_usable(&self) -> bool {
        !self.connect.has_ended() && !self.lease.as_ref().is_some_and(Lease::is_over)
    }

    /// Returns true if another one should take its place.
    fn is_spent(&self, life: Option<Duration>) -> bool {
        let remaining = self.lease.as_ref().and_then(Lease::remaining_life);
        // Whoever gets it should have most of its life.
        let is_old = life.zip(remaining).is_some_and(|(life, remaining)| remaining < life / 2);
        is_old || !self.is_usable()
    }
}

impl WarmPool {
    fn ready(&self) -> MutexGuard<'_, Vec<WarmRemote>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn maker(&self) -> Maker<'_> {
        Maker { settings: &self.settings, options: &self.options, caller: &self.options.caller }
    }

    /// Makes remotes until as many are ready as there should be, and again when some are taken or spent.
    async fn keep_full(self: Arc<Self>) {
        let Ok(_making) = self.making.acquire().await else { return };
        if let Some(leases) = &self.options.leases {
            reaping::start(leases, &self.options.configured, &self.options.runner);
        }
        let mut pause = FIRST_PAUSE;
        while !self.ending.is_cancelled() {
            let spent: Vec<WarmRemote> =
                self.ready().extract_if(.., |warm| warm.is_spent(self.settings.life)).collect();
            // One that dies at once would be made again and again.
            let has_died = spent.iter().any(|warm| warm.connect.has_ended());
            for warm in spent {
                self.destroy(warm).await;
            }
            let is_full = self.ready().len() >= self.settings.warm;
            let made = if is_full || has_died { None } else { Some(self.make().await) };
            let until = match made {
                Some(Ok(warm)) => {
                    pause = FIRST_PAUSE;
                    self.ready().push(warm);
                    continue;
                }
                Some(Err(error)) => {
                    tracing::warn!(
                        "a warm remote {} cannot be made: {}",
                        self.settings.label(),
                        chain(&error)
                    );
                    Instant::now() + next(&mut pause)
                }
                None if has_died => Instant::now() + next(&mut pause),
                None => Instant::now() + CHECK_INTERVAL,
            };
            tokio::select! {
                () = tokio::time::sleep_until(until.into()) => {}
                () = self.taken.notified(), if is_full => {}
                () = self.ending.cancelled() => {}
            }
        }
    }

    /// Makes one.
    async fn make(&self) -> Result<WarmRemote, Error> {
        let maker = self.maker();
        let copied = maker.copied_binary().await?;
        let mut lease = None;
        let connected = async {
            maker.make(copied.as_ref(), &mut lease).await?;
            let commands = match &lease {
                Some(lease) => lease.commands.clone(),
                None => RemoteCommands::new(&self.settings, &maker.values(copied.as_ref()))?,
            };
            let start = || start_connect(&commands.connect, &self.options.runner);
            let Some(copied) = &copied else { return start().await };
            if lease.is_some() {
                // What was created just now does not have the program.
                maker.copy(&commands, copied).await?;
                return start().await;
            }
            let connect = start().await?;
            match tokio::time::timeout(MISSING_TIME, connect.finished()).await {
                Err(_) => Ok(connect),
                Ok(()) => {
                    maker.copy(&commands, copied).await?;
                    start().await
                }
            }
        };
        match connected.await {
            Ok(connect) => Ok(WarmRemote { lease, copied, connect }),
            Err(error) => {
                if let Some(lease) = lease {
                    destroy(lease, &self.options.runner).await;
                }
                Err(error)
            }
        }
    }

    async fn destroy(&self, warm: WarmRemote) {
        warm.connect.end().await;
        if let Some(lease) = warm.lease {
            destroy(lease, &self.options.runner).await;
        }
    }

    async fn end(self: Arc<Self>, limit: Duration) {
        self.ending.cancel();
        let ended = tokio::time::timeout(limit, async {
            // What is being made is waited for: it is written down, and is destroyed with the others.
            let _making = self.making.acquire().await;
            let left: Vec<WarmRemote> = std::mem::take(&mut *self.ready());
            for warm in left {
                self.destroy(warm).await;
            }
            if let Some(leases) = &self.options.leases {
                reaping::finished(leases).await;
            }
        });
        if ended.await.is_err() {
            tracing::warn!("the warm remotes {} did not end in time", self.settings.label());
        }
    }
}

/// Returns a pause, and doubles the next.
fn next(pause: &mut Duration) -> Duration {
    let now = *pause;
    *pause = (now * 2).min(LONGEST_PAUSE);
    now
}
