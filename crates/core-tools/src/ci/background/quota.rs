//! The limits on background commands that run at once, for each owner and for all.

use crate::ci::error::CommandError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The number of background commands of one owner that may run at once.
const MAX_RUNNING_PER_OWNER: usize = 32;
/// The number of background commands of all owners together that may run at once.
const MAX_RUNNING: usize = 512;

/// Gives permits to run a background command.
#[derive(Debug)]
pub(super) struct BackgroundQuota {
    all: Arc<Semaphore>,
    by_owner: Arc<Mutex<RunningByOwner>>,
}

/// The number of running commands of each owner that has any.
type RunningByOwner = HashMap<String, usize>;

/// A permit to run one background command; dropping it frees the slot.
#[derive(Debug)]
pub(super) struct BackgroundPermit {
    _of_owner: OwnerCommandPermit,
    _of_all: OwnedSemaphorePermit,
}

#[derive(Debug)]
struct OwnerCommandPermit {
    owner: String,
    by_owner: Arc<Mutex<RunningByOwner>>,
}

impl BackgroundQuota {
    pub(super) fn new() -> Self {
        Self { all: Arc::new(Semaphore::new(MAX_RUNNING)), by_owner: Arc::default() }
    }

    /// Takes a permit for a command of `owner`, without waiting.
    ///
    /// # Errors
    ///
    /// The limit of the owner, or that of all owners, is reached.
    pub(super) fn try_acquire(&self, owner: &str) -> Result<BackgroundPermit, CommandError> {
        // The owner's first. If all permits are taken, dropping it gives the owner's permit back.
        let of_owner = self.try_acquire_for_owner(owner)?;
        let of_all = Arc::clone(&self.all)
            .try_acquire_owned()
            .map_err(|_| CommandError::TooManyRunning { max: MAX_RUNNING })?;
        Ok(BackgroundPermit { _of_owner: of_owner, _of_all: of_all })
    }

    fn try_acquire_for_owner(&self, owner: &str) -> Result<OwnerCommandPermit, CommandError> {
        let mut by_owner = self.by_owner.lock().unwrap_or_else(PoisonError::into_inner);
        let running = by_owner.entry(owner.to_owned()).or_default();
        if *running >= MAX_RUNNING_PER_OWNER {
            return Err(CommandError::TooManyRunning { max: MAX_RUNNING_PER_OWNER });
        }
        *running += 1;
        Ok(OwnerCommandPermit { owner: owner.to_owned(), by_owner: Arc::clone(&self.by_owner) })
    }
}

impl Drop for OwnerCommandPermit {
    fn drop(&mut self) {
        let mut by_owner = self.by_owner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = by_owner.get_mut(&self.owner) {
            *running -= 1;
            // Owners come and go with their sessions: without this the map would only ever grow.
            if *running == 0 {
                by_owner.remove(&self.owner);
            }
        }
    }
}
