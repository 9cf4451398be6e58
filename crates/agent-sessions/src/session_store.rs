//! The database of a supervisor (SQLite): sessions, their transitions, and the supervisor's own record.

use crate::record::{SessionRecord, SupervisorRecord};
use crate::state::SessionStateTransition;
use crate::state_kind::SessionStateKind;
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Row};
use std::path::Path;
use std::time::Duration;
use tokio::sync::Mutex;

/// The error of the database.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionStoreError {
    /// SQLite refused, or the file is no database.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    /// A later version of this program wrote the database.
    #[error("it was written by a newer program (version {found}, this one knows {SCHEMA_VERSION})")]
    NewerVersion {
        /// The version in the database.
        found: i64,
    },
    /// A record is not JSON of the expected form.
    #[error("a record cannot be converted")]
    Record(#[from] serde_json::Error),
}

/// The database. One connection: the supervisor is its only user, and writes are short.
#[derive(Debug)]
pub(crate) struct SessionStore {
    connection: Mutex<SqliteConnection>,
}

/// The version of the schema. It is raised when an older program could not read what this one writes.
const SCHEMA_VERSION: i64 = 1;

/// The name of the database in the state directory.
pub(crate) const DATABASE_NAME: &str = "sessions.db";

/// The number of transitions that are kept of each session.
const MAX_TRANSITIONS: i64 = 200;

impl SessionStore {
    /// Opens the database, and creates it if it is missing. Its folder must be private.
    pub(crate) async fn open(path: &Path) -> Result<Self, SessionStoreError> {
        let mut connection = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // With a write-ahead log this syncs at checkpoints only: a power cut may lose the last changes, and nothing
            // else.
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(Duration::from_secs(5))
            // The journal reports the changes; a line for each statement would only hide them.
            .disable_statement_logging()
            .connect()
            .await?;
        let version: i64 = sqlx::query("PRAGMA user_version").fetch_one(&mut connection).await?.try_get(0)?;
        // Before anything is written: an older program must not damage what it cannot read.
        if version > SCHEMA_VERSION {
            return Err(SessionStoreError::NewerVersion { found: version });
        }
        for statement in [
            "CREATE TABLE IF NOT EXISTS kept (one INTEGER PRIMARY KEY CHECK (one = 1), record TEXT NOT NULL) STRICT",
            "CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, created INTEGER NOT NULL, state TEXT NOT NULL, \
             record TEXT NOT NULL) STRICT",
            "CREATE TABLE IF NOT EXISTS transitions (session TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE, \
             at INTEGER NOT NULL, previous TEXT NOT NULL, next TEXT NOT NULL, reason TEXT NOT NULL) STRICT",
            "CREATE INDEX IF NOT EXISTS transitions_of_session ON transitions (session)",
            "PRAGMA user_version = 1",
        ] {
            sqlx::query(statement).execute(&mut connection).await?;
        }
        Ok(Self { connection: Mutex::new(connection) })
    }

    /// Tells whether the state directory `state` has a database.
    pub(crate) fn exists_in(state: &Path) -> bool {
        rustix::fs::access(state.join(DATABASE_NAME), rustix::fs::Access::EXISTS).is_ok()
    }

    /// Reads the record of the supervisor. A new database has the default.
    pub(crate) async fn supervisor(&self) -> Result<SupervisorRecord, SessionStoreError> {
        let mut connection = self.connection.lock().await;
        let row = sqlx::query("SELECT record FROM kept").fetch_optional(&mut *connection).await?;
        row.map_or_else(|| Ok(SupervisorRecord::default()), |row| parse(row.try_get(0)?))
    }

    /// Writes the record of the supervisor.
    pub(crate) async fn write_supervisor(&self, record: &SupervisorRecord) -> Result<(), SessionStoreError> {
        let mut connection = self.connection.lock().await;
        sqlx::query(
            "INSERT INTO kept VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET record = excluded.record",
        )
        .bind(json(record)?)
        .execute(&mut *connection)
        .await?;
        Ok(())
    }

    /// Reads all sessions, the oldest first.
    pub(crate) async fn sessions(&self) -> Result<Vec<SessionRecord>, SessionStoreError> {
        let mut connection = self.connection.lock().await;
        let rows = sqlx::query("SELECT record FROM sessions ORDER BY created, id")
            .fetch_all(&mut *connection)
            .await?;
        rows.into_iter().map(|row| parse(row.try_get(0)?)).collect()
    }

    /// Writes the record of a session and appends transitions, both or neither.
    pub(crate) async fn write_session(
        &self,
        record: &SessionRecord,
        transitions: &[SessionStateTransition],
    ) -> Result<(), SessionStoreError> {
        let mut connection = self.connection.lock().await;
        let mut transaction = connection.begin().await?;
        sqlx::query(
            "INSERT INTO sessions VALUES (?, ?, ?, ?) \
             ON CONFLICT (id) DO UPDATE SET state = excluded.state, record = excluded.record",
        )
        .bind(&record.id)
        .bind(i64::try_from(record.created).unwrap_or(i64::MAX))
        .bind(record.state.kind().as_str())
        .bind(json(record)?)
        .execute(&mut *transaction)
        .await?;
        for transition in transitions {
            sqlx::query("INSERT INTO transitions VALUES (?, ?, ?, ?, ?)")
                .bind(&record.id)
                .bind(i64::try_from(transition.at).unwrap_or(i64::MAX))
                .bind(transition.from.map_or("", SessionStateKind::as_str))
                .bind(transition.to.as_str())
                .bind(&transition.reason)
                .execute(&mut *transaction)
                .await?;
        }
        // Deleted in the same transaction: a session that crashes in a loop must not fill the disk.
        if !transitions.is_empty() {
            sqlx::query(
                "DELETE FROM transitions WHERE session = ?1 AND rowid <= \
                 (SELECT rowid FROM transitions WHERE session = ?1 ORDER BY rowid DESC LIMIT 1 OFFSET ?2)",
            )
            .bind(&record.id)
            .bind(MAX_TRANSITIONS)
            .execute(&mut *transaction)
            .await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Reads the transitions of a session, the oldest first.
    #[cfg(test)]
    pub(crate) async fn transitions(
        &self,
        session: &str,
    ) -> Result<Vec<SessionStateTransition>, SessionStoreError> {
        let mut connection = self.connection.lock().await;
        let rows = sqlx::query(
            "SELECT at, previous, next, reason FROM transitions WHERE session = ? ORDER BY rowid",
        )
        .bind(session)
        .fetch_all(&mut *connection)
        .await?;
        let transition =
            |row: &sqlx::sqlite::SqliteRow| -> Result<SessionStateTransition, SessionStoreError> {
                let at: i64 = row.try_get(0)?;
                Ok(SessionStateTransition {
                    at: u64::try_from(at).unwrap_or_default(),
                    from: match row.try_get(1)? {
                        "" => None,
                        name => Some(parse(&format!("\"{name}\""))?),
                    },
                    to: parse(&format!("\"{}\"", row.try_get::<&str, _>(2)?))?,
                    reason: row.try_get(3)?,
                })
            };
        rows.iter().map(transition).collect()
    }

    /// Deletes a session and its transitions.
    pub(crate) async fn delete_session(&self, session: &str) -> Result<(), SessionStoreError> {
        let mut connection = self.connection.lock().await;
        // In this order: transitions refer to their session.
        sqlx::query("DELETE FROM transitions WHERE session = ?")
            .bind(session)
            .execute(&mut *connection)
            .await?;
        sqlx::query("DELETE FROM sessions WHERE id = ?").bind(session).execute(&mut *connection).await?;
        Ok(())
    }
}

fn json<T: Serialize>(value: &T) -> Result<String, SessionStoreError> {
    Ok(serde_json::to_string(value)?)
}

fn parse<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, SessionStoreError> {
    Ok(serde_json::from_str(text)?)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::diagnosis::{SessionStopCause, SessionStopDiagnosis};
    use crate::state::SessionState;
    use process_runner::{Confinement, ResourceLimits};
    use std::path::PathBuf;

    pub(crate) fn record(id: &str) -> SessionRecord {
        SessionRecord {
            id: id.to_owned(),
            created: 1,
            state: SessionState::Starting,
            since: 1,
            principal: Some("ada".to_owned()),
            role: "worker".to_owned(),
            roles: vec!["orchestrator".to_owned(), "worker".to_owned()],
            orchestrates: false,
            confinement: Some(Confinement::project(["/"], "/tmp").network(false)),
            inherited_variables: Some(vec!["PATH".to_owned()]),
            resource_limits: ResourceLimits::default(),
            roots: vec![PathBuf::from("/")],
            command: vec!["sh".to_owned()],
            agent: None,
            agent_session: None,
            prompt: Some("do it".to_owned()),
            cwd: PathBuf::from("/"),
            parent: None,
            replaces: None,
            replaced_by: None,
            input: true,
            pty: false,
            credential: Some(("ab".to_owned(), 9)),
            process: None,
            started: 0,
            attempts: 0,
            crashes: vec![],
            last_stop: None,
        }
    }

    #[tokio::test]
    async fn what_was_written_is_there_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        let kept = SupervisorRecord { paused: true, boot: "b".to_owned(), ..SupervisorRecord::default() };
        let mut changed = record("s1");
        changed.state = SessionState::Stopped {
            stop: SessionStopDiagnosis::certain(SessionStopCause::Completed, "exit code 0"),
        };
        let transition = |at| SessionStateTransition {
            at,
            from: Some(SessionStateKind::Running),
            to: SessionStateKind::Stopped,
            reason: "test".to_owned(),
        };
        {
            let store = SessionStore::open(&path).await.unwrap();
            assert_eq!(store.supervisor().await.unwrap(), SupervisorRecord::default());
            store.write_supervisor(&kept).await.unwrap();
            store.write_session(&record("s1"), &[]).await.unwrap();
            store.write_session(&changed, &[transition(5)]).await.unwrap();
            store.write_session(&record("s2"), &[transition(6)]).await.unwrap();
            store.delete_session("s2").await.unwrap();
        }
        let store = SessionStore::open(&path).await.unwrap();
        assert_eq!(store.supervisor().await.unwrap(), kept);
        assert_eq!(store.sessions().await.unwrap(), std::slice::from_ref(&changed));
        assert_eq!(store.transitions("s1").await.unwrap(), [transition(5)]);
        assert_eq!(store.transitions("s2").await.unwrap(), []);
        for at in 0..300 {
            store.write_session(&changed, &[transition(at)]).await.unwrap();
        }
        let kept = store.transitions("s1").await.unwrap();
        assert_eq!((kept.len(), kept.last().unwrap().at), (200, 299), "only so many are kept, the latest");
    }

    #[tokio::test]
    async fn a_database_of_a_newer_program_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        drop(SessionStore::open(&path).await.unwrap());
        let mut connection = SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
        sqlx::query("PRAGMA user_version = 2").execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        let refused = SessionStore::open(&path).await.unwrap_err().to_string();
        assert!(refused.contains("newer program"), "{refused}");
    }
}
