//! Collects the last matching entries of a source, from the newest file back.

use super::backward::BackwardReader;
use super::cursor::FilePosition;
use super::entry::LogEntry;
use super::error::Error;
use super::files::LogFile;
use super::forward::{ForwardReader, LogReadLimits};
use super::interleaved;
use super::line::LineFormat;
use super::page::{LogPage, MAX_PAGE_BYTES};
use super::prefetch::PrefetchedFile;
use super::query::{LogEntryFilter, OmittedCounts};
use super::read_at::ReadAt;
use super::recency::ReadingFloor;
use std::collections::VecDeque;
use std::io;
use tokio_util::sync::CancellationToken;

/// Collects matching entries, newest first, until the page is full.
struct PageBuilder<'a> {
    filter: &'a LogEntryFilter,
    page: LogPage,
    omissions: OmittedCounts,
    bytes: usize,
    /// The position of the oldest entry: the index of its file, and its offset there.
    oldest: Option<(usize, u64)>,
    /// True if entries name their file, as the source has several.
    names_files: bool,
}

/// Reads backward from `end` in the file at index `newest`. Returns a page without cursors, and the position before
/// which there may be more entries.
pub(super) fn read(
    files: &[LogFile],
    newest: usize,
    end: u64,
    filter: &LogEntryFilter,
    cancel: &CancellationToken,
) -> Result<(LogPage, Option<FilePosition>), Error> {
    let names_files = files.len() > 1;
    let mut builder = PageBuilder {
        filter,
        page: LogPage::default(),
        omissions: OmittedCounts::default(),
        bytes: 0,
        oldest: None,
        names_files,
    };
    let (mut rest, mut too_old) = (None, false);
    for (index, file) in files.iter().enumerate().take(newest + 1).rev() {
        // A file that was changed later has newer entries, whatever the clock of its writer said.
        if too_old && filter.ends_before(file.reference_time()) {
            break;
        }
        let end = match index == newest {
            true => end,
            false if file.is_decoded() => u64::MAX,
            false => file.size,
        };
        let failed = |source| Error::Read { path: file.display_path.clone(), source };
        builder.page.files.insert(0, file.display_path.clone());
        let stopped = if file.is_decoded() {
            builder.read_compressed(file, index, end, cancel).map_err(failed)?
        } else {
            PrefetchedFile::with(&file.file, end, |ahead| builder.read_plain(file, ahead, index, end, cancel))
                .map_err(failed)?
        };
        match stopped {
            TailStopReason::StartOfFile => continue,
            TailStopReason::PageFull => {}
            TailStopReason::TooOld => {
                too_old = true;
                continue;
            }
            TailStopReason::Cancelled(offset) => {
                builder.page.notes.push("stopped before all was read; go on with older_cursor".to_owned());
                // A compressed file is read from its beginning, so no position before its end is known: go on from
                // the beginning of the file after it.
                builder.oldest = match offset {
                    u64::MAX => (index < newest).then_some((index + 1, 0)),
                    offset => Some((index, offset)),
                };
            }
        }
        // At the beginning of the oldest file there is nothing more to read.
        if let Some((index, offset)) = builder.oldest.filter(|oldest| *oldest != (0, 0)) {
            let file = files.get(index).unwrap_or(file);
            rest = FilePosition::new(file, offset).map_err(failed)?;
        }
        break;
    }
    builder.page.entries.reverse();
    builder.page.add_omissions(&builder.omissions, filter);
    Ok((builder.page, rest))
}

/// The reason why reading a file ended.
enum TailStopReason {
    /// The beginning of the file was reached.
    StartOfFile,
    /// The page is full.
    PageFull,
    /// All earlier entries are older than `since`.
    TooOld,
    /// The work was cancelled after reading down to this offset.
    Cancelled(u64),
}

impl PageBuilder<'_> {
    /// Adds the entry that begins at `start` of the file at `index`. Returns false where the page has no room for it.
    fn try_push(&mut self, entry: LogEntry, index: usize, start: u64) -> bool {
        let entry_bytes = entry.page_bytes();
        let entries = self.page.entries.len();
        // A first entry always fits, so that a page with an oversized one still makes progress.
        if entries == self.filter.limit || entries > 0 && self.bytes + entry_bytes > MAX_PAGE_BYTES {
            if entries < self.filter.limit {
                let note = format!("{entries} entries fill an answer; older ones with older_cursor");
                self.page.notes.push(note);
            }
            return false;
        }
        self.bytes += entry_bytes;
        self.oldest = Some((index, start));
        self.page.entries.push(entry);
        true
    }

    /// Reads an uncompressed file backward from `end`.
    fn read_plain(
        &mut self,
        file: &LogFile,
        source: &PrefetchedFile<'_>,
        index: usize,
        end: u64,
        cancel: &CancellationToken,
    ) -> io::Result<TailStopReason> {
        let limits = LogReadLimits::DEFAULT;
        let mut reader = BackwardReader::new(source, end, limits);
        let mut hits = Vec::new();
        let mut lines_after = Vec::new();
        let mut floor = ReadingFloor::default();
        let stopped = loop {
            if reader.position() == 0 {
                break TailStopReason::StartOfFile;
            }
            if cancel.is_cancelled() {
                break TailStopReason::Cancelled(reader.boundary());
            }
            advise_read_ahead(file, reader.position());
            let (filter, omissions) = (self.filter, &mut self.omissions);
            let reference = file.reference_time();
            // The first heads of a chunk with a time tell whether everything before the chunk is too old. Eight are
            // tried, as some have none.
            let (mut too_old, mut attempts) = (None, if filter.has_since() { 8 } else { 0 });
            let position = reader.position();
            reader.chunk(&mut hits, |span, line| {
                if span.head.format == LineFormat::Malformed {
                    omissions.malformed += 1;
                } else if attempts > 0 && too_old.is_none() {
                    attempts -= 1;
                    too_old = filter.is_too_old(line, span.head, reference);
                }
                let may_match = filter.may_match(span.head);
                if !may_match {
                    filter.count_refused(span.head, line, omissions);
                }
                may_match
            })?;
            self.page.scanned_bytes += position - reader.position();
            let mut full = false;
            for hit in hits.iter().rev() {
                let span = &hit.span;
                // An entry that goes on into the chunk after this one is no longer whole in the buffer.
                let mut reread = Vec::new();
                let bytes = match reader.bytes(span) {
                    Some(bytes) => bytes,
                    None => {
                        let length = usize::try_from(span.end - span.start).unwrap_or(usize::MAX);
                        reread.resize(length.min(limits.max_line_bytes), 0);
                        let read = file.file.read_at(&mut reread, span.start)?;
                        reread.truncate(read);
                        reread.as_slice()
                    }
                };
                let own = interleaved::entry_bytes(&file.file, span, bytes)?;
                let bytes = own.as_deref().unwrap_or(bytes);
                let entry = self.filter.parse_if_matching(bytes, span, reference, &mut self.omissions);
                if let Some((mut entry, _)) = entry {
                    entry.file = self.names_files.then(|| file.display_path.clone());
                    if !self.try_push(entry, index, span.start) {
                        full = true;
                        break;
                    }
                    lines_after.push(hit.lines_after);
                }
            }
            match too_old {
                _ if full => break TailStopReason::PageFull,
                Some(true) if floor.may_end(file, reader.position(), self.filter, &mut self.omissions)? => {
                    break TailStopReason::TooOld;
                }
                _ if self.page.entries.len() == self.filter.limit => break TailStopReason::PageFull,
                _ => {}
            }
        };
        if let Some(before) =
            (!lines_after.is_empty()).then(|| file.lines_before(reader.position())).flatten()
        {
            let total = before + reader.lines();
            let first = self.page.entries.len() - lines_after.len();
            for (entry, after) in self.page.entries.iter_mut().skip(first).zip(lines_after) {
                entry.line = Some(total - after + 1);
            }
        }
        Ok(stopped)
    }

    /// Reads a compressed file, which is only possible from its beginning, and keeps the last matching entries on the
    /// way.
    fn read_compressed(
        &mut self,
        file: &LogFile,
        index: usize,
        end: u64,
        cancel: &CancellationToken,
    ) -> io::Result<TailStopReason> {
        let remaining = self.filter.limit - self.page.entries.len();
        let mut kept: VecDeque<(LogEntry, u64, usize)> = VecDeque::new();
        let (mut bytes, mut dropped) = (0, false);
        let mut reader = ForwardReader::new(file.decoded(), 0, 0, LogReadLimits::DEFAULT);
        let mut read = 0_u64;
        loop {
            let found = match reader.next() {
                Ok(Some(found)) if found.span.start < end => found,
                Ok(_) => break,
                Err(error) => {
                    self.page
                        .notes
                        .push(format!("{} is damaged after {read} bytes: {error}", file.display_path));
                    break;
                }
            };
            read = found.span.end;
            if cancel.is_cancelled() {
                return Ok(TailStopReason::Cancelled(end));
            }
            if found.span.head.format == LineFormat::Malformed {
                self.omissions.malformed += 1;
            }
            if !self.filter.may_match(found.span.head) {
                self.filter.count_refused(found.span.head, &found.bytes, &mut self.omissions);
                continue;
            }
            let reference = file.reference_time();
            let accepted =
                self.filter.parse_if_matching(&found.bytes, &found.span, reference, &mut self.omissions);
            let Some((mut entry, _)) = accepted else { continue };
            entry.line = Some(found.lines + 1);
            entry.file = self.names_files.then(|| file.display_path.clone());
            let entry_bytes = entry.page_bytes();
            bytes += entry_bytes;
            kept.push_back((entry, found.span.start, entry_bytes));
            // One more than fits is kept, which shows whether there is an older one.
            while kept.len() > remaining + 1 || kept.len() > 1 && bytes > 2 * MAX_PAGE_BYTES {
                bytes -= kept.pop_front().map_or(0, |(_, _, entry_bytes)| entry_bytes);
                dropped = true;
            }
        }
        self.page.scanned_bytes += read;
        while let Some((entry, start, _)) = kept.pop_back() {
            if !self.try_push(entry, index, start) {
                return Ok(TailStopReason::PageFull);
            }
        }
        let full = dropped || self.page.entries.len() == self.filter.limit;
        Ok(if full { TailStopReason::PageFull } else { TailStopReason::StartOfFile })
    }
}

/// Asks the kernel to read the 4 MiB before `position` into its cache: it reads ahead automatically only of readers
/// that go forward.
fn advise_read_ahead(file: &LogFile, position: u64) {
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
    {
        const AHEAD_BYTES: u64 = 4 << 20;
        let chunk = LogReadLimits::DEFAULT.chunk_bytes as u64;
        if position % AHEAD_BYTES < chunk && position > AHEAD_BYTES {
            let start = (position - 1) / AHEAD_BYTES * AHEAD_BYTES;
            let advice = rustix::fs::Advice::WillNeed;
            let length = std::num::NonZeroU64::new(AHEAD_BYTES);
            // Reading works without the advice, so an error does not matter.
            let _ = rustix::fs::fadvise(&file.file, start.saturating_sub(AHEAD_BYTES), length, advice);
        }
    }
    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
    let _ = (file, position);
}
