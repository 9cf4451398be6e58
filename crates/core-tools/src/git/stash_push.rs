//! Puts changes aside, for `git_stash`.

use super::error::Error;
use super::git_process::{Git, GitOutput};
use super::invocation::{GitAccess, GitInvocation};
use super::printed_text::{count_of, first_names, nul_fields, printable_list};
use super::repository::Repository;
use super::revision::check_paths;
use super::stash::GitStash;
use std::collections::HashSet;
use tokio_util::sync::CancellationToken;

impl Git {
    /// Stashes all changes, or those of `files`. Returns the summary.
    pub(super) async fn stash_push(
        &self,
        repository: &Repository,
        input: &GitStash,
        cancel: &CancellationToken,
    ) -> Result<String, Error> {
        let top = repository.top_level("git_stash")?;
        repository.check_writable()?;
        self.refuse_configured_programs(repository, "git_stash", cancel).await?;
        let Some(head) = self.head_commit(repository, cancel).await? else {
            return Err(Error::NothingToDo(
                "there are no commits yet, so there is nothing to put changes aside from",
            ));
        };
        let include_untracked = input.include_untracked == Some(true);
        let files = input.files.as_deref().unwrap_or_default();
        check_paths("files", files)?;
        let changed = literal(GitInvocation::changed_names(repository, cancel, &head), files);
        let GitOutput { bytes: mut touched, mut is_complete } =
            self.run_checked("git_stash", changed).await?;
        self.refuse_untracked(repository, top, nul_fields(&touched), "git_stash", cancel).await?;
        if include_untracked {
            let untracked = GitInvocation::new(repository, GitAccess::Read, cancel, &LIST_UNTRACKED);
            let more = self.run_checked("git_stash", literal(untracked, files)).await?;
            touched.extend(untracked_paths(&more.bytes));
            is_complete &= more.is_complete;
        }
        if !is_complete {
            return Err(Error::TooLarge("too many files have changed to see whether others would be lost; run git itself for that (run_command)".to_owned()));
        }
        if touched.is_empty() && self.count_staged(repository, files, cancel).await? == 0 {
            return Err(Error::NothingToDo(if files.is_empty() {
                NOTHING_TO_STASH
            } else {
                NO_FILE_TO_STASH
            }));
        }
        repository.check_changes(top, nul_fields(&touched))?;
        let invocation =
            GitInvocation::new(repository, GitAccess::Write, cancel, &["stash", "push", "--quiet"]);
        let invocation = if include_untracked { invocation.arg("--include-untracked") } else { invocation };
        let invocation = match &input.message {
            Some(message) => invocation.arg(format!("--message={}", message.replace(char::is_control, " "))),
            None => invocation,
        };
        // git exits with success even if there was nothing that it can stash.
        let before = self.latest_stash(repository, cancel).await?;
        self.run_checked("git_stash", literal(invocation, files)).await?;
        let Some(stash) =
            self.latest_stash(repository, cancel).await?.filter(|stash| before.as_ref() != Some(stash))
        else {
            return Err(Error::NothingToDo(NOTHING_TO_STASH));
        };
        let summary =
            format!("put aside the changes of {}", count_of(nul_fields(&touched).count(), "path", "paths"));
        if files.is_empty() {
            return Ok(summary);
        }
        // git saves the whole index, and so what is staged of other files.
        let saved = self.differing_paths(repository, &head, &stash, cancel).await?.bytes;
        let named: HashSet<_> = nul_fields(&touched).collect();
        let others: Vec<_> = nul_fields(&saved).filter(|path| !named.contains(path)).collect();
        if others.is_empty() {
            return Ok(summary);
        }
        Ok(format!(
            "{summary}. The stash also holds what is staged of {}, which stays as it is here: {}. To apply the stash brings \
             that back too",
            count_of(others.len(), "other path", "other paths"),
            printable_list(&first_names(&repository.prefix, others.into_iter()))
        ))
    }
}

/// Adds paths, which are taken literally. Not by the variable that says so: `git stash` runs other commands of git, which
/// use patterns among each other.
fn literal<'a>(invocation: GitInvocation<'a>, paths: &[String]) -> GitInvocation<'a> {
    if paths.is_empty() {
        return invocation;
    }
    invocation.arg("--").args(paths.iter().map(|path| format!(":(literal){path}")))
}

/// The reason that nothing is stashed of the files that were named.
const NO_FILE_TO_STASH: &str = "there is nothing to put aside: none of the files that `files` names has changed; new \
                                files are taken along with `include_untracked`";

/// The reason that nothing is stashed. If anything has changed, it is submodules.
const NOTHING_TO_STASH: &str =
    "there is nothing to put aside; submodules and repositories within this one stay as they are";

/// Lists untracked files, also those in untracked folders.
// By `status`, which leaves out ignored files as `stash` does.
const LIST_UNTRACKED: [&str; 6] =
    ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=all", "--no-renames"];

/// Returns the untracked paths in the output of [`LIST_UNTRACKED`], each ended by NUL. A folder there is another
/// repository, which no stash takes.
fn untracked_paths(listed: &[u8]) -> Vec<u8> {
    let paths = nul_fields(listed).filter_map(|entry| entry.strip_prefix(b"?? "));
    let paths = paths.filter(|path| !path.ends_with(b"/"));
    paths.flat_map(|path| path.iter().copied().chain([0])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn untracked_files_are_those_with_question_marks() {
        assert_eq!(untracked_paths(b" M a\0?? b c\0?? nested/\0?? ?? d\0"), b"b c\0?? d\0");
    }

    proptest! {
        #[test]
        fn no_listing_is_a_panic(listed: Vec<u8>) {
            untracked_paths(&listed);
        }
    }
}
