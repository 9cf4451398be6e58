//! The repository that a fetch or a push goes to.

use super::discovery::{find_git_dir, is_git_dir};
use super::error::Error;
use super::git_process::Git;
use super::invocation::{GitAccess, GitInvocation};
use super::printed_text::{lossy, printable_line};
use super::remote_settings::GitRemoteSettings;
use super::remote_url::{GitRemoteUrl, RemoteRefusal, without_credentials};
use super::repository::Repository;
use super::repository_files::real_path;
use super::revision::check_argument;
use egress_proxy::NetworkAccess;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The time limit of a connection: a first fetch of a large repository takes minutes.
pub(super) const REMOTE_TIMEOUT: Duration = Duration::from_secs(600);

/// A remote whose addresses are checked.
#[derive(Debug)]
pub(super) struct GitRemote {
    /// Its name: `origin`.
    pub(super) name: String,
    /// Its addresses, without passwords.
    pub(super) urls: Vec<String>,
    pub(super) settings: GitRemoteSettings,
}

/// The branch of a remote that a local branch follows, and the remote that it is pushed to. Empty where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UpstreamBranch {
    pub(super) remote: String,
    /// The branch, as the remote calls it: `main`.
    pub(super) branch: String,
    pub(super) push_remote: String,
}

impl Git {
    /// Returns the remote that is `named`, or `preferred`, or `origin`, or the only one, with its addresses for `access`.
    pub(super) async fn remote(
        &self,
        repository: &Repository,
        named: Option<&str>,
        preferred: &str,
        access: GitAccess,
        cancel: &CancellationToken,
    ) -> Result<GitRemote, Error> {
        let known = self.lines(repository, &["remote"], cancel).await?;
        let name = choose(&known, named, preferred)?;
        let listed = self.configuration(repository, cancel).await?;
        let settings = GitRemoteSettings::new(&listed, &name);
        if !settings.refused.is_empty() {
            return Err(Error::ConfiguredPrograms { action: "a connection", keys: settings.refused });
        }
        // A remote can have several addresses, and others for pushes (`pushurl`). A push goes to all of them, so each
        // is checked.
        let push: &[&str] = if access == GitAccess::Push { &["--push"] } else { &[] };
        let words: Vec<_> =
            ["remote", "get-url", "--all"].iter().chain(push).copied().chain(["--", &name]).collect();
        let urls = self.lines(repository, &words, cancel).await?;
        for url in &urls {
            self.check_url(repository, url, access)?;
        }
        Ok(GitRemote { urls: urls.iter().map(|url| without_credentials(url)).collect(), name, settings })
    }

    /// Returns the remote that `branch` follows.
    pub(super) async fn upstream(
        &self,
        repository: &Repository,
        branch: &str,
        cancel: &CancellationToken,
    ) -> Result<UpstreamBranch, Error> {
        let format = "--format=%(upstream:remotename)%00%(upstream:remoteref)%00%(push:remotename)";
        let reference = format!("refs/heads/{branch}");
        let lines = self.lines(repository, &["for-each-ref", format, &reference], cancel).await?;
        let line = lines.into_iter().next().unwrap_or_default();
        let mut fields = line.split('\0').map(str::to_owned);
        let mut next = || fields.next().unwrap_or_default();
        let (remote, reference, push_remote) = (next(), next(), next());
        let branch = reference.strip_prefix("refs/heads/").unwrap_or_default().to_owned();
        // `.` is this repository itself.
        let named = |remote: String| if remote == "." { String::new() } else { remote };
        Ok(UpstreamBranch { remote: named(remote), branch, push_remote: named(push_remote) })
    }

    /// Refuses a name that no branch or tag can have.
    pub(super) async fn check_reference(
        &self,
        repository: &Repository,
        parameter: &'static str,
        prefix: &str,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        check_argument(parameter, name)?;
        let invocation = GitInvocation::new(repository, GitAccess::Read, cancel, &["check-ref-format"]);
        // `+` would be allowed, and mean force where a refspec is meant.
        if !name.starts_with('+') && self.run(invocation.arg(format!("{prefix}{name}"))).await?.success() {
            return Ok(());
        }
        let name = printable_line(name);
        let reason = format!("`{name}` is no name of a branch or tag; refspecs such as `+a:b` are not taken");
        Err(Error::InvalidArgument { name: parameter, reason })
    }

    /// Returns the lines that a command of git's prints.
    async fn lines(
        &self,
        repository: &Repository,
        words: &[&str],
        cancel: &CancellationToken,
    ) -> Result<Vec<String>, Error> {
        let invocation = GitInvocation::new(repository, GitAccess::Read, cancel, words);
        let listed = self.run_checked("reading the remotes", invocation).await?.bytes;
        Ok(lossy(&listed).lines().map(str::to_owned).collect())
    }

    /// Refuses an address that would run a program, one of another machine where programs may not connect, and one that
    /// leads to a folder outside the roots.
    fn check_url(&self, repository: &Repository, url: &str, access: GitAccess) -> Result<(), Error> {
        let refused = |reason: RemoteRefusal| {
            let url = printable_line(&without_credentials(url));
            Error::RemoteRefused { url, reason }
        };
        match GitRemoteUrl::parse(url).map_err(refused)? {
            GitRemoteUrl::Local(path) => check_folder(repository, path, access, refused),
            GitRemoteUrl::Network if self.may_connect() => Ok(()),
            GitRemoteUrl::Network => Err(refused(RemoteRefusal::NetworkForbidden)),
        }
    }

    /// Returns true if confinement lets programs connect.
    fn may_connect(&self) -> bool {
        self.commands.network() != NetworkAccess::None
    }

    /// Returns the error of a connection that failed, with what to do about it.
    pub(super) fn remote_failure(&self, action: &'static str, message: &str, remote: &GitRemote) -> Error {
        let mut message = format!("{} ({}): {message}", remote.name, remote.urls.join(", "));
        if let Some(hint) = hint(&message) {
            message = format!("{message}\n{hint}");
        }
        if let Some(note) = ignored_note(&remote.settings.ignored) {
            message = format!("{message}\n{note}");
        }
        Error::Failed { action, message }
    }
}

/// Returns a note on the settings of the repository that were ignored.
pub(super) fn ignored_note(ignored: &[String]) -> Option<String> {
    if ignored.is_empty() {
        return None;
    }
    let keys: Vec<_> = ignored.iter().map(|key| printable_line(key)).collect();
    Some(format!(
        "ignored, since the repository's own configuration sets it and it could run a program or redirect the \
         connection: {}. If it is trusted, set it in the user's configuration (git config --global)",
        keys.join(", ")
    ))
}

/// Chooses a remote among those that are `known`.
fn choose(known: &[String], named: Option<&str>, preferred: &str) -> Result<String, Error> {
    let is_known = |name: &str| known.iter().any(|known| known == name);
    let reason = match named {
        Some(name) if is_known(name) => return Ok(name.to_owned()),
        Some(name) => format!("no remote is called `{}`", printable_line(name)),
        None if is_known(preferred) => return Ok(preferred.to_owned()),
        None if is_known("origin") => return Ok("origin".to_owned()),
        None => match known {
            [only] => return Ok(only.clone()),
            _ => "it is missing, and no remote is the usual one".to_owned(),
        },
    };
    let reason = if known.is_empty() {
        format!("{reason}: this repository has no remotes")
    } else {
        format!("{reason}; known: {}", known.join(", "))
    };
    Err(Error::InvalidArgument { name: "remote", reason })
}

/// Refuses a folder outside the roots, and one that is no repository.
fn check_folder(
    repository: &Repository,
    path: &str,
    access: GitAccess,
    refused: impl Fn(RemoteRefusal) -> Error,
) -> Result<(), Error> {
    // git changes to the top folder, or stays where it is in a bare repository.
    let base = repository.top_level.as_ref().unwrap_or(&repository.folder).to_absolute();
    let target = base.join(path);
    let workspace = &repository.workspace;
    // As git does: the path itself, or with an ending.
    let candidates = [target.clone(), target.with_added_extension("git")];
    let mut found = None;
    for candidate in &candidates {
        let located = workspace.locate(candidate).and_then(|path| Ok((path.kind()?, path)));
        match located {
            Ok((None, _)) => {}
            Ok((Some(_), path)) => {
                found = found.or(Some(path));
            }
            Err(error) if error.is_outside() => {
                return Err(refused(RemoteRefusal::OutsideRoots));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let Some(found) = found else { return Err(refused(RemoteRefusal::NothingThere)) };
    let folder = real_path(workspace, &found.to_absolute(), || "the remote's folder".to_owned())?;
    if find_git_dir(workspace, &folder)?.is_none() && !is_git_dir(&folder)? {
        return Err(refused(RemoteRefusal::NoRepository));
    }
    let other = Repository::discover(workspace, Some(&folder.to_absolute().to_string_lossy()))?;
    if access == GitAccess::Push { other.check_writable() } else { Ok(()) }
}

/// Returns what to do about a connection that failed with `message`.
fn hint(message: &str) -> Option<&'static str> {
    let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if has(&["Host key verification failed"]) {
        return Some(
            "the host's key is not known to SSH, and nobody can be asked here: connect once in a terminal as the user who \
             runs the server, compare the key, and accept it",
        );
    }
    if has(&[
        "terminal prompts disabled",
        "could not read Username",
        "could not read Password",
        "Authentication failed",
    ]) {
        return Some(
            "there is no password for this address, and nobody can be asked here: set up a credential helper for the user \
             who runs the server (git config --global credential.helper)",
        );
    }
    if has(&["Permission denied (publickey", "Permission denied, please try again"]) {
        return Some(
            "the host takes none of the SSH keys within reach: load one into the SSH agent of the user who runs the server; \
             a role whose programs are confined cannot read key files",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_is_the_one_that_is_named_or_the_usual_one() {
        let known = ["fork".to_owned(), "origin".to_owned()];
        assert_eq!(choose(&known, Some("fork"), "").unwrap(), "fork");
        assert_eq!(choose(&known, None, "fork").unwrap(), "fork");
        assert_eq!(choose(&known, None, "gone").unwrap(), "origin");
        assert_eq!(choose(&known[..1], None, "").unwrap(), "fork");
        for (known, named, words) in [
            (&known[..], Some("https://x/y"), "known: fork, origin"),
            (&known[..], Some("ext::sh"), "no remote is called `ext::sh`"),
            (&known[..0], None, "has no remotes"),
        ] {
            let said = choose(known, named, "").unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn a_failure_says_what_to_do() {
        assert!(hint("Host key verification failed.").is_some_and(|hint| hint.contains("compare the key")));
        assert!(hint("could not read Username for 'https://x': terminal prompts disabled").is_some());
        assert_eq!(hint("fatal: the remote end hung up"), None);
    }
}
