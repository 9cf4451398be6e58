//! [`LeaseRegistry`]: the place where a server writes down its leases.

#[cfg(feature = "database")]
use super::database::{LeaseDatabase, LeaseDatabaseError};
use super::destroying::{Destroyed, destroy};
use super::folder::LeaseFolder;
use super::owned::{Lease, LeasePlace};
use super::record::{FoundLease, LeaseRecord, OrphanedLease, Reaped};
use crate::commands::CommandValues;
use crate::error::Error;
use crate::settings::RemoteSettings;
use error_causes::chain;
use process_runner::Runner;
use std::path::Path;
use std::time::Duration;

/// The place where a server writes down its leases. Cheap to clone.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LeaseRegistry {
    /// Files, for the servers of one user on one machine.
    Folder(LeaseFolder),
    /// The table of a database, for servers on several machines.
    #[cfg(feature = "database")]
    Database(LeaseDatabase),
}

impl From<LeaseFolder> for LeaseRegistry {
    fn from(folder: LeaseFolder) -> Self {
        Self::Folder(folder)
    }
}

#[cfg(feature = "database")]
impl From<LeaseDatabase> for LeaseRegistry {
    fn from(database: LeaseDatabase) -> Self {
        Self::Database(database)
    }
}

impl LeaseRegistry {
    /// Returns what tells this registry from the others of this process.
    pub(crate) fn key(&self) -> &Path {
        match self {
            Self::Folder(folder) => folder.path(),
            #[cfg(feature = "database")]
            Self::Database(database) => database.key(),
        }
    }

    /// Returns the pause after which what other servers have left behind is looked for again. None: with the next remote
    /// that is connected.
    pub(crate) fn look_again(&self) -> Option<Duration> {
        match self {
            Self::Folder(_) => None,
            #[cfg(feature = "database")]
            Self::Database(database) => Some(database.look_again()),
        }
    }

    /// Writes down a lease for `settings`, before anything is created. None if the kind destroys nothing.
    pub(crate) async fn begin(
        &self,
        settings: &RemoteSettings,
        values: &CommandValues<'_>,
    ) -> Result<Option<Lease>, Error> {
        let Some((record, commands)) = LeaseRecord::new(settings, values)? else { return Ok(None) };
        let place = match self {
            Self::Folder(folder) => LeasePlace::File(folder.write(&record)?),
            #[cfg(feature = "database")]
            Self::Database(database) => LeasePlace::Row(database.write(&record).await?),
        };
        Ok(Some(Lease::new(record, commands, place)))
    }

    /// Returns the leases, the oldest first.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub async fn leases(&self) -> Result<Vec<FoundLease>, Error> {
        let mut found = match self {
            Self::Folder(folder) => folder.leases()?,
            #[cfg(feature = "database")]
            Self::Database(database) => database.leases().await?,
        };
        found.sort_by(|one, other| {
            (one.record.created_at, &one.record.id).cmp(&(other.record.created_at, &other.record.id))
        });
        Ok(found)
    }

    /// Destroys what the leases name that nobody owns: their owners were killed, or could not destroy them. `configured`
    /// are the remotes of the configuration, some of which they may name.
    ///
    /// # Errors
    /// The registry cannot be read. A lease that cannot be changed there is one of those that failed, so that those that were
    /// destroyed are told.
    pub async fn reap(&self, configured: &[RemoteSettings], runner: &Runner) -> Result<Reaped, Error> {
        let mut reaped = Reaped::default();
        match self {
            Self::Folder(folder) => {
                folder.remove_abandoned()?;
                for path in folder.files()? {
                    if let Some(orphan) = folder.take_over(&path) {
                        reap_one(orphan, LeasePlace::File, (configured, runner), &mut reaped).await;
                    }
                }
            }
            #[cfg(feature = "database")]
            Self::Database(database) => {
                for id in database.orphans(&mut reaped).await? {
                    match database.take_over(&id).await {
                        Ok(None) => {}
                        Ok(Some(orphan)) => {
                            reap_one(orphan, LeasePlace::Row, (configured, runner), &mut reaped).await;
                        }
                        Err(error) => {
                            let is_silent =
                                matches!(error, Error::LeaseDatabase(LeaseDatabaseError::Timeout));
                            reaped.failed.push((id, chain(&error)));
                            // Each further lease would wait as long, and the account would come too late.
                            if is_silent {
                                break;
                            }
                        }
                    }
                }
            }
        }
        Ok(reaped)
    }
}

async fn reap_one<P>(
    orphan: OrphanedLease<P>,
    place: impl FnOnce(P) -> LeasePlace,
    (configured, runner): (&[RemoteSettings], &Runner),
    reaped: &mut Reaped,
) {
    let place = place(orphan.place);
    // `is_settled` was read before the commands run: what was created until then, they find.
    let OrphanedLease { record, is_settled, .. } = orphan;
    let destroyed = async {
        let commands = record.commands(configured)?;
        destroy(&record.id, &commands, runner).await
    };
    match destroyed.await {
        Ok(Destroyed::NotListed | Destroyed::Unknown) if !is_settled => {
            place.give_up().await;
            reaped.unsettled.push(record.id);
        }
        Ok(_) => match place.remove().await {
            Ok(()) => reaped.destroyed.push(record.id),
            Err(error) => reaped.failed.push((record.id, chain(&error))),
        },
        // The other leases are still tried: one engine that is unreachable must not keep the rest alive.
        Err(error) => {
            place.give_up().await;
            reaped.failed.push((record.id, chain(&error)));
        }
    }
}
