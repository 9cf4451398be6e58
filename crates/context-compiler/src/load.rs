//! From a path to text that can be quoted, or to the reason why not.

use crate::request::Redact;
use crate::section::Source;
use crate::source::{ReadProblem, Stamp, Tree};
use crate::text::{decode, normalise, sha256};
use std::cell::RefCell;

/// The largest planning document and plan, in bytes.
pub(crate) const DOCUMENT_BYTES: u64 = 1024 * 1024;

/// Reads files, and remembers in which state they were.
pub(crate) struct Loader<'a> {
    pub(crate) tree: &'a dyn Tree,
    pub(crate) redact: Option<&'a dyn Redact>,
    read: RefCell<Vec<(String, Stamp)>>,
}

/// A text, and where it is from.
pub(crate) struct Loaded {
    pub(crate) text: String,
    pub(crate) source: Source,
}

/// Why there is no text.
pub(crate) enum Refusal {
    NotFound,
    /// For the list of what is not inside.
    Because(String),
}

impl<'a> Loader<'a> {
    pub(crate) fn new(tree: &'a dyn Tree, redact: Option<&'a dyn Redact>) -> Self {
        Self { tree, redact, read: RefCell::default() }
    }

    pub(crate) fn load(&self, path: &str, limit: u64) -> Result<Loaded, Refusal> {
        let content = match self.tree.read(path, limit) {
            Ok(content) => content,
            Err(ReadProblem::NotFound) => return Err(Refusal::NotFound),
            Err(problem) => return Err(Refusal::Because(problem.to_string())),
        };
        self.read.borrow_mut().push((path.to_owned(), content.stamp));
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
            sha256: sha256(&content.bytes),
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
            std::borrow::Cow::Borrowed(same) if same.len() == text.len() => return (text, 0),
            masked => normalise(&masked),
        };
        let marks = |text: &str| text.to_ascii_lowercase().matches(MARK).count();
        let new = marks(&masked).saturating_sub(marks(&text)).max(1);
        (masked, new)
    }

    /// Files that are no longer in the state in which they were read.
    pub(crate) fn moved(&self) -> Vec<String> {
        let read = self.read.borrow();
        let moved = read.iter().filter(|(path, stamp)| self.tree.stamp(path).ok() != Some(*stamp));
        moved.map(|(path, _)| path.clone()).collect()
    }
}
