//! Reads a file, makes the edits and writes the result.

use std::io::Read;

use tokio_util::sync::CancellationToken;

use super::by_pattern::replace_by_pattern;
use super::diff::{MAX_BYTES, truncate_diff, unified_diff};
use super::insert::insert;
use super::problem::EditProblem;
use super::replace::{EditedText, replace};
use super::request::{EditChange, EditFile, EditResult};
use super::secrets::FileSecrets;
use crate::filesystem::error::Error;
use crate::filesystem::mask;
use crate::filesystem::signature::{HEAD_BYTES, binary_kind};
use crate::redact::Redactor;
use crate::workspace::{FileReplaceCondition, Workspace};

/// Edits a text file, or by a pattern the text files below a folder. Edits are made in order, each on the result of the
/// edits before. If one edit fails, nothing is written. The write is atomic, keeps permissions, and follows a link to
/// its file.
///
/// Text is matched exactly, byte by byte, save for line endings: in a file with CRLF, LF in `old_string`
/// matches it, and LF in `new_string` is written as CRLF. Concurrent calls on one file run one after the
/// other; if another process changes the file meanwhile, nothing is written.
///
/// # Errors
/// The path, a binary file, one over 64 MiB, masks of secrets, and every
/// [`EditProblem`](crate::filesystem::EditProblem).
pub fn edit_file(workspace: &Workspace, input: &EditFile) -> Result<EditResult, Error> {
    edit(workspace, input, None, &CancellationToken::new())
}

/// Edits a text file as [`edit_file`] does, for a caller that sees it as `redactor` masks it. No edit takes a secret of the
/// file apart: where `old_string` begins or ends within one, it is not found. The result shows none, whatever the edit
/// left of its name.
///
/// # Errors
/// As [`edit_file`].
pub fn edit_file_with_secrets(
    workspace: &Workspace,
    input: &EditFile,
    redactor: &Redactor,
    cancel: &CancellationToken,
) -> Result<EditResult, Error> {
    edit(workspace, input, Some(redactor), cancel)
}

fn edit(
    workspace: &Workspace,
    input: &EditFile,
    redactor: Option<&Redactor>,
    cancel: &CancellationToken,
) -> Result<EditResult, Error> {
    if let Some(pattern) = input.pattern()? {
        return replace_by_pattern(workspace, input, pattern, redactor, cancel);
    }
    let changes = input.changes()?;
    let path = workspace.locate(&input.path)?;
    // Before anything else, for the hint that goes with a missing file.
    path.metadata()?;
    let target = path.target()?;
    // Held from the read to the write: of two concurrent edits the second must see the result of the first.
    let lock = target.lock();
    let (file, metadata) = target.open_read()?;
    let display_path = path.display_path();
    if metadata.size > MAX_BYTES {
        return Err(Error::TooLarge { path: display_path, size: metadata.size, limit: MAX_BYTES });
    }
    let mut original = Vec::new();
    // Bounded again: the file may have grown since its size was read.
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut original)
        .map_err(|source| Error::read(&display_path, source))?;
    if let Some(kind) = binary_kind(&original[..original.len().min(HEAD_BYTES)]) {
        return Err(Error::Binary {
            path: display_path,
            kind,
            size: metadata.size,
            advice: "; edit_file edits text",
        });
    }

    let secrets = FileSecrets::new(&original, redactor);
    let made = make_edits(&original, &changes, &display_path, &secrets);
    let (edited, replacements) = match made {
        Ok(made) => made,
        Err(error) => return Err(without_secrets(error, &secrets)),
    };
    let mut notes = Vec::new();
    if edited == original {
        notes.push("the edits cancel each other out: nothing to write".to_owned());
    } else if !input.dry_run {
        // The lock keeps out only this process; the stamp detects a write by any other.
        target.replace(&edited, FileReplaceCondition::Unchanged(metadata.stamp()))?;
    }
    drop(lock);
    let mut diff = unified_diff(&original, &edited, &display_path);
    if std::str::from_utf8(&edited).is_err() {
        notes.push("the file is not valid UTF-8: such bytes are kept, and shown as U+FFFD".to_owned());
    }
    if let Some(note) = truncate_diff(&mut diff) {
        notes.push(note);
    }
    secrets.mask(&mut diff);
    Ok(EditResult { path: display_path, diff, replacements, dry_run: input.dry_run, notes })
}

/// Returns the error without the secrets in the lines that it shows.
fn without_secrets(error: Error, secrets: &FileSecrets) -> Error {
    match error {
        Error::Edit { path, number, count, problem: EditProblem::NotFound { mut nearest, blanks_only } } => {
            nearest.iter_mut().for_each(|(_, line)| secrets.mask(line));
            Error::Edit { path, number, count, problem: EditProblem::NotFound { nearest, blanks_only } }
        }
        error => error,
    }
}

/// Makes the edits on a copy. Returns it with the number of pieces replaced.
fn make_edits(
    original: &[u8],
    changes: &[EditChange<'_>],
    path: &str,
    secrets: &FileSecrets,
) -> Result<(Vec<u8>, u64), Error> {
    let mut text = original.to_vec();
    let mut replacements = 0;
    for (index, change) in changes.iter().enumerate() {
        // Compared with the original and not with the text so far: an earlier edit cannot legitimate a mask.
        if let Some(mask) = mask::first_new(change.new_text().as_bytes(), original) {
            return Err(Error::Masked { path: path.to_owned(), mask });
        }
        let edited = match *change {
            EditChange::Replace { old, new, all } => replace(&text, old, new, all, secrets),
            EditChange::Insert { after, text: lines } => insert(&text, after, lines),
        };
        let EditedText { text: changed, count } = edited.map_err(|problem| Error::Edit {
            path: path.to_owned(),
            number: index + 1,
            count: changes.len(),
            problem,
        })?;
        text = changed;
        replacements += count as u64;
    }
    Ok((text, replacements))
}
