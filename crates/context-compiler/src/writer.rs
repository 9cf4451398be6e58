//! Writing of sections: the format and the counter that decide their cost, and the text of a segment while it grows.

use crate::decoded_text::sha256_hex;
use crate::format::{DocumentFormat, SectionHeading};
use crate::manifest::{DocumentSegment, ManifestSectionEntry};
use crate::tokens::TokenCounter;

/// The format that a text is written in, and the counter that measures it.
#[derive(Clone, Copy)]
pub(crate) struct SectionRenderer<'a> {
    pub(crate) format: DocumentFormat,
    pub(crate) counter: &'a dyn TokenCounter,
}

impl SectionRenderer<'_> {
    /// Returns the tokens of `text` as it stands in the document, where it is not escaped any further.
    pub(crate) fn raw_cost(&self, text: &str) -> usize {
        self.counter.count(text)
    }

    /// Returns the tokens of `text` once it is escaped for the inside of a section.
    pub(crate) fn escaped_cost(&self, text: &str) -> usize {
        self.counter.count(&self.format.escape(text))
    }

    /// Returns the tokens of what opens and closes a section.
    pub(crate) fn frame_cost(&self, heading: &SectionHeading<'_>) -> usize {
        // As a section that is not the first: in JSON that one has a comma before it, so this is the larger count.
        self.raw_cost(&self.format.section_open(heading, 1))
            + self.raw_cost(&self.format.section_close(heading))
    }
}

/// A part of a segment that can be written with more or fewer tokens.
pub(crate) trait FlexibleSegmentSection {
    /// Returns the fewest tokens that the section needs.
    fn min_tokens(&self) -> usize;
    /// Returns the most tokens that the section can use; at least [`min_tokens`](Self::min_tokens).
    fn max_tokens(&self) -> usize;
    /// Returns the size of the section's share relative to those of the other sections.
    fn weight(&self) -> usize;
    /// Returns a number for how much is written with `tokens`. With more tokens it is the same or larger.
    fn detail_at(&self, tokens: usize) -> usize;
    /// Returns the reason why the section cannot use more than [`max_tokens`](Self::max_tokens), if it has one to tell.
    fn limit_reason(&self) -> Option<&'static str> {
        None
    }
    /// Writes as much as `tokens` allow. With more tokens, everything is written that is written with fewer.
    fn write(&self, tokens: usize, writer: &mut SegmentWriter<'_>);
}

/// The text of one segment while it is written, and the manifest of its sections.
pub(crate) struct SegmentWriter<'a> {
    pub(crate) renderer: SectionRenderer<'a>,
    pub(crate) segment: DocumentSegment,
    pub(crate) text: String,
    pub(crate) entries: Vec<ManifestSectionEntry>,
}

impl SegmentWriter<'_> {
    /// Appends a section whose text is `body`, which is escaped already.
    pub(crate) fn push_section(
        &mut self,
        heading: &SectionHeading<'_>,
        body: &str,
        entry: ManifestSectionEntry,
    ) {
        let format = self.renderer.format;
        let start = self.text.len();
        self.text.push_str(&format.section_open(heading, self.entries.len()));
        self.text.push_str(body);
        self.text.push_str(&format.section_close(heading));
        let written = self.text.get(start..).unwrap_or_default();
        let entry = ManifestSectionEntry {
            segment: self.segment,
            bytes: written.len(),
            tokens: self.renderer.raw_cost(written),
            emitted_sha256: sha256_hex(written.as_bytes()),
            ..entry
        };
        self.entries.push(entry);
    }
}
