//! `read_multiple_files`: reads the starts of several text files in one call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::error::Error;
use super::limits::MAX_TEXT_BYTES;
use super::read::{LineSelection, TextFile, read_lines};
use crate::workspace::Workspace;

/// The most files in one call: with more, each would get too few lines to be of use.
const MAX_FILES: usize = 100;

/// Text files to read.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ReadMultipleFiles {
    /// They share 40 KB
    #[schemars(length(min = 1, max = 100))]
    pub paths: Vec<String>,
}

impl ReadMultipleFiles {
    /// An input that reads the files at `paths`.
    pub fn new<P: Into<String>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self { paths: paths.into_iter().map(Into::into).collect() }
    }
}

/// The files, in the order asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct MultipleFiles {
    /// One for each path.
    pub files: Vec<FileOrError>,
}

/// One file, or the reason that it could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum FileOrError {
    /// The file was read.
    File(TextFile),
    /// The file could not be read.
    Error {
        /// The path as it was given.
        path: String,
        /// The error message, with its causes.
        error: String,
    },
}

impl MultipleFiles {
    /// Returns the number of files that could not be read.
    pub fn failures(&self) -> usize {
        self.files.iter().filter(|file| matches!(file, FileOrError::Error { .. })).count()
    }

    /// Returns each file under a line `==> path <==`, as `head` and `tail` do.
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
/// All together give at most [`MAX_TEXT_BYTES`]: each gets an equal share of the bytes that those before it left.
///
/// # Errors
/// No paths or too many, cancellation.
pub fn read_multiple_files(
    workspace: &Workspace,
    input: &ReadMultipleFiles,
    cancel: &CancellationToken,
) -> Result<MultipleFiles, Error> {
    if input.paths.is_empty() || input.paths.len() > MAX_FILES {
        return Err(Error::Parameters("`paths` must name 1 to 100 files"));
    }
    let mut free_bytes = MAX_TEXT_BYTES;
    let mut files = Vec::with_capacity(input.paths.len());
    for (index, path) in input.paths.iter().enumerate() {
        let share = free_bytes / (input.paths.len() - index);
        let read = workspace
            .locate(path)
            .map_err(Error::from)
            .and_then(|path| read_lines(&path, LineSelection::START, share, cancel));
        files.push(match read {
            Ok(file) => {
                // The text may be longer than its bytes: U+FFFD takes three for one that is no UTF-8.
                free_bytes -= file.text.len().min(share);
                FileOrError::File(file)
            }
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(error) => FileOrError::Error { path: shorten_path(path), error: with_causes(&error) },
        });
    }
    Ok(MultipleFiles { files })
}

/// Returns `path` as it was given; only the start of one that is longer than any path can be.
fn shorten_path(path: &str) -> String {
    const PATH_MAX: usize = 4096;
    match path.len() {
        0..=PATH_MAX => path.to_owned(),
        _ => path.chars().take(80).chain(['…']).collect(),
    }
}

/// Returns the message of the error and of its causes.
fn with_causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::testing::ProjectFixture;
    use super::*;

    #[test]
    fn each_file_has_its_own_answer_in_the_order_asked_for() {
        let project = ProjectFixture::with(&[("a", "A\n"), ("b", "B")]);
        let paths = ["b", "gone", "a", "/etc/passwd"].map(String::from).to_vec();
        let read =
            read_multiple_files(&project.workspace, &ReadMultipleFiles { paths }, &project.cancel).unwrap();
        assert_eq!(read.failures(), 2);
        assert_eq!(
            read.to_text(),
            "==> b <==\nB\n\n==> gone <==\n[error: `gone` does not exist]\n\n==> a <==\nA\n\n==> /etc/passwd <==\n\
             [error: the absolute path given leads outside the allowed roots; use a path relative to the first \
             root, or an absolute path beneath a root]\n"
        );
    }

    #[test]
    fn all_files_together_stay_within_the_bound_and_small_ones_leave_room() {
        let project =
            ProjectFixture::with(&[("big", "0123456789\n".repeat(9000)), ("small", "x\n".to_owned())]);
        let paths = ["small", "big", "big", "small"].map(String::from).to_vec();
        let read =
            read_multiple_files(&project.workspace, &ReadMultipleFiles { paths }, &project.cancel).unwrap();
        let sizes: Vec<usize> = read
            .files
            .iter()
            .map(|file| match file {
                FileOrError::File(file) => file.text.len(),
                FileOrError::Error { error, .. } => panic!("{error}"),
            })
            .collect();
        assert_eq!((sizes[0], sizes[3]), (2, 2));
        assert!(sizes.iter().sum::<usize>() <= MAX_TEXT_BYTES);
        assert!(sizes[1] > 13_000 && sizes[2] > 13_000, "{sizes:?}");
    }

    #[test]
    fn no_paths_and_too_many_are_refused() {
        let project = ProjectFixture::new();
        for paths in [vec![], vec!["a".to_owned(); 101]] {
            let error =
                read_multiple_files(&project.workspace, &ReadMultipleFiles { paths }, &project.cancel)
                    .unwrap_err();
            assert_eq!(error.to_string(), "`paths` must name 1 to 100 files");
        }
    }
}
