//! [`Logs`]: reads and follows the logs of a workspace.

use super::cursor::{Cursor, CursorDirection, FilePosition, fnv1a};
use super::discovery::{self, discover};
use super::entry::LogEntry;
use super::error::Error;
use super::files::{LogFile, LogSource};
use super::follow::{is_partial_object, last_decoded_line, unfinished_line_start, unfinished_note};
use super::followers::{SourceFollowers, newer_cursor};
use super::groups::{self, GroupBy};
use super::merge;
use super::open_entry::position_after;
use super::page::LogPage;
use super::query::{GetLogs, LogEntryFilter};
use super::read_at::ReadAt as _;
use super::tail;
use redaction::Redactor;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use workspace::Workspace;

/// The time between two polls of a followed file.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The time for which a source is followed while the caller gets each entry as it comes.
const FOLLOW_TIMEOUT: Duration = Duration::from_secs(60);
/// The time for which a caller that gets only the answer waits for a new entry.
pub(super) const FIRST_ENTRY_TIMEOUT: Duration = Duration::from_secs(10);

/// The size of the files of a source up to which all matching entries are counted for a page of the last ones.
const MAX_COUNTED_BYTES: u64 = 8 << 20;

/// The file that is read where neither the query nor the settings name a source.
const DEFAULT_FILE: &str = "app.log";

/// The logs beneath the roots of a workspace. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Logs {
    workspace: Arc<Workspace>,
    /// The value of `LOG_PATH`, if any.
    path: Option<String>,
    /// The sources with a name, in the order of the settings.
    named: Arc<[(String, String)]>,
    /// The redactor that masks the answers, if any.
    redactor: Option<Arc<Redactor>>,
}

impl Logs {
    /// Creates a reader of the logs beneath the roots of `workspace`, which reads `app.log` by default.
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace, path: None, named: Arc::default(), redactor: None }
    }

    /// Sets the file or glob that is read where a query names no source: the value of `LOG_PATH`. `app.log` by
    /// default.
    #[must_use]
    pub fn path(mut self, path: Option<String>) -> Self {
        self.path = path.filter(|path| !path.is_empty());
        self
    }

    /// Sets the sources with a name, each a path or a glob. The first is read where a query names none and no
    /// [`path`](Self::path) is set.
    #[must_use]
    pub fn named(mut self, named: impl IntoIterator<Item = (String, String)>) -> Self {
        self.named = named.into_iter().collect();
        self
    }

    /// Sets the redactor that masks the answers, so that `contains` finds nothing that it masks. None by default.
    #[must_use]
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = Some(Arc::new(redactor));
        self
    }

    /// Returns the same logs, restricted to the roots of `workspace`.
    #[must_use]
    pub fn within(&self, workspace: Arc<Workspace>) -> Self {
        Self { workspace, ..self.clone() }
    }

    /// Returns the entries that match `query`: the last entries, or the entries before or after the cursor of the
    /// query. Blocks the thread while reading. After a cancellation, returns the entries that were read until then.
    ///
    /// # Errors
    /// The source does not exist or may not be read, or an argument is invalid.
    pub fn read(&self, query: &GetLogs, cancel: &CancellationToken) -> Result<LogPage, Error> {
        let filter = LogEntryFilter::new(query)?.redactor(self.redactor.clone());
        let group_by = group_by(query)?;
        let (source, note) = self.source(query)?;
        let cursor = self.cursor(query, &source)?;
        if let Some(cursor) = cursor.as_ref().filter(|cursor| cursor.direction == CursorDirection::Newer) {
            let mut followers = SourceFollowers::new(source, filter, Some(cursor))?;
            let batch = followers.poll(true)?;
            return Ok(followers.page(batch.entries, batch.full));
        }
        let found = source.files().map_err(|error| match (error, &note) {
            (Error::NotFound { path, hint }, Some(note)) => {
                Error::NotFound { path, hint: format!("; {note}{hint}") }
            }
            (error, _) => error,
        })?;
        let mut notes: Vec<String> = note.into_iter().chain(found.notes()).collect();
        let files = found.files;
        if let Some(by) = group_by {
            let mut page = groups::read(&files, &by, &filter, cancel)?;
            page.notes.splice(0..0, notes);
            return Ok(page);
        }
        let (mut page, rest, newer) = match (&cursor, source.is_glob() && files.len() > 1) {
            (Some(cursor), false) => read_older(&source, files, cursor, &filter, cancel)?,
            (None, false) => with_total(read_last(&files, &filter, cancel)?, &files, &filter, cancel)?,
            (Some(cursor), true) => read_merged(&source, &files, Some(cursor), &filter, cancel)?,
            (None, true) => {
                with_total(read_merged(&source, &files, None, &filter, cancel)?, &files, &filter, cancel)?
            }
        };
        notes.append(&mut page.notes);
        page.notes = notes;
        let newer = newer.filter(|_| cursor.is_none());
        page.newer_cursor = newer.map(|positions| newer_cursor(&source, positions).to_string());
        let older = |positions| Cursor {
            direction: CursorDirection::Older,
            source: fnv1a(source.name.as_bytes()),
            positions,
            issued_ms: 0,
        };
        page.older_cursor = (!rest.is_empty()).then(|| older(rest).to_string());
        if page.older_cursor.is_some() && page.total.is_none() {
            page.notes.push("`group_by` counts all entries".to_owned());
        }
        Ok(page)
    }

    /// Waits for entries that are written from now on, or were written since the cursor of `query`.
    ///
    /// With `on_entry`, every new entry is passed to it as it comes, until there are as many as asked for, the page
    /// is full, a minute has passed, or the work is cancelled. Without it, the call ends with the first new entries,
    /// or after ten seconds. Either way the page has all of them, and the cursor to go on from. A file that does not
    /// exist yet is waited for.
    ///
    /// # Errors
    /// As for [`read`](Self::read), and for a cursor that leads to older entries.
    pub async fn follow(
        &self,
        query: &GetLogs,
        cancel: &CancellationToken,
        mut on_entry: Option<&mut (dyn FnMut(&LogEntry) + Send)>,
    ) -> Result<LogPage, Error> {
        let filter = LogEntryFilter::new(query)?.redactor(self.redactor.clone());
        if query.group_by.is_some() {
            let reason = "entries that are waited for are not counted; leave out `follow`, or this";
            return Err(Error::Argument { parameter: "group_by", reason: reason.to_owned() });
        }
        let (source, note) = self.source(query)?;
        let cursor = self.cursor(query, &source)?;
        if cursor.as_ref().is_some_and(|cursor| cursor.direction == CursorDirection::Older) {
            let reason =
                "it leads to older entries, which are not followed; give newer_cursor, or leave out `follow`";
            return Err(Error::Argument { parameter: "cursor", reason: reason.to_owned() });
        }
        // Opening the files may take long on a network file system, so it does not happen on the runtime's threads.
        let mut followers = blocking(move || SourceFollowers::new(source, filter, cursor.as_ref())).await?;
        let timeout = if on_entry.is_some() { FOLLOW_TIMEOUT } else { FIRST_ENTRY_TIMEOUT };
        let deadline = Instant::now() + timeout;
        let mut entries = Vec::new();
        loop {
            // The followers move to the blocking thread and come back with their batch.
            let (back, batch) = blocking(move || {
                let batch = followers.poll(false)?;
                Ok((followers, batch))
            })
            .await?;
            followers = back;
            if let Some(on_entry) = &mut on_entry {
                batch.entries.iter().for_each(on_entry);
            }
            entries.extend(batch.entries);
            let waits_on = on_entry.is_some() || entries.is_empty();
            if batch.full || !waits_on || cancel.is_cancelled() || Instant::now() >= deadline {
                let mut page = followers.page(entries, batch.full);
                page.notes.splice(0..0, note);
                return Ok(page);
            }
            tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = cancel.cancelled() => return Ok(followers.page(entries, false)),
            }
        }
    }

    /// Resolves the source of `query`: a name or a path, or the first one set of `LOG_PATH`, the named sources and what
    /// the project has. A note tells what was found there.
    fn source(&self, query: &GetLogs) -> Result<(LogSource, Option<String>), Error> {
        let named = |name: &str| self.named.iter().find(|(known, _)| known == name);
        let (text, name) = match (&query.source, &self.path, self.named.first()) {
            (Some(source), _, _) => match named(source) {
                Some((name, text)) => (text.as_str(), name.as_str()),
                None => (source.as_str(), source.as_str()),
            },
            (None, Some(path), _) => (path.as_str(), "LOG_PATH"),
            (None, None, Some((name, text))) => (text.as_str(), name.as_str()),
            (None, None, None) => return self.discovered_source(),
        };
        let source = LogSource::new(&self.workspace, text, name)
            .map_err(|error| self.with_source_names(error, query))?;
        // Only a relative path may have left out a folder; one that leads outside is refused where it is opened.
        let may_stand_for = query.source.is_some() && named(text).is_none() && !source.is_glob();
        let is_beneath = !text.starts_with('/') && !text.contains("..");
        if may_stand_for
            && is_beneath
            && matches!(self.workspace.locate(text).map(|path| path.kind()), Ok(Ok(None)))
        {
            return self.stand_in(source, text);
        }
        Ok((source, None))
    }

    /// Returns the log of the same name in a usual folder for one that does not exist, if it is the only one, and tells so.
    fn stand_in(&self, missing: LogSource, text: &str) -> Result<(LogSource, Option<String>), Error> {
        if missing.files().is_ok() {
            // Those that were rotated away from it are there.
            return Ok((missing, None));
        }
        let similar = discovery::similar(&self.workspace, text);
        match similar.same_name.as_slice() {
            [only] => {
                let note = format!("there is no {}: this is {only}", missing.name);
                Ok((LogSource::new(&self.workspace, only, only)?, Some(note)))
            }
            _ => {
                const MAX_NAMED: usize = 10;
                // Those beside it are in the error already.
                let folder = |path: &str| path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
                let elsewhere = similar.all.iter().filter(|path| folder(path) != folder(text));
                let named: Vec<_> = elsewhere.take(MAX_NAMED).map(String::as_str).collect();
                // A file that is missing may have rotated predecessors, or be written later.
                let note =
                    (!named.is_empty()).then(|| format!("the logs of the project are {}", named.join(", ")));
                Ok((missing, note))
            }
        }
    }

    /// Finds the logs of the project; the default file, which may be written later, where there are none.
    fn discovered_source(&self) -> Result<(LogSource, Option<String>), Error> {
        let Some(found) = discover(&self.workspace, DEFAULT_FILE) else {
            let source = LogSource::new(&self.workspace, DEFAULT_FILE, DEFAULT_FILE)?;
            return Ok((source, Some(discovery::places())));
        };
        let source = LogSource::new(&self.workspace, &found.source, &found.source)?;
        let note = format!("no `source` was given: {} was found ({})", found.source, found.origin);
        Ok((source, (!found.origin.is_empty()).then_some(note)))
    }

    /// Adds the names of the sources to the error for a missing path, which may be a misspelt name.
    fn with_source_names(&self, error: Error, query: &GetLogs) -> Error {
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

    /// Parses the cursor of `query`, if it has one, and checks that it belongs to `source`.
    fn cursor(&self, query: &GetLogs, source: &LogSource) -> Result<Option<Cursor>, Error> {
        let Some(text) = &query.cursor else { return Ok(None) };
        let invalid = |reason: &str| Error::Argument { parameter: "cursor", reason: reason.to_owned() };
        let cursor: Cursor = text.parse().map_err(|_| {
            invalid("this is no cursor of get_logs; give an older_cursor or newer_cursor as it was answered, or none")
        })?;
        if cursor.source != fnv1a(source.name.as_bytes()) {
            return Err(invalid("it belongs to another source; give the source it was answered for"));
        }
        Ok(Some(cursor))
    }
}

/// Returns the property by which `query` groups, if it does.
fn group_by(query: &GetLogs) -> Result<Option<GroupBy>, Error> {
    let Some(property) = query.group_by.as_deref().filter(|property| !property.is_empty()) else {
        return Ok(None);
    };
    if query.cursor.is_some() {
        let reason =
            "a cursor leads to entries, and groups are counted over all of them; leave one of the two out";
        return Err(Error::Argument { parameter: "group_by", reason: reason.to_owned() });
    }
    Ok(Some(GroupBy::parse(property)))
}

/// A page without cursors, the positions that lead to older entries, and those that lead to newer ones.
type PageParts = (LogPage, Vec<FilePosition>, Option<Vec<FilePosition>>);

/// Adds the number of all matching entries to the page of the last ones, where counting them costs little.
fn with_total(
    (mut page, rest, newer): PageParts,
    files: &[LogFile],
    filter: &LogEntryFilter,
    cancel: &CancellationToken,
) -> Result<PageParts, Error> {
    page.total = match rest.is_empty() {
        true => Some(page.entries.len() as u64),
        false => groups::total(files, MAX_COUNTED_BYTES, filter, cancel)?,
    };
    Ok((page, rest, newer))
}

/// Reads the last entries of a file and those that were rotated away from it.
fn read_last(
    files: &[LogFile],
    filter: &LogEntryFilter,
    cancel: &CancellationToken,
) -> Result<PageParts, Error> {
    let newest = files.len().saturating_sub(1);
    let (mut end, mut newer, mut note) = (u64::MAX, None, None);
    // The newer cursor is taken before reading, so that it leads to whatever is written meanwhile.
    if let Some(file) = files.last().filter(|file| !file.is_compressed()) {
        let failed = |source| Error::Read { path: file.display_path.clone(), source };
        end = readable_end(file).map_err(failed)?;
        newer = position_after(file, end).map_err(failed)?.map(|position| vec![position]);
        note = unread_line_note(file, end).map_err(failed)?;
    }
    let (mut page, rest) = tail::read(files, newest, end, filter, cancel)?;
    page.notes.extend(note);
    Ok((page, rest.into_iter().collect(), newer))
}

/// Reads the entries before the position of `cursor`.
fn read_older(
    source: &LogSource,
    mut files: Vec<LogFile>,
    cursor: &Cursor,
    filter: &LogEntryFilter,
    cancel: &CancellationToken,
) -> Result<PageParts, Error> {
    let gone = || Error::Gone { source_name: source.name.clone() };
    let position = cursor.positions.first().ok_or_else(gone)?;
    let newest = match position.find_in(&files) {
        Some(newest) => newest,
        None => {
            let moved = source.find_moved(position.id, |file| position.is_in(file)).ok_or_else(gone)?;
            files = vec![moved];
            0
        }
    };
    let (page, rest) = tail::read(&files, newest, position.offset, filter, cancel)?;
    Ok((page, rest.into_iter().collect(), None))
}

/// Reads the last entries of the files of a glob, or those before the positions of `cursor`, in the order of their
/// times.
fn read_merged(
    source: &LogSource,
    files: &[LogFile],
    cursor: Option<&Cursor>,
    filter: &LogEntryFilter,
    cancel: &CancellationToken,
) -> Result<PageParts, Error> {
    let failed = |file: &LogFile, source| Error::Read { path: file.display_path.clone(), source };
    let Some(cursor) = cursor else {
        let (mut ends, mut newer, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for file in files {
            let end = if file.is_compressed() {
                u64::MAX
            } else {
                readable_end(file).map_err(|error| failed(file, error))?
            };
            ends.push(end);
            if !file.is_compressed() {
                newer.extend(position_after(file, end).map_err(|error| failed(file, error))?);
                notes.extend(unread_line_note(file, end).map_err(|error| failed(file, error))?);
            }
        }
        let (mut page, rest) = merge::read(files, &ends, filter, cancel)?;
        page.notes.append(&mut notes);
        return Ok((page, rest, Some(newer)));
    };
    // A file that the cursor does not have was read to its beginning, or is newer.
    let mut ends = vec![0; files.len()];
    let mut found = false;
    for position in &cursor.positions {
        if let Some(end) = position.find_in(files).and_then(|index| ends.get_mut(index)) {
            *end = position.offset;
            found = true;
        }
    }
    if !found {
        return Err(Error::Gone { source_name: source.name.clone() });
    }
    let (page, rest) = merge::read(files, &ends, filter, cancel)?;
    Ok((page, rest, None))
}

/// Returns the note for a last line of `file` that is not read, as it stands behind `end`.
fn unread_line_note(file: &LogFile, end: u64) -> std::io::Result<Option<String>> {
    let has_more = match file.is_decoded() {
        true => last_decoded_line(file)?.end > end,
        false => file.length()? > end,
    };
    Ok(has_more.then(|| unfinished_note(&file.display_path)))
}

/// Returns the offset up to which `file` is read.
fn readable_end(file: &LogFile) -> std::io::Result<u64> {
    if !file.is_decoded() {
        return complete_end(file);
    }
    let line = last_decoded_line(file)?;
    Ok(if is_partial_object(&line.content) { line.start } else { line.end })
}

/// Returns the end of `file`, without a last line that is still being written: one without a line feed that begins as
/// a JSON object and is not a whole one.
fn complete_end(file: &LogFile) -> std::io::Result<u64> {
    let (start, end) = (unfinished_line_start(file)?, file.length()?);
    let length = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX).min(1 << 20);
    let mut line = vec![0; length];
    let read = file.file.read_at(&mut line, start)?;
    line.truncate(read);
    let is_partial = is_partial_object(&line);
    if start + (read as u64) < end {
        // Of a line longer than the limit the last byte is all that can be checked.
        let mut last = [0; 1];
        let is_whole = file.file.read_at(&mut last, end - 1)? == 1 && last == *b"}";
        return Ok(if is_whole || !is_partial { end } else { start });
    }
    Ok(if is_partial { start } else { start + read as u64 })
}

/// Runs `work`, which reads files, on a thread where it may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(Error::Cancelled),
    }
}
