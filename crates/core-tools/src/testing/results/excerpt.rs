//! The beginning and the end of a long text.

/// A text that was cut to a number of bytes.
pub(crate) struct OutputExcerpt {
    pub(crate) text: String,
    pub(crate) is_cut: bool,
}

impl OutputExcerpt {
    /// Keeps the beginning and the end of `text`, about `max_bytes` together, with a note between them.
    pub(crate) fn new(text: &str, max_bytes: usize) -> Self {
        /// Below this, the note would be longer than the text, so that only the beginning is kept.
        const MIN_BYTES_WITH_NOTE: usize = 64;
        if text.len() <= max_bytes {
            return Self { text: text.to_owned(), is_cut: false };
        }
        let head = text.floor_char_boundary(max_bytes / 2);
        let tail = text.ceil_char_boundary(text.len() - (max_bytes - max_bytes / 2));
        let text = if max_bytes < MIN_BYTES_WITH_NOTE {
            text[..head].to_owned()
        } else {
            format!("{}[... {} bytes left out ...]{}", &text[..head], tail - head, &text[tail..])
        };
        Self { text, is_cut: true }
    }
}
