//! What a caller calls a commit, made into its name.

use super::error::Error;
use super::repository::Repository;
use super::run::{Access, Call, Git};
use super::text::lossy;
use tokio_util::sync::CancellationToken;

/// No revision that anybody writes is longer.
const MAX_BYTES: usize = 1_000;

/// Refuses what git could take for an option, and what no revision can hold.
pub(super) fn check(name: &'static str, text: &str) -> Result<(), Error> {
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
    Err(Error::Argument { name, reason: reason.to_owned() })
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
    Err(Error::Argument { name, reason: reason.to_owned() })
}

/// One end of what is compared or listed, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Range {
    One(String),
    /// `a..b`, or `a...b` where `symmetric`.
    Two {
        from: String,
        to: String,
        symmetric: bool,
    },
}

fn or_head(end: &str) -> &str {
    if end.is_empty() { "HEAD" } else { end }
}

/// Splits `a..b` and `a...b`. An end that is left out is `HEAD`.
fn split(text: &str) -> Option<(&str, &str, bool)> {
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
    /// The object that `revision` names; of type `kind`, where that is given.
    pub(super) async fn object(
        &self,
        repository: &Repository,
        revision: &str,
        kind: &str,
        cancel: &CancellationToken,
    ) -> Result<String, Error> {
        check("revision", revision)?;
        if revision.starts_with(":/") && !kind.is_empty() {
            // Here a suffix would be part of the text that is looked for.
            let object = Box::pin(self.object(repository, revision, "", cancel)).await?;
            return Box::pin(self.object(repository, &object, kind, cancel)).await;
        }
        let call = Call::new(
            repository,
            Access::Reads,
            cancel,
            &["rev-parse", "--verify", "--quiet", "--end-of-options"],
        );
        let suffix = if kind.is_empty() { String::new() } else { format!("^{{{kind}}}") };
        let output = self.run(call.arg(format!("{revision}{suffix}"))).await?;
        let object = lossy(output.stdout.bytes().trim_ascii());
        let is_name = object.len() >= 40 && object.bytes().all(|byte| byte.is_ascii_hexdigit());
        if output.success() && is_name {
            return Ok(object);
        }
        let hint = if revision == "HEAD" { ": there are no commits yet" } else { "" };
        Err(Error::NoRevision(revision.to_owned(), hint))
    }

    /// The commit that `revision` names.
    pub(super) async fn commit_of(
        &self,
        repository: &Repository,
        revision: &str,
        cancel: &CancellationToken,
    ) -> Result<String, Error> {
        self.object(repository, revision, "commit", cancel).await
    }

    /// The commits that `revision` names: one, or both ends of a range.
    pub(super) async fn range(
        &self,
        repository: &Repository,
        revision: &str,
        cancel: &CancellationToken,
    ) -> Result<Range, Error> {
        check("revision", revision)?;
        match split(revision) {
            None => Ok(Range::One(self.commit_of(repository, revision, cancel).await?)),
            Some((from, to, symmetric)) => Ok(Range::Two {
                from: self.commit_of(repository, from, cancel).await?,
                to: self.commit_of(repository, to, cancel).await?,
                symmetric,
            }),
        }
    }

    /// The commit that is checked out, if there is any yet.
    pub(super) async fn head(
        &self,
        repository: &Repository,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, Error> {
        match self.commit_of(repository, "HEAD", cancel).await {
            Ok(commit) => Ok(Some(commit)),
            Err(Error::NoRevision(..)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Range {
    /// As git is given it.
    pub(super) fn to_argument(&self) -> String {
        match self {
            Self::One(commit) => commit.clone(),
            Self::Two { from, to, symmetric } => {
                format!("{from}{}{to}", if *symmetric { "..." } else { ".." })
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
            assert!(check("revision", bad).is_err(), "{bad:?}");
        }
        assert!(check("revision", "HEAD~2^{tree}").is_ok());
    }

    #[test]
    fn a_range_has_two_ends() {
        assert_eq!(split("a..b"), Some(("a", "b", false)));
        assert_eq!(split("a...b"), Some(("a", "b", true)));
        assert_eq!(split("..b"), Some(("HEAD", "b", false)));
        assert_eq!(split("a..."), Some(("a", "HEAD", true)));
        assert_eq!(split("HEAD:../x"), None);
        assert_eq!(split("a.b"), None);
    }
}
