//! The table of leases, and its statements. They are the same for both databases, but for the time.

/// The format of a lease in the table.
pub(super) const FORMAT: i64 = 1;

/// Locks the making of the table: two servers that begin at once may both find it missing.
// The key is arbitrary. All advisory locks of a database share one space of numbers.
pub(super) const POSTGRES_LOCK: &str = "SELECT pg_advisory_xact_lock(7309940873)";

/// Asks whether PostgreSQL has the table.
pub(super) const POSTGRES_EXISTS: &str = "SELECT to_regclass('coretools_leases') IS NOT NULL";

pub(super) const POSTGRES_TABLE: &str = "CREATE TABLE IF NOT EXISTS coretools_leases (id TEXT PRIMARY KEY, \
     format BIGINT NOT NULL, record TEXT NOT NULL, owner TEXT, expires_ms BIGINT NOT NULL, settles_ms BIGINT NOT NULL, \
     is_created BOOLEAN NOT NULL)";

pub(super) const SQLITE_TABLE: &str = "CREATE TABLE IF NOT EXISTS coretools_leases (id TEXT PRIMARY KEY, \
     format INTEGER NOT NULL, record TEXT NOT NULL, owner TEXT, expires_ms INTEGER NOT NULL, settles_ms INTEGER NOT NULL, \
     is_created INTEGER NOT NULL) STRICT";

/// The statements. `{now}` stands for the time of the database, in milliseconds. The owner writes down when its lease expires,
/// so that a reader with another silence does not take the lease of an owner that lives.
pub(super) mod sql {
    pub(in super::super) const NOW: &str = "SELECT {now}";
    /// The values: id, format, record, owner, silence, time for the creation.
    pub(in super::super) const INSERT: &str = "INSERT INTO coretools_leases \
         (id, format, record, owner, expires_ms, settles_ms, is_created) \
         VALUES ($1, $2, $3, $4, {now} + $5, {now} + $6, FALSE)";
    pub(in super::super) const CREATED: &str =
        "UPDATE coretools_leases SET is_created = TRUE WHERE id = $1 AND owner = $2";
    pub(in super::super) const REMOVE: &str = "DELETE FROM coretools_leases WHERE id = $1 AND owner = $2";
    pub(in super::super) const GIVE_UP: &str =
        "UPDATE coretools_leases SET owner = NULL WHERE id = $1 AND owner = $2";
    /// The flag: somebody owns it.
    pub(in super::super) const LIST: &str = "SELECT id, format, record, (owner IS NOT NULL AND expires_ms >= {now}) AS flag \
         FROM coretools_leases ORDER BY id LIMIT 10000";
    pub(in super::super) const OWN: &str = "SELECT id, format, record, is_created AS flag FROM coretools_leases \
         WHERE owner = $1";
    pub(in super::super) const ORPHANS: &str = "SELECT id, format, record, is_created AS flag FROM coretools_leases \
         WHERE owner IS NULL OR expires_ms < $1 ORDER BY id LIMIT 1000";
    /// The flag: its creation is over, whatever became of it. The values: id, owner, silence, time of expiry.
    pub(in super::super) const TAKE_OVER: &str = "UPDATE coretools_leases SET owner = $2, expires_ms = {now} + $3 \
         WHERE id = $1 AND (owner IS NULL OR expires_ms < $4) \
         RETURNING id, format, record, (is_created OR settles_ms <= {now}) AS flag";

    /// Returns the statement by which an owner says that it lives, for so many leases. The values: owner, silence, ids.
    pub(in super::super) fn sign(leases: usize) -> String {
        let ids: Vec<String> = (0..leases).map(|index| format!("${}", index + 3)).collect();
        format!(
            "UPDATE coretools_leases SET expires_ms = {{now}} + $2 WHERE owner = $1 AND id IN ({})",
            ids.join(", ")
        )
    }
}
