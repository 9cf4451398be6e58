//! `git_blame`: tells the commit and the author of each line.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::error::Error;
use super::git_process::{Git, GitOutput};
use super::invocation::{GitAccess, GitInvocation};
use super::printed_text::{lossy, printable_line};
use super::revision::check_paths;
use crate::redact::{KEY_CONTEXT_LINES, KeyLines, may_be_key_line};
use crate::time::rfc3339;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};
use tokio_util::sync::CancellationToken;

/// A file, and the lines of it to explain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitBlame {
    /// The file, relative to `repository_path`.
    pub path: String,
    /// The first line, counted from 1. Default: 1.
    #[schemars(range(min = 1))]
    pub start_line: Option<usize>,
    /// The last line. Default: 300 lines from the first on.
    #[schemars(range(min = 1))]
    pub end_line: Option<usize>,
    /// Look at the file as it was in this commit, branch or tag. Default: as it is now, with changes not committed.
    pub revision: Option<String>,
    /// A folder of the repository, to which other paths are relative. Default: the first root.
    pub repository_path: Option<String>,
}

impl GitBlame {
    /// An input that explains the first 300 lines of the file at `path`.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), ..Self::default() }
    }
}

const DEFAULT_LINES: usize = 300;
const MAX_LINES: usize = 10_000;
/// The most output that is read: far more than 10,000 lines of text have, as the description of a commit comes with
/// its first line alone.
const MAX_OUTPUT_BYTES: usize = 8 * 1024 * 1024;

/// The latest time that is shown: the end of the year 9999, after which RFC 3339 has no years.
const MAX_TIME_S: u64 = 253_402_300_799;

/// Lines of a file, with their commits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct BlameResult {
    /// The lines.
    pub lines: Vec<BlameLine>,
    /// True if there may be more after them.
    pub has_more: bool,
    /// True if the clone is shallow, so that the commit of a line with [`BlameLine::is_boundary`] need not have changed it.
    pub is_shallow: bool,
}

/// One line and the commit that last changed it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct BlameLine {
    /// Its number, from 1.
    pub number: u32,
    /// The commit; all zeros if the line is not committed yet.
    pub commit: String,
    /// The author.
    pub author: String,
    /// The author time of the commit, in seconds since 1970.
    pub time: u64,
    /// True if git looked no further back than this commit, because it has no parents here.
    pub is_boundary: bool,
    /// The line.
    pub text: String,
}

/// Parses `blame --porcelain` (git-blame(1), "The porcelain format"): a commit is described at its first line alone.
fn parse(listed: &[u8]) -> Vec<BlameLine> {
    #[derive(Default)]
    struct Description {
        author: String,
        time: u64,
        is_boundary: bool,
    }
    let mut commits: HashMap<String, Description> = HashMap::new();
    let mut lines = Vec::new();
    let mut current = BlameLine::default();
    let mut begins_entry = true;
    for row in listed.split(|byte| *byte == b'\n') {
        if let Some(text) = row.strip_prefix(b"\t") {
            let commit = commits.entry(current.commit.clone()).or_default();
            current.author.clone_from(&commit.author);
            current.time = commit.time;
            current.is_boundary = commit.is_boundary;
            current.text = lossy(text);
            lines.push(std::mem::take(&mut current));
            begins_entry = true;
            continue;
        }
        let row = lossy(row);
        if row == "boundary" {
            commits.entry(current.commit.clone()).or_default().is_boundary = true;
        }
        let Some((word, rest)) = row.split_once(' ') else { continue };
        if begins_entry {
            // `COMMIT OLD NEW [COUNT]`: NEW is the number of the line in this version of the file.
            current.commit = word.to_owned();
            current.number =
                rest.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or_default();
            begins_entry = false;
            continue;
        }
        match word {
            "author" => commits.entry(current.commit.clone()).or_default().author = rest.to_owned(),
            "author-time" => {
                // A time before 1970 is negative, which does not parse: it is shown as 1970.
                let time = rest.parse().unwrap_or_default();
                commits.entry(current.commit.clone()).or_default().time = Ord::min(time, MAX_TIME_S);
            }
            _ => {}
        }
    }
    lines
}

impl BlameResult {
    /// Returns the result as text, for people and for clients that show no structured content.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let mut last = None;
        for row in &self.lines {
            // The commit is shown once for consecutive lines.
            if last != Some(&row.commit) {
                let commit: String = row.commit.chars().take(10).collect();
                let date = rfc3339(UNIX_EPOCH + Duration::from_secs(row.time));
                let or_before = if self.is_shallow && row.is_boundary { "or before: " } else { "" };
                let _ = writeln!(text, "{or_before}{commit} {date} {}", printable_line(&row.author));
                last = Some(&row.commit);
            }
            let _ = writeln!(text, "{:>6}  {}", row.number, row.text);
        }
        match (self.lines.last(), self.has_more) {
            (Some(last), true) => {
                let _ = write!(text, "[... start_line {} goes on ...]", last.number + 1);
            }
            (None, _) => text.push_str("no lines"),
            _ => {}
        }
        if self.is_shallow && self.lines.iter().any(|row| row.is_boundary) {
            let _ = write!(
                text,
                "\n[this clone is shallow: lines marked `or before` were changed in that commit or an older one, which is \
                 not here; `git fetch --unshallow` brings it]"
            );
        }
        text.trim_end().to_owned()
    }
}

impl Git {
    /// Returns the commit and the author of each line of a file.
    ///
    /// # Errors
    /// There is no such file in the repository, no such revision or line, or git fails.
    pub async fn blame(&self, input: &GitBlame, cancel: &CancellationToken) -> Result<BlameResult, Error> {
        let repository = self.repository(input.repository_path.as_deref())?;
        let path = std::slice::from_ref(&input.path);
        check_paths("path", path)?;
        let start = input.start_line.unwrap_or(1);
        let end = input.end_line.unwrap_or_else(|| start.saturating_add(DEFAULT_LINES - 1));
        if end < start || end - start >= MAX_LINES {
            let reason = format!(
                "lines {start} to {end} are asked for; expected 1 to {MAX_LINES} lines, the last not before the first"
            );
            return Err(Error::InvalidArgument { name: "end_line", reason });
        }
        let revision = match &input.revision {
            Some(revision) => Some(self.resolve_commit(&repository, revision, cancel).await?),
            // A bare repository has no files, so the last commit is explained.
            None if repository.top_level.is_none() => {
                Some(self.resolve_commit(&repository, "HEAD", cancel).await?)
            }
            None => None,
        };
        let overrides = self.filter_overrides(&repository, cancel).await?;
        let blame = async |start: usize, end: usize| {
            let range = format!("-L{start},{end}");
            let words = ["blame", "--porcelain", "--no-textconv", "--no-ext-diff", "--no-progress", &range];
            let invocation = GitInvocation::new(&repository, GitAccess::Read, cancel, &words)
                .max_output_bytes(MAX_OUTPUT_BYTES)
                .config(&overrides);
            let invocation = match &revision {
                Some(revision) => invocation.arg(revision),
                None => invocation,
            };
            self.run_checked("git_blame", invocation.paths(path)).await
        };
        let GitOutput { bytes: listed, is_complete } = blame(start, end).await?;
        let mut lines = parse(&listed);
        // A line of a private key is one by what stands around it, which this range need not have.
        if lines.iter().any(|row| may_be_key_line(&row.text)) {
            let around =
                blame(start.saturating_sub(KEY_CONTEXT_LINES).max(1), end.saturating_add(KEY_CONTEXT_LINES))
                    .await?;
            let text: String =
                parse(&around.bytes).iter().flat_map(|row| [row.text.as_str(), "\n"]).collect();
            let mut keys = self.commands.redactor.key_lines(&text);
            if !around.is_complete {
                // What stands around the lines beyond the cut is not known.
                keys.extend(KeyLines::of_lines(lines.iter().map(|row| row.text.as_str())));
            }
            lines.iter_mut().for_each(|row| row.text = keys.mask(&row.text));
        }
        let has_more = !is_complete || (input.end_line.is_none() && lines.len() == DEFAULT_LINES);
        Ok(BlameResult { lines, has_more, is_shallow: repository.is_shallow()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_commit_is_described_once_and_meant_often() {
        let blamed = b"c1 1 1 2\nauthor A\nauthor-time 0\nsummary s\nfilename x\n\tone\nc1 2 2\n\t\ttwo\n\
            c2 9 3 1\nauthor B\nauthor-time 86400\nfilename x\n\tauthor X\n";
        let blame = BlameResult { lines: parse(blamed), has_more: true, ..BlameResult::default() };
        let text = blame.to_text();
        assert_eq!(blame.lines[1].text, "\ttwo");
        assert_eq!(blame.lines[2].author, "B");
        assert_eq!(
            text,
            "c1 1970-01-01T00:00:00Z A\n     1  one\n     2  \ttwo\n\
             c2 1970-01-02T00:00:00Z B\n     3  author X\n[... start_line 4 goes on ...]"
        );
    }

    proptest! {
        #[test]
        fn no_listing_is_a_panic(listed: Vec<u8>) {
            BlameResult { lines: parse(&listed), has_more: true, is_shallow: true }.to_text();
        }

        #[test]
        fn no_row_is_a_panic(listed in "(author|author-time|[0-9a-f ]|\n|\t)*") {
            BlameResult { lines: parse(listed.as_bytes()), ..BlameResult::default() }.to_text();
        }
    }
}
