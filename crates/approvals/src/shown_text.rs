//! The text of strangers, as a person can read it without being misled.

use serde_json::{Map, Value};
use std::fmt::Write as _;

/// The most characters of one value that are shown. A longer one is cut in the middle.
const MAX_VALUE_CHARS: usize = 1_200;
/// The characters that are shown at the end of a value that is cut.
const TAIL_CHARS: usize = 400;
/// The most arguments that are shown.
const MAX_ARGUMENTS: usize = 40;

/// Returns `text` on one line of at most `max_chars` characters: control characters, line ends, direction marks and
/// characters without a width are written as `\u{…}`, and a text that is too long is cut in the middle, with its size.
pub fn shown_text(text: &str, max_chars: usize) -> String {
    let visible: Vec<char> = text
        .chars()
        .flat_map(|c| -> Box<dyn Iterator<Item = char>> {
            match c {
                '\n' => Box::new("\\n".chars()),
                '\r' => Box::new("\\r".chars()),
                '\t' => Box::new("\\t".chars()),
                c if is_misleading(c) => Box::new(c.escape_unicode()),
                c => Box::new(std::iter::once(c)),
            }
        })
        .collect();
    if visible.len() <= max_chars {
        return visible.into_iter().collect();
    }
    let tail = TAIL_CHARS.min(max_chars / 3);
    let head = max_chars - tail;
    let left_out = visible.len() - head - tail;
    let head: String = visible.iter().take(head).collect();
    let tail: String = visible.iter().skip(visible.len() - tail).collect();
    format!("{head} […{left_out} of {} characters are left out here…] {tail}", visible.len())
}

/// Returns true for a character that shows nothing, or changes how others are shown.
fn is_misleading(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            // Spaces that are no space, zero widths, direction marks, line and paragraph separators, joiners.
            | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}'
            | '\u{3000}' | '\u{3164}' | '\u{a0}' | '\u{feff}' | '\u{ffa0}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            // Tags and variation selectors, which carry text that nobody sees; private use.
            | '\u{e0000}'..='\u{e0fff}' | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}')
}

/// Returns the arguments of a call, one on each line: the name, and the value as JSON. Each value is masked by `redact`.
pub fn shown_arguments(arguments: &Map<String, Value>, redact: impl Fn(&str) -> String) -> String {
    let mut text = String::new();
    for (name, value) in arguments.iter().take(MAX_ARGUMENTS) {
        // As JSON, a text is in quotes, and a quote in it is escaped: it cannot end early.
        let value = redact(&value.to_string());
        let value = shown_text(&value, MAX_VALUE_CHARS);
        let _ = writeln!(text, "    {}: {value}", shown_text(name, 64));
    }
    if arguments.len() > MAX_ARGUMENTS {
        let _ = writeln!(text, "    [… {} more arguments are left out …]", arguments.len() - MAX_ARGUMENTS);
    }
    if arguments.is_empty() {
        text.push_str("    (none)\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        for (text, shown) in [
            ("git push", "git push"),
            ("ä ж 漢 🦀", "ä ж 漢 🦀"),
            ("a\nAllow once? yes", "a\\nAllow once? yes"),
            ("\u{202e}txt.exe", "\\u{202e}txt.exe"),
            ("\u{1b}[2Jclean", "\\u{1b}[2Jclean"),
            ("a\u{200b}b\u{e0041}", "a\\u{200b}b\\u{e0041}"),
            ("\u{2028}", "\\u{2028}"),
        ] {
            assert_eq!(shown_text(text, 100), shown);
        }
    }

    #[test]
    fn what_is_long_is_cut_in_the_middle_and_its_size_told() {
        let text = format!("{}END", "x".repeat(10_000));
        let shown = shown_text(&text, 300);
        assert!(shown.starts_with("xxx") && shown.ends_with("END"), "{shown}");
        assert!(shown.contains("9703 of 10003 characters are left out"), "{shown}");
    }

    #[test]
    fn an_argument_cannot_look_like_a_line_of_the_question() {
        let arguments = serde_json::json!({ "message": "\"\n\nAllowed by the operator", "b\nc": 1 });
        let Value::Object(arguments) = arguments else { unreachable!() };
        let shown = shown_arguments(&arguments, str::to_owned);
        assert_eq!(shown, "    message: \"\\\"\\n\\nAllowed by the operator\"\n    b\\nc: 1\n");
    }

    proptest! {
        #[test]
        fn no_text_leaves_its_line_or_its_length(text in any::<String>(), max in 3_usize..500) {
            let shown = shown_text(&text, max);
            prop_assert!(!shown.chars().any(is_misleading));
            prop_assert!(shown.chars().count() <= max + 80);
        }
    }
}
