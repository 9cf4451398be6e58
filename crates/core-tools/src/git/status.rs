//! What has changed since the last commit.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::error::Error;
use super::run::{Access, Call, Git};
use super::text::{fields, line, lossy, plural, seen_from};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use tokio_util::sync::CancellationToken;

/// Which repository, and how much.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitStatus {
    /// Folder
    pub repository_path: Option<String>,
    /// Default 300
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: Option<usize>,
}

/// Paths that are listed unless more are asked for.
const DEFAULT_LIMIT: usize = 300;

/// What has changed since the last commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Status {
    /// Where the work tree stands.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub head: Head,
    /// What has been begun and not finished: `merge`, `rebase`, `am`, `cherry-pick`, `revert` or `bisect`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<&'static str>,
    /// Conflicts first, then what is staged, what is not, what is untracked.
    pub changes: Vec<Change>,
    /// Changed paths there are, listed or not.
    pub total: usize,
    /// The answer was too long to be counted: there are more than `total`.
    #[serde(skip)]
    pub more: bool,
}

/// Where the work tree stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Head {
    /// The branch. Absent where HEAD is detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit. Absent where there is none yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The branch that it follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// Commits that the upstream has not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u64>,
    /// Commits that the upstream has more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<u64>,
    /// Stashed states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stashes: Option<u64>,
}

/// One changed path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Change {
    /// As seen from the folder that was named. A folder ends in `/`.
    pub path: String,
    /// Where it was, if it was renamed or copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What the next commit does to it: `added`, `modified`, `deleted`, `renamed`, `copied`, `type changed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staged: Option<&'static str>,
    /// What has happened to it beyond that, or `untracked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unstaged: Option<&'static str>,
    /// What the two sides did, where they disagree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflict: Option<&'static str>,
}

/// What a letter of git's means.
pub(super) fn verb(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'A' => "added",
        b'M' => "modified",
        b'D' => "deleted",
        b'R' => "renamed",
        b'C' => "copied",
        b'T' => "type changed",
        b'U' => "unmerged",
        _ => return None,
    })
}

fn conflict(letters: &[u8]) -> &'static str {
    match letters {
        b"DD" => "both deleted",
        b"AU" => "added by us",
        b"UD" => "deleted by them",
        b"UA" => "added by them",
        b"DU" => "deleted by us",
        b"AA" => "both added",
        _ => "both modified",
    }
}

/// `status --porcelain=v2 -z --branch --show-stash` (git-status(1), "Porcelain Format Version 2").
fn parse(listed: &[u8], prefix: &[u8]) -> Status {
    let mut status = Status::default();
    let mut fields = fields(listed);
    while let Some(entry) = fields.next() {
        let mut words = entry.splitn(2, |byte| *byte == b' ');
        let (kind, rest) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let at = |skipped: usize| {
            let mut words = rest.splitn(skipped + 1, |byte| *byte == b' ');
            let letters = words.next().unwrap_or_default();
            let path = words.nth(skipped - 1);
            (letters, path)
        };
        match kind {
            b"#" => header(rest, &mut status.head),
            b"1" => {
                let (letters, Some(path)) = at(7) else { continue };
                status.changes.push(changed(letters, seen_from(prefix, path), None));
            }
            b"2" => {
                let (letters, Some(path)) = at(8) else { continue };
                let from = fields.next().map(|from| seen_from(prefix, from));
                status.changes.push(changed(letters, seen_from(prefix, path), from));
            }
            b"u" => {
                let (letters, Some(path)) = at(9) else { continue };
                status.changes.push(Change {
                    path: seen_from(prefix, path),
                    conflict: Some(conflict(letters)),
                    ..Change::default()
                });
            }
            b"?" => status.changes.push(Change {
                path: seen_from(prefix, rest),
                unstaged: Some("untracked"),
                ..Change::default()
            }),
            _ => {}
        }
    }
    status.total = status.changes.len();
    status
}

fn changed(letters: &[u8], path: String, from: Option<String>) -> Change {
    let letter = |index: usize| letters.get(index).copied().and_then(verb);
    Change { path, from, staged: letter(0), unstaged: letter(1), conflict: None }
}

fn header(text: &[u8], head: &mut Head) {
    let text = lossy(text);
    let number = |word: Option<&str>| word?.get(1..)?.parse().ok();
    match text.split_once(' ') {
        Some(("branch.oid", commit)) if commit != "(initial)" => head.commit = Some(commit.to_owned()),
        Some(("branch.head", branch)) if branch != "(detached)" => head.branch = Some(branch.to_owned()),
        Some(("branch.upstream", upstream)) => head.upstream = Some(upstream.to_owned()),
        Some(("branch.ab", counts)) => {
            let mut counts = counts.split(' ');
            head.ahead = number(counts.next());
            head.behind = number(counts.next());
        }
        Some(("stash", count)) => head.stashes = count.parse().ok(),
        _ => {}
    }
}

impl Change {
    /// Where it stands in a list.
    fn rank(&self) -> u8 {
        match self {
            Self { conflict: Some(_), .. } => 0,
            Self { staged: Some(_), .. } => 1,
            Self { unstaged: Some("untracked"), .. } => 3,
            _ => 2,
        }
    }
}

impl Head {
    pub(super) fn to_text(&self) -> String {
        let short = |commit: &String| commit.chars().take(10).collect::<String>();
        let mut text = match (&self.branch, &self.commit) {
            (Some(branch), Some(commit)) => format!("on branch {branch} at {}", short(commit)),
            (Some(branch), None) => format!("on branch {branch}, without commits yet"),
            (None, Some(commit)) => format!("detached HEAD at {}", short(commit)),
            (None, None) => "no HEAD".to_owned(),
        };
        if let Some(upstream) = &self.upstream {
            let _ = write!(text, ", follows {upstream}");
            match (self.ahead, self.behind) {
                (Some(ahead), Some(behind)) => {
                    let _ = write!(text, " ({ahead} ahead, {behind} behind)");
                }
                _ => text.push_str(" (gone)"),
            }
        }
        if let Some(stashes) = self.stashes {
            let _ = write!(text, ", {stashes} stashed");
        }
        text
    }
}

impl Status {
    /// Everything there is to know, for people and for clients that show only text.
    pub fn to_text(&self) -> String {
        let mut text = self.head.to_text();
        if let Some(operation) = self.operation {
            let _ = write!(text, "\n{operation} in progress");
        }
        if self.total == 0 {
            text.push_str("\nclean");
            return text;
        }
        let _ = write!(text, "\n{}", plural(self.total, "changed path"));
        if self.more {
            text.push_str(", and more");
        }
        for change in &self.changes {
            let states = [
                change.conflict.map(|what| format!("conflict: {what}")),
                change.staged.map(|what| format!("staged: {what}")),
                change.unstaged.map(str::to_owned),
            ];
            let states: Vec<_> = states.into_iter().flatten().collect();
            let _ = write!(text, "\n{} ({}", line(&change.path), states.join("; "));
            if let Some(from) = &change.from {
                let _ = write!(text, " from {}", line(from));
            }
            text.push(')');
        }
        if self.changes.len() < self.total {
            let _ = write!(text, "\n[{} more; `limit` lists more]", self.total - self.changes.len());
        }
        text
    }
}

impl Git {
    /// What has changed since the last commit.
    ///
    /// Of a submodule, only another commit is a change. Untracked folders are one path.
    ///
    /// # Errors
    /// There is no repository, it has no files, or git fails.
    pub async fn status(&self, input: &GitStatus, cancel: &CancellationToken) -> Result<Status, Error> {
        let repository = self.find(input.repository_path.as_deref())?;
        repository.top("git_status")?;
        let words = [
            "status",
            "--porcelain=v2",
            "-z",
            "--branch",
            "--show-stash",
            "--ahead-behind",
            "--untracked-files=normal",
            "--ignore-submodules=dirty",
            "--find-renames",
        ];
        let filters = self.without_filters(&repository, cancel).await?;
        let call = Call::new(&repository, Access::Reads, cancel, &words).configured(&filters);
        let (listed, whole) = self.ask("git_status", call).await?;
        let mut status = parse(&listed, &repository.prefix);
        status.more = !whole;
        status.operation = repository.operation()?;
        // git sorts by name within these.
        status.changes.sort_by_key(Change::rank);
        status.changes.truncate(input.limit.unwrap_or(DEFAULT_LIMIT));
        Ok(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OID: &str = "78981922613b2afb6025042ff6bd878ac1994e85";

    #[test]
    fn each_kind_of_entry_is_understood() {
        let text = format!(
            "# branch.oid {OID}\0# branch.head main\0# branch.upstream origin/main\0# branch.ab +2 -3\0# stash 4\0\
             1 .M N... 100644 100644 100644 {OID} {OID} a b\n\"c\0\
             2 R. N... 100644 100644 100644 {OID} {OID} R100 new name\0old name\0\
             u UU N... 100644 100644 100644 100644 {OID} {OID} {OID} both\0\
             ? -rf\0! ignored\0"
        );
        let status = parse(text.as_bytes(), b"");
        let head = &status.head;
        assert_eq!((head.branch.as_deref(), head.commit.as_deref()), (Some("main"), Some(OID)));
        assert_eq!((head.ahead, head.behind, head.stashes), (Some(2), Some(3), Some(4)));
        let paths: Vec<_> = status.changes.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(paths, ["a b\n\"c", "new name", "both", "-rf"]);
        assert_eq!(status.changes[0].unstaged, Some("modified"));
        assert_eq!(status.changes[1].from.as_deref(), Some("old name"));
        assert_eq!(status.changes[1].staged, Some("renamed"));
        assert_eq!(status.changes[2].conflict, Some("both modified"));
        assert_eq!(status.total, 4);
    }

    #[test]
    fn a_repository_without_commits_has_a_branch_and_no_commit() {
        let status = parse(b"# branch.oid (initial)\0# branch.head main\0", b"");
        assert_eq!(status.to_text(), "on branch main, without commits yet\nclean");
    }

    proptest! {
        #[test]
        fn no_listing_is_a_panic(listed: Vec<u8>, prefix in "[a-c/]{0,6}") {
            parse(&listed, prefix.as_bytes()).to_text();
        }

        #[test]
        fn no_entry_is_a_panic(kind in "[#12u?!]", rest in "( |[A-Z.]|\0|[a-z0-9])*") {
            parse(format!("{kind} {rest}").as_bytes(), b"a").to_text();
        }
    }
}
