//! Folds messages that differ only in numbers, ids and times, so that alike ones can be counted.

/// The longest folded message, in characters.
const MAX_CHARS: usize = 200;
/// The number of hexadecimal digits from which a word of them counts as an id.
const MIN_HEX: usize = 8;
/// The length from which a word of letters and digits counts as an id.
const MIN_MIXED: usize = 16;
/// The groups of digits of a UUID.
const UUID_GROUPS: [usize; 5] = [8, 4, 4, 4, 12];

/// The text in the place of a number.
const NUMBER: &str = "<n>";
/// The text in the place of an id.
const ID: &str = "<id>";

/// Returns the first line of `message` with `<n>` for numbers, times and addresses, and `<id>` for ids.
pub(super) fn fold(message: &str) -> String {
    let line = message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let mut folded = FoldedText { text: String::with_capacity(line.len()), ..FoldedText::default() };
    let mut rest = line;
    // The rest of a long line would be cut away. A number that is joined to another one takes a character away.
    while let Some(first) = rest.chars().next()
        && folded.chars <= MAX_CHARS + 1
    {
        let used = if let Some(length) = uuid(rest) {
            folded.push(ID);
            length
        } else if first.is_alphanumeric() {
            let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
            let word = rest.get(..end).unwrap_or_default();
            match folded_word(word) {
                FoldedWord::Same => folded.push(word),
                FoldedWord::Id => folded.push(ID),
                FoldedWord::Number { unit } => {
                    folded.push_number();
                    folded.push(unit);
                }
            }
            end
        } else {
            let length = first.len_utf8();
            folded.push(rest.get(..length).unwrap_or_default());
            length
        };
        rest = rest.get(used..).unwrap_or_default();
    }
    let mut text = folded.text;
    if let Some((end, _)) = text.char_indices().nth(MAX_CHARS) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// A folded text while it is made.
#[derive(Default)]
struct FoldedText {
    text: String,
    /// The number of characters in it.
    chars: usize,
}

impl FoldedText {
    fn push(&mut self, part: &str) {
        self.text.push_str(part);
        self.chars += part.chars().count();
    }

    /// Adds a number. The parts of a fraction, a date, a time or an address are one.
    fn push_number(&mut self) {
        let mut before = self.text.chars();
        let is_part = matches!(before.next_back(), Some('.' | ':' | '-' | ',' | '/'))
            && before.as_str().ends_with(NUMBER);
        match is_part {
            true => {
                self.text.pop();
                self.chars -= 1;
            }
            false => self.push(NUMBER),
        }
    }
}

/// Returns the length of the UUID at the beginning of `text`.
fn uuid(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    for (index, digits) in UUID_GROUPS.into_iter().enumerate() {
        if index > 0 {
            at += usize::from(*bytes.get(at)? == b'-');
        }
        let group = bytes.get(at..at + digits)?;
        if !group.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        at += digits;
    }
    let ends = bytes.get(at).is_none_or(|next| !next.is_ascii_alphanumeric());
    (at == 36 && ends).then_some(at)
}

/// The text in the place of a word of letters and digits.
enum FoldedWord<'a> {
    /// The word itself.
    Same,
    Id,
    /// A number, and the unit behind it.
    Number {
        unit: &'a str,
    },
}

/// Returns what stands for a word of letters and digits.
fn folded_word(word: &str) -> FoldedWord<'_> {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    if digits == 0 {
        return FoldedWord::Same;
    }
    if digits == word.len() {
        return FoldedWord::Number { unit: "" };
    }
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let length = word.chars().count();
    if word.strip_prefix("0x").is_some_and(is_hex)
        || (length >= MIN_HEX && is_hex(word))
        || (length >= MIN_MIXED && digits >= 2)
    {
        return FoldedWord::Id;
    }
    // `12ms`, `23T17` in a time, `699Z`; and not `http2` or `E0308`.
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit());
    if unit.len() == word.len() {
        return FoldedWord::Same;
    }
    let has_more_digits = unit.bytes().any(|byte| byte.is_ascii_digit());
    FoldedWord::Number { unit: if has_more_digits { "" } else { unit } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_ids_and_times_are_folded_and_words_stay() {
        for (message, expected) in [
            ("no cart for customer 61", "no cart for customer <n>"),
            ("order 5f3c9a1e-0b1d-4c8e-9a70-1f2e3d4c5b6a failed", "order <id> failed"),
            ("took 12.5ms at 2026-11-23T17:04:10.699Z", "took <n>ms at <n>Z"),
            ("10.0.0.7:5432 refused", "<n> refused"),
            ("commit 9f86d081884c7d65 and 0xdeadbeef", "commit <id> and <id>"),
            ("error E0308 over http2 in utf8", "error E0308 over http2 in utf8"),
            ("req_8f3a9b2c done", "req_<id> done"),
            ("first\n  at second:3", "first"),
            ("1.2.3-4/5:6 and 7ms.8", "<n> and <n>ms.<n>"),
            ("-3 of 1,024 (12%)", "-<n> of <n> (<n>%)"),
            ("", ""),
        ] {
            assert_eq!(fold(message), expected, "{message}");
        }
    }

    proptest! {
        #[test]
        fn no_message_is_a_panic_and_a_folded_one_stays(message in "(?s).{0,300}") {
            let folded = fold(&message);
            prop_assert!(folded.chars().count() <= MAX_CHARS + 1);
        }
    }
}
