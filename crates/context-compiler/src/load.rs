//! From a path to text that can be quoted, or to the reason why not.

use crate::cache::{self, ContentHash};
use crate::code::is_sensitive;
use crate::request::Redact;
use crate::section::Source;
use crate::source::{Content, Entry, ReadProblem, Stamp, Tree};
use crate::text::{decode, hex, normalise};
use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

/// The largest planning document and plan, in bytes.
pub(crate) const DOCUMENT_BYTES: u64 = 1024 * 1024;

/// Why a file with such a name is not shown.
pub(crate) const SENSITIVE: &str = "its name says that it holds secrets";

/// Reads files, and remembers in which state they were.
pub(crate) struct Loader<'a> {
    pub(crate) tree: &'a dyn Tree,
    pub(crate) redact: Option<&'a dyn Redact>,
    read: Mutex<Vec<(String, Stamp)>>,
}

/// A text, and where it is from.
pub(crate) struct Loaded {
    pub(crate) text: String,
    pub(crate) source: Source,
}

/// A file as it was when it was read.
pub(crate) struct Seen {
    pub(crate) stamp: Stamp,
    pub(crate) hash: ContentHash,
    /// It changed while it was read, each time.
    pub(crate) unstable: bool,
}

/// Why there is no text.
pub(crate) enum Refusal {
    NotFound,
    /// For the list of what is not inside.
    Because(String),
}

impl<'a> Loader<'a> {
    pub(crate) fn new(tree: &'a dyn Tree, redact: Option<&'a dyn Redact>) -> Self {
        Self { tree, redact, read: Mutex::default() }
    }

    /// The key of the redactor, if there is one; nothing if what it masks may not be remembered.
    pub(crate) fn masks(&self) -> Option<Option<u64>> {
        self.redact.map_or(Some(None), |redact| redact.key().map(Some))
    }

    /// The text of the file at `path`, if it has at most `limit` bytes.
    pub(crate) fn load(&self, path: &str, limit: u64) -> Result<Loaded, Refusal> {
        let (loaded, seen) = self.load_apart(path, limit);
        if let Some(seen) = seen {
            self.read.lock().unwrap_or_else(PoisonError::into_inner).push((path.to_owned(), seen.stamp));
        }
        loaded
    }

    /// The text of a planning document: nothing of the repository's own, and nothing whose name says that it holds
    /// secrets, by its path or by where that leads.
    pub(crate) fn load_document(&self, path: &str) -> Result<Loaded, Refusal> {
        let resolved = match self.tree.resolve(path) {
            Ok(resolved) => resolved,
            Err(ReadProblem::NotFound) => return Err(Refusal::NotFound),
            Err(problem) => return Err(Refusal::Because(problem.to_string())),
        };
        for path in [path, &resolved] {
            if is_sensitive(path) {
                return Err(Refusal::Because(SENSITIVE.to_owned()));
            }
            if path.split('/').any(|part| part.eq_ignore_ascii_case(".git")) {
                return Err(Refusal::Because("is a part of the repository itself".to_owned()));
            }
        }
        self.load(path, DOCUMENT_BYTES)
    }

    /// As [`load`](Self::load), for somebody who reads it again later: what it was is not remembered.
    pub(crate) fn load_apart(&self, path: &str, limit: u64) -> (Result<Loaded, Refusal>, Option<Seen>) {
        let content = match self.tree.read(path, limit) {
            Ok(content) => content,
            Err(ReadProblem::NotFound) => return (Err(Refusal::NotFound), None),
            Err(problem) => return (Err(Refusal::Because(problem.to_string())), None),
        };
        let hash = cache::hash(&content.bytes);
        let seen = Seen { stamp: content.stamp, hash, unstable: content.unstable };
        (self.text_of(&content, &hash), Some(seen))
    }

    fn text_of(&self, content: &Content, hash: &ContentHash) -> Result<Loaded, Refusal> {
        let bytes = content.bytes.len() as u64;
        let Some(text) = decode(&content.bytes) else {
            return Err(Refusal::Because(format!("binary, {bytes} bytes")));
        };
        if text.text.is_empty() {
            return Err(Refusal::Because("empty".to_owned()));
        }
        let (masked, redactions) = self.mask(text.text);
        let source = Source {
            bytes,
            sha256: hex(hash),
            encoding: text.encoding,
            bidirectional: text.bidirectional,
            unstable: content.unstable,
            redactions,
        };
        Ok(Loaded { text: masked, source })
    }

    /// `text` with its secrets masked, and how many there were. What the redactor puts in is made safe as well.
    pub(crate) fn mask(&self, text: String) -> (String, usize) {
        const MARK: &str = "[redacted";
        let Some(redact) = self.redact else { return (text, 0) };
        let masked = match redact.redact(&text) {
            Cow::Borrowed(same) if same.len() == text.len() => return (text, 0),
            masked => normalise(&masked),
        };
        let marks = |text: &str| text.to_ascii_lowercase().matches(MARK).count();
        let new = marks(&masked).saturating_sub(marks(&text)).max(1);
        (masked, new)
    }

    /// `name` with its secrets masked: names are printed as well.
    pub(crate) fn name<'t>(&self, name: &'t str) -> Cow<'t, str> {
        self.redact.map_or(Cow::Borrowed(name), |redact| redact.redact(name))
    }

    /// Files that are no longer in the state in which they were read.
    pub(crate) fn moved(&self) -> Vec<String> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let moved = read.iter().filter(|(path, stamp)| self.tree.stamp(path).ok() != Some(*stamp));
        moved.map(|(path, _)| path.clone()).collect()
    }
}

/// The files of a loader as they are quoted: text, with its secrets masked.
pub(crate) struct Masked<'a>(pub(crate) &'a Loader<'a>);

impl Tree for Masked<'_> {
    fn read(&self, path: &str, limit: u64) -> Result<Content, ReadProblem> {
        let mut content = self.0.tree.read(path, limit)?;
        if let (Some(_), Some(text)) = (self.0.redact, decode(&content.bytes)) {
            content.bytes = self.0.mask(text.text).0.into_bytes();
        }
        Ok(content)
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>, ReadProblem> {
        self.0.tree.list(folder)
    }

    fn stamp(&self, path: &str) -> Result<Stamp, ReadProblem> {
        self.0.tree.stamp(path)
    }
}
