//! How many tokens a text is.
//!
//! A budget means nothing without a named counter, so every counter has a name and says whether it is an
//! estimate. The exact one is [`O200k`], behind the feature `tokens`; [`Estimate`] is always there.

/// Counts the tokens of a text. The same text always has the same count.
///
/// What a budget may rely on: a text has at most as many tokens as bytes, so what is smaller than its budget in
/// bytes need not be counted. Counts do not add up: a join is usually a token or two cheaper, and can be dearer by
/// several. With [`O200k`] they do add up exactly where the first text ends with a line feed and the second begins
/// with something that is neither white space nor `/`.
pub trait TokenCounter: Send + Sync {
    /// The name that a result carries, such as `o200k_base`.
    fn name(&self) -> &str;

    /// Whether the counts are a guess from the size.
    fn is_estimate(&self) -> bool;

    /// Does now what the first count would do first, such as to load a vocabulary: worth a thread of its own
    /// while something else waits for a disk.
    fn prepare(&self) {}

    /// The tokens of `text`. Special tokens (`<|endoftext|>`) are counted as the plain text they are.
    fn count(&self, text: &str) -> usize;
}

/// The best counter that this build has: [`O200k`] with the feature `tokens`, else [`Estimate`].
pub fn best() -> &'static dyn TokenCounter {
    #[cfg(feature = "tokens")]
    return &O200k;
    #[cfg(not(feature = "tokens"))]
    return &Estimate;
}

/// The exact counter: byte-pair encoding with the vocabulary `o200k_base`, that of the GPT-4o and GPT-5 families.
///
/// The vocabulary is part of the binary. It is loaded once a process, by the first count or by
/// [`prepare`](TokenCounter::prepare): about 60 ms and 30 MB.
///
/// The first count on a thread puts 1.1 MiB on its stack (the tokenizer's memory of recent words on the way to
/// the heap). The 2 MiB of a Rust or tokio thread are enough; a thread with a smaller stack must not count.
#[cfg(feature = "tokens")]
#[derive(Clone, Copy, Debug, Default)]
pub struct O200k;

#[cfg(feature = "tokens")]
static O200K_BASE: std::sync::LazyLock<tiktoken::CoreBpe> =
    std::sync::LazyLock::new(tiktoken::encoding::o200k_base);

#[cfg(feature = "tokens")]
impl TokenCounter for O200k {
    fn name(&self) -> &str {
        "o200k_base"
    }

    fn is_estimate(&self) -> bool {
        false
    }

    fn prepare(&self) {
        std::sync::LazyLock::force(&O200K_BASE);
    }

    fn count(&self, text: &str) -> usize {
        O200K_BASE.count(text)
    }
}

/// A token for every three bytes, rounded up.
///
/// The usual four undercount code by up to a fifth. Whole repositories have 3.7 to 4 bytes a token
/// (`docs/benchmarks/context.md`), so three are on the safe side of them; a single file of many digits or symbols may
/// still have more tokens than this.
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimate;

impl TokenCounter for Estimate {
    fn name(&self) -> &str {
        "estimate"
    }

    fn is_estimate(&self) -> bool {
        true
    }

    fn count(&self, text: &str) -> usize {
        text.len().div_ceil(3)
    }
}

#[cfg(test)]
mod tests {
    use super::{Estimate, TokenCounter};

    #[test]
    fn an_estimate_is_a_third_of_the_bytes_rounded_up_and_says_that_it_is_one() {
        assert_eq!(["", "a", "abc", "abcd", "日本"].map(|text| Estimate.count(text)), [0, 1, 1, 2, 2]);
        assert!(Estimate.is_estimate());
    }

    #[cfg(feature = "tokens")]
    mod exact {
        use super::super::{O200k, TokenCounter};
        use proptest::prelude::*;

        /// The same vocabulary in another program: other authors, another algorithm, another splitter.
        fn independent(text: &str) -> usize {
            bpe_openai::o200k_base().count(text)
        }

        #[test]
        fn counts_are_those_of_the_published_encoding() {
            // From js-tiktoken 1.0.21 and gpt-tokenizer 4.0.0 (npm), which agree: a third and a fourth program.
            let table = [
                ("", 0),
                ("hello world", 2),
                ("<|endoftext|>", 7),
                ("fn main() { println!(\"{}\", 42); }\n", 10),
                ("日本語のトークン", 6),
                ("        return None\r\n\r\n", 4),
                ("👩‍👩‍👧‍👦", 11),
                ("They've said it's 1234567 lines, DON'T", 11),
                ("\u{e9}tude e\u{301}tude na\u{ef}ve", 8),
                ("\t\tif (a !== b) {\n\t\t\treturn [...xs, `${y}`];\n\t\t}", 20),
            ];
            for (text, tokens) in table {
                assert_eq!(O200k.count(text), tokens, "{text:?}");
            }
            assert_eq!((O200k.name(), O200k.is_estimate()), ("o200k_base", false));
        }

        #[test]
        fn this_crates_own_sources_count_as_another_tokenizer_counts_them() {
            for text in
                [include_str!("count.rs"), include_str!("../Cargo.toml"), include_str!("../../../Cargo.lock")]
            {
                assert_eq!(O200k.count(text), independent(text));
            }
        }

        #[test]
        fn a_megabyte_of_one_character_is_counted_exactly_and_in_seconds() {
            for character in ["a", " ", "\n", "=", "é", "🦀"] {
                let text = character.repeat(1 << 18);
                assert_eq!(O200k.count(&text), independent(&text), "{character:?}");
            }
        }

        /// What splits words: scripts, marks, runs of blanks, digits, contractions, controls, and joins of them.
        const FRAGMENTS: [&str; 56] = [
            "a",
            "e",
            "S",
            "Th",
            "ing",
            "ERROR",
            "camelCase",
            "snake_case",
            "pneumonoultramicroscopic",
            "'s",
            "'LL",
            "n't",
            "'",
            "\"",
            " ",
            "  ",
            "        ",
            "\t",
            "\n",
            "\r\n",
            "\r",
            "\n\n\n",
            "0",
            "12",
            "345",
            "6789",
            "٣",
            "½",
            ".",
            "...",
            "/",
            "//",
            "{}",
            "=>",
            "!==",
            "#",
            "$",
            "-",
            "----------------",
            "_",
            "é",
            "e\u{301}",
            "ß",
            "ſ",
            "İ",
            "ж",
            "日本語",
            "の",
            "한",
            "عربي",
            "ไทย",
            "👩\u{200d}👧",
            "\u{feff}",
            "\u{85}",
            "\u{2028}",
            "\u{0}",
        ];

        fn text() -> impl Strategy<Value = String> {
            let fragment = prop_oneof![
                12 => prop::sample::select(&FRAGMENTS[..]).prop_map(String::from),
                1 => any::<char>().prop_map(String::from),
            ];
            prop::collection::vec(fragment, 0..40).prop_map(|fragments| fragments.concat())
        }

        proptest! {
            #![proptest_config(ProptestConfig::with_cases(2048))]

            #[test]
            fn any_text_counts_as_another_tokenizer_counts_it(text in text()) {
                prop_assert_eq!(O200k.count(&text), independent(&text));
            }

            #[test]
            fn a_text_has_at_most_as_many_tokens_as_bytes(text in text()) {
                prop_assert!(O200k.count(&text) <= text.len());
            }

            #[test]
            fn counts_add_up_where_a_line_ends_and_the_next_begins_with_neither_a_blank_nor_a_slash(
                a in text(), b in text().prop_filter("how it begins", |b| !b.starts_with(['/', '\u{85}']) && !b.starts_with(char::is_whitespace)),
            ) {
                let a = a + "\n";
                prop_assert_eq!(O200k.count(&format!("{a}{b}")), O200k.count(&a) + O200k.count(&b));
            }
        }
    }
}
