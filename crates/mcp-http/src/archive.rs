//! The audit in a database, SQLite or PostgreSQL, beside or instead of the file.
//!
//! Calls never wait for it: what is recorded goes into a line of bounded length, and one task takes it from there in
//! batches. What finds no room is counted, and the next row says how much that was. A batch of which it is not known
//! whether it was written is written again; the key of each row keeps it from being there twice.

use core_tools::mcp::Record;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Where records go. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Archive {
    rows: Sender<Row>,
    counts: Arc<Counts>,
}

/// What has become of the records.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) written: AtomicU64,
    pub(crate) lost: AtomicU64,
    number: AtomicU64,
    /// Lost since the last that was taken.
    lost_since: AtomicU64,
}

/// The task that writes; it must be [closed](Writer::close).
#[derive(Debug)]
pub(crate) struct Writer {
    task: JoinHandle<()>,
    closing: CancellationToken,
    counts: Arc<Counts>,
}

#[derive(Debug)]
struct Row {
    number: i64,
    /// Seconds since 1970.
    at: f64,
    principal: Option<String>,
    session: Option<String>,
    role: String,
    tool: String,
    decision: &'static str,
    rule: String,
    outcome: &'static str,
    duration_us: i64,
    arguments: String,
    bytes_in: i64,
    bytes_out: i64,
    lost_before: i64,
}

/// Records that wait. At 300 bytes each they take 2.5 MB.
const ROOM: usize = 8192;
/// Rows of one statement.
const BATCH: usize = 256;
/// How long the first row of a batch waits for others.
const GATHER: Duration = Duration::from_millis(50);
/// How long one statement may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it is waited before a statement that failed is tried again, at first and at most.
const AGAIN: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(15)];
/// What the last rows get in the end.
const LAST: Duration = Duration::from_secs(3);

impl Archive {
    /// Opens the database at `place`, `sqlite:PATH` or `postgres://…`, and makes its table where that is missing.
    ///
    /// # Errors
    /// It cannot be used; nothing of a password is told.
    pub(crate) async fn open(place: &str) -> Result<(Self, Writer), String> {
        let mut store = store::Store::open(place).await?;
        let (rows, waiting) = mpsc::channel(ROOM);
        let (counts, closing) = (Arc::new(Counts::default()), CancellationToken::new());
        let server = server()?;
        let task = tokio::spawn({
            let (counts, closing) = (Arc::clone(&counts), closing.clone());
            async move { write(&mut store, &server, waiting, &counts, &closing).await }
        });
        let writer = Writer { task, closing, counts: Arc::clone(&counts) };
        Ok((Self { rows, counts }, writer))
    }

    /// Records a call that has ended, or was not run. Never waits.
    pub(crate) fn record(&self, record: &Record<'_>) {
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let lost = self.counts.lost_since.swap(0, Ordering::Relaxed);
        let row = Row {
            number: count(self.counts.number.fetch_add(1, Ordering::Relaxed) + 1),
            at: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
            principal: record.caller.principal().map(plain),
            session: record.caller.session().map(plain),
            role: plain(&record.caller.role()),
            // Marks of direction and the like would mislead whoever reads it.
            tool: record.tool.chars().take(64).flat_map(char::escape_debug).collect(),
            decision: record.decision,
            rule: plain(record.rule),
            outcome: match record.outcome {
                core_tools::mcp::Outcome::Ok => "ok",
                core_tools::mcp::Outcome::Failed => "failed",
                core_tools::mcp::Outcome::NotRun => "not_run",
            },
            duration_us: i64::try_from(record.duration.as_micros()).unwrap_or(i64::MAX),
            arguments: plain(record.arguments),
            bytes_in: number(record.bytes_in),
            bytes_out: number(record.bytes_out),
            lost_before: count(lost),
        };
        if self.rows.try_send(row).is_err() {
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
            self.counts.lost_since.fetch_add(lost + 1, Ordering::Relaxed);
        }
    }

    /// Rows that were written, and that were lost.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.counts.written.load(Ordering::Relaxed), self.counts.lost.load(Ordering::Relaxed))
    }
}

impl Writer {
    /// Writes what is still there, for a moment.
    pub(crate) async fn close(mut self) {
        self.closing.cancel();
        if tokio::time::timeout(LAST, &mut self.task).await.is_err() {
            self.task.abort();
        }
        let lost = self.counts.lost.load(Ordering::Relaxed);
        let written = self.counts.written.load(Ordering::Relaxed);
        let missing = self.counts.number.load(Ordering::Relaxed).saturating_sub(written + lost) + lost;
        if missing > 0 {
            tracing::error!("{missing} records of the audit did not get into the database");
        }
    }
}

/// PostgreSQL's text has no zero bytes.
fn plain(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// What the rows of this process are known by: the machine, and a number that no other process has.
fn server() -> Result<String, String> {
    let mut random = [0_u8; 8];
    getrandom::fill(&mut random).map_err(|error| format!("the system has no random numbers: {error}"))?;
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Ok(format!("{machine}:{:016x}", u64::from_ne_bytes(random)))
}

async fn write(
    store: &mut store::Store,
    server: &str,
    mut waiting: Receiver<Row>,
    counts: &Counts,
    closing: &CancellationToken,
) {
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        let taken = tokio::select! {
            taken = waiting.recv_many(&mut batch, BATCH) => taken,
            () = closing.cancelled() => {
                waiting.close();
                waiting.recv_many(&mut batch, BATCH).await
            }
        };
        if taken == 0 {
            return;
        }
        if batch.len() < BATCH && !closing.is_cancelled() {
            tokio::select! {
                () = tokio::time::sleep(GATHER) => {}
                () = closing.cancelled() => {}
            }
            while batch.len() < BATCH
                && let Ok(row) = waiting.try_recv()
            {
                batch.push(row);
            }
        }
        let [mut again, longest] = AGAIN;
        while let Err(error) = store.write(server, &batch).await {
            tracing::error!("{} records of the audit wait for their database: {error}", batch.len());
            tokio::time::sleep(again).await;
            again = (again * 2).min(longest);
        }
        counts.written.fetch_add(batch.len() as u64, Ordering::Relaxed);
        batch.clear();
    }
}

mod store {
    use super::{PATIENCE, Row};
    use sqlx::postgres::{PgConnectOptions, PgConnection};
    use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
    use sqlx::{ConnectOptions, Connection, QueryBuilder, Row as _};
    use std::path::Path;
    use std::str::FromStr;
    use std::time::Duration;

    /// A database with a connection to it, or, after a failure, without.
    #[derive(Debug)]
    pub(super) enum Store {
        Sqlite(Box<SqliteConnectOptions>, Option<SqliteConnection>),
        Postgres(Box<PgConnectOptions>, Option<PgConnection>),
    }

    const THERE: &str = "SELECT to_regclass('coretools_audit') IS NOT NULL";

    /// Two processes that begin at once may both find it missing.
    const LOCK: &str = "SELECT pg_advisory_xact_lock(7309940872)";

    const POSTGRES: [&str; 2] = [
        "CREATE TABLE IF NOT EXISTS coretools_audit (server TEXT NOT NULL, number BIGINT NOT NULL, \
         at TIMESTAMPTZ NOT NULL, principal TEXT, session TEXT, role TEXT NOT NULL, tool TEXT NOT NULL, \
         decision TEXT NOT NULL, rule TEXT NOT NULL, outcome TEXT NOT NULL, duration_us BIGINT NOT NULL, \
         arguments TEXT NOT NULL, bytes_in BIGINT NOT NULL, bytes_out BIGINT NOT NULL, lost_before BIGINT NOT NULL, \
         PRIMARY KEY (server, number))",
        "CREATE INDEX IF NOT EXISTS coretools_audit_at ON coretools_audit (at)",
    ];

    const SQLITE: [&str; 2] = [
        "CREATE TABLE IF NOT EXISTS coretools_audit (server TEXT NOT NULL, number INTEGER NOT NULL, \
         at TEXT NOT NULL, principal TEXT, session TEXT, role TEXT NOT NULL, tool TEXT NOT NULL, \
         decision TEXT NOT NULL, rule TEXT NOT NULL, outcome TEXT NOT NULL, duration_us INTEGER NOT NULL, \
         arguments TEXT NOT NULL, bytes_in INTEGER NOT NULL, bytes_out INTEGER NOT NULL, \
         lost_before INTEGER NOT NULL, PRIMARY KEY (server, number)) STRICT",
        "CREATE INDEX IF NOT EXISTS coretools_audit_at ON coretools_audit (at)",
    ];

    const INSERT: &str = "INSERT INTO coretools_audit (server, number, at, principal, session, role, tool, decision, \
                          rule, outcome, duration_us, arguments, bytes_in, bytes_out, lost_before) ";

    /// Inserts a batch; the two kinds have one SQL but for the time.
    macro_rules! insert {
        ($connection:expr, $server:expr, $rows:expr, $before:literal, $after:literal) => {{
            let mut query = QueryBuilder::new(INSERT);
            query.push_values($rows, |mut row, found| {
                row.push_bind($server).push_bind(found.number).push($before);
                row.push_bind_unseparated(found.at).push_unseparated($after);
                row.push_bind(&found.principal).push_bind(&found.session).push_bind(&found.role);
                row.push_bind(&found.tool).push_bind(found.decision).push_bind(&found.rule);
                row.push_bind(found.outcome).push_bind(found.duration_us).push_bind(&found.arguments);
                row.push_bind(found.bytes_in).push_bind(found.bytes_out).push_bind(found.lost_before);
            });
            query.push(" ON CONFLICT DO NOTHING");
            // Its text depends on the number of rows, so that keeping it prepared would not pay.
            query.build().persistent(false).execute($connection).await.map(drop)
        }};
    }

    impl Store {
        pub(super) async fn open(place: &str) -> Result<Self, String> {
            let failed = |error: sqlx::Error| format!("http.audit_database: {error}");
            let mut store = match place.strip_prefix("sqlite:") {
                Some(path) => {
                    let path = Path::new(path);
                    private(path)
                        .map_err(|error| format!("http.audit_database: {}: {error}", path.display()))?;
                    let options = SqliteConnectOptions::new()
                        .filename(path)
                        .journal_mode(SqliteJournalMode::Wal)
                        // What the last moments before a power cut added may be lost, and nothing else.
                        .synchronous(SqliteSynchronous::Normal)
                        .busy_timeout(Duration::from_secs(5))
                        .disable_statement_logging();
                    Self::Sqlite(Box::new(options), None)
                }
                None if place.starts_with("postgres://") || place.starts_with("postgresql://") => {
                    let options = PgConnectOptions::from_str(place).map_err(failed)?;
                    Self::Postgres(Box::new(options.disable_statement_logging()), None)
                }
                None => {
                    return Err(
                        "http.audit_database: expected sqlite:PATH, postgres://… or $VARIABLE".to_owned()
                    );
                }
            };
            tokio::time::timeout(PATIENCE, store.connect())
                .await
                .map_err(|_| "http.audit_database: it does not answer".to_owned())?
                .map_err(failed)?;
            Ok(store)
        }

        /// Connects where there is no connection, and makes what is missing.
        async fn connect(&mut self) -> Result<(), sqlx::Error> {
            match self {
                Self::Sqlite(options, connection @ None) => {
                    let mut new = options.connect().await?;
                    for statement in SQLITE {
                        sqlx::query(statement).execute(&mut new).await?;
                    }
                    *connection = Some(new);
                }
                Self::Postgres(options, connection @ None) => {
                    let mut new = options.connect().await?;
                    // Who may only add rows may not even ask for a table that is there.
                    let there: bool = sqlx::query(THERE).fetch_one(&mut new).await?.try_get(0)?;
                    if !there {
                        let mut all = new.begin().await?;
                        sqlx::query(LOCK).execute(&mut *all).await?;
                        for statement in POSTGRES {
                            sqlx::query(statement).execute(&mut *all).await?;
                        }
                        all.commit().await?;
                    }
                    *connection = Some(new);
                }
                _ => {}
            }
            Ok(())
        }

        /// Writes all of them or none. After a failure the next attempt is on a new connection.
        pub(super) async fn write(&mut self, server: &str, rows: &[Row]) -> Result<(), String> {
            let written = tokio::time::timeout(PATIENCE, async {
                self.connect().await?;
                match self {
                    Self::Sqlite(_, Some(connection)) => {
                        insert!(connection, server, rows, "strftime('%Y-%m-%dT%H:%M:%fZ', ", ", 'unixepoch')")
                    }
                    Self::Postgres(_, Some(connection)) => {
                        insert!(connection, server, rows, "to_timestamp(", ")")
                    }
                    _ => Ok(()),
                }
            });
            let why = match written.await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "it does not answer".to_owned(),
            };
            match self {
                Self::Sqlite(_, connection) => *connection = None,
                Self::Postgres(_, connection) => *connection = None,
            }
            Err(why)
        }
    }

    /// Makes the file where it is missing, for its owner alone.
    fn private(path: &Path) -> std::io::Result<()> {
        use std::os::unix::fs::OpenOptionsExt;
        std::fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_tools::mcp::Outcome;
    use role_policy::Caller;
    use sqlx::sqlite::SqliteConnectOptions;
    use sqlx::{ConnectOptions, Row as _};

    #[tokio::test]
    async fn what_finds_no_room_is_counted_and_the_next_row_says_how_much_that_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.db");
        let (archive, writer) = Archive::open(&format!("sqlite:{}", path.display())).await.unwrap();
        let mut other = SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
        sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
        let caller = Caller::new("dev");
        let record = || {
            archive.record(&Record {
                caller: &caller,
                tool: "read_file",
                decision: "allowed",
                rule: "",
                outcome: Outcome::Ok,
                duration: Duration::from_millis(1),
                arguments: "",
                bytes_in: 0,
                bytes_out: 0,
            });
        };
        for _ in 0..ROOM + BATCH + 1000 {
            record();
        }
        let lost = archive.counts().1;
        assert!((1000..=1000 + BATCH as u64).contains(&lost), "{lost}");
        sqlx::query("COMMIT").execute(&mut other).await.unwrap();
        let all = (ROOM + BATCH + 1000) as u64 - lost;
        while archive.counts().0 < all {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        record();
        writer.close().await;
        let row = "SELECT count(*), max(lost_before), max(number) FROM coretools_audit";
        let row = sqlx::query(row).fetch_one(&mut other).await.unwrap();
        let found: [i64; 3] = [row.get(0), row.get(1), row.get(2)];
        let expected = [all + 1, lost, all + lost + 1].map(|number| i64::try_from(number).unwrap());
        assert_eq!(found, expected);
    }
}
