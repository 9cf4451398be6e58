//! Texts of a configuration or a command line, as messages show them: of bounded length.

/// The most characters of a text that a message repeats.
const MAX_SHOWN_CHARS: usize = 200;

/// Returns `text` if it is short, and otherwise its beginning with its length.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}… ({} characters)", &text[..end], text.chars().count()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_shown_by_its_beginning_and_its_length() {
        assert_eq!(shown("sh:exec a"), "sh:exec a");
        assert_eq!(shown(&"ä".repeat(MAX_SHOWN_CHARS)), "ä".repeat(MAX_SHOWN_CHARS));
        assert_eq!(
            shown(&"ä".repeat(50_000)),
            format!("{}… (50000 characters)", "ä".repeat(MAX_SHOWN_CHARS))
        );
    }
}
