//! [`LeaseDatabase`]: leases in a table of SQLite or PostgreSQL, for servers on several machines.
//!
//! Each server that has the table open is an owner with a name of its own, and tells the table again and again that it
//! lives. The lease of an owner that was silent for too long has none any more, unless the reader did not reach the database
//! either. All times are those of the database, so that the clocks of the servers do not matter.

mod connection;
mod error;
mod heartbeat;
mod row;
mod schema;
mod shared;

pub use error::LeaseDatabaseError;
pub(super) use row::LeaseRow;

use super::invalid::InvalidLease;
use super::record::{FoundLease, LeaseRecord, OrphanedLease, Reaped};
use crate::channel::random_hex;
use crate::error::Error;
use connection::{Bind, LeaseConnection};
use error_causes::chain;
use heartbeat::Heartbeat;
use schema::{FORMAT, sql};
use shared::SharedDatabase;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex as StdMutex, Weak};
use std::time::Duration;
use tokio::sync::Mutex;

/// The signs of life that an owner may miss before its leases are taken.
const SIGNS: u32 = 5;

/// The signs of life that this process may miss before it takes nothing over for a while.
const MISSED_SIGNS: i64 = 2;

/// The shortest time between two signs of life.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);

/// The shortest pause between two looks for leases without owners.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);

/// Leases in a database. Cheap to clone.
#[derive(Clone)]
pub struct LeaseDatabase(Arc<SharedDatabase>);

impl fmt::Debug for LeaseDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The location may have a password.
        f.debug_struct("LeaseDatabase").field("owner", &self.0.owner).finish_non_exhaustive()
    }
}

impl LeaseDatabase {
    /// Opens the table in the database at `location`, `sqlite:PATH` or `postgres://…`, and makes it if it is missing. A
    /// server that gives no sign of life for `silence` is taken to be dead. To be called in a runtime.
    ///
    /// # Errors
    /// The database cannot be used; the message has no password.
    pub async fn open(location: &str, silence: Duration) -> Result<Self, Error> {
        let mut connection = LeaseConnection::parse(location).map_err(Error::LeaseDatabase)?;
        connection.prepare(location).await.map_err(Error::LeaseDatabase)?;
        let now_ms = connection.now_ms().await.map_err(Error::LeaseDatabase)?;
        let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let owner = format!("{machine}:{}", random_hex::<8>()?);
        let silence_ms = milliseconds(silence);
        let longest_pause_ms = silence_ms.saturating_mul(MISSED_SIGNS) / i64::from(SIGNS);
        let database = Self(Arc::new(SharedDatabase {
            connection: Mutex::new(connection),
            key: PathBuf::from(&owner),
            owner,
            silence_ms,
            held: StdMutex::default(),
            heartbeat: StdMutex::new(Heartbeat::new(now_ms, silence_ms, longest_pause_ms)),
        }));
        tokio::spawn(give_signs(Arc::downgrade(&database.0), silence / SIGNS));
        Ok(database)
    }

    pub(super) fn key(&self) -> &Path {
        &self.0.key
    }

    pub(super) fn look_again(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.silence_ms).unwrap_or_default() / 2).max(SHORTEST_PAUSE)
    }

    /// Writes a lease down, as one of this process.
    pub(super) async fn write(&self, record: &LeaseRecord) -> Result<LeaseRow, Error> {
        let text = serde_json::to_string(record)?;
        let creation = record.settles_at.duration_since(record.created_at).unwrap_or_default();
        let times = [self.0.silence_ms, milliseconds(creation)].map(Bind::Number);
        let texts =
            [Bind::Text(&record.id), Bind::Number(FORMAT), Bind::Text(&text), Bind::Text(&self.0.owner)];
        self.0.execute(sql::INSERT, &[texts.as_slice(), times.as_slice()].concat()).await?;
        Ok(LeaseRow::new(&self.0, record.id.clone()))
    }

    /// Returns the leases in the table.
    pub(super) async fn leases(&self) -> Result<Vec<FoundLease>, Error> {
        let mut connection = self.0.connection.lock().await;
        let rows = connection.rows(sql::LIST, &[]).await.map_err(Error::LeaseDatabase)?;
        let mut found = Vec::new();
        for row in rows.into_iter().filter(|row| row.format == FORMAT) {
            match serde_json::from_str(&row.record) {
                Ok(record) => found.push(FoundLease { record, is_owned: row.flag }),
                Err(error) => tracing::error!("{} of the database is no lease: {error}", row.id),
            }
        }
        Ok(found)
    }

    /// Tells the table that this process lives. Returns the time before which a lease has expired.
    async fn expired_before_ms(&self) -> Result<i64, Error> {
        // First: after a pause of this process, its own leases have expired as well, and those of the others seem to have.
        self.0.give_signs().await.map_err(Error::LeaseDatabase)?;
        Ok(self.0.heartbeat().expired_before_ms().unwrap_or(i64::MIN))
    }

    /// Returns the ids of the leases that nobody owns. Those of a newer program are left to it.
    pub(super) async fn orphans(&self, reaped: &mut Reaped) -> Result<Vec<String>, Error> {
        let expired = Bind::Number(self.expired_before_ms().await?);
        let rows = self.0.connection.lock().await.rows(sql::ORPHANS, &[expired]).await;
        let mut ids = Vec::new();
        for row in rows.map_err(Error::LeaseDatabase)? {
            if row.format > FORMAT {
                let newer = InvalidLease::Newer { found: row.format, known: FORMAT };
                reaped.failed.push((row.id, newer.to_string()));
            } else {
                ids.push(row.id);
            }
        }
        Ok(ids)
    }

    /// Makes this process the owner of a lease, if nobody owns it. Of several servers one succeeds.
    pub(super) async fn take_over(&self, id: &str) -> Result<Option<OrphanedLease<LeaseRow>>, Error> {
        let expired = self.expired_before_ms().await?;
        // One of this process that was dropped may be taken, and none of which it has a row.
        if self.0.held().contains_key(id) {
            return Ok(None);
        }
        let times = [self.0.silence_ms, expired].map(Bind::Number);
        let binds = [Bind::Text(id), Bind::Text(&self.0.owner), times[0], times[1]];
        let rows = self.0.connection.lock().await.rows(sql::TAKE_OVER, &binds).await;
        let Some(row) = rows.map_err(Error::LeaseDatabase)?.into_iter().next() else { return Ok(None) };
        let place = LeaseRow::new(&self.0, row.id);
        match serde_json::from_str(&row.record) {
            Ok(record) => Ok(Some(OrphanedLease { record, is_settled: row.flag, place })),
            Err(error) => {
                tracing::error!("{} of the database is no lease: {error}", place.id);
                place.give_up().await;
                Ok(None)
            }
        }
    }
}

/// Tells the table again and again that the leases of this process have an owner, until the registry is dropped.
async fn give_signs(shared: Weak<SharedDatabase>, interval: Duration) {
    loop {
        tokio::time::sleep(interval.max(SHORTEST_INTERVAL)).await;
        let Some(shared) = shared.upgrade() else { return };
        if let Err(error) = shared.give_signs().await {
            tracing::error!("the database of leases is not told that this server lives: {}", chain(&error));
        }
    }
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
