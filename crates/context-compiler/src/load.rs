//! Reading of files as text that can be quoted.

use crate::decoded_text::{decode, hex, normalise};
use crate::hash::{ContentHash, hash_content};
use crate::request::Redact;
use crate::section::SourceProvenance;
use crate::sensitive_name::is_sensitive_name;
use crate::source::{SourceFileContent, SourceFileState, SourceReadError, SourceTree};
use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

/// The largest planning document and plan, in bytes.
pub(crate) const MAX_DOCUMENT_BYTES: u64 = 1024 * 1024;

/// The reason given for a file that [`is_sensitive_name`] recognises.
pub(crate) const SENSITIVE_NAME: &str = "its name says that it holds secrets";

/// Reads and masks files, and records the state in which they were read.
pub(crate) struct FileLoader<'a> {
    pub(crate) tree: &'a dyn SourceTree,
    redact: Option<&'a dyn Redact>,
    read_states: Mutex<Vec<(String, SourceFileState)>>,
}

/// A masked text and its source.
pub(crate) struct LoadedSourceText {
    pub(crate) text: String,
    pub(crate) provenance: SourceProvenance,
}

/// The state and the hash of a file when it was read.
pub(crate) struct LoadedSourceFile {
    pub(crate) state: SourceFileState,
    pub(crate) hash: ContentHash,
    /// True if the file changed during each attempt to read it.
    pub(crate) unstable: bool,
}

/// The reason why a file gave no text.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceLoadError {
    #[error("does not exist")]
    NotFound,
    #[error(transparent)]
    Read(SourceReadError),
    #[error("binary, {bytes} bytes")]
    Binary { bytes: u64 },
    #[error("empty")]
    Empty,
    #[error("{}", SENSITIVE_NAME)]
    SensitiveName,
    #[error("is a part of the repository itself")]
    InsideRepository,
}

impl From<SourceReadError> for SourceLoadError {
    fn from(error: SourceReadError) -> Self {
        match error {
            SourceReadError::NotFound => Self::NotFound,
            error => Self::Read(error),
        }
    }
}

/// The identity of the redactor in keys of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedactorCacheKey {
    /// No redactor is used.
    Unmasked,
    /// A redactor with this [cache key](Redact::cache_key) is used.
    Redactor(u64),
    /// A redactor without a key is used: nothing about masked texts may be remembered.
    Uncacheable,
}

impl<'a> FileLoader<'a> {
    pub(crate) fn new(tree: &'a dyn SourceTree, redact: Option<&'a dyn Redact>) -> Self {
        Self { tree, redact, read_states: Mutex::default() }
    }

    pub(crate) fn masking_key(&self) -> RedactorCacheKey {
        match self.redact {
            None => RedactorCacheKey::Unmasked,
            Some(redact) => {
                redact.cache_key().map_or(RedactorCacheKey::Uncacheable, RedactorCacheKey::Redactor)
            }
        }
    }

    /// Returns the text of the file at `path`, if it has at most `max_bytes` bytes. Its state is recorded for
    /// [`changed_since_read`](Self::changed_since_read).
    pub(crate) fn load(&self, path: &str, max_bytes: u64) -> Result<LoadedSourceText, SourceLoadError> {
        let (loaded, file) = self.load_unrecorded(path, max_bytes);
        if let Some(file) = file {
            let mut states = self.read_states.lock().unwrap_or_else(PoisonError::into_inner);
            states.push((path.to_owned(), file.state));
        }
        loaded
    }

    /// Returns the text of a planning document. Files of the repository itself and files with sensitive names are
    /// refused, judged by the path and by where its links lead.
    pub(crate) fn load_document(&self, path: &str) -> Result<LoadedSourceText, SourceLoadError> {
        let resolved = self.tree.resolve(path)?;
        // Both: a link may have a harmless name and lead to a secret, and a secret name is refused wherever it leads.
        for path in [path, &resolved] {
            if is_sensitive_name(path) {
                return Err(SourceLoadError::SensitiveName);
            }
            // On some file systems `.GIT` is the same folder.
            if path.split('/').any(|component| component.eq_ignore_ascii_case(".git")) {
                return Err(SourceLoadError::InsideRepository);
            }
        }
        self.load(path, MAX_DOCUMENT_BYTES)
    }

    /// Does what [`load`](Self::load) does without recording the state, for a caller that reads the file again before it
    /// quotes it. The file is returned even if it is no text.
    pub(crate) fn load_unrecorded(
        &self,
        path: &str,
        max_bytes: u64,
    ) -> (Result<LoadedSourceText, SourceLoadError>, Option<LoadedSourceFile>) {
        let content = match self.tree.read(path, max_bytes) {
            Ok(content) => content,
            Err(error) => return (Err(error.into()), None),
        };
        let hash = hash_content(&content.bytes);
        let file = LoadedSourceFile { state: content.state, hash, unstable: content.unstable };
        (self.masked_text(&content, &hash), Some(file))
    }

    fn masked_text(
        &self,
        content: &SourceFileContent,
        hash: &ContentHash,
    ) -> Result<LoadedSourceText, SourceLoadError> {
        let bytes = content.bytes.len() as u64;
        let decoded = decode(&content.bytes).ok_or(SourceLoadError::Binary { bytes })?;
        if decoded.text.is_empty() {
            return Err(SourceLoadError::Empty);
        }
        let (text, redactions) = self.mask(decoded.text);
        let provenance = SourceProvenance {
            bytes,
            sha256: hex(hash),
            encoding: decoded.encoding,
            bidirectional: decoded.bidirectional,
            unstable: content.unstable,
            redactions,
        };
        Ok(LoadedSourceText { text, provenance })
    }

    /// Returns `text` with its secrets masked, and the number of secrets.
    pub(crate) fn mask(&self, text: String) -> (String, usize) {
        const MARK: &str = "[redacted";
        let Some(redact) = self.redact else { return (text, 0) };
        let masked = match redact.redact(&text) {
            Cow::Borrowed(same) if same.len() == text.len() => return (text, 0),
            // The redactor is not ours, so its marks are made safe to quote as well.
            masked => normalise(&masked),
        };
        let marks = |text: &str| text.to_ascii_lowercase().matches(MARK).count();
        // At least one: the text differs, even if the redactor writes no mark that is known here.
        let new_marks = marks(&masked).saturating_sub(marks(&text)).max(1);
        (masked, new_marks)
    }

    /// Returns `name` with its secrets masked. Names need it as texts do: a document prints them.
    pub(crate) fn mask_name<'t>(&self, name: &'t str) -> Cow<'t, str> {
        self.redact.map_or(Cow::Borrowed(name), |redact| redact.redact(name))
    }

    /// Returns the recorded files that are no longer in the state in which they were read.
    pub(crate) fn changed_since_read(&self) -> Vec<String> {
        let states = self.read_states.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = states.iter().filter(|(path, state)| self.tree.state(path).ok() != Some(*state));
        changed.map(|(path, _)| path.clone()).collect()
    }
}
