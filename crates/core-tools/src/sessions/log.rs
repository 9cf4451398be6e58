//! Logs: whole lines with their time, in files that are turned over, read by position.

use super::clock;
use super::directory::private_file;
use memchr::memchr_iter;
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// How bad what a line says is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For whoever works on it.
    Debug,
    /// What happened.
    Info,
    /// What was probably not meant.
    Warn,
    /// What went wrong.
    Error,
}

impl LogLevel {
    const ALL: [(Self, &'static str); 4] =
        [(Self::Debug, "DEBUG"), (Self::Info, "INFO"), (Self::Warn, "WARN"), (Self::Error, "ERROR")];

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(level, _)| *level == self).map_or("INFO", |(_, word)| word)
    }

    fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == word).map(|(level, _)| *level)
    }
}

/// How much is kept of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLimits {
    /// The most bytes of one file. 10 MiB by default.
    pub file_bytes: u64,
    /// Files that are kept beside the current one. 4 by default.
    pub kept: usize,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self { file_bytes: 10 << 20, kept: 4 }
    }
}

/// A log that is written. Positions count all bytes that were ever written to it, and go on where it was turned over.
#[derive(Debug)]
pub struct Log {
    folder: OwnedFd,
    path: PathBuf,
    name: String,
    limits: LogLimits,
    file: Option<File>,
    /// The position at which the current file begins, and its length.
    start: u64,
    length: u64,
    /// Lines that could not be written, and why the last of them could not.
    lost: u64,
    trouble: Option<String>,
}

/// The most bytes of lines that are read at once.
const MOST_BYTES: usize = 2 << 20;

/// What is wanted of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// The most lines.
    pub lines: usize,
    /// Only lines whose time is not before this, as RFC 3339 has it, in UTC to the millisecond, or the beginning of that.
    pub since: Option<String>,
    /// Only lines of at least this level.
    pub level: Option<LogLevel>,
    /// From this position on, instead of the last lines.
    pub cursor: Option<u64>,
}

/// Lines of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPage {
    /// The lines, the oldest first.
    pub lines: Vec<String>,
    /// How many there are that fit the query, from its cursor on.
    pub total_available: u64,
    /// Where to read on.
    pub cursor: u64,
}

impl Log {
    /// Opens the log `name` in `folder`, and goes on with what is there.
    ///
    /// # Errors
    /// The folder cannot be opened, or something else is in the place of the file.
    pub fn open(folder: &Path, name: &str, limits: LogLimits) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(folder, flags, Mode::empty())?;
        let mut log = Self {
            path: folder.to_owned(),
            name: name.to_owned(),
            limits,
            file: None,
            start: 0,
            length: 0,
            lost: 0,
            trouble: None,
            folder: handle,
        };
        if let Some((start, rotated)) = turned_over(log.folder.as_fd(), name)?.pop() {
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

    /// The current file.
    pub fn path(&self) -> PathBuf {
        self.path.join(&self.name)
    }

    /// Where the next line will stand.
    pub fn position(&self) -> u64 {
        self.start + self.length
    }

    /// Lines that could not be written, and why, since it was opened.
    pub fn trouble(&self) -> Option<String> {
        let why = self.trouble.as_ref()?;
        Some(format!("{} lines of {} could not be written: {why}", self.lost, self.name))
    }

    /// Writes a line. A line that cannot be written is lost and counted, and the first that can be says so: whoever
    /// logs goes on.
    pub fn write(&mut self, level: Option<LogLevel>, text: &str) {
        let at = clock::text(clock::now());
        let level = level.map(|level| format!("{:5} ", level.word())).unwrap_or_default();
        let mut line = String::with_capacity(text.len() + 40);
        if self.lost > 0 && self.trouble.is_some() {
            line = format!("{at} {level}[{} lines were lost here]\n", self.lost);
        }
        for part in text.lines() {
            line.push_str(&at);
            line.push(' ');
            line.push_str(&level);
            line.push_str(part);
            line.push('\n');
        }
        match self.append(line.as_bytes()) {
            Ok(()) => (self.lost, self.trouble) = (0, None),
            Err(error) => {
                self.lost += text.lines().count() as u64;
                self.trouble = Some(error.to_string());
            }
        }
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.length > 0 && self.length + bytes.len() as u64 > self.limits.file_bytes {
            self.turn_over()?;
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
                // A part of a line is no line.
                let _ = file.set_len(length);
                Err(error)
            }
        }
    }

    /// Puts the current file beside, under the position at which it begins, and forgets the oldest.
    fn turn_over(&mut self) -> io::Result<()> {
        let beside = format!("{}.{:020}", self.name, self.start);
        rustix::fs::renameat(&self.folder, self.name.as_str(), &self.folder, beside.as_str())?;
        (self.start, self.length, self.file) = (self.start + self.length, 0, None);
        let kept = turned_over(self.folder.as_fd(), &self.name)?;
        for (_, name) in kept.iter().take(kept.len().saturating_sub(self.limits.kept)) {
            rustix::fs::unlinkat(&self.folder, name.as_str(), AtFlags::empty())?;
        }
        self.open_current()
    }

    /// Reads from the log `name` in `folder`. Takes as long as it takes to read all that is kept.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(folder: &Path, name: &str, query: &LogQuery) -> io::Result<LogPage> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(folder, flags, Mode::empty())?;
        // One that is turned over meanwhile is open, and so is read once under either name.
        let mut files: Vec<(u64, File)> = Vec::new();
        for (start, name) in turned_over(handle.as_fd(), name)? {
            files.push((start, private_file(handle.as_fd(), &name, OFlags::RDONLY)?));
        }
        let start = match files.last() {
            Some((start, file)) => start + file.metadata()?.len(),
            None => 0,
        };
        files.push((start, private_file(handle.as_fd(), name, OFlags::RDONLY)?));
        let mut page = LogPage::default();
        let mut last = VecDeque::new();
        let from = query.cursor.unwrap_or(0);
        // The first lines from a cursor on, or the last of all.
        let forward = query.cursor.is_some();
        let (mut full, mut kept) = (false, 0);
        for (start, file) in files {
            let length = file.metadata()?.len();
            if start + length <= from {
                page.cursor = page.cursor.max(start + length);
                continue;
            }
            let mut file = BufReader::with_capacity(256 << 10, file);
            let mut at = start.max(from);
            file.seek(SeekFrom::Start(at - start))?;
            let mut bytes = Vec::new();
            // Only whole lines; what is written after this moment belongs to the next read.
            while at < start + length {
                bytes.clear();
                let read = file.read_until(b'\n', &mut bytes)? as u64;
                if read == 0 || bytes.last() != Some(&b'\n') {
                    break;
                }
                at += read;
                let line = String::from_utf8_lossy(&bytes[..bytes.len() - 1]);
                if fits(&line, query) {
                    page.total_available += 1;
                    full |= forward && (last.len() >= query.lines || kept > MOST_BYTES);
                    if !full {
                        kept += line.len();
                        last.push_back(line.into_owned());
                        while !forward && (last.len() > query.lines || (kept > MOST_BYTES && last.len() > 1))
                        {
                            kept -= last.pop_front().map_or(0, |line| line.len());
                        }
                    }
                }
                if !full {
                    page.cursor = at;
                }
            }
        }
        page.cursor = page.cursor.max(from);
        page.lines = last.into();
        Ok(page)
    }
}

fn fits(line: &str, query: &LogQuery) -> bool {
    if let Some(since) = &query.since
        && line < since.as_str()
    {
        return false;
    }
    match query.level {
        None => true,
        Some(least) => line.split(' ').nth(1).and_then(LogLevel::of).is_some_and(|level| level >= least),
    }
}

/// The files that were turned over, the oldest first, each with the position at which it begins.
fn turned_over(folder: std::os::fd::BorrowedFd<'_>, name: &str) -> io::Result<Vec<(u64, String)>> {
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

/// The line with which the output of a process begins in the log of its session.
pub(super) const BEGIN: &str = "[a process of the session starts]";

/// The last lines that a session's last process printed, without their times. None where there is no log.
pub(super) fn last_printed(folder: &Path, name: &str, lines: usize) -> Vec<String> {
    let query = LogQuery { lines, ..LogQuery::default() };
    let page = Log::read(folder, name, &query).unwrap_or_default();
    let printed = |line: String| line.split_once(' ').map_or_else(String::new, |(_, text)| text.to_owned());
    let mut lines: Vec<String> = page.lines.into_iter().map(printed).collect();
    if let Some(begin) = lines.iter().rposition(|line| line == BEGIN) {
        lines.drain(..=begin);
    }
    lines
}

/// Whole lines out of bytes that come cut anywhere.
#[derive(Debug, Default)]
pub(super) struct Lines {
    open: Vec<u8>,
}

/// A line without an end is taken for whole at this length.
const LONGEST_LINE: usize = 64 * 1024;

impl Lines {
    /// The lines that are whole with `bytes`.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut from = 0;
        for end in memchr_iter(b'\n', bytes) {
            self.open.extend_from_slice(&bytes[from..end]);
            lines.extend(self.end());
            from = end + 1;
        }
        self.open.extend_from_slice(&bytes[from..]);
        if self.open.len() >= LONGEST_LINE {
            lines.extend(self.end());
        }
        lines
    }

    /// The line that has no end yet, for nothing more will come.
    pub(super) fn end(&mut self) -> Option<String> {
        if self.open.is_empty() {
            return None;
        }
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.open)).into_owned();
        Some(process_runner::clean(line.trim_end_matches('\r')).into_owned())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test looks at the files as everybody does")]
    #![allow(clippy::needless_pass_by_value, reason = "calls read better with a value")]
    use super::*;
    use std::fs;

    const SMALL: LogLimits = LogLimits { file_bytes: 400, kept: 2 };

    fn read(folder: &Path, query: LogQuery) -> LogPage {
        Log::read(folder, "a.log", &query).unwrap()
    }

    fn said(page: &LogPage) -> Vec<&str> {
        page.lines.iter().filter_map(|line| line.rsplit_once(' ')).map(|(_, text)| text).collect()
    }

    #[test]
    fn the_last_lines_come_with_how_many_there_are_and_where_to_read_on() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::open(folder.path(), "a.log", LogLimits::default()).unwrap();
        (0..50).for_each(|line| log.write(None, &format!("line-{line}")));
        let page = read(folder.path(), LogQuery { lines: 2, ..LogQuery::default() });
        assert_eq!((said(&page), page.total_available), (vec!["line-48", "line-49"], 50));
        log.write(None, "new-1");
        log.write(None, "new-2");
        let next = LogQuery { lines: 1, cursor: Some(page.cursor), ..LogQuery::default() };
        let page = read(folder.path(), next);
        assert_eq!((said(&page), page.total_available), (vec!["new-1"], 2));
        let page =
            read(folder.path(), LogQuery { lines: 9, cursor: Some(page.cursor), ..LogQuery::default() });
        assert_eq!(said(&page), ["new-2"]);
        let end =
            read(folder.path(), LogQuery { lines: 9, cursor: Some(page.cursor), ..LogQuery::default() });
        assert_eq!((end.lines.len(), end.cursor), (0, log.position()));
    }

    #[test]
    fn reading_on_loses_nothing_while_the_log_is_turned_over() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::open(folder.path(), "a.log", SMALL).unwrap();
        let (mut cursor, mut seen) = (0, Vec::new());
        for line in 0..200 {
            log.write(None, &format!("line-{line}"));
            if line % 3 == 0 {
                let page =
                    read(folder.path(), LogQuery { lines: 2, cursor: Some(cursor), ..LogQuery::default() });
                seen.extend(said(&page).into_iter().map(str::to_owned));
                cursor = page.cursor;
                while seen.len() < line + 1 {
                    let page = read(
                        folder.path(),
                        LogQuery { lines: 2, cursor: Some(cursor), ..LogQuery::default() },
                    );
                    seen.extend(said(&page).into_iter().map(str::to_owned));
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
        let mut log = Log::open(folder.path(), "a.log", SMALL).unwrap();
        (0..40).for_each(|line| log.write(None, &format!("line-{line}")));
        let position = log.position();
        drop(log);
        let mut log = Log::open(folder.path(), "a.log", SMALL).unwrap();
        assert_eq!(log.position(), position);
        log.write(None, "after");
        let page = read(folder.path(), LogQuery { lines: 9, cursor: Some(position), ..LogQuery::default() });
        assert_eq!(said(&page), ["after"]);
    }

    #[test]
    fn of_long_lines_fewer_are_read_and_reading_on_gives_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::open(folder.path(), "a.log", LogLimits::default()).unwrap();
        (0..100).for_each(|line| log.write(None, &format!("{}-{line}", "x".repeat(60_000))));
        let page = read(folder.path(), LogQuery { lines: 1000, ..LogQuery::default() });
        assert!((30..40).contains(&page.lines.len()) && page.lines.last().unwrap().ends_with("-99"));
        assert_eq!(page.total_available, 100);
        let (mut cursor, mut seen) = (0, 0);
        while seen < 100 {
            let next = LogQuery { lines: 1000, cursor: Some(cursor), ..LogQuery::default() };
            let page = read(folder.path(), next);
            assert!(page.lines.len() < 40 && page.lines[0].ends_with(&format!("-{seen}")));
            (cursor, seen) = (page.cursor, seen + page.lines.len());
        }
    }

    #[test]
    fn lines_are_chosen_by_level_and_time() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::open(folder.path(), "a.log", LogLimits::default()).unwrap();
        log.write(Some(LogLevel::Info), "started");
        log.write(Some(LogLevel::Error), "broke");
        let level =
            |level| said_owned(&read(folder.path(), LogQuery { lines: 9, level, ..LogQuery::default() }));
        assert_eq!(level(Some(LogLevel::Warn)), ["broke"]);
        assert_eq!(level(Some(LogLevel::Debug)).len(), 2);
        let since = |since: &str| {
            read(folder.path(), LogQuery { lines: 9, since: Some(since.to_owned()), ..LogQuery::default() })
                .lines
                .len()
        };
        assert_eq!((since("2000-01-01"), since("2999-01-01")), (2, 0));
    }

    fn said_owned(page: &LogPage) -> Vec<String> {
        said(page).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn a_full_disk_loses_lines_and_nothing_else_and_the_log_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::open(folder.path(), "a.log", LogLimits::default()).unwrap();
        log.write(None, "before");
        // What the system says where there is no room (full(4)).
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let disk = log.file.replace(full);
        log.write(None, "lost-1");
        log.write(None, "lost-2");
        assert!(log.trouble().unwrap().starts_with("2 lines of a.log could not be written: "));
        log.file = disk;
        log.write(None, "after");
        assert_eq!(log.trouble(), None);
        let text = fs::read_to_string(log.path()).unwrap();
        assert!(
            text.contains("[2 lines were lost here]") && text.contains("after") && !text.contains("lost-1"),
            "{text}"
        );
    }

    #[test]
    fn output_that_is_cut_anywhere_is_put_together_to_lines() {
        let text = "one\ntwo\r\n\u{1b}[31mthree\u{1b}[0m\nä four";
        for cut in 1..text.len() {
            let mut lines = Lines::default();
            let mut seen = Vec::new();
            for piece in text.as_bytes().chunks(cut) {
                seen.extend(lines.push(piece));
            }
            seen.extend(lines.end());
            assert_eq!(seen, ["one", "two", "three", "ä four"], "{cut}");
        }
        let mut lines = Lines::default();
        assert_eq!(lines.push(&vec![b'x'; 200_000]).len(), 1);
    }
}
