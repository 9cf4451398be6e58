//! Removes what a terminal interface puts around the text of a line.

use std::borrow::Cow;

/// The longest part of a line that patterns look at, in bytes.
const MAX_LINE_BYTES: usize = 16 * 1024;

/// Returns the text of a line without the colours, bullets, frames and blanks around it.
///
/// Typographic apostrophes become ASCII ones, so that one pattern matches both. Text after 16 KiB is left out.
pub(crate) fn strip_decoration(line: &str) -> Cow<'_, str> {
    let mut text = match line.contains(['\u{1b}', '\r']) {
        true => Cow::Owned(process_runner::clean(line).into_owned()),
        false => Cow::Borrowed(line),
    };
    if text.contains('\u{2019}') {
        text = Cow::Owned(text.replace('\u{2019}', "'"));
    }
    let is_decoration = |c: char| c.is_whitespace() || "│┃|⎿●•■⚠✗✘×◆▪❯└─╰╭*\u{fe0f}".contains(c);
    let start = text.len() - text.trim_start_matches(is_decoration).len();
    // At the end only frames go: a `*` or `×` there may belong to the text.
    let mut end = text.trim_end_matches(|c: char| c.is_whitespace() || "│┃".contains(c)).len().max(start);
    if end - start > MAX_LINE_BYTES {
        end = (0..=start + MAX_LINE_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(start);
    }
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[start..end]),
        Cow::Owned(text) => Cow::Owned(text[start..end].to_owned()),
    }
}
