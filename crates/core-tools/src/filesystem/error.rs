//! The errors of the filesystem tools.

use std::io;

use super::edit::EditProblem;
use super::patch::PatchProblem;
use crate::workspace;

/// The reason that a filesystem tool gave no result.
///
/// Messages are written for the caller of the tool, which may be a model: they name the path relative to its
/// root, what was expected and what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path was refused, or the operating system failed at it.
    #[error(transparent)]
    Path(#[from] workspace::Error),
    /// A number lies outside its range.
    #[error("`{parameter}` must be {expected}; {got} was given")]
    Range {
        /// The parameter's name.
        parameter: &'static str,
        /// The allowed range, in words.
        expected: &'static str,
        /// The number that was given.
        got: i64,
    },
    /// Two parameters contradict each other, or one is missing.
    #[error("{0}")]
    Parameters(&'static str),
    /// The globs match more files than one call reads.
    #[error(
        "`paths` names {total} files, globs included, and one call reads at most {limit}; give narrower globs"
    )]
    TooManyPaths {
        /// The number of files.
        total: u64,
        /// The largest number of files.
        limit: usize,
    },
    /// The first line asked for lies past the end.
    #[error("`{path}` has only {lines} lines, so there is no line {offset}")]
    PastEnd {
        /// The file.
        path: String,
        /// The line asked for.
        offset: u64,
        /// The number of lines in the file.
        lines: u64,
    },
    /// The file is not text.
    #[error("`{path}` is not text but {kind} of {size} bytes{}", .advice)]
    Binary {
        /// The file.
        path: String,
        /// The kind of file that its first bytes suggest, with an article.
        kind: &'static str,
        /// Its length in bytes.
        size: u64,
        /// Advice on what to do instead, ready to follow the message.
        advice: &'static str,
    },
    /// The file is no image, audio or PDF.
    #[error("`{path}` is no image, audio or PDF file{}; use read_file for text", .kind.map(|kind| format!(" but {kind}")).unwrap_or_default())]
    NotMedia {
        /// The file.
        path: String,
        /// The kind of file that its first bytes suggest, with an article, if they suggest any.
        kind: Option<&'static str>,
    },
    /// The file is larger than the tool takes.
    #[error("`{path}` has {size} bytes, more than the {limit} this tool takes")]
    TooLarge {
        /// The file.
        path: String,
        /// Its length in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The new text holds masks of secrets that the file does not: writing it would destroy the secrets.
    #[error(
        "nothing was written to `{path}`: the text contains {mask}, the mask shown in place of a secret, which the file does not contain; writing it would overwrite the real secret. Change other parts with edit_file, leaving the masked part out"
    )]
    Masked {
        /// The file.
        path: String,
        /// The first such mask.
        mask: String,
    },
    /// An edit does not fit the file; none was made.
    #[error("nothing was changed in `{path}`: edit {number} of {count}: {problem}")]
    Edit {
        /// The file.
        path: String,
        /// The edit's number, from 1.
        number: usize,
        /// The number of edits that were given.
        count: usize,
        /// The problem with it.
        problem: EditProblem,
    },
    /// A text is no patch.
    #[error("`patch`{}: {problem}", .line.map(|line| format!(", line {line}")).unwrap_or_default())]
    PatchSyntax {
        /// The line of the text, from 1, if the problem has one.
        line: Option<usize>,
        /// The problem with it.
        problem: String,
    },
    /// Parts of a patch do not fit; nothing was changed.
    #[error("{}", describe_problems(.problems, *.total))]
    Patch {
        /// The first of them.
        problems: Vec<PatchProblem>,
        /// The number of all of them.
        total: usize,
    },
    /// A change failed, and one that was made before it could not be undone.
    #[error("{cause}; a change made before it could not be undone: {failed}")]
    NotUndone {
        /// The message of the failure to undo it.
        failed: String,
        /// The first failure.
        cause: Box<Error>,
    },
    /// A glob cannot be read.
    #[error("`{parameter}`: `{pattern}` is no glob: {reason}")]
    Glob {
        /// The parameter's name.
        parameter: &'static str,
        /// The glob.
        pattern: String,
        /// The problem with it.
        reason: String,
    },
    /// A regular expression cannot be read.
    #[error(
        "`pattern` is no regular expression: {reason}\nTo look for this text as it stands, set literal to true"
    )]
    Regex {
        /// The problem with it, and its position.
        reason: String,
    },
    /// The pattern of an edit cannot be read.
    #[error(
        "`pattern` is no regular expression: {reason}\nTo replace this text as it stands, give it as `old_string`"
    )]
    Pattern {
        /// The problem with it, and its position.
        reason: String,
    },
    /// The text in the place of a match refers to a group that the pattern does not have.
    #[error(
        "`new_string` refers to the group `{group}`, which `pattern` does not have: write `${{1}}` before letters, digits \
         and `_`, and `$$` for a dollar sign"
    )]
    NoSuchGroup {
        /// The name of the group.
        group: String,
    },
    /// No file has a match that can be replaced.
    #[error(
        "nothing was changed: no text at `{path}` matches `pattern`, or the text in its place is the same; search_files \
         shows what a pattern matches"
    )]
    NothingMatches {
        /// The file or folder.
        path: String,
    },
    /// More files match than one call changes.
    #[error(
        "nothing was changed: {files} files match, and one call changes at most {limit}; narrow `path` or `include`"
    )]
    TooManyFiles {
        /// The number of files that match.
        files: u64,
        /// The limit.
        limit: usize,
    },
    /// A file does not have the one definition that was asked for.
    #[error("`{symbol}` {problem} (`{path}`)")]
    Symbol {
        /// The file.
        path: String,
        /// The name of the definition.
        symbol: String,
        /// The problem with it, ready to follow the name.
        problem: String,
    },
    /// The caller cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    /// An error of the operating system while reading `path`.
    pub(super) fn read(path: impl Into<String>, source: io::Error) -> Self {
        Self::Path(workspace::Error::Io { action: "read", path: path.into(), source })
    }

    /// An error of the operating system while listing the folder at `path`.
    pub(super) fn list(path: impl Into<String>, source: io::Error) -> Self {
        Self::Path(workspace::Error::Io { action: "list", path: path.into(), source })
    }
}

fn describe_problems(problems: &[PatchProblem], total: usize) -> String {
    if let ([problem], 1) = (problems, total) {
        return format!("nothing was changed: {problem}");
    }
    let mut text = format!("nothing was changed; {total} parts of the patch do not fit:");
    for problem in problems {
        text.push_str(&format!("\n- {problem}"));
    }
    if total > problems.len() {
        text.push_str(&format!("\nand {} more", total - problems.len()));
    }
    text
}
