//! The logs of the application: the last entries of a level, and new ones as they are written.
//!
//! Every line is recognised by itself, so that a file may hold the lines of several loggers: JSON objects
//! (pino, bunyan, winston, zap, logrus, slog, tracing-subscriber, structlog, loguru, Serilog, Python, ECS,
//! OpenTelemetry, journald), logfmt, and text with a time or a level in front. Lines that go on with an entry,
//! such as a stack trace, stay with it.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! use core_tools::logs::{GetLogs, Level, Logs};
//! use core_tools::workspace::Workspace;
//! use std::sync::Arc;
//!
//! let workspace = Workspace::new([folder.path()])?;
//! workspace.locate("app.log")?.write(
//!     b"{\"level\":30,\"time\":1795168800000,\"msg\":\"up\"}\n{\"level\":50,\"time\":1795168801000,\"msg\":\"down\"}\n",
//! )?;
//!
//! let logs = Logs::new(Arc::new(workspace));
//! let page = logs.read(&GetLogs { level: Some(Level::Error), ..GetLogs::default() }, &Default::default())?;
//! assert_eq!(page.entries[0].message, "down");
//! assert_eq!(page.entries[0].timestamp.as_deref(), Some("2026-11-20T10:00:01.000Z"));
//! # Ok(())
//! # }
//! ```
//!
//! # Bounds
//!
//! A file is read from its end in chunks of 256 KiB, and no file is held in memory. Of a line 1 MiB is looked
//! at; of an entry 8 KiB of message and 8 KiB of fields are answered; an answer has at most about 36 KB of
//! entries. What was left out is said, and a cursor leads to the rest.
//!
//! # What it leaves out
//!
//! Times without an offset are taken for UTC, and times without a year are not known. `since` ends the reading
//! where entries are more than five seconds older, as entries are written in about the order of their times.

mod ahead;
mod backward;
mod cursor;
mod entry;
mod error;
mod files;
mod follow;
mod forward;
mod json;
mod level;
mod line;
mod logfmt;
mod moment;
mod page;
mod plain;
mod query;
mod read;
mod source;
#[cfg(all(test, unix))]
mod tests;

pub use entry::LogEntry;
pub use error::Error;
pub use level::Level;
pub use page::LogPage;
pub use query::GetLogs;

use crate::workspace::Workspace;
use cursor::{Cursor, Direction, Mark, hash};
use files::Source;
use follow::{Follower, last_line, newer_cursor};
use query::Filter;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How often a followed file is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long is waited for new entries where somebody hears of each.
const FOLLOW_FOR: Duration = Duration::from_secs(60);
/// How long is waited for the first new entry where nobody does.
const WAIT_FOR: Duration = Duration::from_secs(10);

/// The file that is read where nothing else is named.
const DEFAULT_FILE: &str = "app.log";

/// The logs beneath the roots of a workspace. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Logs {
    workspace: Arc<Workspace>,
    path: Option<String>,
    named: Arc<[(String, String)]>,
}

impl Logs {
    /// Logs beneath the roots of `workspace`; `app.log` where a query names no source.
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace, path: None, named: Arc::default() }
    }

    /// The file or glob that is read where a query names no source: the value of `LOG_PATH`. `app.log` by
    /// default.
    #[must_use]
    pub fn path(mut self, path: Option<String>) -> Self {
        self.path = path.filter(|path| !path.is_empty());
        self
    }

    /// Sources by name, each a path or a glob. The first is read where a query names none and no
    /// [`path`](Self::path) is set.
    #[must_use]
    pub fn named(mut self, named: impl IntoIterator<Item = (String, String)>) -> Self {
        self.named = named.into_iter().collect();
        self
    }

    /// The same logs, as far as `workspace` reaches.
    #[must_use]
    pub fn within(&self, workspace: Arc<Workspace>) -> Self {
        Self { workspace, ..self.clone() }
    }

    /// The entries that `query` asks for: the last ones, or those before or after its cursor. Blocks for as long
    /// as reading takes; cancelled, it answers with what it has.
    ///
    /// # Errors
    /// The source is not there or may not be read, or an argument cannot be understood.
    pub fn read(&self, query: &GetLogs, cancel: &CancellationToken) -> Result<LogPage, Error> {
        let filter = Filter::new(query)?;
        let source = self.source(query)?;
        let (files, newest, end, newer) = match self.cursor(query, &source)? {
            Some(cursor) if cursor.direction == Direction::Newer => {
                let mut follower = Follower::from(source, filter, &cursor)?;
                let batch = follower.look(true)?;
                return Ok(page(&follower, batch.entries, batch.full));
            }
            Some(cursor) => {
                let files = source.files()?;
                let gone = || Error::Gone { source_name: source.name.clone() };
                let newest = cursor.mark.find(&files).ok_or_else(gone)?;
                (files, newest, cursor.mark.offset, None)
            }
            None => {
                let files = source.files()?;
                let newest = files.len().saturating_sub(1);
                match files.last() {
                    Some(file) if !file.compressed => {
                        let failed = |source| Error::Read { path: file.shown.clone(), source };
                        let end = complete_end(file).map_err(failed)?;
                        let newer = Mark::new(file, end).map_err(failed)?;
                        (files, newest, end, newer)
                    }
                    _ => (files, newest, u64::MAX, None),
                }
            }
        };
        let (mut page, more) = read::read(&files, newest, end, &filter, cancel)?;
        page.newer_cursor = newer.map(|mark| newer_cursor(&source, mark).to_string());
        page.older_cursor = more.map(|(_, mark)| {
            Cursor { direction: Direction::Older, source: hash(source.name.as_bytes()), mark, given: 0 }
                .to_string()
        });
        Ok(page)
    }

    /// Waits for entries that are written from now on, or have been since the cursor of `query`.
    ///
    /// With `each`, every new entry is said there as it comes, until there are as many as asked for, the answer
    /// is full, a minute has passed, or the work is cancelled. Without, the first entries end it, or ten seconds.
    /// Either way the answer has all of them, and the cursor to go on from.
    ///
    /// # Errors
    /// As for [`read`](Self::read), and for a cursor that leads to older entries.
    pub async fn follow(
        &self,
        query: &GetLogs,
        cancel: &CancellationToken,
        mut each: Option<&mut (dyn FnMut(&LogEntry) + Send)>,
    ) -> Result<LogPage, Error> {
        let filter = Filter::new(query)?;
        let source = self.source(query)?;
        let cursor = self.cursor(query, &source)?;
        if cursor.is_some_and(|cursor| cursor.direction == Direction::Older) {
            let reason =
                "it leads to older entries, which are not followed; give newer_cursor, or leave out `follow`";
            return Err(Error::Argument { parameter: "cursor", reason: reason.to_owned() });
        }
        let mut follower = blocking(move || match cursor {
            Some(cursor) => Follower::from(source, filter, &cursor),
            None => Follower::at_end(source, filter),
        })
        .await?;
        let ends = Instant::now() + if each.is_some() { FOLLOW_FOR } else { WAIT_FOR };
        let mut entries = Vec::new();
        loop {
            let (back, batch) = blocking(move || {
                let batch = follower.look(false)?;
                Ok((follower, batch))
            })
            .await?;
            follower = back;
            if let Some(each) = &mut each {
                batch.entries.iter().for_each(each);
            }
            entries.extend(batch.entries);
            let heard = each.is_some() || entries.is_empty();
            if batch.full || !heard || cancel.is_cancelled() || Instant::now() >= ends {
                return Ok(page(&follower, entries, batch.full));
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = cancel.cancelled() => return Ok(page(&follower, entries, false)),
            }
        }
    }

    fn source(&self, query: &GetLogs) -> Result<Source, Error> {
        let named = |name: &str| self.named.iter().find(|(known, _)| known == name);
        let (text, name) = match (&query.source, &self.path, self.named.first()) {
            (Some(source), _, _) => match named(source) {
                Some((name, text)) => (text.as_str(), name.as_str()),
                None => (source.as_str(), source.as_str()),
            },
            (None, Some(path), _) => (path.as_str(), "LOG_PATH"),
            (None, None, Some((name, text))) => (text.as_str(), name.as_str()),
            (None, None, None) => (DEFAULT_FILE, DEFAULT_FILE),
        };
        Source::new(&self.workspace, text, name).map_err(|error| self.with_names(error, query))
    }

    /// A path that leads nowhere may have been meant for a name.
    fn with_names(&self, error: Error, query: &GetLogs) -> Error {
        match (error, query.source.as_deref()) {
            (Error::NotFound { path, hint }, Some(_)) if !self.named.is_empty() => {
                let names: Vec<&str> = self.named.iter().map(|(name, _)| name.as_str()).collect();
                Error::NotFound {
                    path,
                    hint: format!("; the sources with a name are {}{hint}", names.join(", ")),
                }
            }
            (error, _) => error,
        }
    }

    fn cursor(&self, query: &GetLogs, source: &Source) -> Result<Option<Cursor>, Error> {
        let Some(text) = &query.cursor else { return Ok(None) };
        let invalid = |reason: &str| Error::Argument { parameter: "cursor", reason: reason.to_owned() };
        let cursor: Cursor = text.parse().map_err(|()| {
            invalid("this is no cursor of get_logs; give an older_cursor or newer_cursor as it was answered, or none")
        })?;
        if cursor.source != hash(source.name.as_bytes()) {
            return Err(invalid("it belongs to another source; give the source it was answered for"));
        }
        Ok(Some(cursor))
    }
}

/// What a follower found, as an answer.
fn page(follower: &Follower, entries: Vec<LogEntry>, full: bool) -> LogPage {
    let mut notes = follower.notes.clone();
    if full {
        notes.push("there may be more; go on with newer_cursor".to_owned());
    }
    LogPage {
        entries,
        malformed: follower.malformed,
        files: follower.files.clone(),
        scanned_bytes: follower.scanned,
        notes,
        older_cursor: None,
        newer_cursor: Some(follower.cursor().to_string()),
    }
}

/// Where `file` ends, without a last line that is being written: one that has not ended and is no JSON object
/// though it begins as one.
fn complete_end(file: &files::LogFile) -> std::io::Result<u64> {
    use source::ReadAt;
    let (start, end) = (last_line(file)?, file.length()?);
    let length = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX).min(1 << 20);
    let mut line = vec![0; length];
    let read = file.file.read_at(&mut line, start)?;
    line.truncate(read);
    let half = line::trim_start(&line).first() == Some(&b'{')
        && serde_json::from_slice::<serde::de::IgnoredAny>(line::trim_start(&line)).is_err();
    Ok(if half { start } else { start + read as u64 })
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(Error::Cancelled),
    }
}
