//! Looks whether a file has entries of a wanted time before a place where its entries are older than `since`.
//!
//! Most logs are in the order of their times, so that reading can end there. A second writer, a backfill or a clock
//! that was set back puts newer entries before older ones.

use super::files::LogFile;
use super::forward::ReadLimits;
use super::line::{LineClassifier, LineRole, PreviousLine};
use super::query::EntryFilter;
use super::read_at::ReadAt as _;
use std::io;

/// The size of a rest that is read whole.
const MAX_WHOLE_BYTES: u64 = 4 << 20;
/// The number of places that are looked at in a larger rest, and the bytes read at each.
const PROBES: u64 = 256;
const PROBE_BYTES: usize = 8 << 10;

/// Decides where reading a file backward may end, as its entries are older than `since`.
#[derive(Debug, Default)]
pub(super) struct ReadingFloor {
    /// The offset down to which the file is read, whatever the times are.
    offset: Option<u64>,
}

impl ReadingFloor {
    /// Returns whether reading may end at `position` of `file`, where the entries are too old. Reads a part of what is
    /// before.
    pub(super) fn may_end(
        &mut self,
        file: &LogFile,
        position: u64,
        filter: &EntryFilter,
    ) -> io::Result<bool> {
        if self.offset.is_some_and(|offset| offset < position) {
            return Ok(false);
        }
        self.offset = match position {
            0..=MAX_WHOLE_BYTES => Some(0),
            _ => last_recent(file, position, filter)?,
        };
        Ok(self.offset.is_none())
    }
}

/// Returns the last place before `position` at which an entry is not too old.
fn last_recent(file: &LogFile, position: u64, filter: &EntryFilter) -> io::Result<Option<u64>> {
    let mut buffer = vec![0; PROBE_BYTES];
    for probe in (0..PROBES).rev() {
        let at = position / PROBES * probe;
        let read = file.file.read_at(&mut buffer, at)?;
        if is_recent(buffer.get(..read).unwrap_or_default(), at == 0, file, filter) {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Returns whether an entry that begins in `bytes` is not too old. Without `whole`, the first line has no beginning.
fn is_recent(bytes: &[u8], whole: bool, file: &LogFile, filter: &EntryFilter) -> bool {
    let reference = file.reference_time();
    let mut classifier = LineClassifier::default();
    let lines = bytes.split(|byte| *byte == b'\n').skip(usize::from(!whole));
    let mut times =
        lines.filter(|line| line.len() <= ReadLimits::DEFAULT.max_line_bytes).filter_map(|line| {
            match classifier.classify(line).role(PreviousLine::Other) {
                LineRole::Head(head) => filter.time_of(line, head, reference),
                LineRole::Blank | LineRole::Continuation => None,
            }
        });
    times.any(|time| !filter.ends_before(time))
}
