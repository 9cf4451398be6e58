//! Looks whether a file has entries of a wanted time before a place where its entries are older than `since`.
//!
//! Most logs are in the order of their times, so that reading can end there. A second writer, a backfill or a clock
//! that was set back puts newer entries before older ones.

use super::files::LogFile;
use super::forward::{LogEntrySpan, LogReadLimits};
use super::line::LineRole;
use super::line_classifier::LineClassifier;
use super::preceding_lines::PrecedingLines;
use super::query::{LogEntryFilter, OmittedCounts};
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
    /// before. Where it may end, `omissions` tells of what is not read.
    pub(super) fn may_end(
        &mut self,
        file: &LogFile,
        position: u64,
        filter: &LogEntryFilter,
        omissions: &mut OmittedCounts,
    ) -> io::Result<bool> {
        if self.offset.is_some_and(|offset| offset < position) {
            return Ok(false);
        }
        self.offset = match position {
            0 => None,
            1..=MAX_WHOLE_BYTES => Some(0),
            _ => {
                let mut sampled = OmittedCounts::default();
                let recent = last_recent(file, position, filter, &mut sampled)?;
                if recent.is_none() {
                    omissions.skipped.merge_sampled(sampled.skipped);
                    omissions.older_bytes += position;
                }
                recent
            }
        };
        Ok(self.offset.is_none())
    }
}

/// Returns the last place before `position` at which an entry is not too old. Counts the entries without a known time at
/// the places.
fn last_recent(
    file: &LogFile,
    position: u64,
    filter: &LogEntryFilter,
    sampled: &mut OmittedCounts,
) -> io::Result<Option<u64>> {
    let mut buffer = vec![0; PROBE_BYTES];
    for probe in (0..PROBES).rev() {
        let at = position / PROBES * probe;
        let read = file.file.read_at(&mut buffer, at)?;
        if is_recent(buffer.get(..read).unwrap_or_default(), at == 0, file, filter, sampled) {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Returns whether an entry that begins in `bytes` is not too old. Without `whole`, the first line has no beginning.
fn is_recent(
    bytes: &[u8],
    whole: bool,
    file: &LogFile,
    filter: &LogEntryFilter,
    sampled: &mut OmittedCounts,
) -> bool {
    let reference = file.reference_time();
    let mut classifier = LineClassifier::of(&file.file);
    let mut preceding = PrecedingLines::none(0, LogReadLimits::DEFAULT.text_distance());
    let mut offset = 0;
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    // The last one has no end.
    lines.pop();
    for line in lines.into_iter().skip(usize::from(!whole)) {
        let kind = classifier.classify(line);
        let role = preceding.role(kind, offset);
        let end = offset + line.len() as u64 + 1;
        preceding.add(kind, offset, end);
        if let LineRole::Head(head) = role {
            match filter.time_of(line, head, reference) {
                Some(time) if !filter.ends_before(time) => return true,
                Some(_) => {}
                None if filter.may_match(head) => {
                    let span = LogEntrySpan { start: offset, end, head };
                    // It has no time, so it does not match; this counts it.
                    filter.parse_if_matching(line, &span, reference, sampled);
                }
                None => {}
            }
        }
        offset = end;
    }
    false
}
