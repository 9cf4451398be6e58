//! New entries, through truncation and rotation.
//!
//! The file that is read stays open, so that what is written to it is read whatever becomes of its name. When
//! its name belongs to another file that somebody has begun to write, it is read to its end and left for the
//! next one: whoever writes the new file has stopped writing the old one. When its content is no longer what was
//! read, it was truncated (`copytruncate`): reading goes on in the copy, at the same place, and then from its
//! beginning. inotify is not used: network file systems and containers do not tell.

use super::Error;
use super::cursor::{Cursor, Direction, Mark, hash};
use super::entry::LogEntry;
use super::files::{FileId, LogFile, Source};
use super::forward::{Bounds, Forward};
use super::line::Shape;
use super::page::MOST_BYTES;
use super::query::Filter;
use super::source;
use std::io::{self, Read as _};
use std::time::{Duration, Instant, SystemTime};

/// How long a truncated file's copy is looked for.
const COPY_WITHIN: Duration = Duration::from_secs(1);

/// Reads what is new, from a place on.
#[derive(Debug)]
pub(super) struct Follower {
    source: Source,
    filter: Filter,
    file: LogFile,
    /// Everything in `file` before it has been answered.
    mark: Mark,
    /// The end of the file before, until something of this one is answered: nothing tells two beginnings apart.
    previous: Option<Mark>,
    /// Line feeds before it, where they are known.
    lines: Option<u64>,
    /// How long the file was when it was looked at last.
    seen: Option<u64>,
    /// Every file that was met.
    known: Vec<FileId>,
    /// Since when the content is another and no copy of the old one was found.
    lost: Option<Instant>,
    bytes: usize,
    count: usize,
    pub(super) malformed: u64,
    pub(super) scanned: u64,
    pub(super) files: Vec<String>,
    pub(super) notes: Vec<String>,
}

/// Bytes that are read before somebody hears of them.
const MOST_AT_ONCE: u64 = 64 << 20;

/// What a look found.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) entries: Vec<LogEntry>,
    /// There is no room for more.
    pub(super) full: bool,
}

/// What became of the file.
enum Reading {
    /// As far as there is anything.
    Done,
    Full,
    /// There is more, and somebody may want to hear of what was found so far.
    Paused,
    /// The content is not what it was.
    Changed,
}

impl Follower {
    /// From the end of the newest file on.
    pub(super) fn at_end(source: Source, filter: Filter) -> Result<Self, Error> {
        let mut files = source.files()?;
        let known = files.iter().map(|file| file.id).collect();
        let newest = files.pop().ok_or_else(|| none_left(&source))?;
        let failed = |source| Error::Read { path: newest.shown.clone(), source };
        let end = if newest.compressed { 0 } else { last_line(&newest).map_err(failed)? };
        let mark = Mark::new(&newest, end).map_err(failed)?.ok_or_else(|| none_left(&source))?;
        Ok(Self::new(source, filter, newest, mark, known))
    }

    /// From `cursor` on.
    pub(super) fn from(source: Source, filter: Filter, cursor: &Cursor) -> Result<Self, Error> {
        let mut files = source.files()?;
        let known: Vec<FileId> = files.iter().map(|file| file.id).collect();
        let given = SystemTime::UNIX_EPOCH + Duration::from_millis(cursor.given);
        let newer = |file: &LogFile| file.modified.is_none_or(|modified| modified > given);
        let older = files.iter().filter(|file| !newer(file)).map(|file| file.id).collect();
        if let Some(index) = cursor.mark.find(&files) {
            let file = files.swap_remove(index);
            let mark = cursor.mark.moved_to(&file);
            // What was rotated away before is known; what came after is not.
            let known = known.get(..=index).unwrap_or_default().to_vec();
            let known = if cursor.mark.offset > 0 { known } else { older };
            return Ok(Self::new(source, filter, file, mark, known));
        }
        // The file is gone, or was emptied. What was written since then is new.
        let index = files.iter().position(newer).unwrap_or(files.len().saturating_sub(1));
        if index >= files.len() {
            return Err(none_left(&source));
        }
        let known = known.get(..=index).unwrap_or_default().to_vec();
        let file = files.swap_remove(index);
        let failed = |source| Error::Read { path: file.shown.clone(), source };
        let mark = Mark::new(&file, 0).map_err(failed)?.ok_or_else(|| none_left(&source))?;
        let mut follower = Self::new(source, filter, file, mark, known);
        if cursor.mark.offset > 0 {
            follower.notes.push(GAP.to_owned());
        }
        Ok(follower)
    }

    fn new(source: Source, filter: Filter, file: LogFile, mark: Mark, known: Vec<FileId>) -> Self {
        let lines = if file.compressed { None } else { file.lines_before(mark.offset) };
        let files = vec![file.shown.clone()];
        Self {
            source,
            filter,
            file,
            mark,
            previous: None,
            lines,
            seen: None,
            known,
            lost: None,
            bytes: 0,
            count: 0,
            malformed: 0,
            scanned: 0,
            files,
            notes: Vec::new(),
        }
    }

    /// The cursor for everything after what was answered.
    pub(super) fn cursor(&self) -> Cursor {
        newer_cursor(&self.source, self.previous.unwrap_or(self.mark))
    }

    /// What is new. `last` where nobody will look again: an entry is then taken as it is, though more lines
    /// of it may come.
    pub(super) fn look(&mut self, last: bool) -> Result<Batch, Error> {
        let mut batch = Batch::default();
        // Each turn but the last goes on to another file.
        loop {
            if let Some(copy) = self.copied_away()? {
                self.go_on(copy)?;
                continue;
            }
            // Looked for before reading to the end: what follows was begun after the last word here.
            let ended = self.successor()?;
            match self.read(&mut batch, ended.is_some(), last).map_err(|source| self.failed(source))? {
                Reading::Full => {
                    batch.full = true;
                    return Ok(batch);
                }
                Reading::Paused => {
                    batch.full = last;
                    return Ok(batch);
                }
                Reading::Changed => match self.truncated()? {
                    true => continue,
                    false => return Ok(batch),
                },
                Reading::Done => match ended {
                    // It may be this very file, packed.
                    Some(next) if self.mark.offset > 0 && self.mark.holds(&next) => {}
                    Some(next) => self.go_on(next)?,
                    None => return Ok(batch),
                },
            }
        }
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Read { path: self.file.shown.clone(), source }
    }

    /// Reads the file from the mark on. To its very end if it has `ended`.
    fn read(&mut self, batch: &mut Batch, ended: bool, last: bool) -> io::Result<Reading> {
        if !self.file.compressed {
            let length = self.file.length()?;
            if length < self.mark.offset || !self.mark.holds(&self.file) {
                return Ok(Reading::Changed);
            }
            if length == self.mark.offset {
                return Ok(Reading::Done);
            }
        }
        let length = self.file.length()?;
        // An entry has all its lines once nothing more came after them for a while.
        let settled = ended || last || self.seen == Some(length);
        let mut reader = self.reader(length)?;
        let mut taken = Vec::new();
        let (mut offset, mut lines) = (self.mark.offset, self.lines);
        let (mut bytes, mut count, mut malformed) = (self.bytes, self.count, 0);
        let (mut full, mut paused) = (false, false);
        let mut next = reader.next()?;
        while let Some(found) = next {
            next = reader.next()?;
            // The last one may be about to get more lines, or be half written.
            if next.is_none() && !ended && !(settled && found.ended) {
                break;
            }
            if self.filter.wants(found.group.head)
                && let Some(mut entry) = self.filter.accept(&found.bytes, &found.group, &mut malformed)
            {
                let weight = entry.weight();
                if count == self.filter.limit || count > 0 && bytes + weight > MOST_BYTES {
                    full = true;
                    break;
                }
                bytes += weight;
                count += 1;
                entry.line = self.lines.map(|_| found.lines + 1);
                entry.file = (self.files.len() > 1).then(|| self.file.shown.clone());
                taken.push(entry);
            }
            malformed += u64::from(found.group.head.shape == Shape::Malformed);
            offset = found.group.end;
            lines = lines.map(|_| found.lines_end);
            full = count == self.filter.limit;
            paused = offset - self.mark.offset >= MOST_AT_ONCE;
            if full || paused {
                break;
            }
        }
        drop(reader);
        let Some(mark) = Mark::new(&self.file, offset)? else { return Ok(Reading::Changed) };
        // What was read is only what was written if it still stands there.
        if !self.file.compressed && !self.mark.holds(&self.file) {
            return Ok(Reading::Changed);
        }
        self.scanned += offset - self.mark.offset;
        self.malformed += malformed;
        if mark.offset > 0 {
            self.previous = None;
        }
        (self.mark, self.lines, self.seen) = (mark, lines, Some(length));
        (self.bytes, self.count, self.lost) = (bytes, count, None);
        batch.entries.append(&mut taken);
        Ok(match (full, paused) {
            (true, _) => Reading::Full,
            (false, true) => Reading::Paused,
            (false, false) => Reading::Done,
        })
    }

    fn reader(&self, end: u64) -> io::Result<Forward<Box<dyn io::Read + '_>>> {
        let from: Box<dyn io::Read + '_> = if self.file.compressed {
            let mut content = self.file.unpacked();
            io::copy(&mut content.by_ref().take(self.mark.offset), &mut io::sink())?;
            content
        } else {
            Box::new(source::From { source: &self.file.file, offset: self.mark.offset, end })
        };
        Ok(Forward::new(from, self.mark.offset, self.lines.unwrap_or_default(), Bounds::DEFAULT))
    }

    /// The file after this one, once somebody has begun to write it.
    fn successor(&mut self) -> Result<Option<LogFile>, Error> {
        if let Some(current) = self.source.current()
            && (current.id == self.file.id || current.id == FileId::default())
        {
            return Ok(None);
        }
        let mut files = match self.source.files() {
            Ok(files) => files,
            // Between its renaming and its making there is none.
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let own = files.iter().position(|file| file.id == self.file.id).or_else(|| self.mark.find(&files));
        let next = match own {
            Some(own) => own + 1,
            None => {
                // Of this one nothing was read; the one before it tells where it was.
                let before = self.previous.and_then(|mark| mark.find(&files)).map_or(0, |before| before + 1);
                let unknown = |file: &LogFile| !self.known.contains(&file.id);
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
        Ok(Some(files.swap_remove(next)))
    }

    /// What was written to a file of which nothing has been read, if it was copied and truncated since.
    fn copied_away(&self) -> Result<Option<LogFile>, Error> {
        if self.mark.offset > 0 || self.file.id == FileId::default() {
            return Ok(None);
        }
        let mut files = match self.source.files() {
            Ok(files) => files,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let own = files.iter().position(|file| file.id == self.file.id).unwrap_or(0);
        // It lies after the file before, which may have been packed meanwhile and be another by its inode.
        let before = self.previous.and_then(|mark| mark.find(&files)).map_or(0, |before| before + 1);
        let certain = before > 0;
        let candidates = files.iter().enumerate().take(own).skip(before);
        let mut unknown = candidates.filter(|(_, file)| !self.known.contains(&file.id));
        let Some((copy, _)) = unknown.find(|(_, file)| certain || !file.compressed) else { return Ok(None) };
        let copy = files.swap_remove(copy);
        // As long as it is being copied, the file itself has everything.
        let failed = |source| Error::Read { path: copy.shown.clone(), source };
        let copying = !copy.compressed
            && Mark::new(&copy, copy.size).map_err(failed)?.is_none_or(|mark| mark.holds(&self.file));
        Ok((!copying).then_some(copy))
    }

    /// Goes on at the beginning of `next`.
    fn go_on(&mut self, next: LogFile) -> Result<(), Error> {
        let failed = |source| Error::Read { path: next.shown.clone(), source };
        let Some(mark) = Mark::new(&next, 0).map_err(failed)? else { return Ok(()) };
        self.known.push(self.file.id);
        self.known.push(next.id);
        if self.mark.offset > 0 {
            self.previous = Some(self.mark);
        }
        if self.files.last() != Some(&next.shown) {
            self.files.push(next.shown.clone());
        }
        (self.file, self.mark, self.lines, self.seen) = (next, mark, Some(0), None);
        Ok(())
    }

    /// The content of the file is another. Finds what was read in a copy, or waits for one; whether there is
    /// something to read.
    fn truncated(&mut self) -> Result<bool, Error> {
        let files = match self.source.files() {
            Ok(files) => files,
            Err(Error::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        let copy = self.mark.find(&files).filter(|_| self.mark.offset > 0);
        if let Some(copy) = copy.and_then(|copy| files.into_iter().nth(copy)) {
            self.mark = self.mark.moved_to(&copy);
            self.known.push(copy.id);
            self.files.push(copy.shown.clone());
            (self.file, self.seen) = (copy, None);
            return Ok(true);
        }
        if self.lost.get_or_insert_with(Instant::now).elapsed() < COPY_WITHIN {
            return Ok(false);
        }
        // It was emptied, and there is no copy.
        self.notes.push(GAP.to_owned());
        let Some(mark) = Mark::new(&self.file, 0).map_err(|source| self.failed(source))? else {
            return Ok(false);
        };
        (self.mark, self.lines, self.seen, self.lost) = (mark, Some(0), None, None);
        Ok(true)
    }
}

const GAP: &str = "the file was emptied or is gone, and no copy of it was found: what was written to it last may be missing";

pub(super) fn newer_cursor(source: &Source, mark: Mark) -> Cursor {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let given = u64::try_from(now.as_millis()).unwrap_or_default();
    Cursor { direction: Direction::Newer, source: hash(source.name.as_bytes()), mark, given }
}

fn none_left(source: &Source) -> Error {
    Error::NotFound { path: source.name.clone(), hint: "; it vanished while it was opened".to_owned() }
}

/// Where the last line of `file` begins that has not ended; the end if all have.
pub(super) fn last_line(file: &LogFile) -> io::Result<u64> {
    let end = file.length()?;
    let start = end.saturating_sub(Bounds::DEFAULT.line as u64);
    let mut tail = vec![0; usize::try_from(end - start).unwrap_or_default()];
    let read = source::ReadAt::read_at(&file.file, &mut tail, start)?;
    tail.truncate(read);
    Ok(match memchr::memrchr(b'\n', &tail) {
        Some(feed) => start + feed as u64 + 1,
        // A line too long to be one entry is left where it is.
        None if start == 0 => 0,
        None => start + read as u64,
    })
}
