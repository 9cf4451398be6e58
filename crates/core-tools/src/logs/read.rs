//! The last entries that are asked for, from the newest file back.

use super::ahead::Ahead;
use super::backward::Backward;
use super::cursor::Mark;
use super::entry::LogEntry;
use super::files::LogFile;
use super::forward::{Bounds, Forward};
use super::line::Shape;
use super::page::MOST_BYTES;
use super::query::Filter;
use super::source::ReadAt;
use super::{Error, LogPage};
use std::collections::VecDeque;
use std::io;
use tokio_util::sync::CancellationToken;

/// Collects entries, newest first.
struct Collector<'a> {
    filter: &'a Filter,
    page: LogPage,
    bytes: usize,
    /// The place before the oldest entry, and in which file.
    oldest: Option<(usize, u64)>,
    several: bool,
}

/// Reads backward from `end` in the file at `newest`. What the answer has is a page without cursors, and the place
/// before which there may be more.
pub(super) fn read(
    files: &[LogFile],
    newest: usize,
    end: u64,
    filter: &Filter,
    cancel: &CancellationToken,
) -> Result<(LogPage, Option<(usize, Mark)>), Error> {
    let several = files.len() > 1;
    let mut collector = Collector { filter, page: LogPage::default(), bytes: 0, oldest: None, several };
    let mut more = None;
    for (index, file) in files.iter().enumerate().take(newest + 1).rev() {
        let end = match index == newest {
            true => end,
            false if file.compressed => u64::MAX,
            false => file.size,
        };
        let failed = |source| Error::Read { path: file.shown.clone(), source };
        collector.page.files.insert(0, file.shown.clone());
        let stopped = if file.compressed {
            collector.packed(file, index, end, cancel).map_err(failed)?
        } else {
            Ahead::reading(&file.file, end, |ahead| collector.plain(file, ahead, index, end, cancel))
                .map_err(failed)?
        };
        match stopped {
            Stopped::No => continue,
            Stopped::Full => {}
            Stopped::Old => break,
            Stopped::Cancelled(place) => {
                collector.page.notes.push("stopped before all was read; go on with older_cursor".to_owned());
                // In a packed file no place is known before its end: the beginning of the one after it.
                collector.oldest = match place {
                    u64::MAX => (index < newest).then_some((index + 1, 0)),
                    place => Some((index, place)),
                };
            }
        }
        // At the very beginning there is nothing more.
        if let Some((index, place)) = collector.oldest.filter(|oldest| *oldest != (0, 0)) {
            let file = files.get(index).unwrap_or(file);
            more = Mark::new(file, place).map_err(failed)?.map(|mark| (index, mark));
        }
        break;
    }
    collector.page.entries.reverse();
    if collector.page.malformed > 0 && !filter.shows_malformed() {
        collector.page.notes.push("`malformed: true` shows the broken lines".to_owned());
    }
    Ok((collector.page, more))
}

enum Stopped {
    /// At the beginning of the file.
    No,
    /// There is no room for more.
    Full,
    /// All that follows is too old.
    Old,
    /// At this place.
    Cancelled(u64),
}

impl Collector<'_> {
    /// Whether there is room for an entry that begins at `start`; takes it in if so.
    fn take(&mut self, entry: LogEntry, index: usize, start: u64) -> bool {
        let weight = entry.weight();
        let entries = self.page.entries.len();
        if entries == self.filter.limit || entries > 0 && self.bytes + weight > MOST_BYTES {
            if entries < self.filter.limit {
                let note = format!("{entries} entries fill an answer; older ones with older_cursor");
                self.page.notes.push(note);
            }
            return false;
        }
        self.bytes += weight;
        self.oldest = Some((index, start));
        self.page.entries.push(entry);
        true
    }

    fn plain(
        &mut self,
        file: &LogFile,
        source: &Ahead<'_>,
        index: usize,
        end: u64,
        cancel: &CancellationToken,
    ) -> io::Result<Stopped> {
        let bounds = Bounds::DEFAULT;
        let mut reader = Backward::new(source, end, bounds);
        let mut hits = Vec::new();
        let mut lines_after = Vec::new();
        let stopped = loop {
            if reader.position() == 0 {
                break Stopped::No;
            }
            if cancel.is_cancelled() {
                break Stopped::Cancelled(reader.boundary());
            }
            read_ahead(file, reader.position());
            let (filter, malformed) = (self.filter, &mut self.page.malformed);
            // The times of the first lines tell whether all below is too old.
            let (mut old, mut looks) = (None, if filter.is_bounded_below() { 8 } else { 0 });
            let position = reader.position();
            reader.chunk(&mut hits, |group, line| {
                if group.head.shape == Shape::Malformed {
                    *malformed += 1;
                } else if looks > 0 && old.is_none() {
                    looks -= 1;
                    old = filter.is_before(line, group.head);
                }
                filter.wants(group.head)
            })?;
            self.page.scanned_bytes += position - reader.position();
            let mut full = false;
            for hit in hits.iter().rev() {
                let group = &hit.group;
                let mut own = Vec::new();
                let bytes = match reader.bytes(group) {
                    Some(bytes) => bytes,
                    None => {
                        let length = usize::try_from(group.end - group.start).unwrap_or(usize::MAX);
                        own.resize(length.min(bounds.line), 0);
                        let read = file.file.read_at(&mut own, group.start)?;
                        own.truncate(read);
                        own.as_slice()
                    }
                };
                let entry = self.filter.accept(bytes, group, &mut self.page.malformed);
                if let Some(mut entry) = entry {
                    entry.file = self.several.then(|| file.shown.clone());
                    if !self.take(entry, index, group.start) {
                        full = true;
                        break;
                    }
                    lines_after.push(hit.lines_after);
                }
            }
            match old {
                _ if full => break Stopped::Full,
                Some(true) => break Stopped::Old,
                _ if self.page.entries.len() == self.filter.limit => break Stopped::Full,
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

    /// A packed file can only be read from its beginning: the last entries are kept on the way.
    fn packed(
        &mut self,
        file: &LogFile,
        index: usize,
        end: u64,
        cancel: &CancellationToken,
    ) -> io::Result<Stopped> {
        let room = self.filter.limit - self.page.entries.len();
        let mut kept: VecDeque<(LogEntry, u64, usize)> = VecDeque::new();
        let (mut bytes, mut dropped) = (0, false);
        let mut reader = Forward::new(file.unpacked(), 0, 0, Bounds::DEFAULT);
        let mut read = 0_u64;
        loop {
            let found = match reader.next() {
                Ok(Some(found)) if found.group.start < end => found,
                Ok(_) => break,
                Err(error) => {
                    self.page.notes.push(format!("{} is damaged after {read} bytes: {error}", file.shown));
                    break;
                }
            };
            read = found.group.end;
            if cancel.is_cancelled() {
                return Ok(Stopped::Cancelled(end));
            }
            if found.group.head.shape == Shape::Malformed {
                self.page.malformed += 1;
            }
            if !self.filter.wants(found.group.head) {
                continue;
            }
            let accepted = self.filter.accept(&found.bytes, &found.group, &mut self.page.malformed);
            let Some(mut entry) = accepted else { continue };
            entry.line = Some(found.lines + 1);
            entry.file = self.several.then(|| file.shown.clone());
            let weight = entry.weight();
            bytes += weight;
            kept.push_back((entry, found.group.start, weight));
            // One more than there is room for, so that it is seen that there is more.
            while kept.len() > room + 1 || kept.len() > 1 && bytes > 2 * MOST_BYTES {
                bytes -= kept.pop_front().map_or(0, |(_, _, weight)| weight);
                dropped = true;
            }
        }
        self.page.scanned_bytes += read;
        while let Some((entry, start, _)) = kept.pop_back() {
            if !self.take(entry, index, start) {
                return Ok(Stopped::Full);
            }
        }
        let full = dropped || self.page.entries.len() == self.filter.limit;
        Ok(if full { Stopped::Full } else { Stopped::No })
    }
}

/// The kernel reads ahead of who reads forward only: what lies below is asked for, 4 MiB at a time.
fn read_ahead(file: &LogFile, position: u64) {
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
    {
        const AHEAD: u64 = 4 << 20;
        let chunk = Bounds::DEFAULT.chunk as u64;
        if position % AHEAD < chunk && position > AHEAD {
            let start = (position - 1) / AHEAD * AHEAD;
            let advice = rustix::fs::Advice::WillNeed;
            let length = std::num::NonZeroU64::new(AHEAD);
            // Advice that is not taken costs time alone.
            let _ = rustix::fs::fadvise(&file.file, start.saturating_sub(AHEAD), length, advice);
        }
    }
    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
    let _ = (file, position);
}
