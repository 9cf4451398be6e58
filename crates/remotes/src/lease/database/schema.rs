//! The table of leases, and its statements. They are the same for both databases, but for the time.

/// The format of a lease in the table.
pub(super) const FORMAT: i64 = 1;

/// Locks the making of the table: two servers that begin at once may both find it missing.
// The key is arbitrary. All advisory locks of a database share one space of numbers.
pub(super) const POSTGRES_LOCK: &str = "SELECT pg_advisory_xact_lock(7309940873)";

/// Asks whether PostgreSQL has the table.
pub(super) const POSTGRES_EXISTS: &str = "SELECT to_regclass('coretools_leases') IS NOT NULL";

pub(super) const POSTGRES_TABLE: &str = "CREATE TABLE IF NOT EXISTS coretools_leases (id TEXT PRIMARY KEY, \
     format BIGINT NOT NULL, record TEXT NOT NULL, owner TEXT, seen_ms BIGINT NOT NULL, is_created BOOLEAN NOT NULL)";

pub(super) const SQLITE_TABLE: &str = "CREATE TABLE IF NOT EXISTS coretools_leases (id TEXT PRIMARY KEY, \
     format INTEGER NOT NULL, record TEXT NOT NULL, owner TEXT, seen_ms INTEGER NOT NULL, is_created INTEGER NOT NULL) STRICT";

/// The statements. `{now}` stands for the time of the database, in milliseconds.
pub(super) mod sql {
    pub(in super::super) const INSERT: &str = "INSERT INTO coretools_leases (id, format, record, owner, seen_ms, is_created) \
         VALUES ($1, $2, $3, $4, {now}, FALSE)";
    pub(in super::super) const CREATED: &str =
        "UPDATE coretools_leases SET is_created = TRUE, seen_ms = {now} WHERE id = $1 AND owner = $2";
    pub(in super::super) const REMOVE: &str = "DELETE FROM coretools_leases WHERE id = $1 AND owner = $2";
    pub(in super::super) const GIVE_UP: &str =
        "UPDATE coretools_leases SET owner = NULL WHERE id = $1 AND owner = $2";
    /// The flag: somebody owns it.
    pub(in super::super) const LIST: &str = "SELECT id, format, record, (owner IS NOT NULL AND seen_ms >= {now} - $1) AS flag \
         FROM coretools_leases ORDER BY id LIMIT 10000";
    pub(in super::super) const ORPHANS: &str = "SELECT id, format, record, is_created AS flag FROM coretools_leases \
         WHERE owner IS NULL OR seen_ms < {now} - $1 ORDER BY id LIMIT 1000";
    pub(in super::super) const TAKE_OVER: &str = "UPDATE coretools_leases SET owner = $2, seen_ms = {now} \
         WHERE id = $1 AND (owner IS NULL OR seen_ms < {now} - $3) RETURNING id, format, record, is_created AS flag";

    /// Returns the statement by which an owner says that it lives, for so many leases.
    pub(in super::super) fn sign(leases: usize) -> String {
        let ids: Vec<String> = (0..leases).map(|index| format!("${}", index + 2)).collect();
        format!(
            "UPDATE coretools_leases SET seen_ms = {{now}} WHERE owner = $1 AND id IN ({})",
            ids.join(", ")
        )
    }
}
