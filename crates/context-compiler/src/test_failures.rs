//! The section with the failures of the last test run.

use crate::decoded_text::{TextEncoding, normalise, sha256_hex};
use crate::load::FileLoader;
use crate::manifest::SectionKind;
use crate::section::{QuotedSection, SourceProvenance};
use crate::text_pieces;

/// Returns the section that quotes `output`, or `None` if it is empty.
pub(crate) fn test_failures_section(loader: &FileLoader<'_>, output: &str) -> Option<QuotedSection> {
    let (text, redactions) = loader.mask(normalise(output));
    (!text.is_empty()).then(|| QuotedSection {
        path: "test failures".to_owned(),
        kind: SectionKind::TestFailures,
        why: "failures of the last test run".to_owned(),
        language: "text",
        pieces: text_pieces::split_plain_text(&text),
        provenance: SourceProvenance {
            bytes: output.len() as u64,
            sha256: sha256_hex(output.as_bytes()),
            encoding: TextEncoding::Utf8,
            redactions,
            ..SourceProvenance::default()
        },
        text,
    })
}
