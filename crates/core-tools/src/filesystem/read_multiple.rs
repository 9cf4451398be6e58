//! `read_multiple_files`: reads several text files, or lines of them, in one call.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::error::Error;
use super::find::{FindFiles, find_files};
use super::limits::MAX_TEXT_BYTES;
use super::read::{ReadLineSelection, TextFile, read_lines_numbered};
use crate::redact::Redactor;
use crate::workspace::{ConfinedPath, Workspace};
use error_causes::chain;

/// The most files in one call: with more, each would get too few lines to be of use.
const MAX_FILES: usize = 100;

/// Text files to read, each whole or by lines.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ReadMultipleFiles {
    /// Up to 100 files, each a path or an object with the lines or the definition to read:
    /// `["src/a.rs", {"path": "src/b.rs", "offset": 40, "limit": 60}, {"path": "src/c.py", "symbol": "Cart.total"}]`. One
    /// file may be named several times. A glob stands for the files that it matches: `docs/**/*.md`.
    #[schemars(length(min = 1, max = 100), extend("alias" = "files"))]
    pub paths: Vec<FileToRead>,
    /// Begins each line with its number and a tab. Default false.
    #[schemars(extend("unlisted" = true))]
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
    /// Instead of lines: a function, method or type, which is read whole.
    pub symbol: Option<String>,
}

impl FileToRead {
    /// Lines of the file at `path`: `limit` of them, from line `offset` on.
    pub fn lines(path: impl Into<String>, offset: i64, limit: i64) -> Self {
        let (offset, limit) = (Some(offset), Some(limit));
        Self::Lines(LinesToRead { path: path.into(), offset, limit, symbol: None })
    }

    /// The definition of `symbol` in the file at `path`.
    pub fn symbol(path: impl Into<String>, symbol: impl Into<String>) -> Self {
        let (path, symbol) = (path.into(), Some(symbol.into()));
        Self::Lines(LinesToRead { path, offset: None, limit: None, symbol })
    }

    fn path(&self) -> &str {
        match self {
            Self::Path(path) => path,
            Self::Lines(lines) => &lines.path,
        }
    }

    /// Returns the lines to read of the file, which is at `path`.
    fn selection(&self, path: &ConfinedPath) -> Result<ReadLineSelection, Error> {
        let Self::Lines(lines) = self else { return ReadLineSelection::range(None, None) };
        match &lines.symbol {
            None => ReadLineSelection::range(lines.offset, lines.limit),
            Some(_) if lines.offset.is_some() || lines.limit.is_some() => {
                Err(Error::Parameters("give either `symbol`, or `offset` and `limit`"))
            }
            Some(symbol) => {
                let (first, lines) = lines_of_symbol(path, symbol)?;
                Ok(ReadLineSelection::From { first, lines })
            }
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
    /// One for each path, and for each file that a glob matches.
    pub files: Vec<FileReadOutcome>,
    /// Remarks: what the globs left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The path by which each of `files` was read.
    #[serde(skip)]
    read_paths: Vec<String>,
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

    /// Masks the lines of private keys by what stands around them in the files that were read.
    pub fn mask_key_lines(&mut self, workspace: &Workspace, redactor: &Redactor) {
        for (path, outcome) in self.read_paths.iter().zip(&mut self.files) {
            if let FileReadOutcome::File(file) = outcome {
                file.mask_key_lines(workspace, path, redactor);
            }
        }
    }

    /// Returns each file under a line `==> path <==`, as `head` and `tail` do, then the notes.
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
        for (index, note) in self.notes.iter().enumerate() {
            let space = if index == 0 { "\n" } else { "" };
            text.push_str(&format!("{space}[{note}]\n"));
        }
        text
    }
}

/// Reads several text files, each from its start or by lines. If a file cannot be read, the result has the reason in
/// its place.
///
/// All together give at most [`MAX_TEXT_BYTES`]: each file gets an equal share, and small files leave the rest of their
/// shares to large files, whatever their order.
///
/// # Errors
/// No paths or too many, globs that match too many files, cancellation.
pub fn read_multiple_files(
    workspace: &Workspace,
    input: &ReadMultipleFiles,
    cancel: &CancellationToken,
) -> Result<MultipleFiles, Error> {
    if input.paths.is_empty() || input.paths.len() > MAX_FILES {
        return Err(Error::Parameters("`paths` must name 1 to 100 files"));
    }
    let (paths, notes) = expand_globs(workspace, &input.paths, cancel)?;
    let read = |file: &FileToRead, max_bytes| {
        let path = workspace.locate(file.path()).map_err(Error::from);
        let read = path.and_then(|path| {
            let selection = file.selection(&path)?;
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
    // Each file is first read up to the whole limit, because the size of its text is known only then. Only files above
    // their share are read again.
    let mut files = paths.iter().map(|file| read(file, MAX_TEXT_BYTES)).collect::<Result<Vec<_>, Error>>()?;
    if let Some(share) = share_of_large(files.iter().map(text_bytes).collect()) {
        for (file, outcome) in paths.iter().zip(&mut files) {
            if text_bytes(outcome) > share {
                *outcome = read(file, share)?;
            }
        }
    }
    let read_paths = paths.iter().map(|file| file.path().to_owned()).collect();
    Ok(MultipleFiles { files, notes, read_paths })
}

/// Returns the files, with those that a glob matches in its place, and remarks on what the globs left out. A path that exists
/// is no glob, and one that matches nothing stays, to be told as missing.
fn expand_globs<'a>(
    workspace: &Workspace,
    paths: &'a [FileToRead],
    cancel: &CancellationToken,
) -> Result<(Vec<Cow<'a, FileToRead>>, Vec<String>), Error> {
    let mut expanded = Vec::new();
    let mut notes = Vec::new();
    // The files of a glob that has more than there is room for are counted and not listed.
    let mut total = 0_u64;
    for file in paths {
        let path = match file {
            FileToRead::Path(path) if is_glob(workspace, path) => path,
            FileToRead::Path(_) | FileToRead::Lines(_) => {
                total += 1;
                expanded.push(Cow::Borrowed(file));
                continue;
            }
        };
        let mut search = FindFiles::new(path.as_str());
        search.max_results = Some(MAX_FILES as i64);
        let found = find_files(workspace, &search, cancel)?;
        for (count, what) in [
            (
                found.ignored_files,
                "matching files that .gitignore names are left out; read them by their paths",
            ),
            (found.unreadable_folders, "folders could not be read"),
        ] {
            if count > 0 {
                notes.push(format!("`{}`: {count} {what}", shorten_path(path)));
            }
        }
        total += found.total.max(1);
        if found.paths.is_empty() {
            expanded.push(Cow::Borrowed(file));
        }
        expanded.extend(found.paths.into_iter().map(|path| Cow::Owned(FileToRead::Path(path))));
    }
    match total <= MAX_FILES as u64 {
        true => Ok((expanded, notes)),
        false => Err(Error::TooManyPaths { total, limit: MAX_FILES }),
    }
}

/// Returns whether `path` is a glob: a relative path with a wildcard, and no file has that name.
fn is_glob(workspace: &Workspace, path: &str) -> bool {
    path.contains(['*', '{', '?', '['])
        && !path.starts_with('/')
        && workspace.locate(path).is_ok_and(|path| !path.is_there())
}

#[cfg(feature = "context")]
use super::outline::symbol_lines as lines_of_symbol;

#[cfg(not(feature = "context"))]
fn lines_of_symbol(path: &ConfinedPath, symbol: &str) -> Result<(u64, u64), Error> {
    let (path, symbol) = (path.display_path(), symbol.to_owned());
    Err(Error::Symbol {
        path,
        symbol,
        problem: "cannot be looked for: this server has no grammars".to_owned(),
    })
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
        // The sizes are sorted, so that each small file leaves what it does not use to the larger ones.
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
    fn lines_of_a_key_are_masked_behind_a_glob_that_stands_for_several_files() {
        let label = ["PRIVATE", "KEY"].join(" ");
        let body: String = (10..40)
            .map(|line| format!("{line}AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcdefghijklmnopqrstuvw+\n"))
            .collect();
        let key = format!("-----BEGIN {label}-----\n{body}-----END {label}-----\n");
        let project =
            ProjectFixture::with(&[("a1", "one\n".to_owned()), ("a2", "two\n".to_owned()), ("key.pem", key)]);
        let input: ReadMultipleFiles = serde_json::from_value(serde_json::json!({
            "paths": ["a*", {"path": "key.pem", "offset": 5, "limit": 3}],
        }))
        .unwrap();
        let mut read = read_multiple_files(&project.workspace, &input, &project.cancel).unwrap();
        assert_eq!(read.files.len(), 3);
        let redactor = Redactor::new(crate::redact::RedactionOptions::default()).unwrap();
        read.mask_key_lines(&project.workspace, &redactor);
        let text = read.to_text();
        assert_eq!(text.matches("[redacted:private-key]").count(), 3, "{text}");
        assert!(text.contains("one\n") && text.contains("two\n") && !text.contains("AbCdEf"), "{text}");
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
    fn a_glob_stands_for_the_files_that_it_matches() {
        let project =
            ProjectFixture::with(&[("p/a.ts", "a\n"), ("p/q/b.ts", "b\n"), ("p/c.js", "c\n"), ("x*", "x\n")]);
        let text = |paths: &[&str]| {
            let input = ReadMultipleFiles::new(paths.iter().copied());
            read_multiple_files(&project.workspace, &input, &project.cancel).unwrap().to_text()
        };
        assert_eq!(text(&["p/**/*.ts", "x*"]), "==> p/a.ts <==\na\n\n==> p/q/b.ts <==\nb\n\n==> x* <==\nx\n");
        assert!(text(&["p/*.py"]).contains("[error: `p/*.py` does not exist"), "{}", text(&["p/*.py"]));
    }

    #[test]
    fn globs_of_more_files_than_one_call_reads_are_an_error_with_their_number() {
        let project = ProjectFixture::with(&[("p/a.ts", "a\n")]);
        for index in 0..100 {
            project.put(&format!("many/{index}"), "");
        }
        let read = |paths: &[&str]| {
            let input = ReadMultipleFiles::new(paths.iter().copied());
            read_multiple_files(&project.workspace, &input, &project.cancel)
        };
        assert_eq!(read(&["many/*"]).unwrap().files.len(), 100);
        for paths in [["many/*", "p/a.ts"].as_slice(), &["many/*", "*/[a].ts"], &["many/*", "p/gone*"]] {
            let error = read(paths).unwrap_err().to_string();
            assert!(error.contains("101 files") && error.contains("at most 100"), "{paths:?}: {error}");
        }
        project.put("many/more", "");
        let error = read(&["many/*"]).unwrap_err().to_string();
        assert!(error.contains("101 files") && error.contains("at most 100"), "{error}");
    }

    #[test]
    fn files_that_a_glob_left_out_because_of_gitignore_are_told() {
        let project =
            ProjectFixture::with(&[(".gitignore", "*.gen.ts\n"), ("p/a.ts", "a\n"), ("p/b.gen.ts", "b\n")]);
        let input = ReadMultipleFiles::new(["p/*.ts", "p/a.ts"]);
        let text = read_multiple_files(&project.workspace, &input, &project.cancel).unwrap().to_text();
        assert!(
            text.starts_with(
                "==> p/a.ts <==\na\n\n==> p/a.ts <==\na\n\n[`p/*.ts`: 1 matching files that .gitignore"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_line_of_a_key_is_masked_in_a_file_that_a_glob_matched() {
        let label = ["PRIVATE", "KEY"].join(" ");
        let body = "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcdefghijklmnopqrstuvwxyz0+\n".repeat(20);
        // Too large to be shown whole beside the other file, so that the beginning of the key is not in the answer.
        let key = format!("-----BEGIN {label}-----\n{body}-----END {label}-----\n");
        let project = ProjectFixture::with(&[("k/a.txt", "a\n".to_owned()), ("k/b.pem", key)]);
        let mut paths = vec![FileToRead::from("k/*.txt"), FileToRead::from("k/a*")];
        paths.push(FileToRead::lines("k/b.pem", 5, 3));
        let input = ReadMultipleFiles::new(paths);
        let mut read = read_multiple_files(&project.workspace, &input, &project.cancel).unwrap();
        assert!(read.to_text().contains("AbCdEf"), "{}", read.to_text());
        read.mask_key_lines(&project.workspace, &Redactor::new(Default::default()).unwrap());
        assert!(!read.to_text().contains("AbCdEf"), "{}", read.to_text());
        assert!(read.to_text().contains("[redacted:private-key]"), "{}", read.to_text());
    }

    #[cfg(feature = "context")]
    #[test]
    fn a_definition_is_read_whole_by_its_name() {
        let python = "class A:\n    def run(self):\n        return 1\n\nclass B:\n    def run(self):\n        return 2\n\ndef alone(x):\n    return x\n";
        let project = ProjectFixture::with(&[("a.py", python), ("b.txt", "alone\n")]);
        let read = |path: &str, symbol: &str| {
            let input = ReadMultipleFiles::new([FileToRead::symbol(path, symbol)]);
            read_multiple_files(&project.workspace, &input, &project.cancel).unwrap().to_text()
        };
        assert!(
            read("a.py", "alone").contains("<==\ndef alone(x):\n    return x\n"),
            "{}",
            read("a.py", "alone")
        );
        for name in ["B.run", "B::run"] {
            let text = read("a.py", name);
            assert!(
                text.contains("    def run(self):\n        return 2\n") && !text.contains("return 1"),
                "{text}"
            );
        }
        let text = read("a.py", "run");
        assert!(text.contains("`run` is defined 2 times: 2-3 def run(self); 6-7 def run(self)"), "{text}");
        assert!(read("a.py", "gone").contains("`gone` is not defined there"), "{}", read("a.py", "gone"));
        assert!(read("b.txt", "alone").contains("no grammar"), "{}", read("b.txt", "alone"));
        let both = serde_json::from_value(
            serde_json::json!({"paths": [{"path": "a.py", "symbol": "alone", "offset": 1}]}),
        );
        let read = read_multiple_files(&project.workspace, &both.unwrap(), &project.cancel).unwrap();
        assert!(read.to_text().contains("either `symbol`, or"), "{}", read.to_text());
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
