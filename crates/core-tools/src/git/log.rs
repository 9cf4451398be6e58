//! Commits.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::error::Error;
use super::repository::Repository;
use super::revision::check_paths;
use super::run::{Access, Call, Git};
use super::text::{beginning, fields, line, lossy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use tokio_util::sync::CancellationToken;

/// Which commits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitLog {
    /// Folder
    pub repository_path: Option<String>,
    /// Default 10
    #[schemars(range(min = 1, max = 1_000))]
    pub max_count: Option<usize>,
    /// Or A..B
    pub revision: Option<String>,
    /// Only these
    pub paths: Option<Vec<String>>,
}

const DEFAULT_COUNT: usize = 10;
/// Counting ends here.
const MOST_COUNTED: usize = 10_000;
/// What is shown of one message.
const MESSAGE_BYTES: usize = 2_000;

/// Commits, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Log {
    /// The commits.
    pub commits: Vec<CommitEntry>,
    /// How many there are from the first on. Where that is 10,000, there may be more.
    pub total: usize,
}

/// One commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CommitEntry {
    /// Its name.
    pub commit: String,
    /// Those it comes after; two or more for a merge.
    pub parents: Vec<String>,
    /// Name and address.
    pub author: String,
    /// When it was written (RFC 3339).
    pub date: String,
    /// Branches and tags that point to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refs: Vec<String>,
    /// The first paragraph of the message, in one line.
    pub subject: String,
    /// The rest, its first 2,000 bytes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub body: String,
}

/// Seven fields, each ended by NUL; NUL is in no commit message (git-commit-tree(1)).
pub(super) const FORMAT: &str = "--format=tformat:%H%x00%P%x00%an <%ae>%x00%aI%x00%D%x00%s%x00%b";
const FIELDS: usize = 7;

pub(super) fn parse(listed: &[u8], mask: impl Fn(&[u8]) -> String) -> Vec<CommitEntry> {
    let fields: Vec<_> = fields(listed).collect();
    fields
        .chunks_exact(FIELDS)
        .filter_map(|fields| {
            let [commit, parents, author, date, refs, subject, body] = fields else { return None };
            let words = |text: &[u8], separator: &str| {
                let text = lossy(text);
                text.split(separator).filter(|word| !word.is_empty()).map(str::to_owned).collect()
            };
            let body = mask(body);
            let body = body.trim();
            let (kept, whole) = beginning(body, MESSAGE_BYTES);
            Some(CommitEntry {
                commit: lossy(commit),
                parents: words(parents, " "),
                author: lossy(author),
                date: lossy(date),
                refs: words(refs, ", "),
                subject: lossy(subject),
                body: if whole { kept.to_owned() } else { format!("{kept}[...]") },
            })
        })
        .collect()
}

impl CommitEntry {
    pub(super) fn to_text(&self) -> String {
        let mut text = format!("commit {}", self.commit);
        if !self.refs.is_empty() {
            let _ = write!(text, " ({})", self.refs.join(", "));
        }
        if self.parents.len() > 1 {
            let _ = write!(text, "\nmerge: {}", self.parents.join(" "));
        }
        let _ = write!(text, "\n{} {}\n    {}", self.date, line(&self.author), line(&self.subject));
        for part in self.body.lines() {
            let _ = write!(text, "\n    {}", line(part));
        }
        text
    }
}

impl Log {
    /// Everything there is to know, for people and for clients that show only text.
    pub fn to_text(&self) -> String {
        let mut text = self.commits.iter().map(CommitEntry::to_text).collect::<Vec<_>>().join("\n\n");
        if self.commits.is_empty() {
            text.push_str("no commits");
        }
        if self.commits.len() < self.total {
            let or_more = if self.total == MOST_COUNTED { " or more" } else { "" };
            let _ = write!(
                text,
                "\n\n[{} of {}{or_more} commits; max_count lists more]",
                self.commits.len(),
                self.total
            );
        }
        text
    }
}

impl Git {
    /// Commits that lead to a revision, newest first.
    ///
    /// # Errors
    /// There is no repository or no such revision, or git fails.
    pub async fn log(&self, input: &GitLog, cancel: &CancellationToken) -> Result<Log, Error> {
        let repository = self.find(input.repository_path.as_deref())?;
        let paths = input.paths.as_deref().unwrap_or_default();
        check_paths("paths", paths)?;
        let revision = match &input.revision {
            Some(revision) => self.range(&repository, revision, cancel).await?.to_argument(),
            None => match self.head(&repository, cancel).await? {
                Some(head) => head,
                None => return Ok(Log { commits: Vec::new(), total: 0 }),
            },
        };
        let count = input.max_count.unwrap_or(DEFAULT_COUNT);
        let commits = self.commits(&repository, &revision, count + 1, paths, cancel).await?;
        let total = if commits.len() > count {
            let call = Call::new(&repository, Access::Reads, cancel, &["rev-list", "--count"]);
            let call = call.arg(format!("--max-count={MOST_COUNTED}")).arg("--end-of-options").arg(&revision);
            let (counted, _) = self.ask("git_log", call.paths(paths)).await?;
            let counted = lossy(counted.trim_ascii()).parse().map_err(|_| Error::Answer("git rev-list"))?;
            Ord::max(counted, commits.len())
        } else {
            commits.len()
        };
        let commits = commits.into_iter().take(count).collect();
        Ok(Log { commits, total })
    }

    pub(super) async fn commits(
        &self,
        repository: &Repository,
        revision: &str,
        count: usize,
        paths: &[String],
        cancel: &CancellationToken,
    ) -> Result<Vec<CommitEntry>, Error> {
        let words = [
            "log",
            "-z",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--no-show-signature",
            "--no-patch",
            "--no-mailmap",
            "--encoding=UTF-8",
            "--decorate=short",
            // Whatever the configuration leaves out.
            "--decorate-refs=HEAD",
            "--decorate-refs=refs/heads/",
            "--decorate-refs=refs/remotes/",
            "--decorate-refs=refs/tags/",
            FORMAT,
        ];
        let call = Call::new(repository, Access::Reads, cancel, &words)
            .arg(format!("--max-count={count}"))
            .args(["--end-of-options", revision]);
        let (listed, _) = self.ask("git_log", call.paths(paths)).await?;
        Ok(parse(&listed, |text| self.mask(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_may_hold_anything_but_nul() {
        let listed =
            b"c1\0p1 p2\0A <a@b>\x002026-01-01T00:00:00Z\0HEAD -> main, tag: v1\0s\x1e\0body\n\x1emore\n\0\
            c2\0\0\xff <>\0d\0\0\0\0";
        let commits = parse(listed, lossy);
        assert_eq!(commits.len(), 2);
        assert_eq!(commits[0].parents, ["p1", "p2"]);
        assert_eq!(commits[0].refs, ["HEAD -> main", "tag: v1"]);
        assert_eq!(commits[0].body, "body\n\x1emore");
        assert_eq!(commits[1].author, "\u{fffd} <>");
        assert!(commits[1].parents.is_empty() && commits[1].body.is_empty());
    }

    proptest! {
        #[test]
        fn no_listing_is_a_panic(listed: Vec<u8>) {
            for commit in parse(&listed, lossy) {
                commit.to_text();
            }
        }
    }
}
