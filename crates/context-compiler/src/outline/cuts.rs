//! Ranges that are cut out of a text.

use std::ops::Range;

/// A range that is left out, and the text in its place.
pub(super) struct OutlineCut {
    pub(super) range: Range<usize>,
    pub(super) placeholder: &'static str,
}

/// Returns `text` without the cuts. A cut inside another, or one that would save nothing, is ignored.
///
/// `cuts` are sorted by their starts, and an outer cut precedes those inside it.
pub(super) fn apply_cuts(text: &str, cuts: &[OutlineCut]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied_to = 0;
    for OutlineCut { range, placeholder } in cuts {
        let saves_bytes = placeholder.len() < range.len();
        if range.start < copied_to
            || !saves_bytes
            || !text.is_char_boundary(range.start)
            || !text.is_char_boundary(range.end)
        {
            continue;
        }
        out.push_str(&text[copied_to..range.start]);
        out.push_str(placeholder);
        copied_to = range.end;
        // Where whole lines were left out, the blank lines around them become one.
        if placeholder.is_empty() && (out.is_empty() || out.ends_with("\n\n")) {
            while let Some(rest) =
                text[copied_to..].strip_prefix('\n').or_else(|| text[copied_to..].strip_prefix("\r\n"))
            {
                copied_to = text.len() - rest.len();
            }
        }
    }
    out.push_str(&text[copied_to..]);
    out
}
