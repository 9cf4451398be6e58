//! Opens a file, refuses one that is not text, and reads the selected lines from the better end.

use std::io::{BufReader, Read};

use tokio_util::sync::CancellationToken;

use super::backward::read_last_lines;
use super::forward::{BLOCK_BYTES, read_lines_from};
use super::request::{ReadFile, ReadLineSelection, TextFile};
use crate::filesystem::error::Error;
use crate::filesystem::limits::MAX_TEXT_BYTES;
use crate::filesystem::signature::{self, HEAD_BYTES, UTF_16_TEXT, binary_kind};
use crate::workspace::{ConfinedPath, Workspace};

/// The part of an answer's bytes that is set aside for the numbers of lines: one in so many.
const NUMBERS_SHARE: usize = 6;

/// Reads lines of a text file.
///
/// At most 2,000 lines unless more are asked for, and at most [`MAX_TEXT_BYTES`] in any case. The file is
/// streamed: a huge one costs time only as far as it must be read to find the lines, and no memory.
///
/// # Errors
/// The path, numbers below 1, `offset` past the end, a binary file, cancellation.
pub fn read_file(
    workspace: &Workspace,
    input: &ReadFile,
    cancel: &CancellationToken,
) -> Result<TextFile, Error> {
    let selection = ReadLineSelection::from_input(input)?;
    let path = workspace.locate(&input.path)?;
    read_lines_numbered(&path, selection, MAX_TEXT_BYTES, input.line_numbers, cancel)
}

/// Reads as [`read_lines`] does; with `line_numbers`, the numbers have their share of `max_bytes`.
pub(in crate::filesystem) fn read_lines_numbered(
    path: &ConfinedPath,
    selection: ReadLineSelection,
    max_bytes: usize,
    line_numbers: bool,
    cancel: &CancellationToken,
) -> Result<TextFile, Error> {
    if !line_numbers {
        return read_lines(path, selection, max_bytes, cancel);
    }
    let text = read_lines(path, selection.for_numbering(), max_bytes - max_bytes / NUMBERS_SHARE, cancel)?;
    Ok(TextFile { line_numbers, ..text })
}

/// Reads the lines of `selection`, at most `max_bytes` of them.
pub(in crate::filesystem) fn read_lines(
    path: &ConfinedPath,
    selection: ReadLineSelection,
    max_bytes: usize,
    cancel: &CancellationToken,
) -> Result<TextFile, Error> {
    let (mut file, metadata) = path.open_read()?;
    let display_path = path.display_path();
    let failed = |source| Error::read(&display_path, source);

    // The head is read first: it tells text from binary before the file costs more.
    let mut head = Vec::with_capacity(HEAD_BYTES);
    (&mut file).take(HEAD_BYTES as u64).read_to_end(&mut head).map_err(failed)?;
    if let Some(kind) = binary_kind(&head) {
        let advice = match kind {
            UTF_16_TEXT => "; convert it to UTF-8 first",
            _ if signature::is_media(&head) => "; use read_media_file",
            _ => "",
        };
        return Err(Error::Binary { path: display_path, kind, size: metadata.size, advice });
    }

    let excerpt = match selection {
        // Most files end within the head: they are read with one system call and without a buffer.
        ReadLineSelection::From { first, lines } if head.len() < HEAD_BYTES => {
            read_lines_from(&*head, first, lines, max_bytes, cancel)
        }
        ReadLineSelection::From { first, lines } => {
            let rest = BufReader::with_capacity(BLOCK_BYTES, &mut file);
            read_lines_from((&*head).chain(rest), first, lines, max_bytes, cancel)
        }
        ReadLineSelection::Last(lines) => read_last_lines(file, metadata.size, lines, max_bytes, cancel),
    };
    let Some(excerpt) = excerpt.map_err(failed)? else { return Err(Error::Cancelled) };
    if let (ReadLineSelection::From { first, .. }, 0, Some(total)) = (selection, excerpt.lines, excerpt.total)
        && first > 1
    {
        return Err(Error::PastEnd { path: display_path, offset: first, lines: total });
    }
    Ok(excerpt.into_text_file(display_path, metadata.size, selection, max_bytes))
}
