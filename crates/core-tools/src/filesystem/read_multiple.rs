//! `read_multiple_files`: reads several text files, or lines of them, in one call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::error::{Error, with_causes};
use super::limits::MAX_TEXT_BYTES;
use super::read::{ReadLineSelection, TextFile, read_lines_numbered};
use crate::workspace::Workspace;

/// The most files in one call: with more, each would get too few lines to be of use.
const MAX_FILES: usize = 100;

/// Text files to read, each whole or by lines.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ReadMultipleFiles {
    /// Up to 100 files, each a path or an object with the lines to read:
    /// `["src/a.rs", {"path": "src/b.rs", "offset": 40, "limit": 60}]`. One file may be named several times.
    #[schemars(length(min = 1, max = 100), extend("alias" = "files"))]
    pub paths: Vec<FileToRead>,
    /// Begins each line with its number and a tab. Default false.
    #[serde(default)]
    pub line_numbers: bool,
}

impl ReadMultipleFiles {
    /// An input that reads the files at `paths`.
    pub fn new<P: Into<FileToRead>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self { paths: paths.into_iter().map(Into::into).collect(), line_numbers: false }
    }
}

/// A file to read: its path, or lines of it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FileToRead {
    /// The path of a file, which is read from its start.
    Path(String),
    /// Lines of a file.
    Lines(LinesToRead),
}

/// Lines of a file to read.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
#[non_exhaustive]
pub struct LinesToRead {
    /// Path of the file.
    pub path: String,
    /// First line, from 1.
    #[schemars(range(min = 1))]
    pub offset: Option<i64>,
    /// Number of lines.
    #[schemars(range(min = 1))]
    pub limit: Option<i64>,
}

impl FileToRead {
    /// Lines of the file at `path`: `limit` of them, from line `offset` on.
    pub fn lines(path: impl Into<String>, offset: i64, limit: i64) -> Self {
        Self::Lines(LinesToRead { path: path.into(), offset: Some(offset), limit: Some(limit) })
    }

    fn path(&self) -> &str {
        match self {
            Self::Path(path) => path,
            Self::Lines(lines) => &lines.path,
        }
    }

    fn selection(&self) -> Result<ReadLineSelection, Error> {
        match self {
            Self::Path(_) => ReadLineSelection::range(None, None),
            Self::Lines(lines) => ReadLineSelection::range(lines.offset, lines.limit),
        }
    }
}

impl From<&str> for FileToRead {
    fn from(path: &str) -> Self {
        Self::Path(path.to_owned())
    }
}

impl From<String> for FileToRead {
    fn from(path: String) -> Self {
        Self::Path(path)
    }
}

/// The files, in the order asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct MultipleFiles {
    /// One for each path.
    pub files: Vec<FileReadOutcome>,
}

/// One file, or the reason that it could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum FileReadOutcome {
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
        self.files.iter().filter(|file| matches!(file, FileReadOutcome::Error { .. })).count()
    }

    /// Returns each file under a line `==> path <==`, as `head` and `tail` do.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for file in &self.files {
            if !text.is_empty() {
                text.push('\n');
            }
            match file {
                FileReadOutcome::File(file) => {
                    text.push_str(&format!("==> {} <==\n{}", file.path, file.to_text()));
                    if !text.ends_with('\n') {
                        text.push('\n');
                    }
                }
                FileReadOutcome::Error { path, error } => {
                    text.push_str(&format!("==> {path} <==\n[error: {error}]\n"));
                }
            }
        }
        text
    }
}

/// Reads several text files, each from its start or by lines. One that cannot be read is reported in its place.
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
    for (index, file) in input.paths.iter().enumerate() {
        let share = free_bytes / (input.paths.len() - index);
        let read = file.selection().and_then(|selection| {
            let path = workspace.locate(file.path())?;
            read_lines_numbered(&path, selection, share, input.line_numbers, cancel)
        });
        files.push(match read {
            Ok(file) => {
                // The text may be longer than its bytes: U+FFFD takes three for one that is no UTF-8.
                free_bytes -= file.text.len().min(share);
                FileReadOutcome::File(file)
            }
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(error) => {
                FileReadOutcome::Error { path: shorten_path(file.path()), error: with_causes(&error) }
            }
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

#[cfg(test)]
mod tests {
    use super::super::testing::ProjectFixture;
    use super::*;

    #[test]
    fn each_file_has_its_own_answer_in_the_order_asked_for() {
        let project = ProjectFixture::with(&[("a", "A\n"), ("b", "B")]);
        let input = ReadMultipleFiles::new(["b", "gone", "a", "/etc/passwd"]);
        let read = read_multiple_files(&project.workspace, &input, &project.cancel).unwrap();
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
        let input = ReadMultipleFiles::new(["small", "big", "big", "small"]);
        let read = read_multiple_files(&project.workspace, &input, &project.cancel).unwrap();
        let sizes: Vec<usize> = read
            .files
            .iter()
            .map(|file| match file {
                FileReadOutcome::File(file) => file.text.len(),
                FileReadOutcome::Error { error, .. } => panic!("{error}"),
            })
            .collect();
        assert_eq!((sizes[0], sizes[3]), (2, 2));
        assert!(sizes.iter().sum::<usize>() <= MAX_TEXT_BYTES);
        assert!(sizes[1] > 13_000 && sizes[2] > 13_000, "{sizes:?}");
    }

    #[test]
    fn a_file_is_given_by_lines_and_a_range_that_does_not_fit_is_an_error_in_its_place() {
        let project = ProjectFixture::with(&[("a", "1\n2\n3\n4\n")]);
        let paths = serde_json::json!({ "paths": [
            { "path": "a", "offset": 2, "limit": 2 }, "a", { "path": "a", "offset": 9 }, { "path": "a", "limit": 0 },
        ]});
        let input: ReadMultipleFiles = serde_json::from_value(paths).unwrap();
        let read = read_multiple_files(&project.workspace, &input, &project.cancel).unwrap();
        assert_eq!(
            read.to_text(),
            "==> a <==\n2\n3\n[lines 2-3 of 4; continue with offset=4]\n\n==> a <==\n1\n2\n3\n4\n\n==> a <==\n\
             [error: `a` has only 4 lines, so there is no line 9]\n\n==> a <==\n\
             [error: `limit` must be 1 or more; 0 was given]\n"
        );
        let numbered = ReadMultipleFiles {
            line_numbers: true,
            ..ReadMultipleFiles::new([FileToRead::lines("a", 3, 9)])
        };
        let read = read_multiple_files(&project.workspace, &numbered, &project.cancel).unwrap();
        assert_eq!(read.to_text(), "==> a <==\n3\t3\n4\t4\n[lines 3-4 of 4]\n");
    }

    #[test]
    fn no_paths_and_too_many_are_refused() {
        let project = ProjectFixture::new();
        for paths in [vec![], vec!["a"; 101]] {
            let input = ReadMultipleFiles::new(paths);
            let error = read_multiple_files(&project.workspace, &input, &project.cancel).unwrap_err();
            assert_eq!(error.to_string(), "`paths` must name 1 to 100 files");
        }
    }
}
