//! A section that is trimmed piece by piece until it fits.

use crate::decoded_text::group_digits;
use crate::detail_level::SectionDetailLevel;
use crate::format::{SectionHeading, fence_len};
use crate::manifest::{ManifestSectionEntry, SectionKind};
use crate::section::QuotedSection;
use crate::text_pieces::TextPiece;
use crate::writer::{FlexibleSegmentSection, SectionRenderer, SegmentWriter};

/// A section whose pieces are kept one after the other, by rank, as long as they fit.
pub(crate) struct TrimmableSection {
    section: QuotedSection,
    weight: usize,
    fence_len: usize,
    /// The tokens of each piece as it is written.
    piece_costs: Vec<usize>,
    /// The indices of the pieces in the order in which they are kept.
    keep_order: Vec<usize>,
    /// Upper bounds: entry `n` is the number of tokens that the section needs with the first `n` pieces of
    /// `keep_order`.
    bounds: Vec<usize>,
}

impl TrimmableSection {
    pub(crate) fn new(section: QuotedSection, weight: usize, renderer: SectionRenderer<'_>) -> Self {
        let fence_len = fence_len(&section.text);
        let text = |piece: &TextPiece| section.text.get(piece.range.clone()).unwrap_or_default();
        let piece_costs: Vec<usize> =
            section.pieces.iter().map(|piece| renderer.escaped_cost(text(piece))).collect();
        let mut keep_order: Vec<usize> = (0..piece_costs.len())
            .filter(|index| section.pieces.get(*index).is_some_and(|piece| piece.rank.is_some()))
            .collect();
        keep_order.sort_by_key(|index| (section.pieces.get(*index).and_then(|piece| piece.rank), *index));
        let heading = SectionHeading {
            path: &section.path,
            language: section.language,
            // The heading of a trimmed section is the longer one.
            level: SectionDetailLevel::Trimmed,
            fence_len,
        };
        // The numbers of a note are known only when it is written, so the bound takes the longest ones.
        let note = renderer.escaped_cost(&gap_note(section.kind, 9_999_999, 9_999_999, 99_999_999));
        let bounds = cost_bounds(&piece_costs, &keep_order, renderer.frame_cost(&heading), note);
        Self { section, weight, fence_len, piece_costs, keep_order, bounds }
    }

    /// Returns a flag for each piece, true if the piece is kept with `tokens`.
    fn kept_pieces(&self, tokens: usize) -> Vec<bool> {
        let mut kept = vec![false; self.section.pieces.len()];
        for index in self.keep_order.iter().take(self.detail_at(tokens)) {
            if let Some(kept) = kept.get_mut(*index) {
                *kept = true;
            }
        }
        kept
    }

    /// Returns the text with a note in each gap, escaped, and the number of pieces left out.
    fn trimmed_text(&self, kept: &[bool], renderer: SectionRenderer<'_>) -> (String, usize) {
        let QuotedSection { kind, text, pieces, .. } = &self.section;
        let format = renderer.format;
        let mut body = String::new();
        let (mut line, mut gap_line, mut gap_tokens, mut left_out) = (1, 1, 0, 0);
        // A piece can end within a line; a note has a line of its own.
        let mut in_line = false;
        for (index, piece) in pieces.iter().enumerate() {
            let piece_text = text.get(piece.range.clone()).unwrap_or_default();
            let lines = piece_text.matches('\n').count();
            if kept.get(index) == Some(&true) {
                body.push_str(&format.escape(piece_text));
                in_line = !piece_text.ends_with('\n');
            } else {
                if gap_tokens == 0 {
                    gap_line = line;
                }
                if std::mem::take(&mut in_line) {
                    body.push_str(&format.escape("\n"));
                }
                gap_tokens += self.piece_costs.get(index).copied().unwrap_or_default();
                left_out += 1;
                if kept.get(index + 1).is_none_or(|kept| *kept) {
                    let last = (line + lines).saturating_sub(1).max(gap_line);
                    body.push_str(&format.escape(&gap_note(*kind, gap_line, last, gap_tokens)));
                    gap_tokens = 0;
                }
            }
            line += lines;
        }
        (body, left_out)
    }
}

/// Returns, for each `n`, the tokens that a section needs with the first `n` pieces of `keep_order`: its frame, the
/// pieces, and a note for each gap. A note counts one token more than it has, for the place where it meets the text
/// before it.
fn cost_bounds(piece_costs: &[usize], keep_order: &[usize], frame: usize, note: usize) -> Vec<usize> {
    let mut kept = vec![false; piece_costs.len()];
    let mut gaps = usize::from(!piece_costs.is_empty());
    let mut kept_cost = 0;
    let mut bounds = vec![frame + gaps * (note + 1)];
    for &index in keep_order {
        // Beyond both ends of the text nothing is missing.
        let previous_kept = index.checked_sub(1).is_none_or(|index| kept.get(index) == Some(&true));
        let next_kept = kept.get(index + 1).is_none_or(|kept| *kept);
        match (previous_kept, next_kept) {
            (true, true) => gaps -= 1,
            (false, false) => gaps += 1,
            _ => {}
        }
        if let Some(kept) = kept.get_mut(index) {
            *kept = true;
        }
        kept_cost += piece_costs.get(index).copied().unwrap_or_default();
        bounds.push(frame + kept_cost + gaps * (note + 1));
    }
    bounds
}

/// Returns the note in the place of pieces that were left out, with the lines to read them by.
fn gap_note(kind: SectionKind, first: usize, last: usize, tokens: usize) -> String {
    let tokens = group_digits(tokens);
    match kind {
        // The lines of these sections are not those of a file, so line numbers would lead nowhere.
        SectionKind::Changes | SectionKind::TestFailures => {
            format!("[… {} lines left out, {tokens} tokens]\n", group_digits(last + 1 - first))
        }
        _ => format!("[… lines {first}-{last} left out, {tokens} tokens]\n"),
    }
}

impl FlexibleSegmentSection for TrimmableSection {
    /// The bounds need not grow: to keep a piece between two gaps adds a note, and to keep a small piece that closes a gap
    /// removes one. So the minimum is not always the first.
    fn min_tokens(&self) -> usize {
        self.bounds.iter().copied().min().unwrap_or_default()
    }

    fn max_tokens(&self) -> usize {
        self.bounds.last().copied().unwrap_or_default().max(self.min_tokens())
    }

    fn weight(&self) -> usize {
        self.weight
    }

    /// Returns the number of pieces that are kept.
    fn detail_at(&self, tokens: usize) -> usize {
        self.bounds.iter().rposition(|bound| *bound <= tokens).unwrap_or(0)
    }

    fn write(&self, tokens: usize, writer: &mut SegmentWriter<'_>) {
        let kept = self.kept_pieces(tokens);
        let (body, left_out) = self.trimmed_text(&kept, writer.renderer);
        let QuotedSection { path, kind, why, language, provenance, .. } = &self.section;
        let level = if left_out > 0 { SectionDetailLevel::Trimmed } else { SectionDetailLevel::Full };
        let heading = SectionHeading { path, language, level, fence_len: self.fence_len };
        let entry = ManifestSectionEntry {
            path: path.clone(),
            kind: *kind,
            why: why.clone(),
            sha256: provenance.sha256.clone(),
            source_bytes: provenance.bytes,
            truncated: left_out > 0,
            level,
            pieces_left_out: left_out,
            redactions: provenance.redactions,
            encoding: provenance.encoding,
            bidirectional: provenance.bidirectional,
            unstable: provenance.unstable,
            ..ManifestSectionEntry::default()
        };
        writer.push_section(&heading, &body, entry);
    }
}
