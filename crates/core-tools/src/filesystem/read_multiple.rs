//! `read_multiple_files`: the starts of several text files in one answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::MAX_TEXT_BYTES;
use super::error::Error;
use super::read::{Selection, TextFile, read_selection};
use crate::workspace::Workspace;

/// Most files in one call.
const MAX_FILES: usize = 100;

/// Which files to read.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadMultipleFiles {
    /// Files to read, 1 to 100. They share 40 KB
    #[schemars(length(min = 1, max = 100))]
    pub paths: Vec<String>,
}

/// The files, in the order asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FilesRead {
    /// One for each path.
    pub files: Vec<FileOrError>,
}

/// One file, or why it could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum FileOrError {
    /// It was read.
    File(TextFile),
    /// It was not.
    Error {
        /// The path as it was given.
        path: String,
        /// What was wrong.
        error: String,
    },
}

impl FilesRead {
    /// How many could not be read.
    pub fn failed(&self) -> usize {
        self.files.iter().filter(|file| matches!(file, FileOrError::Error { .. })).count()
    }

    /// Each file under a line `==> path <==`, as `head` and `tail` do.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for file in &self.files {
            if !text.is_empty() {
                text.push('\n');
            }
            match file {
                FileOrError::File(file) => {
                    text.push_str(&format!("==> {} <==\n{}", file.path, file.to_text()));
                    if !text.ends_with('\n') {
                        text.push('\n');
                    }
                }
                FileOrError::Error { path, error } => {
                    text.push_str(&format!("==> {path} <==\n[error: {error}]\n"));
                }
            }
        }
        text
    }
}

/// Reads the first lines of several text files. A file that cannot be read is reported in its place.
///
/// All together give at most [`MAX_TEXT_BYTES`]: each has an equal part of what those before it left.
///
/// # Errors
/// No paths or too many, cancellation.
pub fn read_multiple_files(
    workspace: &Workspace,
    input: &ReadMultipleFiles,
    cancel: &CancellationToken,
) -> Result<FilesRead, Error> {
    if input.paths.is_empty() || input.paths.len() > MAX_FILES {
        return Err(Error::Parameters("`paths` must name 1 to 100 files"));
    }
    let mut left = MAX_TEXT_BYTES;
    let mut files = Vec::with_capacity(input.paths.len());
    for (index, path) in input.paths.iter().enumerate() {
        let share = left / (input.paths.len() - index);
        let read = workspace
            .locate(path)
            .map_err(Error::from)
            .and_then(|path| read_selection(&path, Selection::START, share, cancel));
        files.push(match read {
            Ok(file) => {
                left -= file.text.len().min(share);
                FileOrError::File(file)
            }
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(error) => FileOrError::Error { path: path.clone(), error: whole(&error) },
        });
    }
    Ok(FilesRead { files })
}

/// The error with what caused it.
fn whole(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
