//! [`Databases::run`]: the way of a request to its engine.

#[cfg(feature = "sqlite")]
use super::Action;
#[cfg(feature = "sqlite")]
use super::discovery::discover;
use super::response::DbResponse;
#[cfg(feature = "sqlite")]
use super::source::DEFAULT_FILE;
use super::source::DatabaseLocation;
use super::{Databases, DbBridge, Error};
#[cfg(feature = "sqlite")]
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

impl Databases {
    /// Runs `request` and returns its answer. If the future is dropped, the statement is stopped in the server.
    ///
    /// # Errors
    /// See [`Error`]: after an error nothing was changed.
    pub async fn run(&self, request: &DbBridge, cancel: &CancellationToken) -> Result<DbResponse, Error> {
        let started = Instant::now();
        let (databases, request) = (self.clone(), request.clone());
        // The work has a task of its own, which outlives this future: when the caller drops it, the guard cancels the
        // token, and the task stays to stop the statement in the server.
        let cancel = cancel.child_token();
        let _cancel_on_drop = cancel.clone().drop_guard();
        let task = tokio::spawn(async move { databases.dispatch(&request, &cancel).await });
        let mut response = match task.await {
            Ok(result) => result?,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The runtime is shutting down.
            Err(_) => return Err(Error::Cancelled),
        };
        response.set_elapsed_ms(u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX));
        Ok(response)
    }

    async fn dispatch(&self, request: &DbBridge, cancel: &CancellationToken) -> Result<DbResponse, Error> {
        match self.resolve(request.database.as_deref())? {
            #[cfg(feature = "sqlite")]
            DatabaseLocation::File(_) if self.is_unnamed(request.database.as_deref()) => {
                let workspace = Arc::clone(&self.workspace);
                // Folders are listed and files opened, which may take long on a network file system.
                let found = tokio::task::spawn_blocking(move || discover(&workspace, DEFAULT_FILE)).await;
                let found = found.map_err(|_| Error::Cancelled)??;
                if request.action == Action::Seed && !request.dry_run && !found.origin.is_empty() {
                    let reason =
                        format!("a seed names its database: here is {} ({})", found.path, found.origin);
                    return Err(Error::argument("database", reason));
                }
                let mut response = super::sqlite::run(self, &found.path, request, cancel).await?;
                if !found.origin.is_empty() {
                    response.set_database(format!("{} ({})", found.path, found.origin));
                }
                Ok(response)
            }
            #[cfg(feature = "sqlite")]
            DatabaseLocation::File(path) => super::sqlite::run(self, path, request, cancel).await,
            #[cfg(feature = "postgres")]
            DatabaseLocation::Postgres { name, url } => {
                super::postgres::run(name, url, request, cancel).await
            }
            #[cfg(feature = "mysql")]
            DatabaseLocation::MySql { name, url } => super::mysql::run(name, url, request, cancel).await,
            #[cfg(not(all(feature = "sqlite", feature = "postgres", feature = "mysql")))]
            _ => Err(Error::InvalidSetting {
                name: request.database.clone().unwrap_or_default(),
                reason: "this program was built without support for such databases".to_owned(),
            }),
        }
    }
}
