//! What survives a restart: sessions, their changes of state, pause and the counters, in SQLite.

use super::classify::Stop;
use super::state::{Process, State, Transition};
use process_runner::Confinement;
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Row};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::Mutex;

/// Everything that is known of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its id.
    pub id: String,
    /// When it was made, in milliseconds since 1970.
    pub created: u64,
    /// What it is doing.
    pub state: State,
    /// Since when, in milliseconds since 1970.
    pub since: u64,
    /// The caller of a server for many whose it is. None: the user that the supervisor runs for.
    #[serde(default)]
    pub principal: Option<String>,
    /// The role that its marker names.
    pub role: String,
    /// All the roles that its agent is in: each must allow what it does.
    pub roles: Vec<String>,
    /// Its agent may start and steer others.
    pub orchestrates: bool,
    /// The fence that its processes are behind.
    #[serde(default)]
    pub confinement: Option<Confinement>,
    /// The folders that its agent's own server may use. Empty: all.
    #[serde(default)]
    pub roots: Vec<PathBuf>,
    /// Program and arguments, without those that stand for the prompt.
    pub command: Vec<String>,
    /// Which agent that is, if one that is known.
    pub agent: Option<String>,
    /// What the agent calls the session.
    pub agent_session: Option<String>,
    /// What it was told.
    pub prompt: Option<String>,
    /// The folder it runs in.
    pub cwd: PathBuf,
    /// The session that started it.
    pub parent: Option<String>,
    /// The session in whose place it goes on.
    pub replaces: Option<String>,
    /// The session that goes on in its place.
    pub replaced_by: Option<String>,
    /// It reads messages from its standard input.
    pub input: bool,
    /// It has a terminal.
    #[serde(default)]
    pub pty: bool,
    /// The SHA-256 of its credential, and until when that is good; none where it is revoked.
    pub credential: Option<(String, u64)>,
    /// Its last process.
    pub process: Option<Process>,
    /// When that was started.
    pub started: u64,
    /// Attempts in a row that led to nothing.
    pub attempts: u32,
    /// When it crashed.
    pub crashes: Vec<u64>,
    /// Why its last process ended.
    pub last_stop: Option<Stop>,
}

impl Record {
    /// Whether it is that caller's; to the user that the supervisor runs for all of them belong.
    pub(super) fn is_of(&self, principal: Option<&str>) -> bool {
        principal.is_none_or(|principal| self.principal.as_deref() == Some(principal))
    }
}

/// What is counted, over all restarts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Sessions that went on by themselves: resumed, renewed, restarted.
    pub saves_count: u64,
    /// Those of them that were resumed.
    pub total_resumes: u64,
    /// When one was last, in milliseconds since 1970.
    pub last_resume: Option<u64>,
    /// Seconds that nobody had to wait or work for that.
    pub time_saved_seconds: u64,
}

/// What is kept beside the sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Nothing is done by itself.
    pub paused: bool,
    /// What is counted.
    pub stats: Stats,
    /// The start of the system at which processes were last written down.
    pub boot: String,
    /// What is kept for each caller of a server for many.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub callers: BTreeMap<String, KeptFor>,
}

/// What is kept for a caller of a server for many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFor {
    /// Nothing is done by itself with its sessions.
    pub paused: bool,
    /// What is counted of them.
    pub stats: Stats,
}

impl Kept {
    /// Whether nothing is done by itself with the sessions of a caller.
    pub(super) fn is_paused(&self, principal: Option<&str>) -> bool {
        let own = principal.and_then(|principal| self.callers.get(principal));
        self.paused || own.is_some_and(|own| own.paused)
    }

    /// Pauses everything, or the sessions of one caller. Whether that changes anything.
    pub(super) fn pause(&mut self, principal: Option<&str>, paused: bool) -> bool {
        let place = match principal {
            None => &mut self.paused,
            Some(principal) => &mut self.callers.entry(principal.to_owned()).or_default().paused,
        };
        std::mem::replace(place, paused) != paused
    }
}

/// The database.
#[derive(Debug)]
pub struct Store {
    connection: Mutex<SqliteConnection>,
}

/// Raised where an older program could not read what a newer one wrote.
const VERSION: i64 = 1;

/// Its name in the state directory.
pub(super) const NAME: &str = "sessions.db";

/// Changes of state that are kept of each session.
const KEPT_TRANSITIONS: i64 = 200;

impl Store {
    /// Opens the database, and makes it where it is missing. Its folder must be private.
    ///
    /// # Errors
    /// It cannot be opened, is no database, or a newer program wrote it.
    pub async fn open(path: &Path) -> Result<Self, sqlx::Error> {
        let mut connection = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // What the last moments before a power cut changed may be lost, and nothing else.
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(Duration::from_secs(5))
            .disable_statement_logging()
            .connect()
            .await?;
        let version: i64 = sqlx::query("PRAGMA user_version").fetch_one(&mut connection).await?.try_get(0)?;
        if version > VERSION {
            return Err(sqlx::Error::Configuration(
                format!("it was written by a newer program (version {version}, this one knows {VERSION})")
                    .into(),
            ));
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

    /// Whether there is one in the state directory `state`.
    pub fn is_at(state: &Path) -> bool {
        rustix::fs::access(state.join(NAME), rustix::fs::Access::EXISTS).is_ok()
    }

    /// What is kept beside the sessions.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn kept(&self) -> Result<Kept, sqlx::Error> {
        let mut connection = self.connection.lock().await;
        let row = sqlx::query("SELECT record FROM kept").fetch_optional(&mut *connection).await?;
        row.map_or_else(|| Ok(Kept::default()), |row| parse(row.try_get(0)?))
    }

    /// Keeps it.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn keep(&self, kept: &Kept) -> Result<(), sqlx::Error> {
        let mut connection = self.connection.lock().await;
        sqlx::query(
            "INSERT INTO kept VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET record = excluded.record",
        )
        .bind(json(kept)?)
        .execute(&mut *connection)
        .await?;
        Ok(())
    }

    /// All sessions, the oldest first.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn sessions(&self) -> Result<Vec<Record>, sqlx::Error> {
        let mut connection = self.connection.lock().await;
        let rows = sqlx::query("SELECT record FROM sessions ORDER BY created, id")
            .fetch_all(&mut *connection)
            .await?;
        rows.into_iter().map(|row| parse(row.try_get(0)?)).collect()
    }

    /// Writes down a session, and how its state changed.
    ///
    /// # Errors
    /// It cannot be written; nothing was.
    pub async fn write(&self, record: &Record, transitions: &[Transition]) -> Result<(), sqlx::Error> {
        let mut connection = self.connection.lock().await;
        let mut transaction = connection.begin().await?;
        sqlx::query(
            "INSERT INTO sessions VALUES (?, ?, ?, ?) \
             ON CONFLICT (id) DO UPDATE SET state = excluded.state, record = excluded.record",
        )
        .bind(&record.id)
        .bind(i64::try_from(record.created).unwrap_or(i64::MAX))
        .bind(record.state.name())
        .bind(json(record)?)
        .execute(&mut *transaction)
        .await?;
        for transition in transitions {
            sqlx::query("INSERT INTO transitions VALUES (?, ?, ?, ?, ?)")
                .bind(&record.id)
                .bind(i64::try_from(transition.at).unwrap_or(i64::MAX))
                .bind(&transition.from)
                .bind(&transition.to)
                .bind(&transition.reason)
                .execute(&mut *transaction)
                .await?;
        }
        if !transitions.is_empty() {
            sqlx::query(
                "DELETE FROM transitions WHERE session = ?1 AND rowid <= \
                 (SELECT rowid FROM transitions WHERE session = ?1 ORDER BY rowid DESC LIMIT 1 OFFSET ?2)",
            )
            .bind(&record.id)
            .bind(KEPT_TRANSITIONS)
            .execute(&mut *transaction)
            .await?;
        }
        transaction.commit().await
    }

    /// How the state of a session changed, the oldest change first.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn transitions(&self, session: &str) -> Result<Vec<Transition>, sqlx::Error> {
        let mut connection = self.connection.lock().await;
        let rows = sqlx::query(
            "SELECT at, previous, next, reason FROM transitions WHERE session = ? ORDER BY rowid",
        )
        .bind(session)
        .fetch_all(&mut *connection)
        .await?;
        let transition = |row: &sqlx::sqlite::SqliteRow| -> Result<Transition, sqlx::Error> {
            let at: i64 = row.try_get(0)?;
            Ok(Transition {
                at: u64::try_from(at).unwrap_or_default(),
                from: row.try_get(1)?,
                to: row.try_get(2)?,
                reason: row.try_get(3)?,
            })
        };
        rows.iter().map(transition).collect()
    }

    /// Forgets a session.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn forget(&self, session: &str) -> Result<(), sqlx::Error> {
        let mut connection = self.connection.lock().await;
        sqlx::query("DELETE FROM transitions WHERE session = ?")
            .bind(session)
            .execute(&mut *connection)
            .await?;
        sqlx::query("DELETE FROM sessions WHERE id = ?").bind(session).execute(&mut *connection).await?;
        Ok(())
    }
}

fn json<T: Serialize>(value: &T) -> Result<String, sqlx::Error> {
    serde_json::to_string(value).map_err(|error| sqlx::Error::Encode(error.into()))
}

fn parse<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, sqlx::Error> {
    serde_json::from_str(text).map_err(|error| sqlx::Error::Decode(error.into()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::sessions::classify::Reason;

    pub(in crate::sessions) fn record(id: &str) -> Record {
        Record {
            id: id.to_owned(),
            created: 1,
            state: State::Starting,
            since: 1,
            principal: Some("ada".to_owned()),
            role: "worker".to_owned(),
            roles: vec!["orchestrator".to_owned(), "worker".to_owned()],
            orchestrates: false,
            confinement: Some(Confinement::project(["/"], "/tmp").network(false)),
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
        let kept = Kept { paused: true, boot: "b".to_owned(), ..Kept::default() };
        let mut changed = record("s1");
        changed.state = State::Stopped { stop: Stop::plain(Reason::Completed, "exit code 0") };
        let transition = |at| Transition {
            at,
            from: "running".to_owned(),
            to: "stopped".to_owned(),
            reason: "test".to_owned(),
        };
        {
            let store = Store::open(&path).await.unwrap();
            assert_eq!(store.kept().await.unwrap(), Kept::default());
            store.keep(&kept).await.unwrap();
            store.write(&record("s1"), &[]).await.unwrap();
            store.write(&changed, &[transition(5)]).await.unwrap();
            store.write(&record("s2"), &[transition(6)]).await.unwrap();
            store.forget("s2").await.unwrap();
        }
        let store = Store::open(&path).await.unwrap();
        assert_eq!(store.kept().await.unwrap(), kept);
        assert_eq!(store.sessions().await.unwrap(), std::slice::from_ref(&changed));
        assert_eq!(store.transitions("s1").await.unwrap(), [transition(5)]);
        assert_eq!(store.transitions("s2").await.unwrap(), []);
        for at in 0..300 {
            store.write(&changed, &[transition(at)]).await.unwrap();
        }
        let kept = store.transitions("s1").await.unwrap();
        assert_eq!((kept.len(), kept.last().unwrap().at), (200, 299), "only so many are kept, the latest");
    }

    #[tokio::test]
    async fn a_database_of_a_newer_program_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        drop(Store::open(&path).await.unwrap());
        let mut connection = SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
        sqlx::query("PRAGMA user_version = 2").execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        let refused = Store::open(&path).await.unwrap_err().to_string();
        assert!(refused.contains("newer program"), "{refused}");
    }
}
