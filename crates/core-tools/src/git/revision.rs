//! Resolves revisions, as callers write them, to object names.

use super::error::Error;
use super::git_process::Git;
use super::invocation::{GitAccess, GitInvocation};
use super::printed_text::lossy;
use super::repository::Repository;
use tokio_util::sync::CancellationToken;

/// The longest revision or name, in bytes. Nobody writes a longer one.
const MAX_BYTES: usize = 1_000;

/// Refuses text that git could take for an option, or that no revision can hold.
pub(super) fn check_argument(name: &'static str, text: &str) -> Result<(), Error> {
    let reason = if text.is_empty() {
        "it is empty"
    } else if text.starts_with('-') {
        "it begins with `-`"
    } else if text.len() > MAX_BYTES {
        "it is longer than 1000 bytes"
    } else if text.contains(char::is_control) {
        "it has a control character"
    } else {
        return Ok(());
    };
    Err(Error::InvalidArgument { name, reason: reason.to_owned() })
}

/// Refuses paths that no file can have.
pub(super) fn check_paths(name: &'static str, paths: &[String]) -> Result<(), Error> {
    let reason = if paths.iter().any(String::is_empty) {
        "a path is empty; `.` is the folder itself"
    } else if paths.iter().any(|path| path.contains('\0')) {
        "a path has a NUL character"
    } else {
        return Ok(());
    };
    Err(Error::InvalidArgument { name, reason: reason.to_owned() })
}

/// The commit, or the two commits, that a revision names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RevisionRange {
    Single(String),
    /// `a..b`, or `a...b` if `symmetric`.
    Between {
        from: String,
        to: String,
        symmetric: bool,
    },
    /// `a^!`: one commit without those that led to it.
    Only {
        commit: String,
        parents: Vec<String>,
    },
}

/// The forms of a revision that stand for the parents of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ParentForm<'a> {
    /// `a^!`
    Only(&'a str),
    /// `a^-` and `a^-2`: what a commit brought beside its first or second parent.
    Since(&'a str, u32),
    /// `a^@`
    All,
}

fn parent_form(text: &str) -> Option<ParentForm<'_>> {
    if text.contains(':') {
        return None;
    }
    if let Some(commit) = text.strip_suffix("^!") {
        return Some(ParentForm::Only(or_head(commit)));
    }
    if text.ends_with("^@") {
        return Some(ParentForm::All);
    }
    let (commit, number) = text.rsplit_once("^-")?;
    let number = if number.is_empty() { 1 } else { number.parse().ok()? };
    Some(ParentForm::Since(or_head(commit), number))
}

fn or_head(end: &str) -> &str {
    if end.is_empty() { "HEAD" } else { end }
}

/// Splits `a..b` and `a...b`. An end that is left out is `HEAD`.
fn split_range(text: &str) -> Option<(&str, &str, bool)> {
    // In `HEAD:../file` and `:/text` two dots are no range.
    if text.contains(':') {
        return None;
    }
    let (from, to) = text.split_once("..")?;
    match to.strip_prefix('.') {
        Some(to) => Some((or_head(from), or_head(to), true)),
        None => Some((or_head(from), or_head(to), false)),
    }
}

impl Git {
    /// Returns the name of the object that `revision` names; of type `kind`, unless that is empty.
    pub(super) async fn resolve_object(
        &self,
        repository: &Repository,
        revision: &str,
        kind: &str,
        cancel: &CancellationToken,
    ) -> Result<String, Error> {
        check_argument("revision", revision)?;
        if revision.starts_with(":/") && !kind.is_empty() {
            // After `:/` a suffix would be a part of the text to search for, so the type is checked in a second run.
            let object = Box::pin(self.resolve_object(repository, revision, "", cancel)).await?;
            return Box::pin(self.resolve_object(repository, &object, kind, cancel)).await;
        }
        let invocation = GitInvocation::new(
            repository,
            GitAccess::Read,
            cancel,
            &["rev-parse", "--verify", "--quiet", "--end-of-options"],
        );
        let suffix = if kind.is_empty() { String::new() } else { format!("^{{{kind}}}") };
        let output = self.run(invocation.arg(format!("{revision}{suffix}"))).await?;
        let object = lossy(output.stdout.bytes().trim_ascii());
        // 40 digits of SHA-1, 64 of SHA-256.
        let is_object_name = object.len() >= 40 && object.bytes().all(|byte| byte.is_ascii_hexdigit());
        if output.success() && is_object_name {
            return Ok(object);
        }
        // Files, which follow a colon, are of another type, and a partial clone may lack them.
        if !kind.is_empty() && !revision.contains(':') {
            self.refuse_damaged(repository, revision, kind, cancel).await?;
        }
        let hint = if revision == "HEAD" {
            ": there are no commits yet"
        } else if repository.is_shallow()? {
            ": this clone is shallow, and what is older is not in it (`git fetch --unshallow` brings it)"
        } else {
            ""
        };
        Err(Error::UnknownRevision(revision.to_owned(), hint))
    }

    /// Refuses if `revision`, which leads to no object of type `kind`, names one that is missing or cannot be read.
    async fn refuse_damaged(
        &self,
        repository: &Repository,
        revision: &str,
        kind: &str,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let read = |words: &[&str]| GitInvocation::new(repository, GitAccess::Read, cancel, words);
        match Box::pin(self.resolve_object(repository, revision, "", cancel)).await {
            // Whoever writes an object name may name one that never was here.
            Ok(object) if object == revision => Ok(()),
            Ok(object) => {
                let found = self.run(read(&["cat-file", "-t", &object])).await?;
                if found.success() && found.stdout.bytes().trim_ascii() != kind.as_bytes() {
                    return Ok(());
                }
                Err(Error::Damaged(format!(
                    "`{revision}` names the object {object}, which is missing or cannot be read"
                )))
            }
            // Before the first commit, `HEAD` names a branch all the same. It does not if the branch cannot be read.
            Err(Error::UnknownRevision(..)) if revision == "HEAD" => {
                if self.run(read(&["symbolic-ref", "--quiet", "HEAD"])).await?.success() {
                    return Ok(());
                }
                Err(Error::Damaged("`HEAD`, or the branch that it names, cannot be read".to_owned()))
            }
            Err(Error::UnknownRevision(..)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns the name of the commit that `revision` names.
    pub(super) async fn resolve_commit(
        &self,
        repository: &Repository,
        revision: &str,
        cancel: &CancellationToken,
    ) -> Result<String, Error> {
        self.resolve_object(repository, revision, "commit", cancel).await
    }

    /// Returns the names of the commits that `revision` names: one, or both ends of a range.
    pub(super) async fn resolve_range(
        &self,
        repository: &Repository,
        revision: &str,
        cancel: &CancellationToken,
    ) -> Result<RevisionRange, Error> {
        check_argument("revision", revision)?;
        match parent_form(revision) {
            Some(ParentForm::Only(commit)) => {
                let commit = self.resolve_commit(repository, commit, cancel).await?;
                let parents = self.parents(repository, &commit, cancel).await?;
                return Ok(RevisionRange::Only { commit, parents });
            }
            Some(ParentForm::Since(commit, number)) => {
                return Ok(RevisionRange::Between {
                    from: self.resolve_commit(repository, &format!("{commit}^{number}"), cancel).await?,
                    to: self.resolve_commit(repository, commit, cancel).await?,
                    symmetric: false,
                });
            }
            Some(ParentForm::All) => {
                let reason = "`^@` names all parents of a commit; give one of them (`HEAD^1`), `A..B`, or `A^!` for one commit";
                return Err(Error::InvalidArgument { name: "revision", reason: reason.to_owned() });
            }
            None => {}
        }
        match split_range(revision) {
            None => Ok(RevisionRange::Single(self.resolve_commit(repository, revision, cancel).await?)),
            Some((from, to, symmetric)) => Ok(RevisionRange::Between {
                from: self.resolve_commit(repository, from, cancel).await?,
                to: self.resolve_commit(repository, to, cancel).await?,
                symmetric,
            }),
        }
    }

    /// Returns the parents of the commit with the object name `commit`.
    async fn parents(
        &self,
        repository: &Repository,
        commit: &str,
        cancel: &CancellationToken,
    ) -> Result<Vec<String>, Error> {
        let invocation = GitInvocation::new(
            repository,
            GitAccess::Read,
            cancel,
            &["rev-list", "--parents", "--max-count=1", commit],
        );
        let listed = self.run_checked("git rev-list", invocation).await?.bytes;
        Ok(lossy(listed.trim_ascii()).split(' ').skip(1).map(str::to_owned).collect())
    }

    /// Returns the commit that is checked out, if there is any yet.
    pub(super) async fn head_commit(
        &self,
        repository: &Repository,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, Error> {
        match self.resolve_commit(repository, "HEAD", cancel).await {
            Ok(commit) => Ok(Some(commit)),
            Err(Error::UnknownRevision(..)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl RevisionRange {
    /// Returns the range as arguments for git.
    pub(super) fn to_arguments(&self) -> Vec<String> {
        match self {
            Self::Single(commit) => vec![commit.clone()],
            Self::Between { from, to, symmetric } => {
                vec![format!("{from}{}{to}", if *symmetric { "..." } else { ".." })]
            }
            Self::Only { commit, parents } => {
                let without = parents.iter().map(|parent| format!("^{parent}"));
                std::iter::once(commit.clone()).chain(without).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_an_option_is_no_revision() {
        for bad in ["", "-p", "--output=/etc/x", "a\nb", "a\0b", &"x".repeat(1_001)] {
            assert!(check_argument("revision", bad).is_err(), "{bad:?}");
        }
        assert!(check_argument("revision", "HEAD~2^{tree}").is_ok());
    }

    #[test]
    fn a_range_has_two_ends() {
        assert_eq!(split_range("a..b"), Some(("a", "b", false)));
        assert_eq!(split_range("a...b"), Some(("a", "b", true)));
        assert_eq!(split_range("..b"), Some(("HEAD", "b", false)));
        assert_eq!(split_range("a..."), Some(("a", "HEAD", true)));
        assert_eq!(split_range("HEAD:../x"), None);
        assert_eq!(split_range("a.b"), None);
        assert_eq!(parent_form("HEAD^!"), Some(ParentForm::Only("HEAD")));
        assert_eq!(parent_form("a~2^-"), Some(ParentForm::Since("a~2", 1)));
        assert_eq!(parent_form("a^-2"), Some(ParentForm::Since("a", 2)));
        assert_eq!(parent_form("a^@"), Some(ParentForm::All));
        for other in ["HEAD^", "HEAD^2", "a^-b", "HEAD:a^!", "a^{commit}"] {
            assert_eq!(parent_form(other), None, "{other}");
        }
    }
}
