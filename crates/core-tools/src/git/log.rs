//! `git_log`: lists commits.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::commit_stat::CommitStat;
use super::error::Error;
use super::git_process::Git;
use super::invocation::{GitAccess, GitInvocation};
use super::printed_text::{lossy, nul_fields, printable_line, truncate_to_lines};
use super::repository::Repository;
use super::revision::check_paths;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use tokio_util::sync::CancellationToken;

/// The commits to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitLog {
    /// A folder of the repository, to which other paths are relative. Default: the first root.
    pub repository_path: Option<String>,
    /// The most commits to list. Default: 10.
    #[schemars(range(min = 1, max = 1_000), extend("alias" = "max_count"))]
    pub max_results: Option<usize>,
    /// The commit, branch or tag to begin with, or a range: `main..topic` is what only topic has. Default: `HEAD`.
    pub revision: Option<String>,
    /// Only commits that change these files or folders.
    #[schemars(extend("alias" = "files"))]
    pub paths: Option<Vec<String>>,
    /// Lists the files that each commit changes, with their counts of lines. Default: false.
    pub stat: Option<bool>,
    /// Begins with every branch and tag, those of remotes too. Default: false.
    #[schemars(extend("unlisted" = true))]
    pub all: Option<bool>,
}

const DEFAULT_COUNT: usize = 10;
/// The most commits that are counted: in a large history counting takes seconds.
const MAX_COUNTED_COMMITS: usize = 10_000;
/// The most bytes of one message that are shown.
const MAX_MESSAGE_BYTES: usize = 2_000;

/// Commits, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct CommitLog {
    /// The commits.
    pub commits: Vec<CommitEntry>,
    /// The number of commits from the first on, listed or not. Where that is 10,000, there may be more.
    pub total: usize,
    /// True if the clone is shallow: older commits are missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shallow: bool,
}

/// One commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct CommitEntry {
    /// Its object name.
    pub commit: String,
    /// Its parents; two or more for a merge.
    pub parents: Vec<String>,
    /// Name and address of the author.
    pub author: String,
    /// The author date (RFC 3339).
    pub date: String,
    /// The branches and tags that point to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refs: Vec<String>,
    /// True if the parents are missing, as the clone is shallow: the commit seems to add every file.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub grafted: bool,
    /// The first paragraph of the message, in one line.
    pub subject: String,
    /// The rest of the message, its first 2,000 bytes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// The files that it changes, where the call asked for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stat: Option<CommitStat>,
}

/// Seven fields, each ended by NUL; NUL is in no commit message (git-commit-tree(1)).
const FORMAT: &str = "--format=tformat:%H%x00%P%x00%an <%ae>%x00%aI%x00%D%x00%s%x00%b";
const FIELDS_PER_COMMIT: usize = 7;

/// Parses output in [`FORMAT`]. Bodies are masked before they are cut.
fn parse(listed: &[u8], mask: impl Fn(&[u8]) -> String) -> Vec<CommitEntry> {
    let fields: Vec<_> = nul_fields(listed).collect();
    fields
        // An output that was cut ends with a part of a commit, which is left out.
        .chunks_exact(FIELDS_PER_COMMIT)
        .filter_map(|fields| {
            let [commit, parents, author, date, refs, subject, body] = fields else { return None };
            let words = |text: &[u8], separator: &str| {
                let text = lossy(text);
                text.split(separator).filter(|word| !word.is_empty()).map(str::to_owned).collect()
            };
            let body = mask(body);
            let body = body.trim();
            let kept = truncate_to_lines(body, MAX_MESSAGE_BYTES);
            Some(CommitEntry {
                commit: lossy(commit),
                parents: words(parents, " "),
                author: lossy(author),
                date: lossy(date),
                refs: words(refs, ", "),
                grafted: false,
                subject: lossy(subject),
                body: if kept.len() == body.len() { kept.to_owned() } else { format!("{kept}[...]") },
                stat: None,
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
        if self.grafted {
            text.push_str("\nits parents are not in this shallow clone, so that it seems to add every file");
        }
        if self.parents.len() > 1 {
            let _ = write!(text, "\nmerge: {}", self.parents.join(" "));
        }
        let _ = write!(
            text,
            "\n{} {}\n    {}",
            self.date,
            printable_line(&self.author),
            printable_line(&self.subject)
        );
        if !self.body.is_empty() {
            // The line that git has between subject and body: what follows may be copied into a message.
            text.push('\n');
        }
        for part in self.body.lines() {
            let _ = write!(text, "\n    {}", printable_line(part));
        }
        if let Some(stat) = &self.stat {
            text.push_str(&stat.to_text());
        }
        text
    }
}

impl CommitLog {
    /// Returns the result as text, for people and for clients that show no structured content.
    pub fn to_text(&self) -> String {
        let mut text = self.commits.iter().map(CommitEntry::to_text).collect::<Vec<_>>().join("\n\n");
        if self.commits.is_empty() {
            text.push_str("no commits");
        }
        if self.commits.len() < self.total {
            let or_more = if self.total == MAX_COUNTED_COMMITS { " or more" } else { "" };
            let _ = write!(
                text,
                "\n\n[{} of {}{or_more} commits; max_results lists more]",
                self.commits.len(),
                self.total
            );
        }
        if self.shallow {
            text.push_str(
                "\n\n[this clone is shallow: older commits are not here; `git fetch --unshallow` brings them]",
            );
        }
        text
    }
}

impl Git {
    /// Returns the commits that lead to a revision, newest first.
    ///
    /// # Errors
    /// There is no repository or no such revision, or git fails.
    pub async fn log(&self, input: &GitLog, cancel: &CancellationToken) -> Result<CommitLog, Error> {
        let repository = self.repository(input.repository_path.as_deref())?;
        let paths = input.paths.as_deref().unwrap_or_default();
        check_paths("paths", paths)?;
        let Some(start) = self.log_start(&repository, input, cancel).await? else {
            return Ok(CommitLog { commits: Vec::new(), total: 0, shallow: false });
        };
        let count = input.max_results.unwrap_or(DEFAULT_COUNT);
        // One more than is listed tells if there are more; only then they are counted, which walks the history.
        let mut commits = self.commits(&repository, &start, count + 1, paths, cancel).await?;
        let total = if commits.len() > count {
            Ord::max(self.count_commits(&repository, &start, paths, cancel).await?, commits.len())
        } else {
            commits.len()
        };
        commits.truncate(count);
        if input.stat == Some(true) && !commits.is_empty() {
            self.add_stats(&repository, &mut commits, paths, cancel).await?;
        }
        Ok(CommitLog { commits, total, shallow: repository.is_shallow()? })
    }

    /// Returns the arguments that say where a log begins; `None` where there are no commits yet.
    async fn log_start(
        &self,
        repository: &Repository,
        input: &GitLog,
        cancel: &CancellationToken,
    ) -> Result<Option<Vec<String>>, Error> {
        let all = input.all == Some(true);
        if let Some(revision) = &input.revision {
            if all {
                let reason = "`revision` says where to begin already; give one of the two".to_owned();
                return Err(Error::InvalidArgument { name: "all", reason });
            }
            return Ok(Some(self.resolve_range(repository, revision, cancel).await?.to_arguments()));
        }
        let head = self.head_commit(repository, cancel).await?;
        if !all {
            return Ok(head.map(|head| vec![head]));
        }
        // Not by `--all`, which has stashes and notes too.
        let every = ["--branches", "--remotes", "--tags"].map(str::to_owned);
        Ok(Some(every.into_iter().chain(head).collect()))
    }

    /// Returns the number of commits that lead to `start` and change `paths`, up to [`MAX_COUNTED_COMMITS`].
    async fn count_commits(
        &self,
        repository: &Repository,
        start: &[String],
        paths: &[String],
        cancel: &CancellationToken,
    ) -> Result<usize, Error> {
        let invocation = GitInvocation::new(repository, GitAccess::Read, cancel, &["rev-list", "--count"])
            .arg(format!("--max-count={MAX_COUNTED_COMMITS}"))
            .args(start);
        let counted = self.run_checked("git_log", invocation.paths(paths)).await?.bytes;
        lossy(counted.trim_ascii()).parse().map_err(|_| Error::UnexpectedOutput("git rev-list"))
    }

    /// Returns at most `count` commits that lead to `start` and change `paths`. `start` has object names and options, no
    /// text of a caller's.
    pub(super) async fn commits(
        &self,
        repository: &Repository,
        start: &[String],
        count: usize,
        paths: &[String],
        cancel: &CancellationToken,
    ) -> Result<Vec<CommitEntry>, Error> {
        let words = [
            "log",
            "-z",
            // The form of the output, whatever the configuration says.
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--no-show-signature",
            "--no-patch",
            "--no-mailmap",
            "--encoding=UTF-8",
            "--decorate=short",
            // Explicit, as the configuration may leave some out (`log.excludeDecoration`).
            "--decorate-refs=HEAD",
            "--decorate-refs=refs/heads/",
            "--decorate-refs=refs/remotes/",
            "--decorate-refs=refs/tags/",
            FORMAT,
        ];
        let invocation = GitInvocation::new(repository, GitAccess::Read, cancel, &words)
            .arg(format!("--max-count={count}"))
            .args(start);
        let listed = self.run_checked("git_log", invocation.paths(paths)).await?.bytes;
        let mut commits = parse(&listed, |text| self.mask(text));
        if repository.is_shallow()? {
            for commit in commits.iter_mut().filter(|commit| commit.parents.is_empty()) {
                // git puts the word before the branches and tags.
                commit.grafted = commit.refs.first().is_some_and(|word| word == "grafted");
                commit.refs.drain(..usize::from(commit.grafted));
            }
        }
        Ok(commits)
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
