//! The file of tokens.

use super::bearer::{TokenHash, TokenId};
use crate::atomic_file;
use crate::console_output::name;
use serde::{Deserialize, Serialize};
use server_setup::trusted_text;
use std::collections::HashSet;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The contents of the file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenFile {
    version: u32,
    #[serde(default, rename = "token")]
    pub(crate) tokens: Vec<TokenEntry>,
    /// The tokens that were revoked, the last one at the end. None of them opens anything: they name who comes back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) revoked: Vec<RevokedEntry>,
}

/// One secret of a token that was revoked.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RevokedEntry {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) hash: String,
    /// The time at which it was revoked, in seconds since 1970.
    pub(crate) at: u64,
}

/// The time for which a revoked token is remembered, in seconds.
const REVOKED_KEPT: u64 = 90 * 86_400;
/// The revoked secrets that are remembered: the last ones.
const MAX_REVOKED: usize = 1000;

impl TokenFile {
    /// Takes the token `name` away and remembers that it was revoked `now`. Returns false if there is none.
    pub(crate) fn revoke(&mut self, name: &str, now: u64) -> bool {
        let (gone, stay): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.tokens).into_iter().partition(|token| token.name == name);
        self.tokens = stay;
        let is_there = !gone.is_empty();
        for TokenEntry { name, id, hash, previous, .. } in gone {
            if let Some(PreviousSecret { id, hash, .. }) = previous {
                self.revoked.push(RevokedEntry { name: name.clone(), id, hash, at: now });
            }
            self.revoked.push(RevokedEntry { name, id, hash, at: now });
        }
        is_there
    }

    /// Forgets the revoked tokens that are too old, and the oldest where there are too many.
    fn forget_revoked(&mut self, now: u64) {
        self.revoked.retain(|revoked| revoked.is_remembered(now));
        let excess = self.revoked.len().saturating_sub(MAX_REVOKED);
        self.revoked.drain(..excess);
    }
}

impl RevokedEntry {
    /// Returns true if the entry is one that a revocation writes.
    fn is_wellformed(&self) -> bool {
        is_name(&self.name)
            && TokenId(self.id.clone()).is_wellformed()
            && TokenHash::parse(&self.hash).is_some()
    }

    /// Returns true until the time is over for which a revoked token is remembered.
    pub(crate) fn is_remembered(&self, now: u64) -> bool {
        now.saturating_sub(self.at) < REVOKED_KEPT
    }
}

/// One token in the file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenEntry {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) hash: String,
    pub(crate) role: String,
    /// The roots that its bearer may use; empty for all that the server may.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) roots: Vec<PathBuf>,
    /// The remote on which its bearer's tools work, by its name in the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) remote: Option<String>,
    /// The time at which it was made, in seconds since 1970.
    pub(crate) created: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) calls_per_second: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) calls_in_flight: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) processes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_per_minute: Option<u64>,
    /// The secret before the last rotation, which holds for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) previous: Option<PreviousSecret>,
}

/// The secret that a token had before it was rotated.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PreviousSecret {
    pub(crate) id: String,
    pub(crate) hash: String,
    /// The time until which it holds, in seconds since 1970.
    pub(crate) expires: u64,
}

/// The newest version of the file that is read. The lowest version that suffices is written, so that an older program can
/// read the file: 1 knows no rotation and no remote, and 2 no revoked tokens.
const VERSION: u32 = 3;

/// The error of a file of tokens that cannot be used or changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenFileError {
    #[error("cannot use the tokens {}", .path.display())]
    Read { path: PathBuf, source: trusted_text::Error },
    /// The file is no TOML of this form. The message of the parser has several lines.
    #[error("{}: {}", .path.display(), .problem.to_string().trim_end())]
    Syntax { path: PathBuf, problem: toml::de::Error },
    /// Something in the file is wrong.
    #[error("{}", .path.display())]
    Content { path: PathBuf, source: TokenProblem },
    #[error("cannot change the tokens {}", .path.display())]
    Change { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Serialize(toml::ser::Error),
}

/// The fault of a file of tokens.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenProblem {
    #[error(
        "its version is {0}, and this program reads 1 to {VERSION}: a newer version wrote it; use that version"
    )]
    Version(u32),
    #[error("`{}` or its id is not a name", .0.escape_debug())]
    Name(String),
    /// The audit tells tokens apart by name.
    #[error("there are two tokens `{0}`")]
    Duplicate(String),
    #[error("the token `{0}` has no role")]
    NoRole(String),
    #[error("the root {} of `{token}` is not absolute", .root.display())]
    RelativeRoot { root: PathBuf, token: String },
    #[error("the token `{0}` has a remote and roots; the roots there are those of the remote")]
    RemoteAndRoots(String),
    #[error(
        "the hash of `{0}` is not a SHA-256 in hexadecimal; remove the entry, and make its token anew with \
         `{name} token new`",
        name = name()
    )]
    Hash(String),
}

/// Reads and checks the file at `path`.
pub(crate) fn read(path: &Path) -> Result<TokenFile, TokenFileError> {
    let text =
        trusted_text::read(path).map_err(|source| TokenFileError::Read { path: path.to_owned(), source })?;
    parse(path, &text)
}

/// Parses and checks the text of the file at `path`.
pub(crate) fn parse(path: &Path, text: &str) -> Result<TokenFile, TokenFileError> {
    let syntax = |problem| TokenFileError::Syntax { path: path.to_owned(), problem };
    // The version first: a newer file may have keys that are not known here.
    let TokenFileVersion { version } = toml::from_str(text).map_err(syntax)?;
    if !(1..=VERSION).contains(&version) {
        let source = TokenProblem::Version(version);
        return Err(TokenFileError::Content { path: path.to_owned(), source });
    }
    let mut file: TokenFile = toml::from_str(text).map_err(syntax)?;
    // A damaged one opens nothing. To refuse the file would keep the tokens in use that the next revocation takes away.
    file.revoked.retain(|revoked| {
        let is_wellformed = revoked.is_wellformed();
        if !is_wellformed {
            tracing::warn!(
                "{}: the entry of the revoked token `{}` is damaged and left out",
                path.display(),
                revoked.name.escape_debug()
            );
        }
        is_wellformed
    });
    match check(&file) {
        Ok(()) => Ok(file),
        Err(source) => Err(TokenFileError::Content { path: path.to_owned(), source }),
    }
}

/// The part of the file that every version has.
#[derive(Deserialize)]
struct TokenFileVersion {
    version: u32,
}

fn check(file: &TokenFile) -> Result<(), TokenProblem> {
    let (mut names, mut ids) = (HashSet::new(), HashSet::new());
    for token in &file.tokens {
        let name = || token.name.clone();
        if !is_name(&token.name) || !TokenId(token.id.clone()).is_wellformed() {
            return Err(TokenProblem::Name(name()));
        }
        // The audit tells tokens apart by name.
        if !names.insert(&token.name) || !ids.insert(&token.id) {
            return Err(TokenProblem::Duplicate(name()));
        }
        if let Some(previous) = &token.previous
            && (!TokenId(previous.id.clone()).is_wellformed() || !ids.insert(&previous.id))
        {
            return Err(TokenProblem::Name(name()));
        }
        if token.role.is_empty() {
            return Err(TokenProblem::NoRole(name()));
        }
        if token.remote.is_some() && !token.roots.is_empty() {
            return Err(TokenProblem::RemoteAndRoots(name()));
        }
        if let Some(root) = token.roots.iter().find(|root| !root.is_absolute()) {
            return Err(TokenProblem::RelativeRoot { root: root.clone(), token: name() });
        }
    }
    // A revoked name may be there twice: each token has two secrets at most, and a new one may have the name of an old one.
    Ok(())
}

/// Returns true if a token may have this name. The names of callers without a token have a colon.
pub(crate) fn is_name(name: &str) -> bool {
    let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    letters && (1..=64).contains(&name.len())
}

/// Makes the folder of the file at `path` where it is missing, for its owner alone.
#[allow(clippy::disallowed_methods, reason = "the folder is the operator's; no client names it")]
fn make_folder(path: &Path) -> std::io::Result<()> {
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder),
        None => Ok(()),
    }
}

/// Changes the file at `path`, which is made if it is missing. An error of `change` leaves it as it is.
pub(crate) fn change<E: From<TokenFileError>>(
    path: &Path,
    change: impl FnOnce(&mut TokenFile) -> Result<(), E>,
) -> Result<(), E> {
    change_text(path, read, change)
}

/// Changes the file at `path` like [`change`], even if others may write to it, and puts a private file in its place.
/// Returns the reason why it was not trusted, if it was not.
pub(crate) fn repair<E: From<TokenFileError>>(
    path: &Path,
    change: impl FnOnce(&mut TokenFile) -> Result<(), E>,
) -> Result<Option<trusted_text::Error>, E> {
    let mut distrusted = None;
    let read = |path: &Path| {
        let (text, cause) = trusted_text::read_to_repair(path)
            .map_err(|source| TokenFileError::Read { path: path.to_owned(), source })?;
        distrusted = cause;
        let mut file = parse(path, &text)?;
        if distrusted.is_some() {
            // Whoever wrote them could give the name of another to its own attempts.
            file.revoked.clear();
        }
        Ok(file)
    };
    change_text(path, read, change)?;
    Ok(distrusted)
}

fn change_text<E: From<TokenFileError>>(
    path: &Path,
    read: impl FnOnce(&Path) -> Result<TokenFile, TokenFileError>,
    change: impl FnOnce(&mut TokenFile) -> Result<(), E>,
) -> Result<(), E> {
    let failed = |source| TokenFileError::Change { path: path.to_owned(), source };
    make_folder(path).map_err(failed)?;
    // Locked before it is read: two commands at once would otherwise each write back what they had read.
    let _lock = atomic_file::lock(path).map_err(failed)?;
    let mut file = match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            TokenFile { version: 1, ..TokenFile::default() }
        }
        _ => read(path)?,
    };
    change(&mut file)?;
    file.forget_revoked(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()));
    let needs_new = |token: &TokenEntry| token.previous.is_some() || token.remote.is_some();
    file.version = match file.tokens.iter().any(needs_new) {
        _ if !file.revoked.is_empty() => VERSION,
        true => 2,
        false => 1,
    };
    let text = toml::to_string(&file).map_err(TokenFileError::Serialize)?;
    let text =
        format!("# Tokens of {0}; `{0} token` changes this file. Only hashes are kept.\n{text}", name());
    // Where the path is a link, the file that it leads to is replaced and the link stays.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    Ok(atomic_file::replace(&real, text.as_bytes()).map_err(failed)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revoked_tokens_are_remembered_for_ninety_days_and_in_a_bounded_number() {
        let day = 86_400;
        let entry = |number: usize| {
            format!(
                "[[token]]\nname = \"t{number}\"\nid = \"{number:012}\"\nhash = \"00\"\nrole = \"dev\"\ncreated = 1\n"
            )
        };
        let text: String = (0..=MAX_REVOKED + 1).map(entry).collect();
        let mut file = parse(Path::new("tokens.toml"), &format!("version = 1\n{text}")).unwrap();
        assert!(file.revoke("t0", day) && !file.revoke("t0", day) && !file.revoke("nobody", day));
        assert_eq!((file.tokens.len(), file.revoked.len()), (MAX_REVOKED + 1, 1));
        // 90 days later the first is forgotten.
        assert!(file.revoke("t1", 91 * day));
        file.forget_revoked(91 * day);
        let names = |file: &TokenFile| file.revoked.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&file), ["t1"]);
        (2..=MAX_REVOKED + 1).for_each(|number| assert!(file.revoke(&format!("t{number}"), 91 * day)));
        file.forget_revoked(91 * day);
        assert_eq!((file.tokens.len(), file.revoked.len()), (0, MAX_REVOKED));
        assert_eq!(names(&file).first().map(String::as_str), Some("t2"));
    }

    /// The text of a file with one token and the revoked entries `revoked`.
    fn file_with(revoked: &str) -> String {
        let token = format!(
            "[[token]]\nname = \"live\"\nid = \"{:012}\"\nhash = \"sha256:{:064}\"\nrole = \"dev\"\ncreated = 1\n",
            1, 1
        );
        format!("version = 3\n{token}{revoked}")
    }

    fn revoked(name: &str, id: &str, hash: &str, at: u64) -> String {
        format!("[[revoked]]\nname = \"{name}\"\nid = \"{id}\"\nhash = \"{hash}\"\nat = {at}\n")
    }

    #[test]
    fn a_damaged_entry_of_a_revoked_token_is_left_out_and_the_tokens_are_read() {
        let (id, hash) = (format!("{:012}", 2), format!("sha256:{:064}", 2));
        let text = file_with(
            &[
                revoked("damaged", &id, "no hash", 1),
                revoked("damaged", "no/id", &hash, 1),
                revoked("no name", &id, &hash, 1),
                revoked("gone", &id, &hash, 1),
            ]
            .concat(),
        );
        let file = parse(Path::new("tokens.toml"), &text).unwrap();
        let names = |file: &TokenFile| file.revoked.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
        assert_eq!((file.tokens.len(), names(&file)), (1, vec!["gone".to_owned()]));
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test reads the operator's file")]
    fn each_change_forgets_old_revocations_so_that_an_older_program_can_read_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        let old = revoked("gone", &format!("{:012}", 2), &format!("sha256:{:064}", 2), 1);
        atomic_file::replace(&path, file_with(&old).as_bytes()).unwrap();
        change::<TokenFileError>(&path, |_| Ok(())).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("version = 1") && text.contains("live") && !text.contains("gone"), "{text}");
    }
}
