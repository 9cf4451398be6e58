//! `read_multiple_files`: reads several text files, or lines of them, in one call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::error::Error;
use super::limits::MAX_TEXT_BYTES;
use super::read::{ReadLineSelection, TextFile, read_lines_numbered};
use crate::redact::Redactor;
use crate::workspace::Workspace;
use error_causes::chain;

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

    /// Masks the lines of private keys by what stands around them in the files that `input` names.
    pub fn mask_key_lines(&mut self, workspace: &Workspace, input: &ReadMultipleFiles, redactor: &Redactor) {
        for (named, outcome) in input.paths.iter().zip(&mut self.files) {
            if let FileReadOutcome::File(file) = outcome {
                file.mask_key_lines(workspace, named.path(), redactor);
            }
        }
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
/// All together give at most [`MAX_TEXT_BYTES`]: each gets an equal share, and what small ones do not need is left to
/// large ones, whatever their order.
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
    let read = |file: &FileToRead, max_bytes| {
        let read = file.selection().and_then(|selection| {
            let path = workspace.locate(file.path())?;
            read_lines_numbered(&path, selection, max_bytes, input.line_numbers, cancel)
        });
        match read {
            Ok(file) => Ok(FileReadOutcome::File(file)),
            Err(Error::Cancelled) => Err(Error::Cancelled),
            Err(error) => {
                Ok(FileReadOutcome::Error { path: shorten_path(file.path()), error: chain(&error) })
            }
        }
    };
    let mut files =
        input.paths.iter().map(|file| read(file, MAX_TEXT_BYTES)).collect::<Result<Vec<_>, Error>>()?;
    if let Some(share) = share_of_large(files.iter().map(text_bytes).collect()) {
        for (file, outcome) in input.paths.iter().zip(&mut files) {
            if text_bytes(outcome) > share {
                *outcome = read(file, share)?;
            }
        }
    }
    Ok(MultipleFiles { files })
}

fn text_bytes(outcome: &FileReadOutcome) -> usize {
    match outcome {
        FileReadOutcome::File(file) => file.text.len(),
        FileReadOutcome::Error { .. } => 0,
    }
}

/// Returns the number of bytes that each of the large files gets, so that all have at most [`MAX_TEXT_BYTES`]; `None` if
/// all fit whole.
fn share_of_large(mut sizes: Vec<usize>) -> Option<usize> {
    sizes.sort_unstable();
    let (count, mut free_bytes) = (sizes.len(), MAX_TEXT_BYTES);
    for (index, size) in sizes.into_iter().enumerate() {
        let share = free_bytes / (count - index);
        if size > share {
            return Some(share);
        }
        free_bytes -= size;
    }
    None
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
        assert!(sizes[1] > 19_000 && sizes[2] > 19_000, "{sizes:?}");
    }

    #[test]
    fn a_large_file_gets_what_small_ones_after_it_leave() {
        let project = ProjectFixture::with(&[
            ("big", "0123456789\n".repeat(9000)),
            ("middle", "0123456789\n".repeat(2000)),
            ("small", "x\n".repeat(50)),
        ]);
        let sizes = |paths: &[&str]| {
            let input = ReadMultipleFiles::new(paths.iter().copied());
            let read = read_multiple_files(&project.workspace, &input, &project.cancel).unwrap();
            read.files.iter().map(text_bytes).collect::<Vec<_>>()
        };
        let with_small_after = sizes(&["middle", "small", "small", "small", "gone", "small"]);
        assert_eq!(with_small_after, [22_000, 100, 100, 100, 0, 100]);
        let with_larger = sizes(&["big", "small", "middle", "gone"]);
        assert!(with_larger.iter().sum::<usize>() <= MAX_TEXT_BYTES, "{with_larger:?}");
        assert!(with_larger[0] > 19_900 && with_larger[2] > 19_900, "{with_larger:?}");
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
