//! Reads lines from the start of a file on, and counts the rest.

use std::io::{self, BufRead};

use memchr::memchr_iter;
use tokio_util::sync::CancellationToken;

use super::excerpt::FileExcerpt;

/// Bytes read at a time. The token is checked once for each.
pub(super) const BLOCK_BYTES: usize = 64 << 10;
/// Bytes read on, past the lines asked for, to count the file's lines. Takes about 10 ms.
pub(super) const MAX_COUNTED_BYTES: u64 = 64 << 20;

/// Reads `lines` lines from line `first` on, at most `max_bytes` of them, then counts the lines that follow.
/// Returns nothing if cancelled.
pub(super) fn read_lines_from(
    mut source: impl BufRead,
    first: u64,
    lines: u64,
    max_bytes: usize,
    cancel: &CancellationToken,
) -> io::Result<Option<FileExcerpt>> {
    let mut collector = ReadLineCollector { excerpt: FileExcerpt::default(), lines, max_bytes };
    let mut newlines = 0_u64;
    let mut ends_within_line = false;
    let mut counted_bytes = 0_u64;
    let mut complete = false;
    loop {
        if cancel.is_cancelled() {
            return Ok(None);
        }
        let block = match source.fill_buf() {
            Ok([]) => break,
            Ok(block) => block,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let block_bytes = block.len();
        ends_within_line = block.last() != Some(&b'\n');
        let mut rest = block;
        let skip = (first - 1).saturating_sub(newlines);
        if skip > 0 {
            let newlines_in_block = memchr_iter(b'\n', rest).count() as u64;
            if newlines_in_block < skip {
                newlines += newlines_in_block;
                source.consume(block_bytes);
                continue;
            }
            #[allow(clippy::cast_possible_truncation, reason = "at most the block's length")]
            let newline = memchr_iter(b'\n', rest).nth(skip as usize - 1).unwrap_or(rest.len() - 1);
            newlines += skip;
            rest = &rest[newline + 1..];
        }
        while !complete && !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1);
            let (piece, after) = rest.split_at(end);
            match collector.push(piece) {
                // `rest` stays as it is: the newlines of the line that did not fit are counted below.
                LineCollectionOutcome::DoesNotFit => complete = true,
                LineCollectionOutcome::Taken { is_last } => {
                    complete = is_last;
                    newlines += u64::from(piece.ends_with(b"\n"));
                    rest = after;
                }
            }
        }
        if complete {
            // The lines asked for are complete. The rest is read for the number of lines alone, up to a bound.
            newlines += memchr_iter(b'\n', rest).count() as u64;
            counted_bytes += rest.len() as u64;
            if counted_bytes > MAX_COUNTED_BYTES {
                return Ok(Some(FileExcerpt { first: Some(first), ..collector.excerpt }));
            }
        }
        source.consume(block_bytes);
    }
    let mut excerpt = collector.excerpt;
    excerpt.total = Some(newlines + u64::from(ends_within_line));
    excerpt.first = (excerpt.lines > 0).then_some(first);
    Ok(Some(excerpt))
}

/// Collects pieces of lines until there are enough lines or bytes.
struct ReadLineCollector {
    excerpt: FileExcerpt,
    /// The number of lines asked for.
    lines: u64,
    max_bytes: usize,
}

/// The outcome of [`ReadLineCollector::push`].
enum LineCollectionOutcome {
    /// The piece was kept; `is_last` if it completes the lines asked for.
    Taken { is_last: bool },
    /// The piece goes past the bound: it was left out, or cut if it belongs to the first line.
    DoesNotFit,
}

impl ReadLineCollector {
    /// Adds a line, or the part of one that lies within a block.
    fn push(&mut self, piece: &[u8]) -> LineCollectionOutcome {
        let excerpt = &mut self.excerpt;
        let continues_line = excerpt.bytes.last().is_some_and(|&last| last != b'\n');
        if excerpt.bytes.len() + piece.len() > self.max_bytes {
            excerpt.bound_reached = true;
            if excerpt.lines <= u64::from(continues_line) {
                // A first line that does not fit is cut, as there would otherwise be nothing to show.
                excerpt.line_is_cut = true;
                excerpt.lines = 1;
                let room = self.max_bytes - excerpt.bytes.len();
                excerpt.bytes.extend_from_slice(&piece[..room]);
                drop_incomplete_character(&mut excerpt.bytes);
            } else if continues_line {
                // Only whole lines are kept: the caller goes on with the number of the first that is missing.
                excerpt.lines -= 1;
                let line = memchr::memrchr(b'\n', &excerpt.bytes).map_or(0, |newline| newline + 1);
                excerpt.bytes.truncate(line);
            }
            return LineCollectionOutcome::DoesNotFit;
        }
        excerpt.bytes.extend_from_slice(piece);
        excerpt.lines += u64::from(!continues_line);
        LineCollectionOutcome::Taken { is_last: piece.ends_with(b"\n") && excerpt.lines == self.lines }
    }
}

/// Drops the start of a UTF-8 character whose rest was cut off.
fn drop_incomplete_character(bytes: &mut Vec<u8>) {
    // No character has more than four bytes, so its first is among the last four.
    let start = bytes.len().saturating_sub(4);
    if let Some(at) = bytes[start..].iter().rposition(|byte| byte & 0xc0 != 0x80) {
        let character_bytes = match bytes[start + at] {
            0xf0.. => 4,
            0xe0.. => 3,
            0xc0.. => 2,
            _ => 1,
        };
        if start + at + character_bytes > bytes.len() {
            bytes.truncate(start + at);
        }
    }
}
