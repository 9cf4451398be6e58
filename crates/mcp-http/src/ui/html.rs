//! HTML that holds nothing but what was meant as such: the only way from data to a page is [`Html::text`].

use std::fmt::{self, Write as _};

/// A piece of a page.
#[derive(Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Markup of our own.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Anything, as text, also between the double quotes of an attribute.
    pub(super) fn text(&mut self, text: impl fmt::Display) -> &mut Self {
        // Writing to a string cannot fail.
        let _ = write!(Escaped(&mut self.0), "{text}");
        self
    }

    /// Another piece of it.
    pub(super) fn add(&mut self, piece: &Self) -> &mut Self {
        self.0.push_str(&piece.0);
        self
    }

    pub(super) fn into_string(self) -> String {
        self.0
    }
}

/// Escapes what is written through it.
struct Escaped<'a>(&'a mut String);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            match letter {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\n' | '\t' => self.0.push(letter),
                // Nobody can see them, and the marks of direction turn what stands around them.
                _ if letter.is_control() || turns(letter) => self.0.push('\u{fffd}'),
                _ => self.0.push(letter),
            }
        }
        Ok(())
    }
}

/// Marks that change the direction of a text (Unicode Standard Annex 9, table 4 and the marks of section 2.6).
fn turns(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn escaped(text: &str) -> String {
        let mut html = Html::default();
        html.text(text);
        html.into_string()
    }

    /// As a browser reads it.
    fn read(html: &str) -> String {
        let mut text = html.to_owned();
        for (entity, letter) in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'")] {
            text = text.replace(entity, letter);
        }
        text.replace("&amp;", "&")
    }

    proptest! {
        #[test]
        fn no_text_ends_its_place_and_each_is_read_as_it_was(text in "\\PC{0,40}|[<>&\"'a;#lt \n]{0,40}") {
            let escaped = escaped(&text);
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']), "{escaped}");
            let shown: String = text.chars().map(|letter| if turns(letter) { '\u{fffd}' } else { letter }).collect();
            prop_assert_eq!(read(&escaped), shown);
        }

        #[test]
        fn no_letter_is_left_that_hides_or_turns(text in any::<String>()) {
            let hidden = |letter: char| (letter.is_control() && letter != '\n' && letter != '\t') || turns(letter);
            prop_assert!(!escaped(&text).chars().any(hidden));
        }
    }
}
