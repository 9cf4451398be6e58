//! Reads new entries, through truncation and rotation.
//!
//! The file being read stays open, so that everything written to it is read even after it is renamed. Once its name
//! belongs to another file that has content, the old one is read to its end and the new one follows: a writer that
//! has begun the new file writes no more to the old one. Where the content is no longer what was read, the file was
//! truncated (`copytruncate`): reading goes on in the copy, at the same offset, and then from the beginning of the
//! file. The files are polled and inotify is not used, as network file systems and containers report no events.

use super::cursor::FilePosition;
use super::entry::LogEntry;
use super::error::Error;
use super::files::{FileId, LogFile, LogSource};
use super::forward::{ForwardReader, LogReadLimits};
use super::line::LineFormat;
use super::line_bytes::trim_start;
use super::line_classifier::LineClassifier;
use super::log_time::LogTime;
use super::open_entry::{MAX_OPEN_ENTRY_BYTES, position_after};
use super::page::MAX_PAGE_BYTES;
use super::preceding::read_preceding;
use super::query::{LogEntryFilter, OmittedCounts};
use super::read_at;
use std::io::{self, Read as _};
use std::time::{Duration, Instant, SystemTime};

/// The time for which the copy of a truncated file is searched.
const COPY_TIMEOUT: Duration = Duration::from_secs(1);

/// Reads the entries that are written to a source from a position on.
#[derive(Debug)]
pub(super) struct LogFollower {
    source: LogSource,
    filter: LogEntryFilter,
    file: LogFile,
    /// The position in `file` up to which entries have been returned.
    position: FilePosition,
    /// The end of the previous file, until something of this one has been returned: a position at offset 0 has no
    /// content to tell its file by.
    previous: Option<FilePosition>,
    /// The number of line feeds before the place from which on is read, where it is known.
    lines: Option<u64>,
    /// The length of the file at the last poll.
    last_length: Option<u64>,
    /// The length of the file when everything in it had been read.
    exhausted_at: Option<u64>,
    /// Every file that was read, or was there before.
    known_files: Vec<FileId>,
    /// The time at which the file was found truncated and no copy of it was found.
    truncated_at: Option<Instant>,
    /// True while the file is none of the source any more: it was found by its identity.
    moved: bool,
    /// The end of an older file that the source leads to now: what is added to it is new.
    older_target: Option<FilePosition>,
    /// The time after which everything that is written is new.
    since: SystemTime,
    /// The size and the number of the entries returned so far.
    bytes: usize,
    count: usize,
    pub(super) omissions: OmittedCounts,
    pub(super) scanned: u64,
    pub(super) files: Vec<String>,
    pub(super) notes: Vec<String>,
}

// 64 MiB take a fraction of a second: a caller that streams sees progress, and a cancellation takes effect.
/// The number of bytes read before the entries found so far are returned.
const MAX_BATCH_BYTES: u64 = 64 << 20;

/// The new entries found by one poll.
#[derive(Debug, Default)]
pub(super) struct FollowBatch {
    /// The entries with their times.
    pub(super) entries: Vec<(LogEntry, Option<LogTime>)>,
    /// True if the answer has no room for more entries.
    pub(super) full: bool,
}

/// The reason why reading the file ended.
enum LogReadOutcome {
    /// Everything that is written has been read.
    CaughtUp,
    /// The answer has no room for more entries.
    AnswerFull,
    /// The batch is large enough to be returned; there is more.
    BatchFull,
    /// The content is no longer what was read: the file was truncated or overwritten.
    Truncated,
}

impl LogFollower {
    /// Creates a follower that begins at the end of the newest file.
    pub(super) fn at_end(source: LogSource, filter: LogEntryFilter) -> Result<Self, Error> {
        let mut files = source.files()?.files;
        let known_files = files.iter().map(|file| file.id).collect();
        let newest = files.pop().ok_or_else(|| vanished(&source))?;
        let failed = |source| Error::Read { path: newest.display_path.clone(), source };
        let end = match (newest.is_compressed(), newest.is_decoded()) {
            (true, _) => 0,
            (false, true) => decoded_line_start(&newest).map_err(failed)?,
            (false, false) => unfinished_line_start(&newest).map_err(failed)?,
        };
        let position = position_after(&newest, end).map_err(failed)?.ok_or_else(|| vanished(&source))?;
        Ok(Self::new(source, filter, newest, position, known_files))
    }

    /// Creates a follower that begins with the oldest file, where all of them are new.
    pub(super) fn at_start(source: LogSource, filter: LogEntryFilter) -> Result<Self, Error> {
        let mut files = source.files()?.files;
        if files.is_empty() {
            return Err(vanished(&source));
        }
        let oldest = files.swap_remove(0);
        let failed = |source| Error::Read { path: oldest.display_path.clone(), source };
        let position = FilePosition::new(&oldest, 0).map_err(failed)?.ok_or_else(|| vanished(&source))?;
        let known_files = vec![oldest.id];
        Ok(Self::new(source, filter, oldest, position, known_files))
    }

    /// Creates a follower that goes on from `resumed`, a position that was answered at the time `issued`.
    pub(super) fn from(
        source: LogSource,
        filter: LogEntryFilter,
        resumed: &FilePosition,
        older_target: Option<&FilePosition>,
        issued: SystemTime,
    ) -> Result<Self, Error> {
        let mut files = source.files()?.files;
        let known_files: Vec<FileId> = files.iter().map(|file| file.id).collect();
        let newer = |file: &LogFile| file.modified.is_none_or(|modified| modified > issued);
        let older = files.iter().filter(|file| !newer(file)).map(|file| file.id).collect();
        if let Some(index) = resumed.find_in(&files) {
            let file = files.swap_remove(index);
            let position = resumed.in_copy(&file);
            // Files rotated away before this one have been read; newer ones have not.
            let known_files = known_files.get(..=index).unwrap_or_default().to_vec();
            let known_files = if resumed.offset > 0 { known_files } else { older };
            return Ok(Self::new(source, filter, file, position, known_files).since(issued));
        }
        // A link leads to another file now: the rest of the old one comes first.
        if let Some(file) = source.find_moved(resumed.id, |file| resumed.is_in(file)) {
            let current = files.last().map(|file| file.id);
            let is_read = |file: &&LogFile| is_unchanged_since(file, issued) && Some(file.id) != current;
            let known_files = files.iter().filter(is_read).map(|file| file.id).collect();
            let mut follower = Self::new(source, filter, file, *resumed, known_files).since(issued);
            follower.moved = true;
            follower.older_target = older_target.copied();
            return Ok(follower);
        }
        // The file is gone, or was emptied: everything written since the cursor was issued is new.
        let index = files.iter().position(newer).unwrap_or(files.len().saturating_sub(1));
        if index >= files.len() {
            return Err(vanished(&source));
        }
        let known_files = known_files.get(..=index).unwrap_or_default().to_vec();
        let file = files.swap_remove(index);
        let failed = |source| Error::Read { path: file.display_path.clone(), source };
        let position = FilePosition::new(&file, 0).map_err(failed)?.ok_or_else(|| vanished(&source))?;
        let mut follower = Self::new(source, filter, file, position, known_files).since(issued);
        if resumed.offset > 0 {
            follower.notes.push(GAP_NOTE.to_owned());
        }
        Ok(follower)
    }

    fn new(
        source: LogSource,
        filter: LogEntryFilter,
        file: LogFile,
        position: FilePosition,
        known_files: Vec<FileId>,
    ) -> Self {
        let lines = if file.is_decoded() { None } else { file.lines_before(position.reading_start()) };
        let files = vec![file.display_path.clone()];
        Self {
            source,
            filter,
            file,
            position,
            previous: None,
            lines,
            last_length: None,
            exhausted_at: None,
            known_files,
            truncated_at: None,
            moved: false,
            older_target: None,
            since: SystemTime::now(),
            bytes: 0,
            count: 0,
            omissions: OmittedCounts::default(),
            scanned: 0,
            files,
            notes: Vec::new(),
        }
    }

    /// Sets the time after which everything that is written is new. The time of creation by default.
    fn since(mut self, since: SystemTime) -> Self {
        self.since = since;
        self
    }

    /// Returns the position after the entries returned so far.
    pub(super) fn position(&self) -> FilePosition {
        self.previous.unwrap_or(self.position)
    }

    /// Returns the end of an older file that the source leads to now, where nothing was added to that file yet.
    pub(super) fn older_target(&self) -> Option<FilePosition> {
        self.older_target
    }

    /// Returns the size and the number of the entries that the answer has.
    pub(super) fn used(&self) -> (usize, usize) {
        (self.bytes, self.count)
    }

    /// Sets the size and the number of the entries that the answer has, where others add to it too.
    pub(super) fn set_used(&mut self, (bytes, count): (usize, usize)) {
        (self.bytes, self.count) = (bytes, count);
    }

    /// Returns the entries written since the last poll. With `last`, when no other poll follows, it also returns an
    /// entry that may still get more lines.
    pub(super) fn poll(&mut self, last: bool) -> Result<FollowBatch, Error> {
        let mut batch = FollowBatch::default();
        // Each iteration but the last goes on to another file.
        loop {
            if let Some(copy) = self.find_unread_copy()? {
                self.switch_to(copy)?;
                continue;
            }
            let unread = self.position.offset == 0;
            // The successor is looked for before reading to the end: once it has content, nothing more is written
            // here, so the end that is then read is final.
            let ended = self.successor()?;
            match self.read(&mut batch, ended.is_some(), last).map_err(|source| self.failed(source))? {
                LogReadOutcome::AnswerFull => {
                    batch.full = true;
                    return Ok(batch);
                }
                LogReadOutcome::BatchFull => {
                    batch.full = last;
                    return Ok(batch);
                }
                LogReadOutcome::Truncated => match self.handle_truncation()? {
                    true => continue,
                    false => return Ok(batch),
                },
                LogReadOutcome::CaughtUp => match ended {
                    // Until something of the file was read, its order among the others is uncertain: compressed in the
                    // meantime it has another inode, and the supposed successor may be older. Search again.
                    Some(_) if unread && self.position.offset > 0 => {}
                    // The supposed successor may be this very file, compressed.
                    Some(next) if self.position.offset > 0 && self.position.is_in(&next) => {}
                    Some(next) => self.switch_to(next)?,
                    None => return Ok(batch),
                },
            }
        }
    }

    /// Returns the error for the current file.
    fn failed(&self, source: io::Error) -> Error {
        Error::Read { path: self.file.display_path.clone(), source }
    }

    /// Reads the file from the position on; up to its last byte if it has `ended`.
    fn read(&mut self, batch: &mut FollowBatch, ended: bool, last: bool) -> io::Result<LogReadOutcome> {
        if !self.file.is_decoded() {
            let length = self.file.length()?;
            if length < self.position.offset || !self.position.is_in(&self.file) {
                return Ok(LogReadOutcome::Truncated);
            }
            if length == self.position.offset {
                return Ok(LogReadOutcome::CaughtUp);
            }
        }
        let length = self.file.length()?;
        // Decoding begins at the beginning of the file, so it is not repeated for nothing.
        if self.file.is_decoded() && self.exhausted_at == Some(length) && !ended && !last {
            return Ok(LogReadOutcome::CaughtUp);
        }
        // An entry counts as complete once the file has not grown between two polls.
        let is_settled = ended || last || self.last_length == Some(length);
        let mut reader = self.reader(length)?;
        // Nothing of `self` changes before the content is verified below.
        let mut entries = Vec::new();
        let (mut offset, mut lines) = (self.position.offset, self.lines);
        let (mut bytes, mut count, mut omissions) = (self.bytes, self.count, OmittedCounts::default());
        let reference = LogTime::now();
        let mut outcome = LogReadOutcome::CaughtUp;
        let mut next = reader.next()?;
        let (mut open_entry_bytes, mut has_grown, mut is_unfinished) =
            (self.position.open_entry_bytes, false, false);
        while let Some(raw) = next {
            next = reader.next()?;
            let is_again = raw.span.start < self.position.offset;
            let is_known = is_again && raw.text_end <= self.position.offset;
            // The last entry may get more lines, or may be half written; so may one whose line was cut.
            let may_be_read = raw.ended || last && !is_partial_object(&raw.bytes);
            if (next.is_none() || raw.is_unfinished()) && !ended && !is_known && !(is_settled && may_be_read)
            {
                is_unfinished = true;
                break;
            }
            has_grown |= is_again && !is_known;
            if is_known {
                // It was returned, and nothing was added to it.
            } else if !self.filter.may_match(raw.span.head) {
                self.filter.count_refused(raw.span.head, &raw.bytes, &mut omissions);
            } else if let Some((mut entry, time)) =
                self.filter.parse_if_matching(&raw.bytes, &raw.span, reference, &mut omissions)
            {
                let entry_bytes = entry.page_bytes();
                if count == self.filter.limit || count > 0 && bytes + entry_bytes > MAX_PAGE_BYTES {
                    outcome = LogReadOutcome::AnswerFull;
                    break;
                }
                bytes += entry_bytes;
                count += 1;
                entry.line = self.lines.map(|_| raw.lines + 1);
                entry.file = (self.files.len() > 1).then(|| self.file.display_path.clone());
                entries.push((entry, time));
            }
            omissions.malformed += u64::from(!is_known && raw.span.head.format == LineFormat::Malformed);
            offset = raw.span.end.max(offset);
            let entry_bytes = if next.is_none() && !ended { raw.span.end - raw.span.start } else { 0 };
            open_entry_bytes = if entry_bytes <= MAX_OPEN_ENTRY_BYTES { entry_bytes } else { 0 };
            lines = lines.map(|_| if open_entry_bytes > 0 { raw.lines } else { raw.lines_end });
            if count == self.filter.limit {
                outcome = LogReadOutcome::AnswerFull;
                break;
            }
            if offset - self.position.offset >= MAX_BATCH_BYTES {
                outcome = LogReadOutcome::BatchFull;
                break;
            }
        }
        drop(reader);
        let Some(position) = FilePosition::new(&self.file, offset)? else {
            return Ok(LogReadOutcome::Truncated);
        };
        let position = position.after_open_entry(open_entry_bytes);
        // A truncation during the read may have mixed old and new content: return nothing unless the content before
        // the position is still the same.
        if !self.file.is_decoded() && !self.position.is_in(&self.file) {
            return Ok(LogReadOutcome::Truncated);
        }
        self.scanned += offset - self.position.offset;
        if last && is_unfinished {
            self.notes.push(unfinished_note(&self.file.display_path));
        }
        if has_grown && !self.notes.iter().any(|note| note == GROWN_NOTE) {
            self.notes.push(GROWN_NOTE.to_owned());
        }
        self.omissions.malformed += omissions.malformed;
        self.omissions.skipped.merge(omissions.skipped);
        if position.offset > 0 {
            self.previous = None;
        }
        (self.position, self.lines, self.last_length) = (position, lines, Some(length));
        (self.bytes, self.count, self.truncated_at) = (bytes, count, None);
        let caught_up = matches!(outcome, LogReadOutcome::CaughtUp);
        self.exhausted_at = (caught_up && is_settled).then_some(length);
        batch.entries.append(&mut entries);
        Ok(outcome)
    }

    /// Creates a reader of the file from the position up to `end`.
    fn reader(&self, end: u64) -> io::Result<ForwardReader<Box<dyn io::Read + '_>>> {
        let from: Box<dyn io::Read + '_> = if self.file.is_decoded() {
            let mut content = self.file.decoded();
            io::copy(&mut content.by_ref().take(self.position.reading_start()), &mut io::sink())?;
            content
        } else {
            let offset = self.position.reading_start();
            Box::new(read_at::RangeReader { source: &self.file.file, offset, end })
        };
        let (offset, limits) = (self.position.reading_start(), LogReadLimits::DEFAULT);
        let reader = ForwardReader::new(from, offset, self.lines.unwrap_or_default(), limits);
        if self.file.is_decoded() || offset == 0 {
            return Ok(reader);
        }
        let reader = reader.classifier(LineClassifier::of(&self.file.file));
        Ok(reader.after(read_preceding(&self.file.file, offset, offset, limits)?.cuts_only()))
    }

    /// Returns the file after this one, once it has content.
    fn successor(&mut self) -> Result<Option<LogFile>, Error> {
        if let Some(current) = self.source.current()
            && (current.id == self.file.id || current.id == FileId::default())
        {
            return Ok(None);
        }
        let mut files = match self.source.files().map(|found| found.files) {
            Ok(files) => files,
            // Between renaming the old file and creating the new one there is none.
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let own =
            files.iter().position(|file| file.id == self.file.id).or_else(|| self.position.find_in(&files));
        let next = match own {
            // The files that were there before the link moved have been read.
            None if self.moved => {
                let unknown = |file: &LogFile| !self.known_files.contains(&file.id);
                files.iter().position(unknown).unwrap_or(files.len())
            }
            Some(own) => own + 1,
            None => {
                // Nothing was read of this file, so the one before it tells its order.
                let before = self
                    .previous
                    .and_then(|position| position.find_in(&files))
                    .map_or(0, |before| before + 1);
                let unknown = |file: &LogFile| !self.known_files.contains(&file.id);
                match files.iter().skip(before).position(unknown) {
                    Some(next) => before + next,
                    None => return Ok(None),
                }
            }
        };
        if next >= files.len()
            || next + 1 == files.len() && files.get(next).is_some_and(|file| file.size == 0)
        {
            return Ok(None);
        }
        let next = files.swap_remove(next);
        Ok(if own.is_none() && self.is_older_target(&next)? { None } else { Some(next) })
    }

    /// Returns whether `next`, which the source leads to now, was written before what is new, and nothing was added to it
    /// since. Remembers its end.
    fn is_older_target(&mut self, next: &LogFile) -> Result<bool, Error> {
        let failed = |source| Error::Read { path: next.display_path.clone(), source };
        if let Some(end) = self.older_target.filter(|end| end.id == next.id) {
            return Ok(next.length().map_err(failed)? <= end.offset);
        }
        if next.is_decoded() || !is_unchanged_since(next, self.since) {
            return Ok(false);
        }
        let end = next.length().map_err(failed)?;
        self.older_target = position_after(next, end).map_err(failed)?;
        self.notes
            .push(format!("{} is an older file now: what is added to it comes next", next.display_path));
        Ok(true)
    }

    /// Returns the copy of the current file, if it was copied and truncated before anything of it was read.
    fn find_unread_copy(&self) -> Result<Option<LogFile>, Error> {
        if self.position.offset > 0 || self.file.id == FileId::default() {
            return Ok(None);
        }
        let mut files = match self.source.files().map(|found| found.files) {
            Ok(files) => files,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let own = files.iter().position(|file| file.id == self.file.id);
        // Compressed in the meantime, the file has another inode, and its content tells it.
        let own = match own {
            Some(own) => own,
            None => self
                .end()
                .map_err(|source| self.failed(source))?
                .and_then(|end| end.find_in(&files))
                .unwrap_or(0),
        };
        // The copy comes after the previous file, which may have another inode by now, as it may have been compressed.
        let before =
            self.previous.and_then(|position| position.find_in(&files)).map_or(0, |before| before + 1);
        let certain = before > 0;
        let candidates = files.iter().enumerate().take(own).skip(before);
        let mut unknown = candidates.filter(|(_, file)| !self.known_files.contains(&file.id));
        let Some((copy, _)) = unknown.find(|(_, file)| certain || !file.is_compressed()) else {
            return Ok(None);
        };
        let copy = files.swap_remove(copy);
        // While the copy is being written, the file itself still has everything.
        let failed = |source| Error::Read { path: copy.display_path.clone(), source };
        let copying = !copy.is_decoded()
            && FilePosition::new(&copy, copy.size)
                .map_err(failed)?
                .is_none_or(|position| position.is_in(&self.file));
        Ok((!copying).then_some(copy))
    }

    /// Returns the position at the end of the current file.
    fn end(&self) -> io::Result<Option<FilePosition>> {
        FilePosition::new(&self.file, self.file.length()?)
    }

    /// Makes `next` the current file, from its beginning on.
    fn switch_to(&mut self, next: LogFile) -> Result<(), Error> {
        let failed = |source| Error::Read { path: next.display_path.clone(), source };
        let older_target = self.older_target.take().filter(|end| end.id == next.id && end.is_in(&next));
        let start = match older_target {
            Some(end) => Some(end),
            None => FilePosition::new(&next, 0).map_err(failed)?,
        };
        let Some(position) = start else { return Ok(()) };
        let lines = match older_target {
            Some(end) => next.lines_before(end.reading_start()),
            None => Some(0),
        };
        self.known_files.push(self.file.id);
        self.known_files.push(next.id);
        self.moved = false;
        if self.position.offset > 0 {
            self.previous = Some(self.position);
        }
        if self.files.last() != Some(&next.display_path) {
            self.files.push(next.display_path.clone());
        }
        (self.file, self.position, self.lines, self.last_length) = (next, position, lines, None);
        Ok(())
    }

    /// Handles a truncated file: goes on in its copy, or waits for one to appear. Returns whether there is something
    /// to read.
    fn handle_truncation(&mut self) -> Result<bool, Error> {
        let files = match self.source.files().map(|found| found.files) {
            Ok(files) => files,
            Err(Error::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        let copy = self.position.find_in(&files).filter(|_| self.position.offset > 0);
        if let Some(copy) = copy.and_then(|copy| files.into_iter().nth(copy)) {
            self.position = self.position.in_copy(&copy);
            self.known_files.push(copy.id);
            self.files.push(copy.display_path.clone());
            (self.file, self.last_length) = (copy, None);
            return Ok(true);
        }
        if self.truncated_at.get_or_insert_with(Instant::now).elapsed() < COPY_TIMEOUT {
            return Ok(false);
        }
        // The wait for a copy is over: the file was emptied without one.
        self.notes.push(GAP_NOTE.to_owned());
        let Some(position) = FilePosition::new(&self.file, 0).map_err(|source| self.failed(source))? else {
            return Ok(false);
        };
        (self.position, self.lines, self.last_length, self.truncated_at) = (position, Some(0), None, None);
        Ok(true)
    }
}

/// The note for a reader that may have missed entries.
const GAP_NOTE: &str = "the file was emptied or is gone, and no copy of it was found: what was written to it last may be missing";

/// The note for an entry that was returned before it was complete.
const GROWN_NOTE: &str =
    "the first entry was answered before it was complete, and is answered again with its new lines";

/// Returns the note for a last line that is half an object.
pub(super) fn unfinished_note(path: &str) -> String {
    format!("the last line of {path} is not written to its end yet, and is left for newer_cursor")
}

/// Returns whether `file` was last changed before `time`.
fn is_unchanged_since(file: &LogFile, time: SystemTime) -> bool {
    // The times of files lag behind the clock by some milliseconds.
    let settled = time.checked_sub(Duration::from_millis(20)).unwrap_or(time);
    file.modified.is_some_and(|modified| modified <= settled)
}

/// Returns whether `line`, which has no line feed, begins as a JSON object and is not a whole one.
// A logger may write a line in two steps. Half an object would count as malformed, so it is left for the next call; a
// line of text may stay without a line feed for good, so it is read.
pub(super) fn is_partial_object(line: &[u8]) -> bool {
    let line = trim_start(line);
    line.first() == Some(&b'{') && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_err()
}

/// Returns the error for a source whose files vanished while they were opened.
fn vanished(source: &LogSource) -> Error {
    Error::NotFound { path: source.name.clone(), hint: "; it vanished while it was opened".to_owned() }
}

/// Returns the offset of the last line of `file` if it has no line feed at its end, else the end of the file.
pub(super) fn unfinished_line_start(file: &LogFile) -> io::Result<u64> {
    let mut end = file.length()?;
    let mut window = vec![0; LogReadLimits::DEFAULT.max_line_bytes];
    let whole_end = end;
    while end > 0 {
        let start = end.saturating_sub(window.len() as u64);
        let length = usize::try_from(end - start).unwrap_or_default();
        let read = read_at::ReadAt::read_at(&file.file, window.get_mut(..length).unwrap_or_default(), start)?;
        if read < length {
            // The file was truncated meanwhile.
            return file.length().map(|now| now.min(whole_end));
        }
        if let Some(feed) = memchr::memrchr(b'\n', window.get(..read).unwrap_or_default()) {
            return Ok(start + feed as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Returns the offset after the last line feed in the text of a file that is decoded.
pub(super) fn decoded_line_start(file: &LogFile) -> io::Result<u64> {
    Ok(last_decoded_line(file)?.start)
}

/// The last line of a text that is decoded, if it has no line feed.
#[derive(Debug, Default)]
pub(super) struct UnfinishedLogLine {
    pub(super) start: u64,
    /// The end of the text.
    pub(super) end: u64,
    /// The first bytes of the line, at most as many as a line may have.
    pub(super) content: Vec<u8>,
}

/// Reads the decoded text of `file` and returns what follows its last line feed.
pub(super) fn last_decoded_line(file: &LogFile) -> io::Result<UnfinishedLogLine> {
    let mut content = file.decoded();
    let mut buffer = vec![0; 64 << 10];
    let mut line = UnfinishedLogLine::default();
    loop {
        let read = content.read(&mut buffer)?;
        if read == 0 {
            return Ok(line);
        }
        let mut rest = buffer.get(..read).unwrap_or_default();
        if let Some(feed) = memchr::memrchr(b'\n', rest) {
            line.start = line.end + feed as u64 + 1;
            line.content.clear();
            rest = rest.get(feed + 1..).unwrap_or_default();
        }
        let free_bytes = LogReadLimits::DEFAULT.max_line_bytes.saturating_sub(line.content.len());
        line.content.extend(rest.iter().take(free_bytes));
        line.end += read as u64;
    }
}
