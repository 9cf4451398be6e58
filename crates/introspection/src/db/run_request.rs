//! [`Databases::run`]: the way of a request to its engine.

#[cfg(feature = "sqlite")]
use super::DbAction;
#[cfg(feature = "sqlite")]
use super::discovery::{discover, list, project_files};
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
                if request.action == DbAction::Seed && !request.dry_run && !found.origin.is_empty() {
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
            DatabaseLocation::File(path) => match super::sqlite::run(self, path, request, cancel).await {
                Err(missing @ Error::NotFound { .. }) if request.database.as_deref() == Some(path) => {
                    self.run_on_similar(path, missing, request, cancel).await
                }
                result => result,
            },
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

    /// Runs a request whose file is `missing` on the only file of the project with the same name, and tells so; a seed only
    /// names it. Otherwise the error names the files that there are.
    #[cfg(feature = "sqlite")]
    async fn run_on_similar(
        &self,
        requested: &str,
        missing: Error,
        request: &DbBridge,
        cancel: &CancellationToken,
    ) -> Result<DbResponse, Error> {
        let workspace = Arc::clone(&self.workspace);
        let files = tokio::task::spawn_blocking(move || project_files(&workspace)).await;
        let files = files.map_err(|_| Error::Cancelled)?;
        let name = |path: &str| path.rsplit(['/', ':']).next().unwrap_or_default().to_owned();
        // Only a relative path may have left out a folder.
        let may_stand_for = !requested.contains([':', '?']) && !requested.starts_with(['/', '.']);
        let mut same_name = files.iter().filter(|file| may_stand_for && name(&file.path) == name(requested));
        if let (Some(file), None) = (same_name.next(), same_name.next())
            && request.action != DbAction::Seed
        {
            let mut response = super::sqlite::run(self, &file.path, request, cancel).await?;
            response.set_database(format!("{} (there is no {requested})", file.path));
            return Ok(response);
        }
        match (missing, files.as_slice()) {
            (missing @ Error::NotFound { .. }, _) if missing.to_string().contains("; did you mean ") => {
                Err(missing)
            }
            (Error::NotFound { path, .. }, [only]) => Err(Error::NotFound {
                path,
                hint: format!(
                    "; the project has {}: give that as `database`, or leave `database` out",
                    only.path
                ),
            }),
            (Error::NotFound { path, .. }, [_, _, ..]) => {
                let hint = format!("; the project has {}: give one of them as `database`", list(&files));
                Err(Error::NotFound { path, hint })
            }
            (missing, _) => Err(missing),
        }
    }
}
