//! [`SharedDatabase`]: the connection of a registry, and the leases that this process owns.

use super::connection::{Bind, LeaseConnection};
use crate::error::Error;
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex as StdMutex, MutexGuard, PoisonError};
use tokio::sync::Mutex;

/// The connection of a registry, and the leases that this process owns.
pub(super) struct SharedDatabase {
    pub(super) connection: Mutex<LeaseConnection>,
    /// The name of this process in the table.
    pub(super) owner: String,
    /// Tells this registry from others of this process.
    pub(super) key: PathBuf,
    /// The silence after which an owner is dead, in milliseconds.
    pub(super) silence_ms: i64,
    /// The leases of this process.
    pub(super) held: StdMutex<BTreeSet<String>>,
}

impl fmt::Debug for SharedDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The location may have a password.
        f.debug_struct("SharedDatabase").field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl SharedDatabase {
    pub(super) fn held(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn execute(&self, statement: &str, binds: &[Bind<'_>]) -> Result<u64, Error> {
        self.connection.lock().await.execute(statement, binds).await.map_err(Error::LeaseDatabase)
    }
}
