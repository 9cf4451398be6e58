//! [`SharedDatabase`]: the connection of a registry, and the leases that this process owns.

use super::connection::{Bind, LeaseConnection};
use super::error::LeaseDatabaseError;
use super::heartbeat::Heartbeat;
use super::schema::sql;
use crate::error::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex as StdMutex, MutexGuard, PoisonError};
use tokio::sync::Mutex;

/// The ids of one statement. A database limits the values of a statement.
const MAX_IDS: usize = 500;

/// The owner of a lease of which this process has a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ownership {
    /// This process.
    Own,
    /// Another server, which has taken it.
    Lost,
}

/// The connection of a registry, and the leases that this process owns.
pub(super) struct SharedDatabase {
    pub(super) connection: Mutex<LeaseConnection>,
    /// The name of this process in the table.
    pub(super) owner: String,
    /// Tells this registry from others of this process.
    pub(super) key: PathBuf,
    /// The silence after which an owner is dead, in milliseconds.
    pub(super) silence_ms: i64,
    /// The leases of which this process has a row.
    pub(super) held: StdMutex<BTreeMap<String, Ownership>>,
    pub(super) heartbeat: StdMutex<Heartbeat>,
}

impl fmt::Debug for SharedDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The location may have a password.
        f.debug_struct("SharedDatabase").field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl SharedDatabase {
    pub(super) fn held(&self) -> MutexGuard<'_, BTreeMap<String, Ownership>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn heartbeat(&self) -> MutexGuard<'_, Heartbeat> {
        self.heartbeat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn execute(&self, statement: &str, binds: &[Bind<'_>]) -> Result<u64, Error> {
        self.connection.lock().await.execute(statement, binds).await.map_err(Error::LeaseDatabase)
    }

    /// Tells the table that the leases of this process have an owner. A lease that another server has taken meanwhile is none
    /// of this process any more.
    pub(super) async fn give_signs(&self) -> Result<(), LeaseDatabaseError> {
        let mut connection = self.connection.lock().await;
        // Behind the lock: none of these is written or removed before the statements have run.
        let is_own =
            |(id, ownership): (&String, &Ownership)| (*ownership == Ownership::Own).then(|| id.clone());
        let held: Vec<String> = self.held().iter().filter_map(is_own).collect();
        let mut are_all_there = true;
        for ids in held.chunks(MAX_IDS) {
            let owner = [Bind::Text(&self.owner), Bind::Number(self.silence_ms)];
            let binds: Vec<Bind<'_>> = owner.into_iter().chain(ids.iter().map(|id| Bind::Text(id))).collect();
            let updated = connection.execute(&sql::sign(ids.len()), &binds).await?;
            are_all_there &= updated == ids.len() as u64;
        }
        let now_ms = connection.now_ms().await?;
        self.heartbeat().note(now_ms);
        if !are_all_there {
            let own = connection.rows(sql::OWN, &[Bind::Text(&self.owner)]).await?;
            let own: BTreeSet<String> = own.into_iter().map(|row| row.id).collect();
            for lost in held.iter().filter(|id| !own.contains(*id)) {
                // One that has ended meanwhile is not there any more.
                if let Some(ownership) = self.held().get_mut(lost) {
                    *ownership = Ownership::Lost;
                    tracing::warn!(
                        "another server has taken {lost} of this server, and destroys what it names"
                    );
                }
            }
        }
        Ok(())
    }
}
