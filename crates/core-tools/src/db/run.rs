//! One request, from its words to an answer, ended at its time limit.

use super::source::Place;
use super::{Databases, DbBridge, Error, Rows, Schema};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// What a request answers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Answered {
    /// Of a query, or the plan of one.
    Rows(Rows),
    /// Of a seed.
    Seeded(Seeded),
    /// Of a look at the tables.
    Schema(Schema),
}

/// What a seed did.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Seeded {
    /// How many rows were inserted, changed or deleted.
    pub affected: u64,
    /// The last key that was generated, where the engine says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_insert_id: Option<i64>,
    /// It was taken back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
}

impl Databases {
    /// Does what `request` asks for. Where the future is dropped, the statement is stopped as well.
    ///
    /// # Errors
    /// See [`Error`]: nothing was changed, whatever it is.
    pub async fn run(&self, request: &DbBridge, cancel: &CancellationToken) -> Result<Answered, Error> {
        let started = Instant::now();
        let (databases, request) = (self.clone(), request.clone());
        // On a task of its own: it goes on to stop the statement when nobody waits for it any more.
        let cancel = cancel.child_token();
        let _ended = cancel.clone().drop_guard();
        let task = tokio::spawn(async move { databases.dispatch(&request, &cancel).await });
        let mut answered = match task.await {
            Ok(answered) => answered?,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => return Err(Error::Cancelled),
        };
        let elapsed = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        match &mut answered {
            Answered::Rows(rows) => rows.elapsed_ms = elapsed,
            Answered::Seeded(seeded) => seeded.elapsed_ms = elapsed,
            Answered::Schema(schema) => schema.elapsed_ms = elapsed,
        }
        Ok(answered)
    }

    async fn dispatch(&self, request: &DbBridge, cancel: &CancellationToken) -> Result<Answered, Error> {
        match self.place(request.database.as_deref())? {
            #[cfg(feature = "sqlite")]
            Place::File(path) => super::sqlite::run(self, path, request, cancel).await,
            #[cfg(feature = "postgres")]
            Place::Postgres { name, url } => super::postgres::run(name, url, request, cancel).await,
            #[cfg(feature = "mysql")]
            Place::MySql { name, url } => super::mysql::run(name, url, request, cancel).await,
            #[cfg(not(all(feature = "sqlite", feature = "postgres", feature = "mysql")))]
            _ => Err(Error::Setting {
                name: request.database.clone().unwrap_or_default(),
                reason: "this program was built without support for such databases".to_owned(),
            }),
        }
    }
}

/// How long a statement that was told to stop may take to.
const STOPPING: Duration = Duration::from_secs(3);
/// When it is told again: what was told between two statements of ours stopped neither.
const AGAIN: Duration = Duration::from_millis(100);

/// Runs `work` until it is done, `limit` has passed or `cancel` says so. In the last two cases `stop` is run, which
/// makes the engine end what it does, until `work` has ended with what the engine says of that. What was done
/// nevertheless, in the last moment, is answered as done.
pub(super) async fn bounded<T, Stopped: Future>(
    limit: Duration,
    cancel: &CancellationToken,
    work: impl Future<Output = Result<T, Error>>,
    stop: impl Fn() -> Stopped,
) -> Result<T, Error> {
    tokio::pin!(work);
    let error = tokio::select! {
        done = &mut work => return done,
        () = cancel.cancelled() => Error::Cancelled,
        () = tokio::time::sleep(limit) => {
            Error::TimedOut { limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX) }
        }
    };
    // A server that does not answer is left; its own limit ends the statement.
    let ends = tokio::time::sleep(STOPPING);
    tokio::pin!(ends);
    loop {
        let stopping = async {
            stop().await;
            tokio::time::sleep(AGAIN).await;
        };
        tokio::select! {
            done = &mut work => return done.or(Err(error)),
            () = &mut ends => return Err(error),
            () = stopping => {}
        }
    }
}
