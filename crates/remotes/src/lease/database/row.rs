//! [`LeaseRow`]: a lease of this process in a database.

use super::connection::Bind;
use super::schema::sql;
use super::shared::SharedDatabase;
use crate::error::Error;
use error_causes::chain;
use std::sync::Arc;

/// A lease of this process in a database. Dropping it ends the signs of life, so that another server takes it in time.
#[derive(Debug)]
pub(in crate::lease) struct LeaseRow {
    database: Arc<SharedDatabase>,
    pub(super) id: String,
}

impl LeaseRow {
    /// A lease that this process owns from now on.
    pub(super) fn new(database: &Arc<SharedDatabase>, id: String) -> Self {
        database.held().insert(id.clone());
        Self { database: Arc::clone(database), id }
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

    pub(in crate::lease) async fn remove(self) -> Result<(), Error> {
        // One that another server has taken is removed by that one.
        self.database.execute(sql::REMOVE, &self.binds()).await.map(drop)
    }

    /// Gives the lease up at once. Where that cannot be written down, the silence of this lease says it in time.
    pub(in crate::lease) async fn give_up(self) {
        if let Err(error) = self.database.execute(sql::GIVE_UP, &self.binds()).await {
            tracing::warn!("{} is given up without a word to the database: {}", self.id, chain(&error));
        }
    }
}

impl Drop for LeaseRow {
    fn drop(&mut self) {
        self.database.held().remove(&self.id);
    }
}
