//! Collects the last matching entries of several files that are written at the same time, in the order of their times.
//!
//! Each file is read backward, the one that may have the newest entry first, so that no more is read of a file than its
//! share of the page.

use super::backward::{BackwardReader, MatchingEntry};
use super::cursor::FilePosition;
use super::entry::LogEntry;
use super::error::Error;
use super::files::LogFile;
use super::forward::{ForwardReader, LogReadLimits};
use super::interleaved;
use super::line::LineFormat;
use super::log_time::LogTime;
use super::page::{LogPage, MAX_PAGE_BYTES};
use super::query::{LogEntryFilter, OmittedCounts};
use super::read_at::ReadAt as _;
use super::recency::ReadingFloor;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use tokio_util::sync::CancellationToken;

/// The chunks are smaller where more files are read at a time, as each has two in memory.
const CHUNK_BYTES: usize = 256 << 10;

/// A matching entry that is not yet on the page.
struct MergeCandidate {
    entry: LogEntry,
    /// The time that orders it: its own, or that of the entry after it.
    key: LogTime,
    start: u64,
    end: u64,
    /// The number of line feeds from its head to the end that reading began at; the line number itself in a file that
    /// is decoded.
    line: u64,
}

/// A file that is read from its end.
struct FileTail<'a> {
    file: &'a LogFile,
    reader: LogTailReader<'a>,
    candidate: Option<MergeCandidate>,
    /// The latest time that an unread entry may have. `None` before anything was read.
    bound: Option<LogTime>,
    /// The time of the last entry, for those without one.
    last_key: LogTime,
    /// True if all earlier entries are older than `since`.
    too_old: bool,
    floor: ReadingFloor,
    finished: bool,
}

enum LogTailReader<'a> {
    Backward { reader: Box<BackwardReader<'a, File>>, hits: Vec<MatchingEntry> },
    Decoded { end: u64, loaded: Option<VecDeque<MergeCandidate>>, truncated: bool },
}

/// Reads backward in `files` from `ends`, the offsets in each. Returns a page without cursors, and the positions before
/// which there may be more entries.
pub(super) fn read(
    files: &[LogFile],
    ends: &[u64],
    filter: &LogEntryFilter,
    cancel: &CancellationToken,
) -> Result<(LogPage, Vec<FilePosition>), Error> {
    let limits = LogReadLimits { chunk_bytes: CHUNK_BYTES, ..LogReadLimits::DEFAULT };
    let mut tails: Vec<FileTail<'_>> = files
        .iter()
        .zip(ends)
        .map(|(file, end)| FileTail {
            file,
            reader: match file.is_decoded() {
                true => LogTailReader::Decoded { end: *end, loaded: None, truncated: false },
                false => {
                    let reader = Box::new(BackwardReader::new(&file.file, *end, limits));
                    LogTailReader::Backward { reader, hits: Vec::new() }
                }
            },
            candidate: None,
            bound: None,
            last_key: file.reference_time(),
            too_old: false,
            floor: ReadingFloor::default(),
            finished: *end == 0,
        })
        .collect();
    let mut page = LogPage::default();
    let mut omissions = OmittedCounts::default();
    let mut lines: Vec<(usize, u64)> = Vec::new();
    let mut page_bytes = 0;
    let mut more = false;
    loop {
        // What is not read yet may have any time, so it comes first.
        let order = |tail: &FileTail<'_>| match &tail.candidate {
            Some(candidate) => (false, Some(candidate.key)),
            None => (tail.has_loaded(), tail.bound),
        };
        let best =
            tails.iter().enumerate().filter(|(_, tail)| !tail.finished).max_by_key(|(_, tail)| order(tail));
        let Some((index, _)) = best else { break };
        if cancel.is_cancelled() {
            page.notes.push("stopped before all was read; go on with older_cursor".to_owned());
            more = true;
            break;
        }
        let Some(tail) = tails.get_mut(index) else { break };
        let file = tail.file;
        let failed = |source| Error::Read { path: file.display_path.clone(), source };
        let Some(candidate) = tail.candidate.take() else {
            page.scanned_bytes += tail.advance(filter, &mut omissions, &mut page.notes).map_err(failed)?;
            continue;
        };
        let bytes = candidate.entry.page_bytes();
        let count = page.entries.len();
        if count == filter.limit || count > 0 && page_bytes + bytes > MAX_PAGE_BYTES {
            if count < filter.limit {
                page.notes.push(format!("{count} entries fill an answer; older ones with older_cursor"));
            }
            tail.candidate = Some(candidate);
            more = true;
            break;
        }
        page_bytes += bytes;
        tail.taken(&candidate);
        lines.push((index, candidate.line));
        page.entries.push(LogEntry { file: Some(tail.file.display_path.clone()), ..candidate.entry });
    }
    number_lines(&tails, &mut page.entries, &lines);
    let mut positions = Vec::new();
    for tail in &tails {
        let offset = tail.resume_at();
        if more && offset > 0 {
            let failed = |source| Error::Read { path: tail.file.display_path.clone(), source };
            positions.extend(FilePosition::new(tail.file, offset).map_err(failed)?);
        }
    }
    page.files = files.iter().map(|file| file.display_path.clone()).collect();
    page.entries.reverse();
    page.add_omissions(&omissions, filter);
    Ok((page, positions))
}

/// Sets the line numbers of the entries, each of which is given with the index of its file and its line there.
fn number_lines(tails: &[FileTail<'_>], entries: &mut [LogEntry], lines: &[(usize, u64)]) {
    for (index, tail) in tails.iter().enumerate() {
        if !lines.iter().any(|(file, _)| *file == index) {
            continue;
        }
        let total = match &tail.reader {
            LogTailReader::Backward { reader, .. } => {
                tail.file.lines_before(reader.position()).map(|before| before + reader.lines())
            }
            LogTailReader::Decoded { .. } => None,
        };
        for (entry, (_, line)) in entries.iter_mut().zip(lines).filter(|(_, (file, _))| *file == index) {
            entry.line = match (&tail.reader, total) {
                (LogTailReader::Decoded { .. }, _) => Some(*line),
                (_, Some(total)) => Some(total - *line + 1),
                (_, None) => None,
            };
        }
    }
}

impl FileTail<'_> {
    /// Looks for the next matching entry: among those of the last chunk, then in one more chunk. Returns the number of
    /// bytes that were read.
    fn advance(
        &mut self,
        filter: &LogEntryFilter,
        omissions: &mut OmittedCounts,
        notes: &mut Vec<String>,
    ) -> io::Result<u64> {
        let reference = self.file.reference_time();
        let (reader, hits) = match &mut self.reader {
            LogTailReader::Backward { reader, hits } => (reader, hits),
            LogTailReader::Decoded { end, loaded: loaded @ None, truncated } => {
                let (candidates, read, dropped) = load(self.file, *end, filter, omissions, notes);
                (*loaded, *truncated) = (Some(candidates), dropped);
                self.next_decoded();
                return Ok(read);
            }
            LogTailReader::Decoded { .. } => {
                self.next_decoded();
                return Ok(0);
            }
        };
        let mut read = 0;
        let mut chunks = 0;
        loop {
            while let Some(hit) = hits.pop() {
                let span = hit.span;
                let reread;
                // An entry that goes on into the chunk after this one is no longer whole in the buffer.
                let bytes = match reader.bytes(&span) {
                    Some(bytes) => bytes,
                    None => {
                        let length = usize::try_from(span.end - span.start).unwrap_or(usize::MAX);
                        let mut buffer = vec![0; length.min(LogReadLimits::DEFAULT.max_line_bytes)];
                        let read = self.file.file.read_at(&mut buffer, span.start)?;
                        buffer.truncate(read);
                        reread = buffer;
                        reread.as_slice()
                    }
                };
                let own = interleaved::entry_bytes(&self.file.file, &span, bytes)?;
                let bytes = own.as_deref().unwrap_or(bytes);
                if let Some((entry, time)) = filter.parse_if_matching(bytes, &span, reference, omissions) {
                    let key = time.unwrap_or(self.last_key);
                    self.last_key = key;
                    let line = hit.lines_after;
                    self.candidate =
                        Some(MergeCandidate { entry, key, start: span.start, end: span.end, line });
                    return Ok(read);
                }
            }
            if reader.position() == 0 || self.too_old {
                self.finished = true;
                return Ok(read);
            }
            // One chunk at a time: another file may have the newer entry by now.
            if chunks > 0 {
                return Ok(read);
            }
            chunks += 1;
            let position = reader.position();
            // Not every line has a time. The tries are bounded, so that a log without times is not slower to read.
            let (mut earliest, mut attempts) = (None, 8);
            reader.chunk(hits, |span, line| {
                if span.head.format == LineFormat::Malformed {
                    omissions.malformed += 1;
                } else if attempts > 0 && earliest.is_none() {
                    attempts -= 1;
                    earliest = filter.time_of(line, span.head, reference);
                }
                let may_match = filter.may_match(span.head);
                if !may_match {
                    filter.count_refused(span.head, line, omissions);
                }
                may_match
            })?;
            read += position - reader.position();
            // Entries are written in about the order of their times.
            if earliest.is_some_and(|earliest| filter.ends_before(earliest)) {
                self.too_old |= self.floor.may_end(self.file, reader.position(), filter, omissions)?;
            }
            self.bound = Some(earliest.unwrap_or(self.last_key));
        }
    }

    /// Returns whether entries are loaded that were not compared yet, or nothing is known of the file.
    fn has_loaded(&self) -> bool {
        self.bound.is_none()
            || matches!(&self.reader, LogTailReader::Backward { hits, .. } if !hits.is_empty())
    }

    fn next_decoded(&mut self) {
        let LogTailReader::Decoded { loaded: Some(loaded), .. } = &mut self.reader else { return };
        self.candidate = loaded.pop_back();
        match &self.candidate {
            Some(candidate) => self.last_key = candidate.key,
            None => self.finished = true,
        }
    }

    /// Records that the page has the candidate.
    fn taken(&mut self, candidate: &MergeCandidate) {
        if let LogTailReader::Decoded { end, .. } = &mut self.reader {
            *end = candidate.start;
        }
    }

    /// Returns the offset before which there may be entries that were not answered.
    fn resume_at(&self) -> u64 {
        match (&self.candidate, &self.reader) {
            (Some(candidate), _) => candidate.end,
            (None, LogTailReader::Backward { reader, hits }) => match hits.last() {
                Some(hit) => hit.span.end,
                None if self.finished => 0,
                None => reader.boundary(),
            },
            (None, LogTailReader::Decoded { end, loaded: None, .. }) => *end,
            (None, LogTailReader::Decoded { end, truncated: true, .. }) => *end,
            (None, LogTailReader::Decoded { .. }) => 0,
        }
    }
}

/// Reads a file that is decoded from its beginning up to `end`, and keeps the last matching entries. Returns them, the
/// number of bytes read, and whether older ones were dropped.
fn load(
    file: &LogFile,
    end: u64,
    filter: &LogEntryFilter,
    omissions: &mut OmittedCounts,
    notes: &mut Vec<String>,
) -> (VecDeque<MergeCandidate>, u64, bool) {
    let reference = file.reference_time();
    let mut reader = ForwardReader::new(file.decoded(), 0, 0, LogReadLimits::DEFAULT);
    let mut kept: VecDeque<MergeCandidate> = VecDeque::new();
    let (mut bytes, mut read, mut dropped) = (0, 0, false);
    let mut key = LogTime::EPOCH;
    loop {
        let found = match reader.next() {
            Ok(Some(found)) if found.span.start < end => found,
            Ok(_) => break,
            Err(error) => {
                notes.push(format!("{} is damaged after {read} bytes: {error}", file.display_path));
                break;
            }
        };
        read = found.span.end;
        omissions.malformed += u64::from(found.span.head.format == LineFormat::Malformed);
        if !filter.may_match(found.span.head) {
            filter.count_refused(found.span.head, &found.bytes, omissions);
            continue;
        }
        let Some((entry, time)) = filter.parse_if_matching(&found.bytes, &found.span, reference, omissions)
        else {
            continue;
        };
        key = time.unwrap_or(key);
        bytes += entry.page_bytes();
        let (start, end) = (found.span.start, found.span.end);
        kept.push_back(MergeCandidate { entry, key, start, end, line: found.lines + 1 });
        // One more than the page holds, so that the page can say whether there are older ones.
        while kept.len() > filter.limit + 1 || kept.len() > 1 && bytes > 2 * MAX_PAGE_BYTES {
            bytes -= kept.pop_front().map_or(0, |candidate| candidate.entry.page_bytes());
            dropped = true;
        }
    }
    (kept, read, dropped)
}
