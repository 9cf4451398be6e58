//! Finds the files that the commits of a log change.

use super::commit_stat::CommitStat;
use super::diff;
use super::error::Error;
use super::git_process::Git;
use super::invocation::{GitAccess, GitInvocation};
use super::log::CommitEntry;
use super::printed_text::{lossy, nul_fields};
use super::repository::Repository;
use std::collections::HashMap;
use tokio_util::sync::CancellationToken;

/// The most files of one commit that are listed.
const MAX_FILES: usize = 50;

/// The options of the list. Renames are found as everywhere, and merges compared with their first parent.
const OPTIONS: [&str; 15] = [
    "diff-tree",
    "--stdin",
    "-z",
    "-r",
    "--root",
    "--raw",
    "--numstat",
    "--diff-merges=first-parent",
    "--find-renames",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-relative",
    "--ignore-submodules=dirty",
    "-O/dev/null",
];

/// Splits the output of `diff-tree --stdin -z --raw --numstat` into commits, each with its entries: a field of its own
/// names the commit, unless it is the path of the entry before it.
fn split_by_commit(listed: &[u8]) -> HashMap<String, Vec<u8>> {
    let mut commits: HashMap<String, Vec<u8>> = HashMap::new();
    let mut current = String::new();
    let mut fields = nul_fields(listed);
    while let Some(field) = fields.next() {
        let paths = match field.first() {
            Some(b':') => raw_paths(field),
            // A rename or a copy has no path in this field, and two of its own.
            _ if field.contains(&b'\t') => {
                if field.splitn(3, |byte| *byte == b'\t').nth(2) == Some(b"") {
                    2
                } else {
                    0
                }
            }
            _ => {
                current = lossy(field);
                continue;
            }
        };
        let entries = commits.entry(current.clone()).or_default();
        for part in std::iter::once(field).chain(fields.by_ref().take(paths)) {
            entries.extend_from_slice(part);
            entries.push(0);
        }
    }
    commits
}

/// Returns the number of paths that follow a raw entry: two for a rename or a copy.
fn raw_paths(entry: &[u8]) -> usize {
    let letter = entry.rsplit(|byte| *byte == b' ').next().and_then(<[u8]>::first);
    if matches!(letter, Some(b'R' | b'C')) { 2 } else { 1 }
}

impl Git {
    /// Adds to each of `commits` the files that it changes, of all or of `paths`.
    pub(super) async fn add_stats(
        &self,
        repository: &Repository,
        commits: &mut [CommitEntry],
        paths: &[String],
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        // One process compares all commits, since starting git takes longer than a comparison.
        let names: String = commits.iter().map(|commit| format!("{}\n", commit.commit)).collect();
        let invocation = GitInvocation::new(repository, GitAccess::Read, cancel, &OPTIONS).stdin(names);
        let invocation = if paths.is_empty() { invocation } else { invocation.paths(paths) };
        let listed = self.run_checked("git_log", invocation).await?.bytes;
        let mut by_commit = split_by_commit(&listed);
        for commit in commits {
            let entries = by_commit.remove(&commit.commit).unwrap_or_default();
            let mut diff = diff::parse(&entries, &repository.prefix);
            // The totals were counted over all files before the list is cut.
            diff.files.truncate(MAX_FILES);
            commit.stat = Some(CommitStat {
                files: diff.files,
                total: diff.total,
                insertions: diff.insertions,
                deletions: diff.deletions,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn entries_belong_to_the_commit_before_them_even_if_a_path_looks_like_one() {
        let id = "40c67ba6cf4120634290d235659b96d56e66a4ac";
        let listed = format!(
            "{id}\0:1 1 a a R100\0a\0{id}\0:1 1 a b M\0c\x000\t0\t\0a\0{id}\x001\t2\tc\0other\0:0 1 0 a A\0x\x003\t0\tx\0"
        );
        let commits = split_by_commit(listed.as_bytes());
        let first = diff::parse(&commits[id], b"");
        assert_eq!((first.total, first.insertions, first.deletions), (2, 1, 2));
        assert_eq!(first.files[0].path, id);
        assert_eq!(diff::parse(&commits["other"], b"").insertions, 3);
    }

    proptest! {
        #[test]
        fn no_listing_is_a_panic(listed in "(:|\0|\t|[0-9A-Z -])*") {
            split_by_commit(listed.as_bytes());
        }
    }
}
