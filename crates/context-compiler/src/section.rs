//! A section: the text that is quoted under one heading, and its source.

use crate::decoded_text::TextEncoding;
use crate::manifest::SectionKind;
use crate::text_pieces::TextPiece;

/// A text to quote, divided into pieces.
#[derive(Clone, Debug)]
pub(crate) struct QuotedSection {
    pub(crate) path: String,
    pub(crate) kind: SectionKind,
    /// The reason why the section is in the document.
    pub(crate) why: String,
    /// The language that Markdown's fence names.
    pub(crate) language: &'static str,
    pub(crate) text: String,
    pub(crate) pieces: Vec<TextPiece>,
    pub(crate) provenance: SourceProvenance,
}

/// Facts about the source of a text.
#[derive(Clone, Debug, Default)]
pub(crate) struct SourceProvenance {
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
    pub(crate) encoding: TextEncoding,
    pub(crate) bidirectional: bool,
    pub(crate) unstable: bool,
    pub(crate) redactions: usize,
}

/// Returns the language that Markdown's fence names for a planning document.
pub(crate) fn document_language(path: &str) -> &'static str {
    if path.ends_with(".md") { "markdown" } else { "text" }
}
