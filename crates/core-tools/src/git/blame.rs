//! Who wrote each line.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::error::Error;
use super::revision::check_paths;
use super::run::{Access, Call, Git};
use super::text::{line, lossy};
use crate::time::rfc3339;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};
use tokio_util::sync::CancellationToken;

/// Which lines of which file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitBlame {
    /// File
    pub path: String,
    /// From 1
    #[schemars(range(min = 1))]
    pub start_line: Option<usize>,
    /// Default: 300 lines
    #[schemars(range(min = 1))]
    pub end_line: Option<usize>,
    /// Default: now
    pub revision: Option<String>,
    /// Folder
    pub repository_path: Option<String>,
}

const DEFAULT_LINES: usize = 300;
const MOST_LINES: usize = 10_000;
/// Enough to mask what is cut, and far more than lines of text have.
const CAPTURE: usize = 8 * 1024 * 1024;

/// The end of the year 9999.
const LATEST: u64 = 253_402_300_799;

/// Who wrote each line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Blame {
    /// The lines.
    pub lines: Vec<BlameLine>,
    /// There may be more after them.
    pub more: bool,
}

/// One line, and where it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BlameLine {
    /// Its number, from 1.
    pub number: u32,
    /// The commit. All zeros: not committed yet.
    pub commit: String,
    /// The author.
    pub author: String,
    /// When it was written, in seconds since 1970.
    pub time: u64,
    /// The line.
    pub text: String,
}

/// `blame --porcelain` (git-blame(1), "The porcelain format"): facts of a commit come with its first line.
fn parse(listed: &[u8]) -> Vec<BlameLine> {
    let mut known: HashMap<String, (String, u64)> = HashMap::new();
    let mut lines = Vec::new();
    let mut current = BlameLine::default();
    let mut fresh = true;
    for row in listed.split(|byte| *byte == b'\n') {
        if let Some(text) = row.strip_prefix(b"\t") {
            let facts = known.entry(current.commit.clone()).or_default();
            current.author.clone_from(&facts.0);
            current.time = facts.1;
            current.text = lossy(text);
            lines.push(std::mem::take(&mut current));
            fresh = true;
            continue;
        }
        let row = lossy(row);
        let Some((word, rest)) = row.split_once(' ') else { continue };
        if fresh {
            current.commit = word.to_owned();
            current.number =
                rest.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or_default();
            fresh = false;
            continue;
        }
        match word {
            "author" => known.entry(current.commit.clone()).or_default().0 = rest.to_owned(),
            "author-time" => {
                // Four digits of years; a time before 1970 is shown as 1970.
                let time = rest.parse().unwrap_or_default();
                known.entry(current.commit.clone()).or_default().1 = Ord::min(time, LATEST);
            }
            _ => {}
        }
    }
    lines
}

impl Blame {
    /// Everything there is to know, for people and for clients that show only text.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let mut last = None;
        for row in &self.lines {
            // Said once for lines that follow each other.
            if last != Some(&row.commit) {
                let commit: String = row.commit.chars().take(10).collect();
                let date = rfc3339(UNIX_EPOCH + Duration::from_secs(row.time));
                let _ = writeln!(text, "{commit} {date} {}", line(&row.author));
                last = Some(&row.commit);
            }
            let _ = writeln!(text, "{:>6}  {}", row.number, row.text);
        }
        match (self.lines.last(), self.more) {
            (Some(last), true) => {
                let _ = write!(text, "[... start_line {} goes on ...]", last.number + 1);
            }
            (None, _) => text.push_str("no lines"),
            _ => {}
        }
        text.trim_end().to_owned()
    }
}

impl Git {
    /// Who wrote each line of a file.
    ///
    /// # Errors
    /// There is no such file in the repository, no such revision or line, or git fails.
    pub async fn blame(&self, input: &GitBlame, cancel: &CancellationToken) -> Result<Blame, Error> {
        let repository = self.find(input.repository_path.as_deref())?;
        let path = std::slice::from_ref(&input.path);
        check_paths("path", path)?;
        let start = input.start_line.unwrap_or(1);
        let end = input.end_line.unwrap_or_else(|| start.saturating_add(DEFAULT_LINES - 1));
        if end < start || end - start >= MOST_LINES {
            let reason = format!(
                "lines {start} to {end} are asked for; expected 1 to {MOST_LINES} lines, the last not before the first"
            );
            return Err(Error::Argument { name: "end_line", reason });
        }
        let revision = match &input.revision {
            Some(revision) => Some(self.commit_of(&repository, revision, cancel).await?),
            None if repository.top.is_none() => Some(self.commit_of(&repository, "HEAD", cancel).await?),
            None => None,
        };
        let configured = self.without_filters(&repository, cancel).await?;
        let range = format!("-L{start},{end}");
        let words = ["blame", "--porcelain", "--no-textconv", "--no-ext-diff", "--no-progress", &range];
        let call =
            Call::new(&repository, Access::Reads, cancel, &words).capture(CAPTURE).configured(&configured);
        let call = match revision {
            Some(revision) => call.arg(revision),
            None => call,
        };
        let (listed, whole) = self.ask("git_blame", call.paths(path)).await?;
        let lines = parse(&listed);
        let more = !whole || (input.end_line.is_none() && lines.len() == DEFAULT_LINES);
        Ok(Blame { lines, more })
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
        let blame = Blame { lines: parse(blamed), more: true };
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
            Blame { lines: parse(&listed), more: true }.to_text();
        }

        #[test]
        fn no_row_is_a_panic(listed in "(author|author-time|[0-9a-f ]|\n|\t)*") {
            Blame { lines: parse(listed.as_bytes()), more: false }.to_text();
        }
    }
}
