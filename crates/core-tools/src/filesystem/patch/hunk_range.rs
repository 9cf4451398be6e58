//! [`HunkRange`]: the line numbers behind the `@@` of a hunk, which both forms of a patch may have.

/// The range of a unified hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HunkRange {
    /// The number of its first line in the old file.
    pub(super) first_line: usize,
    /// The lines of the old and the new file, which models often count wrong.
    pub(super) old_lines: usize,
    pub(super) new_lines: usize,
}

/// Parses the range of a unified hunk: `-12,3 +12,4 @@ fn f`.
pub(super) fn parse_range(text: &str) -> Option<HunkRange> {
    let mut parts = text.split_whitespace();
    let (first_line, old_lines) = parse_side(parts.next()?.strip_prefix('-')?)?;
    let (_, new_lines) = parse_side(parts.next()?.strip_prefix('+')?)?;
    if parts.next().is_some_and(|end| end != "@@") {
        return None;
    }
    Some(HunkRange { first_line, old_lines, new_lines })
}

/// Parses `12,3`, or `12`, which is one line.
fn parse_side(text: &str) -> Option<(usize, usize)> {
    match text.split_once(',') {
        Some((first, lines)) => Some((first.parse().ok()?, lines.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}
