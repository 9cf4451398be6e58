//! The marks that stand in the place of secrets, and the spans that they take.

use crate::span::SecretSpan;

/// The start of every mark.
pub(crate) const MARK: &str = "[redacted:";
/// Sorts spans, joins those that overlap, and widens those that reach into a mark over all of it. A span within a mark
/// is dropped: masking a text twice must give what masking it once gives.
pub(crate) fn merge(text: &str, mut spans: Vec<SecretSpan>) -> Vec<SecretSpan> {
    let marks: Vec<(usize, usize)> = memchr::memmem::find_iter(text.as_bytes(), MARK)
        .filter_map(|start| Some((start, mark_end(text.as_bytes(), start)?)))
        .collect();
    for span in &mut spans {
        let (from, to) = (span.start, span.end);
        let first = marks.partition_point(|mark| mark.1 <= from);
        for &(start, end) in marks[first..].iter().take_while(|mark| mark.0 < to) {
            if start <= from && to <= end {
                // Within a mark.
                span.end = span.start;
                break;
            }
            span.start = span.start.min(start);
            span.end = span.end.max(end);
        }
    }
    spans.retain(|span| span.start < span.end);
    // The longest first of those with the same start, so that it takes in the others.
    spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    spans.dedup_by(|next, kept| {
        let overlap = next.start < kept.end;
        if overlap {
            kept.end = kept.end.max(next.end);
        }
        overlap
    });
    spans
}

/// Returns the end of the mark that begins at `start`, if it is one.
pub(crate) fn mark_end(bytes: &[u8], start: usize) -> Option<usize> {
    let kind = start + MARK.len();
    let length = bytes
        .get(kind..)?
        .iter()
        // Kinds are short. A longer word in brackets is no mark.
        .take(40)
        .take_while(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || **byte == b'-')
        .count();
    (length > 0 && bytes.get(kind + length) == Some(&b']')).then_some(kind + length + 1)
}

/// Returns `text` with a mark in the place of each of `spans`, which are sorted and do not overlap.
pub(crate) fn mask(text: &str, spans: &[SecretSpan]) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut done = 0;
    for span in spans {
        masked.push_str(&text[done..span.start]);
        masked.push_str(MARK);
        masked.push_str(span.kind);
        masked.push(']');
        done = span.end;
    }
    masked.push_str(&text[done..]);
    masked
}
