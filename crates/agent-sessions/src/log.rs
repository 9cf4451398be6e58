//! Logs: whole lines with their time, in files that are rotated by size and read by position.

use crate::clock;
use crate::directory::private_file;
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// The severity of a line.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum SessionLogLevel {
    /// Details for debugging.
    Debug,
    /// An event.
    Info,
    /// Something that was probably not intended.
    Warn,
    /// A failure.
    Error,
}

impl SessionLogLevel {
    const ALL: [(Self, &'static str); 4] =
        [(Self::Debug, "DEBUG"), (Self::Info, "INFO"), (Self::Warn, "WARN"), (Self::Error, "ERROR")];

    fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(level, _)| *level == self).map_or("INFO", |(_, name)| name)
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(level, _)| *level)
    }
}

/// The limits of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionLogLimits {
    /// The size of one file in bytes. 10 MiB by default.
    pub file_bytes: u64,
    /// The number of rotated files that are kept beside the current one. 4 by default.
    pub rotated_files: usize,
}

impl Default for SessionLogLimits {
    fn default() -> Self {
        Self { file_bytes: 10 << 20, rotated_files: 4 }
    }
}

/// A log that is rotated by size. A position counts all bytes that were ever written, over all its files.
#[derive(Debug)]
pub(crate) struct RotatingSessionLog {
    folder: OwnedFd,
    name: String,
    limits: SessionLogLimits,
    file: Option<File>,
    /// The position at which the current file begins.
    start: u64,
    /// The length of the current file.
    length: u64,
    /// The number of lines that could not be written since the last that could.
    lost_lines: u64,
    /// The error of the last line, if that could not be written.
    last_error: Option<String>,
}

/// The bytes of lines in one page.
const MAX_PAGE_BYTES: usize = 2 << 20;

/// A query for lines of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionLogQuery {
    /// The number of lines.
    pub lines: usize,
    /// The earliest time: RFC 3339, in UTC, to the millisecond, or the beginning of such a text.
    pub since: Option<String>,
    /// The lowest level.
    pub level: Option<SessionLogLevel>,
    /// The position from which to read on, instead of the last lines.
    pub cursor: Option<u64>,
}

/// A page of lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionLogPage {
    /// The lines, the oldest first.
    pub lines: Vec<String>,
    /// The number of lines that match the query, from its cursor on.
    pub total_available: u64,
    /// The position from which to read on.
    pub cursor: u64,
}

impl RotatingSessionLog {
    /// Opens the log `name` in `folder`, and appends to what is there.
    ///
    /// # Errors
    /// The folder cannot be opened, or the file is not a regular file of this user.
    pub(crate) fn open(folder: &Path, name: &str, limits: SessionLogLimits) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(folder, flags, Mode::empty())?;
        let mut log = Self {
            name: name.to_owned(),
            limits,
            file: None,
            start: 0,
            length: 0,
            lost_lines: 0,
            last_error: None,
            folder: handle,
        };
        if let Some((start, rotated)) = rotated_files(log.folder.as_fd(), name)?.pop() {
            let file = private_file(log.folder.as_fd(), &rotated, OFlags::RDONLY)?;
            log.start = start + file.metadata()?.len();
        }
        log.open_current()?;
        Ok(log)
    }

    fn open_current(&mut self) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND;
        let file = private_file(self.folder.as_fd(), &self.name, flags)?;
        self.length = file.metadata()?.len();
        self.file = Some(file);
        Ok(())
    }

    /// Returns the position of the next line.
    #[cfg(test)]
    pub(crate) fn position(&self) -> u64 {
        self.start + self.length
    }

    /// Returns the number of lines that are being lost, and why. Nothing if the last line was written.
    pub(crate) fn last_error(&self) -> Option<String> {
        let error = self.last_error.as_ref()?;
        Some(format!("{} lines of {} could not be written: {error}", self.lost_lines, self.name))
    }

    /// Writes a text as lines with the time.
    ///
    /// A line that cannot be written is lost and counted, and the next one that can be written says so: a full disk
    /// must not stop the work that is logged.
    pub(crate) fn write(&mut self, level: Option<SessionLogLevel>, text: &str) {
        let at = clock::rfc3339(clock::now_ms());
        let level = level.map(|level| format!("{:5} ", level.as_str())).unwrap_or_default();
        let mut line = String::with_capacity(text.len() + 40);
        if self.last_error.is_some() {
            line = format!("{at} {level}[{} lines were lost here]\n", self.lost_lines);
        }
        for part in text.lines() {
            line.push_str(&at);
            line.push(' ');
            line.push_str(&level);
            line.push_str(part);
            line.push('\n');
        }
        match self.append(line.as_bytes()) {
            Ok(()) => (self.lost_lines, self.last_error) = (0, None),
            Err(error) => {
                self.lost_lines += text.lines().count() as u64;
                self.last_error = Some(error.to_string());
            }
        }
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        // An empty file takes a line of any length: to rotate it would not help.
        if self.length > 0 && self.length + bytes.len() as u64 > self.limits.file_bytes {
            self.rotate()?;
        }
        if self.file.is_none() {
            self.open_current()?;
        }
        let length = self.length;
        let Some(file) = &mut self.file else { return Err(io::ErrorKind::NotFound.into()) };
        match file.write_all(bytes) {
            Ok(()) => {
                self.length += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                // Part of the line may have been written. A reader takes only whole lines.
                let _ = file.set_len(length);
                Err(error)
            }
        }
    }

    /// Renames the current file after the position at which it begins, and removes the oldest files.
    fn rotate(&mut self) -> io::Result<()> {
        // With 20 digits, as many as a `u64` can have, the names sort by position.
        let rotated = format!("{}.{:020}", self.name, self.start);
        rustix::fs::renameat(&self.folder, self.name.as_str(), &self.folder, rotated.as_str())?;
        // Before anything else can fail: if opening fails, the next line tries again and the position is still
        // right.
        (self.start, self.length, self.file) = (self.start + self.length, 0, None);
        let files = rotated_files(self.folder.as_fd(), &self.name)?;
        for (_, name) in files.iter().take(files.len().saturating_sub(self.limits.rotated_files)) {
            rustix::fs::unlinkat(&self.folder, name.as_str(), AtFlags::empty())?;
        }
        self.open_current()
    }

    /// Reads lines of the log `name` in `folder`. It blocks, and may read all files of the log.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(crate) fn read(folder: &Path, name: &str, query: &SessionLogQuery) -> io::Result<SessionLogPage> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(folder, flags, Mode::empty())?;
        // All files are opened first: one that is rotated meanwhile is then read once, whatever its name is.
        let mut files: Vec<(u64, File)> = Vec::new();
        for (start, name) in rotated_files(handle.as_fd(), name)? {
            files.push((start, private_file(handle.as_fd(), &name, OFlags::RDONLY)?));
        }
        let start = match files.last() {
            Some((start, file)) => start + file.metadata()?.len(),
            None => 0,
        };
        files.push((start, private_file(handle.as_fd(), name, OFlags::RDONLY)?));
        let mut page = SessionLogPage::default();
        let mut lines = VecDeque::new();
        let cursor = query.cursor.unwrap_or(0);
        // With a cursor the first lines from there on, without one the last of all.
        let forward = query.cursor.is_some();
        let (mut is_full, mut page_bytes) = (false, 0);
        for (start, file) in files {
            let length = file.metadata()?.len();
            // The whole file lies before the cursor. An idle follower reads only the end of the newest.
            if start + length <= cursor {
                page.cursor = page.cursor.max(start + length);
                continue;
            }
            let mut file = BufReader::with_capacity(256 << 10, file);
            let mut position = start.max(cursor);
            file.seek(SeekFrom::Start(position - start))?;
            let mut bytes = Vec::new();
            // Only whole lines, and only up to the length at this moment: what comes later belongs to the next read.
            while position < start + length {
                bytes.clear();
                let read = file.read_until(b'\n', &mut bytes)? as u64;
                if read == 0 || bytes.last() != Some(&b'\n') {
                    break;
                }
                position += read;
                let line = String::from_utf8_lossy(&bytes[..bytes.len() - 1]);
                if matches_query(&line, query) {
                    page.total_available += 1;
                    is_full |= forward && (lines.len() >= query.lines || page_bytes > MAX_PAGE_BYTES);
                    if !is_full {
                        page_bytes += line.len();
                        lines.push_back(line.into_owned());
                        // At least one line stays, however long it is.
                        while !forward
                            && (lines.len() > query.lines || (page_bytes > MAX_PAGE_BYTES && lines.len() > 1))
                        {
                            page_bytes -= lines.pop_front().map_or(0, |line| line.len());
                        }
                    }
                }
                if !is_full {
                    page.cursor = position;
                }
            }
        }
        page.cursor = page.cursor.max(cursor);
        page.lines = lines.into();
        Ok(page)
    }
}

fn matches_query(line: &str, query: &SessionLogQuery) -> bool {
    if let Some(since) = &query.since
        && line < since.as_str()
    {
        return false;
    }
    match query.level {
        None => true,
        Some(lowest) => {
            line.split(' ').nth(1).and_then(SessionLogLevel::parse).is_some_and(|level| level >= lowest)
        }
    }
}

/// Lists the rotated files, the oldest first, each with the position at which it begins.
fn rotated_files(folder: BorrowedFd<'_>, name: &str) -> io::Result<Vec<(u64, String)>> {
    let mut files = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let Ok(found) = entry.file_name().to_str() else { continue };
        let Some(digits) = found.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')) else { continue };
        if digits.len() == 20
            && let Ok(start) = digits.parse()
        {
            files.push((start, found.to_owned()));
        }
    }
    files.sort();
    Ok(files)
}

/// The line with which the output of each process begins in the log of its session.
pub(crate) const PROCESS_START_MARK: &str = "[a process of the session starts]";

/// Returns the last lines that the last process of a session printed, without their times. Without a log there are
/// none.
pub(crate) fn last_printed(folder: &Path, name: &str, lines: usize) -> Vec<String> {
    let query = SessionLogQuery { lines, ..SessionLogQuery::default() };
    // A log that cannot be read tells nothing, which is no reason not to supervise the session.
    let page = RotatingSessionLog::read(folder, name, &query).unwrap_or_default();
    let without_time =
        |line: String| line.split_once(' ').map_or_else(String::new, |(_, text)| text.to_owned());
    let mut lines: Vec<String> = page.lines.into_iter().map(without_time).collect();
    if let Some(start) = lines.iter().rposition(|line| line == PROCESS_START_MARK) {
        lines.drain(..=start);
    }
    lines
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test looks at the files as everybody does")]
    #![allow(clippy::needless_pass_by_value, reason = "calls read better with a value")]
    use super::*;
    use std::fs;

    const SMALL: SessionLogLimits = SessionLogLimits { file_bytes: 400, rotated_files: 2 };

    fn read(folder: &Path, query: SessionLogQuery) -> SessionLogPage {
        RotatingSessionLog::read(folder, "a.log", &query).unwrap()
    }

    fn lines_of(page: &SessionLogPage) -> Vec<&str> {
        page.lines.iter().filter_map(|line| line.rsplit_once(' ')).map(|(_, text)| text).collect()
    }

    #[test]
    fn the_last_lines_come_with_how_many_there_are_and_where_to_read_on() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = RotatingSessionLog::open(folder.path(), "a.log", SessionLogLimits::default()).unwrap();
        (0..50).for_each(|line| log.write(None, &format!("line-{line}")));
        let page = read(folder.path(), SessionLogQuery { lines: 2, ..SessionLogQuery::default() });
        assert_eq!((lines_of(&page), page.total_available), (vec!["line-48", "line-49"], 50));
        log.write(None, "new-1");
        log.write(None, "new-2");
        let next = SessionLogQuery { lines: 1, cursor: Some(page.cursor), ..SessionLogQuery::default() };
        let page = read(folder.path(), next);
        assert_eq!((lines_of(&page), page.total_available), (vec!["new-1"], 2));
        let page = read(
            folder.path(),
            SessionLogQuery { lines: 9, cursor: Some(page.cursor), ..SessionLogQuery::default() },
        );
        assert_eq!(lines_of(&page), ["new-2"]);
        let end = read(
            folder.path(),
            SessionLogQuery { lines: 9, cursor: Some(page.cursor), ..SessionLogQuery::default() },
        );
        assert_eq!((end.lines.len(), end.cursor), (0, log.position()));
    }

    #[test]
    fn reading_on_loses_nothing_while_the_log_is_turned_over() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = RotatingSessionLog::open(folder.path(), "a.log", SMALL).unwrap();
        let (mut cursor, mut seen) = (0, Vec::new());
        for line in 0..200 {
            log.write(None, &format!("line-{line}"));
            if line % 3 == 0 {
                let page = read(
                    folder.path(),
                    SessionLogQuery { lines: 2, cursor: Some(cursor), ..SessionLogQuery::default() },
                );
                seen.extend(lines_of(&page).into_iter().map(str::to_owned));
                cursor = page.cursor;
                while seen.len() < line + 1 {
                    let page = read(
                        folder.path(),
                        SessionLogQuery { lines: 2, cursor: Some(cursor), ..SessionLogQuery::default() },
                    );
                    seen.extend(lines_of(&page).into_iter().map(str::to_owned));
                    cursor = page.cursor;
                }
            }
        }
        assert_eq!(seen, (0..=198).map(|line| format!("line-{line}")).collect::<Vec<_>>());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "only so many files are kept");
        assert!(
            fs::read_dir(folder.path()).unwrap().all(|file| file.unwrap().metadata().unwrap().len() <= 400)
        );
    }

    #[test]
    fn a_log_that_is_opened_again_goes_on_at_its_position() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = RotatingSessionLog::open(folder.path(), "a.log", SMALL).unwrap();
        (0..40).for_each(|line| log.write(None, &format!("line-{line}")));
        let position = log.position();
        drop(log);
        let mut log = RotatingSessionLog::open(folder.path(), "a.log", SMALL).unwrap();
        assert_eq!(log.position(), position);
        log.write(None, "after");
        let page = read(
            folder.path(),
            SessionLogQuery { lines: 9, cursor: Some(position), ..SessionLogQuery::default() },
        );
        assert_eq!(lines_of(&page), ["after"]);
    }

    #[test]
    fn of_long_lines_fewer_are_read_and_reading_on_gives_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = RotatingSessionLog::open(folder.path(), "a.log", SessionLogLimits::default()).unwrap();
        (0..100).for_each(|line| log.write(None, &format!("{}-{line}", "x".repeat(60_000))));
        let page = read(folder.path(), SessionLogQuery { lines: 1000, ..SessionLogQuery::default() });
        assert!((30..40).contains(&page.lines.len()) && page.lines.last().unwrap().ends_with("-99"));
        assert_eq!(page.total_available, 100);
        let (mut cursor, mut seen) = (0, 0);
        while seen < 100 {
            let next = SessionLogQuery { lines: 1000, cursor: Some(cursor), ..SessionLogQuery::default() };
            let page = read(folder.path(), next);
            assert!(page.lines.len() < 40 && page.lines[0].ends_with(&format!("-{seen}")));
            (cursor, seen) = (page.cursor, seen + page.lines.len());
        }
    }

    #[test]
    fn lines_are_chosen_by_level_and_time() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = RotatingSessionLog::open(folder.path(), "a.log", SessionLogLimits::default()).unwrap();
        log.write(Some(SessionLogLevel::Info), "started");
        log.write(Some(SessionLogLevel::Error), "broke");
        let level = |level| {
            lines_owned(&read(
                folder.path(),
                SessionLogQuery { lines: 9, level, ..SessionLogQuery::default() },
            ))
        };
        assert_eq!(level(Some(SessionLogLevel::Warn)), ["broke"]);
        assert_eq!(level(Some(SessionLogLevel::Debug)).len(), 2);
        let since = |since: &str| {
            read(
                folder.path(),
                SessionLogQuery { lines: 9, since: Some(since.to_owned()), ..SessionLogQuery::default() },
            )
            .lines
            .len()
        };
        assert_eq!((since("2000-01-01"), since("2999-01-01")), (2, 0));
    }

    fn lines_owned(page: &SessionLogPage) -> Vec<String> {
        lines_of(page).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn a_full_disk_loses_lines_and_nothing_else_and_the_log_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = RotatingSessionLog::open(folder.path(), "a.log", SessionLogLimits::default()).unwrap();
        log.write(None, "before");
        // What the system says where there is no room (full(4)).
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let disk = log.file.replace(full);
        log.write(None, "lost-1");
        log.write(None, "lost-2");
        assert!(log.last_error().unwrap().starts_with("2 lines of a.log could not be written: "));
        log.file = disk;
        log.write(None, "after");
        assert_eq!(log.last_error(), None);
        let text = fs::read_to_string(folder.path().join("a.log")).unwrap();
        assert!(
            text.contains("[2 lines were lost here]") && text.contains("after") && !text.contains("lost-1"),
            "{text}"
        );
    }
}
