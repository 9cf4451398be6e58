//! The last use of each token, in a file, so that `token list` shows it and a restart does not forget it.
#![allow(clippy::disallowed_methods, reason = "the file is the operator's; no client names it")]

use crate::atomic_file;
use serde::{Deserialize, Serialize};
use server_setup::trusted_text;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The last use of a token.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct TokenUse {
    /// The time, in seconds since 1970.
    pub(crate) at: u64,
    /// The peer: the address that connected, which is that of the proxy if one is in front, or the user behind a socket.
    pub(crate) from: String,
}

/// The uses, by the names of the tokens.
pub(crate) type TokenUses = BTreeMap<String, TokenUse>;

/// The contents of the file.
#[derive(Debug, Deserialize, Serialize)]
struct TokenUsageFile {
    version: u32,
    tokens: TokenUses,
}

/// The version of the file.
const VERSION: u32 = 1;

/// The time between two writes of the file.
const WRITE_INTERVAL: Duration = Duration::from_secs(30);

/// The error of a file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenUsageError {
    #[error("cannot read http.token_usage {}", .path.display())]
    Read { path: PathBuf, source: trusted_text::Error },
    #[error("http.token_usage {} is no file of uses", .path.display())]
    Json { path: PathBuf, source: serde_json::Error },
    #[error(
        "http.token_usage {} has version {version}, and this program reads {VERSION}: a newer version wrote it",
        .path.display()
    )]
    Version { path: PathBuf, version: u32 },
    #[error("cannot write http.token_usage {}", .path.display())]
    Write { path: PathBuf, source: std::io::Error },
}

/// Reads the file at `path`, which may be missing.
pub(crate) fn read(path: &Path) -> Result<TokenUses, TokenUsageError> {
    #[derive(Deserialize)]
    struct TokenUsageVersion {
        version: u32,
    }
    if path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        return Ok(TokenUses::new());
    }
    let owned = || path.to_owned();
    let text = trusted_text::read(path).map_err(|source| TokenUsageError::Read { path: owned(), source })?;
    let json = |source| TokenUsageError::Json { path: owned(), source };
    // The version first: a newer file may have another form.
    let TokenUsageVersion { version } = serde_json::from_str(&text).map_err(json)?;
    if version != VERSION {
        return Err(TokenUsageError::Version { path: owned(), version });
    }
    Ok(serde_json::from_str::<TokenUsageFile>(&text).map_err(json)?.tokens)
}

/// Writes the file while the server runs.
#[derive(Debug)]
pub(crate) struct TokenUsageWriter {
    path: PathBuf,
    written: TokenUses,
    last_write: Option<Instant>,
}

impl TokenUsageWriter {
    /// Reads the file at `path`, which is made at the first use of a token.
    pub(crate) fn open(path: PathBuf) -> Result<Self, TokenUsageError> {
        Ok(Self { written: read(&path)?, path, last_write: None })
    }

    /// Returns the uses that the file has, also by processes before this one.
    pub(crate) fn written(&self) -> &TokenUses {
        &self.written
    }

    /// Returns true if the last write was a moment ago.
    pub(crate) fn has_just_written(&self) -> bool {
        self.last_write.is_some_and(|last| last.elapsed() < WRITE_INTERVAL)
    }

    /// Writes `uses`, if there are new ones. `names` are those of all tokens: the uses of others are forgotten.
    pub(crate) fn write(&mut self, uses: TokenUses, names: &BTreeSet<String>) -> Result<(), TokenUsageError> {
        let is_new =
            |name: &String, used: &TokenUse| self.written.get(name).is_none_or(|old| old.at < used.at);
        let used: TokenUses = uses.into_iter().filter(|(name, used)| is_new(name, used)).collect();
        if used.is_empty() {
            return Ok(());
        }
        self.last_write = Some(Instant::now());
        let failed = |source| TokenUsageError::Write { path: self.path.clone(), source };
        // Replicas may share the file, so that what another has written since is kept.
        let _lock = atomic_file::lock(&self.path).map_err(failed)?;
        let mut all = read(&self.path)?;
        for (name, used) in used {
            if all.get(&name).is_none_or(|other| other.at < used.at) {
                all.insert(name, used);
            }
        }
        all.retain(|name, _| names.contains(name));
        let file = TokenUsageFile { version: VERSION, tokens: all };
        let text = serde_json::to_vec(&file)
            .map_err(|source| TokenUsageError::Json { path: self.path.clone(), source })?;
        atomic_file::replace(&self.path, &text).map_err(failed)?;
        self.written = file.tokens;
        Ok(())
    }
}
