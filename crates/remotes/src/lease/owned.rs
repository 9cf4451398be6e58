//! [`Lease`]: a lease that this process owns.

#[cfg(feature = "database")]
use super::database::LeaseRow;
use super::destroying::{Destroyed, destroy};
use super::folder::LeaseFile;
use super::record::LeaseRecord;
use crate::commands::RemoteCommands;
use crate::error::Error;
use process_runner::Runner;
use std::time::{Duration, SystemTime};

/// A lease that this process owns.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(super) record: LeaseRecord,
    pub(crate) commands: RemoteCommands,
    /// True if no engine is creating it any more.
    is_settled: bool,
    // Declared last: it is given up after everything else.
    pub(super) place: LeasePlace,
}

/// The place where a lease of this process is written down. Dropping it gives the lease up, and another process takes it.
#[derive(Debug)]
pub(super) enum LeasePlace {
    File(LeaseFile),
    #[cfg(feature = "database")]
    Row(LeaseRow),
}

impl LeasePlace {
    async fn note_created(&mut self) -> Result<(), Error> {
        match self {
            Self::File(file) => file.note_created(),
            #[cfg(feature = "database")]
            Self::Row(row) => row.note_created().await,
        }
    }

    /// Takes the lease out of the registry.
    pub(super) async fn remove(self) -> Result<(), Error> {
        match self {
            Self::File(file) => file.remove(),
            #[cfg(feature = "database")]
            Self::Row(row) => row.remove().await,
        }
    }

    /// Gives the lease up at once, for another process to destroy it.
    pub(super) async fn give_up(self) {
        match self {
            // With the lock of the file.
            Self::File(file) => drop(file),
            #[cfg(feature = "database")]
            Self::Row(row) => row.give_up().await,
        }
    }
}

impl Lease {
    pub(super) fn new(record: LeaseRecord, commands: RemoteCommands, place: LeasePlace) -> Self {
        Self { record, commands, is_settled: false, place }
    }

    /// Returns the id.
    pub(crate) fn id(&self) -> &str {
        &self.record.id
    }

    /// Returns true once the life of the lease is over.
    pub(crate) fn is_over(&self) -> bool {
        self.record.ends_at.is_some_and(|end| end <= SystemTime::now())
    }

    /// Returns the time until the life of the lease is over, if it ends.
    pub(crate) fn remaining_life(&self) -> Option<Duration> {
        let end = self.record.ends_at?;
        Some(end.duration_since(SystemTime::now()).unwrap_or_default())
    }

    /// Notes that what it names was created. Once is enough.
    pub(crate) async fn note_created(&mut self) -> Result<(), Error> {
        if !self.is_settled {
            self.place.note_created().await?;
            self.is_settled = true;
        }
        Ok(())
    }

    /// Notes that `create` has ended without creating it.
    pub(crate) fn note_not_created(&mut self) {
        self.is_settled = true;
    }

    /// Destroys what was created. If that fails, the lease stays in the registry without an owner, and the next server
    /// destroys it.
    pub(crate) async fn end(self, runner: &Runner) -> Result<(), Error> {
        let destroyed = match destroy(&self.record.id, &self.commands, runner).await {
            Ok(destroyed) => destroyed,
            Err(error) => {
                self.place.give_up().await;
                return Err(error);
            }
        };
        if !self.is_settled && destroyed != Destroyed::Listed {
            // The next server looks for it again.
            self.place.give_up().await;
            return Ok(());
        }
        self.place.remove().await
    }
}
