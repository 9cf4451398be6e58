//! Reads the last lines of a file from its end.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use memchr::memchr_iter;
use tokio_util::sync::CancellationToken;

use super::excerpt::FileExcerpt;
use super::forward::{BLOCK_BYTES, MAX_COUNTED_BYTES, read_lines_from};

/// Reads the last `lines` lines, at most `max_bytes` of them. Returns nothing if cancelled.
pub(super) fn read_last_lines(
    mut file: File,
    size: u64,
    lines: u64,
    max_bytes: usize,
    cancel: &CancellationToken,
) -> io::Result<Option<FileExcerpt>> {
    if size == 0 {
        // The file is empty, or one of the kernel's, which have no length and may refuse to seek to the end.
        let mut content = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        file.take(MAX_COUNTED_BYTES).read_to_end(&mut content)?;
        return Ok(Some(last_lines_of(content, true, lines, max_bytes)));
    }
    // One byte more than may be given tells whether something was cut, one more whether a line begins there.
    let wanted = (max_bytes as u64 + 2).min(size);
    file.seek(SeekFrom::Start(size - wanted))?;
    let mut content = Vec::new();
    (&mut file).take(wanted).read_to_end(&mut content)?;
    let mut excerpt = last_lines_of(content, wanted == size, lines, max_bytes);
    if excerpt.total.is_none() && size <= MAX_COUNTED_BYTES {
        // A second pass, from the start, that keeps nothing: it only counts, so that lines can be numbered.
        file.seek(SeekFrom::Start(0))?;
        let source = BufReader::with_capacity(BLOCK_BYTES, file.take(size));
        let Some(count) = read_lines_from(source, u64::MAX, 1, 0, cancel)? else { return Ok(None) };
        excerpt.total = count.total;
        excerpt.first = count.total.map(|total| total + 1 - excerpt.lines);
    }
    Ok(Some(excerpt))
}

/// Returns the last `lines` lines of `content`, which is the whole file or, unless `is_whole`, its end.
fn last_lines_of(mut content: Vec<u8>, is_whole: bool, lines: u64, max_bytes: usize) -> FileExcerpt {
    let body = without_last_newline(&content);
    let nth = usize::try_from(lines - 1).unwrap_or(usize::MAX);
    let requested_start = memchr::memrchr_iter(b'\n', body).nth(nth).map(|newline| newline + 1);
    let bound = content.len().saturating_sub(max_bytes);
    // The first position from which whole lines fit the bound.
    let fitting_start = if bound == 0 {
        (is_whole || requested_start.is_some()).then_some(0)
    } else {
        memchr::memchr(b'\n', &body[bound - 1..]).map(|newline| bound + newline)
    };
    let mut excerpt =
        FileExcerpt { total: is_whole.then(|| count_lines(&content)), ..FileExcerpt::default() };
    let start = match (requested_start, fitting_start) {
        (Some(requested), Some(fitting)) if requested >= fitting => requested,
        (_, Some(fitting)) => {
            excerpt.bound_reached = fitting > 0;
            fitting
        }
        // Not even the last line fits: its end is given, from the start of a character on.
        (_, None) => {
            excerpt.line_is_cut = true;
            excerpt.bound_reached = true;
            let is_continuation = |byte: &u8| byte & 0xc0 == 0x80;
            bound + content.iter().skip(bound).take_while(|byte| is_continuation(byte)).count()
        }
    };
    content.drain(..start);
    excerpt.lines = count_lines(&content);
    excerpt.first = excerpt.total.filter(|_| excerpt.lines > 0).map(|total| total + 1 - excerpt.lines);
    excerpt.bytes = content;
    excerpt
}

fn without_last_newline(content: &[u8]) -> &[u8] {
    content.strip_suffix(b"\n").unwrap_or(content)
}

/// Returns the number of lines; one without a newline at its end counts.
fn count_lines(content: &[u8]) -> u64 {
    if content.is_empty() { 0 } else { memchr_iter(b'\n', without_last_newline(content)).count() as u64 + 1 }
}
