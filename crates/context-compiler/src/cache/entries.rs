//! The entries of a cache.

use super::bounded_map::BoundedMap;
use crate::format::DocumentFormat;
use crate::hash::ContentHash;
use crate::load::RedactorCacheKey;
use crate::outline::{CodeOutline, CodeSymbol, Language};
use crate::source::SourceFileState;
use crate::tokens::TokenCounter;
use std::borrow::Cow;
use std::sync::Arc;

/// The kind of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentKind {
    /// UTF-8.
    Text,
    /// Text with bytes that are not UTF-8.
    InvalidUtf8,
    /// A NUL among the first bytes.
    Binary,
}

/// Facts about a content, whatever the name of its file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContentFacts {
    pub(crate) kind: ContentKind,
    /// Tokens by the cache's counter. Invalid bytes count as U+FFFD.
    pub(crate) tokens: usize,
    /// Line ends, and a last line without one.
    pub(crate) lines: usize,
}

/// The size of a content once it is quoted, masked and escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QuotedContentSize {
    /// The number of backticks of the fence around it.
    pub(crate) fence_len: usize,
    pub(crate) tokens: usize,
}

/// The key of a [`Quote`]. Quotes are kept in memory only, because the key of a redactor holds for one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct QuotedSizeKey {
    hash: ContentHash,
    format: u8,
    redactor: Option<u64>,
    /// The language of an outline; `None` for the whole content.
    outline: Option<Language>,
}

/// The content that a path had when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CachedPathEntry {
    pub(super) state: SourceFileState,
    /// A time not later than the look at the file, in nanoseconds from 1970.
    pub(super) looked_at_ns: i128,
    pub(super) hash: ContentHash,
}

/// The maps of a cache, and which of them differ from the files of its folder.
pub(super) struct ContentCacheEntries {
    pub(super) index: BoundedMap<String, CachedPathEntry>,
    pub(super) facts: BoundedMap<ContentHash, ContentFacts>,
    pub(super) outlines: BoundedMap<(ContentHash, Language), Arc<CodeOutline>>,
    /// `None` for an outline that does not exist.
    pub(super) quotes: BoundedMap<QuotedSizeKey, Option<QuotedContentSize>>,
    pub(super) facts_changed: bool,
    pub(super) outlines_changed: bool,
    /// True as long as the outlines of the folder are not loaded, which happens when one is asked for.
    #[cfg(unix)]
    pub(super) outlines_pending: bool,
}

impl ContentFacts {
    /// Measures `content`.
    pub(crate) fn measure(content: &[u8], counter: &dyn TokenCounter) -> Self {
        /// git looks for a NUL in the same number of bytes.
        const BINARY_PROBE_BYTES: usize = 8000;
        if content[..content.len().min(BINARY_PROBE_BYTES)].contains(&0) {
            return Self { kind: ContentKind::Binary, tokens: 0, lines: 0 };
        }
        let text = String::from_utf8_lossy(content);
        let kind = match text {
            Cow::Borrowed(_) => ContentKind::Text,
            Cow::Owned(_) => ContentKind::InvalidUtf8,
        };
        Self { kind, tokens: counter.count(&text), lines: text.lines().count() }
    }
}

impl QuotedSizeKey {
    /// The key for a content as it is in its file; `None` if `masking` does not allow to remember it.
    pub(crate) fn new(
        hash: ContentHash,
        format: DocumentFormat,
        masking: RedactorCacheKey,
        outline: Option<Language>,
    ) -> Option<Self> {
        let redactor = match masking {
            RedactorCacheKey::Unmasked => None,
            RedactorCacheKey::Redactor(key) => Some(key),
            RedactorCacheKey::Uncacheable => return None,
        };
        // As a number, since the keys of a map need an order, which `DocumentFormat` has not.
        Some(Self { hash, format: format as u8, redactor, outline })
    }
}

impl ContentCacheEntries {
    /// Entries of at most `max_bytes` together.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            // Outlines hold text, an index entry holds a path, and the others have a fixed size of some tens of bytes.
            index: BoundedMap::new(max_bytes / 4),
            facts: BoundedMap::new(max_bytes / 8),
            outlines: BoundedMap::new(max_bytes / 2),
            quotes: BoundedMap::new(max_bytes / 8),
            facts_changed: false,
            outlines_changed: false,
            #[cfg(unix)]
            outlines_pending: false,
        }
    }

    pub(super) fn insert_index_entry(&mut self, path: String, entry: CachedPathEntry) {
        let bytes = path.len() + size_of::<(String, CachedPathEntry)>();
        self.facts_changed = true;
        self.index.insert(path, entry, bytes);
    }

    pub(super) fn insert_facts(&mut self, hash: ContentHash, facts: ContentFacts) {
        self.facts_changed = true;
        self.facts.insert(hash, facts, size_of::<(ContentHash, ContentFacts)>());
    }

    pub(super) fn insert_outline(&mut self, key: (ContentHash, Language), outline: Arc<CodeOutline>) {
        let symbols: usize =
            outline.symbols.iter().map(|symbol| symbol.name.len() + size_of::<CodeSymbol>()).sum();
        let identifiers: usize =
            outline.identifiers.iter().map(|(name, _)| name.len() + size_of::<(String, u32)>()).sum();
        let bytes = outline.text.len() + symbols + identifiers + size_of::<(ContentHash, CodeOutline)>();
        self.outlines_changed = true;
        self.outlines.insert(key, outline, bytes);
    }

    pub(super) fn insert_quote(&mut self, key: QuotedSizeKey, quote: Option<QuotedContentSize>) {
        self.quotes.insert(key, quote, size_of::<(QuotedSizeKey, QuotedContentSize)>());
    }
}
