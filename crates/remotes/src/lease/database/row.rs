//! [`LeaseRow`]: a lease of this process in a database.

use super::connection::Bind;
use super::schema::sql;
use super::shared::{Ownership, SharedDatabase};
use crate::error::Error;
use error_causes::chain;
use std::sync::Arc;

/// A lease of this process in a database. Dropping it ends the signs of life, so that another server takes it in time.
#[derive(Debug)]
pub(in crate::lease) struct LeaseRow {
    database: Arc<SharedDatabase>,
    pub(super) id: String,
    /// False once it is removed or given up.
    is_held: bool,
}

impl LeaseRow {
    /// Makes the row of a lease that this process owns from now on.
    pub(super) fn new(database: &Arc<SharedDatabase>, id: String) -> Self {
        database.held().insert(id.clone(), Ownership::Own);
        Self { database: Arc::clone(database), id, is_held: true }
    }

    fn binds(&self) -> [Bind<'_>; 2] {
        [Bind::Text(&self.id), Bind::Text(&self.database.owner)]
    }

    pub(in crate::lease) async fn note_created(&self) -> Result<(), Error> {
        match self.database.execute(sql::CREATED, &self.binds()).await? {
            0 => Err(Error::LeaseTaken { id: self.id.clone() }),
            _ => Ok(()),
        }
    }

    /// Ends the signs of life: from now on it may be another row's lease.
    fn release(&mut self) {
        if std::mem::take(&mut self.is_held) {
            self.database.held().remove(&self.id);
        }
    }

    pub(in crate::lease) async fn remove(mut self) -> Result<(), Error> {
        // Before the row goes: a sign of life for a row that is not there means that another server has taken it.
        self.release();
        // One that another server has taken is removed by that one.
        self.database.execute(sql::REMOVE, &self.binds()).await.map(drop)
    }

    /// Gives the lease up at once. Where that cannot be written down, the silence of this lease says it in time.
    pub(in crate::lease) async fn give_up(mut self) {
        self.release();
        if let Err(error) = self.database.execute(sql::GIVE_UP, &self.binds()).await {
            tracing::warn!("{} is given up without a word to the database: {}", self.id, chain(&error));
        }
    }
}

impl Drop for LeaseRow {
    fn drop(&mut self) {
        self.release();
    }
}
