//! The branches and tags that a fetch has changed.

use super::error::Error;
use super::git_process::Git;
use super::invocation::{GitAccess, GitInvocation};
use super::printed_text::{count_of, lossy, printable_line};
use super::repository::Repository;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tokio_util::sync::CancellationToken;

/// The change of a branch or a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReferenceChangeKind {
    /// It is new.
    New,
    /// It has commits that it had not.
    Forward,
    /// It has lost commits that it had: somebody has rewritten it.
    Rewritten,
    /// It is gone.
    Deleted,
    /// It leads elsewhere; how that relates was not looked at, since there are many.
    Changed,
}

/// A branch or a tag that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ReferenceChange {
    /// `origin/main`, or `tag v1`.
    pub name: String,
    /// The change.
    pub change: ReferenceChangeKind,
    /// The commit before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The commit now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The number of commits that it has gained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commits: Option<usize>,
}

/// References with the objects that they lead to.
pub(super) type References = BTreeMap<String, String>;

/// The most changes whose commits are counted: each takes a run of git.
const MAX_COUNTED: usize = 30;

impl ReferenceChange {
    /// Returns the change in one line.
    pub(super) fn to_text(&self) -> String {
        let short = |commit: &Option<String>| {
            commit.iter().flat_map(|text| text.chars().take(10)).collect::<String>()
        };
        let (from, to) = (short(&self.from), short(&self.to));
        let name = printable_line(&self.name);
        match self.change {
            ReferenceChangeKind::New => format!("{name} is new at {to}"),
            ReferenceChangeKind::Forward => {
                format!(
                    "{name} {from}..{to}, {} more",
                    count_of(self.commits.unwrap_or(0), "commit", "commits")
                )
            }
            ReferenceChangeKind::Rewritten => format!("{name} was rewritten: {from}...{to}"),
            ReferenceChangeKind::Deleted => format!("{name} is gone (was {from})"),
            ReferenceChangeKind::Changed => format!("{name} {from}..{to}"),
        }
    }
}

/// Writes the changes, one a line, and how many there are beyond those that are listed.
pub(super) fn changes_to_text(text: &mut String, changes: &[ReferenceChange], total: usize) {
    for change in changes {
        let _ = write!(text, "\n{}", change.to_text());
    }
    if changes.len() < total {
        let _ = write!(text, "\n[{} more]", total - changes.len());
    }
}

/// Compares references before and after a fetch. Commits are not counted yet.
fn compare(before: &References, after: &References) -> Vec<ReferenceChange> {
    let names: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let changes = names.into_iter().filter_map(|name| {
        let (from, to) = (before.get(name).cloned(), after.get(name).cloned());
        let change = match (&from, &to) {
            (None, _) => ReferenceChangeKind::New,
            (_, None) => ReferenceChangeKind::Deleted,
            (from, to) if from == to => return None,
            _ => ReferenceChangeKind::Changed,
        };
        Some(ReferenceChange { name: short_name(name), change, from, to, commits: None })
    });
    changes.collect()
}

/// Returns the name by which a caller knows a reference.
fn short_name(reference: &str) -> String {
    match (reference.strip_prefix("refs/remotes/"), reference.strip_prefix("refs/tags/")) {
        (Some(branch), _) => branch.to_owned(),
        (_, Some(tag)) => format!("tag {tag}"),
        _ => reference.to_owned(),
    }
}

impl Git {
    /// Returns the branches of the remote `name`, and the tags.
    pub(super) async fn remote_references(
        &self,
        repository: &Repository,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<References, Error> {
        let branches = format!("refs/remotes/{name}/");
        let words =
            ["for-each-ref", "--format=%(refname)%00%(objectname)%00%(symref)", &branches, "refs/tags/"];
        let invocation = GitInvocation::new(repository, GitAccess::Read, cancel, &words);
        let listed = lossy(&self.run_checked("listing branches", invocation).await?.bytes);
        let entries = listed.lines().filter_map(|line| {
            let mut fields = line.split('\0');
            // `origin/HEAD` is another name of a branch.
            match (fields.next(), fields.next(), fields.next()) {
                (Some(name), Some(object), Some("")) => Some((name.to_owned(), object.to_owned())),
                _ => None,
            }
        });
        Ok(entries.collect())
    }

    /// Returns what has changed since `before`, the first of it with its counts of commits.
    pub(super) async fn reference_changes(
        &self,
        repository: &Repository,
        before: &References,
        after: &References,
        cancel: &CancellationToken,
    ) -> Result<Vec<ReferenceChange>, Error> {
        let mut changes = compare(before, after);
        let changed = changes.iter_mut().filter(|change| change.change == ReferenceChangeKind::Changed);
        // The rest keeps the kind `Changed`, which claims nothing about its commits.
        for change in changed.take(MAX_COUNTED) {
            let (Some(from), Some(to)) = (&change.from, &change.to) else { continue };
            let (lost, gained) = self.divergence(repository, from, to, cancel).await?;
            change.commits = Some(gained);
            change.change =
                if lost == 0 { ReferenceChangeKind::Forward } else { ReferenceChangeKind::Rewritten };
        }
        Ok(changes)
    }

    /// Returns the number of commits that only `left` has, and that only `right` has.
    pub(super) async fn divergence(
        &self,
        repository: &Repository,
        left: &str,
        right: &str,
        cancel: &CancellationToken,
    ) -> Result<(usize, usize), Error> {
        let words = ["rev-list", "--count", "--left-right", &format!("{left}...{right}")];
        let invocation = GitInvocation::new(repository, GitAccess::Read, cancel, &words);
        let counted = lossy(&self.run_checked("counting commits", invocation).await?.bytes);
        let mut counts = counted.split_ascii_whitespace().map(str::parse);
        match (counts.next(), counts.next()) {
            (Some(Ok(left)), Some(Ok(right))) => Ok((left, right)),
            _ => Err(Error::UnexpectedOutput("git rev-list")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_gone_and_changed_references_are_told_apart() {
        let references = |entries: &[(&str, &str)]| -> References {
            entries.iter().map(|(name, object)| ((*name).to_owned(), (*object).to_owned())).collect()
        };
        let before =
            references(&[("refs/remotes/o/a", "1"), ("refs/remotes/o/b", "1"), ("refs/tags/v1", "1")]);
        let after = references(&[("refs/remotes/o/b", "2"), ("refs/tags/v1", "1"), ("refs/tags/v2", "3")]);
        let changes = compare(&before, &after);
        let seen: Vec<_> = changes.iter().map(ReferenceChange::to_text).collect();
        assert_eq!(seen, ["o/a is gone (was 1)", "o/b 1..2", "tag v2 is new at 3"]);
    }
}
