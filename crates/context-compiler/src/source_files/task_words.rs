//! The words of a task, cut to their stems, and how well a file matches them.

use std::collections::{BTreeMap, BTreeSet};

/// Words that tasks and commit messages have in common.
const COMMON_WORDS: &[&str] = &[
    "a", "about", "add", "added", "adds", "after", "all", "allow", "also", "always", "an", "and", "any",
    "are", "as", "at", "be", "because", "been", "before", "being", "better", "both", "bug", "but", "by",
    "can", "case", "chang", "change", "changed", "changes", "chore", "close", "closes", "correct", "could",
    "do", "does", "doesn", "don", "ensure", "feat", "feature", "fix", "fixed", "fixes", "for", "from", "get",
    "has", "have", "if", "in", "instead", "into", "is", "issue", "it", "its", "just", "like", "make", "more",
    "new", "no", "not", "now", "of", "on", "one", "only", "or", "other", "pr", "properly", "refs", "remov",
    "remove", "removed", "see", "should", "so", "some", "support", "than", "that", "the", "their", "them",
    "then", "there", "these", "this", "to", "too", "updat", "update", "use", "used", "uses", "using", "was",
    "we", "when", "where", "which", "while", "will", "with", "without", "would", "you",
];
/// The shortest word that counts, in bytes.
const MIN_WORD_BYTES: usize = 2;
/// The most words of a task that count. A longer task repeats itself.
const MAX_WORDS: usize = 200;

// The worth of each way in which a file can match a word, before the rarity of the word.
const PATH_MATCH: f64 = 5.0;
const DEFINITION_MATCH: f64 = 2.5;
const TEXT_MATCH: f64 = 1.5;
const EXACT_NAME_MATCH: f64 = 8.0;

/// The words of a task.
#[derive(Debug, Default)]
pub(super) struct TaskWords {
    /// Lower-case stems, in byte order.
    words: Vec<String>,
    /// The names in the task as they are written, such as `parse_args` or `HashMap`.
    names: BTreeSet<String>,
}

/// The matches of one file.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskMatches {
    /// For each word of the task: in the path, the number of definitions, the number of occurrences in the text.
    words: Vec<(bool, u32, u32)>,
    /// The names of the task that the file defines.
    names: Vec<String>,
}

impl TaskWords {
    /// The words of `task`.
    pub(super) fn of(task: &str) -> Self {
        let mut words = BTreeSet::new();
        let mut names = BTreeSet::new();
        for token in identifiers(task) {
            let stems: Vec<String> = sub_words(token).collect();
            if stems.len() > 1 || token.bytes().skip(1).any(|byte| byte.is_ascii_uppercase()) {
                names.insert(token.to_owned());
            }
            words.extend(stems.into_iter().filter(|stem| !is_common(stem)));
            if words.len() >= MAX_WORDS {
                break;
            }
        }
        // In code quotes, a plain word is a name too.
        names.extend(
            task.split('`')
                .skip(1)
                .step_by(2)
                .flat_map(identifiers)
                .filter(|name| name.len() > 2)
                .map(str::to_owned),
        );
        Self { words: words.into_iter().collect(), names }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.names.is_empty()
    }

    /// Returns true if the task has `name` as it is.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Returns the part of the words in `name` that the task has, 0 to 1, or more if the task has the name itself.
    pub(super) fn relevance(&self, name: &str) -> f64 {
        /// More than any number of words.
        const NAMED: f64 = 100.0;
        if self.has_name(name) {
            return NAMED;
        }
        let stems: Vec<String> = sub_words(name).collect();
        let matching = stems.iter().filter(|stem| self.words.binary_search(*stem).is_ok()).count();
        if matching == 0 { 0.0 } else { ratio(matching, stems.len()) }
    }

    /// Returns the matches of a file.
    pub(super) fn matches(&self, path: &str, definitions: &[String], text: &str) -> TaskMatches {
        let in_path: BTreeSet<String> = identifiers(path).flat_map(sub_words).collect();
        let mut defined: BTreeMap<String, u32> = BTreeMap::new();
        for stem in definitions.iter().flat_map(|name| sub_words(name)) {
            *defined.entry(stem).or_default() += 1;
        }
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        if !self.words.is_empty() {
            for token in identifiers(text) {
                for stem in sub_words(token) {
                    if self.words.binary_search(&stem).is_ok() {
                        *counts.entry(stem).or_default() += 1;
                    }
                }
            }
        }
        let matches = self.words.iter().map(|word| {
            let count = |map: &BTreeMap<String, u32>| map.get(word).copied().unwrap_or(0);
            (in_path.contains(word), count(&defined), count(&counts))
        });
        TaskMatches {
            words: matches.collect(),
            names: definitions.iter().filter(|name| self.names.contains(*name)).cloned().collect(),
        }
    }

    /// Returns how well each file matches, where a word that few files have counts more.
    pub(super) fn scores(&self, files: &[TaskMatches]) -> Vec<f64> {
        let total = files.len().max(1);
        let rarity = |having: usize| log2(1.0 + ratio(total, having.max(1)));
        let word_rarity: Vec<f64> = (0..self.words.len())
            .map(|word| {
                let has = |file: &&TaskMatches| {
                    file.words.get(word).is_some_and(|(path, defined, count)| *path || defined + count > 0)
                };
                rarity(files.iter().filter(has).count())
            })
            .collect();
        let mut name_files: BTreeMap<&str, usize> = BTreeMap::new();
        for name in files.iter().flat_map(|file| &file.names) {
            *name_files.entry(name).or_default() += 1;
        }
        let score = |file: &TaskMatches| {
            let mut score = 0.0;
            for ((path, defined, count), rarity) in file.words.iter().zip(&word_rarity) {
                let saturated = |count: u32| f64::from(count) / (f64::from(count) + 2.0);
                let worth = f64::from(u8::from(*path)) * PATH_MATCH
                    + saturated(*defined) * DEFINITION_MATCH
                    + saturated(*count) * TEXT_MATCH;
                score += worth * rarity;
            }
            for name in &file.names {
                score += EXACT_NAME_MATCH * rarity(name_files.get(name.as_str()).copied().unwrap_or(1));
            }
            score
        };
        files.iter().map(score).collect()
    }
}

/// Returns the binary logarithm of `number`, at least 1, between its powers of two by a straight line. Unlike a logarithm
/// of a library, it is the same on any machine.
fn log2(mut number: f64) -> f64 {
    let mut exponent = 0.0;
    while number >= 2.0 {
        number /= 2.0;
        exponent += 1.0;
    }
    exponent + number - 1.0
}

#[allow(clippy::cast_precision_loss, reason = "numbers of files")]
fn ratio(number: usize, of: usize) -> f64 {
    number as f64 / of as f64
}

fn is_common(word: &str) -> bool {
    word.len() < MIN_WORD_BYTES
        || COMMON_WORDS.binary_search(&word).is_ok()
        || word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the runs of letters, digits and underscores in `text`.
pub(super) fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// Returns the stems of the words in an identifier: `parseOptions` has `parse` and `option`.
fn sub_words(identifier: &str) -> impl Iterator<Item = String> + '_ {
    identifier.split('_').flat_map(split_camel_case).map(stem)
}

/// Divides a word before each upper-case letter that follows a lower-case one, and before the last one of several.
fn split_camel_case(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let bytes = word.as_bytes();
    for (index, byte) in bytes.iter().enumerate().skip(1) {
        let next_is_lower = bytes.get(index + 1).is_some_and(u8::is_ascii_lowercase);
        if byte.is_ascii_uppercase() && (!bytes[index - 1].is_ascii_uppercase() || next_is_lower) {
            parts.push(&word[start..index]);
            start = index;
        }
    }
    parts.push(&word[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

/// Returns a word in lower case without its plural or participle ending.
fn stem(word: &str) -> String {
    let word = word.to_lowercase();
    for (ending, rest) in [("ings", 4), ("ing", 4), ("ies", 3), ("ed", 4), ("es", 4), ("s", 3)] {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.len() >= rest
            && !stem.ends_with('s')
        {
            return stem.to_owned();
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_words_are_in_the_order_that_the_search_needs() {
        assert!(COMMON_WORDS.is_sorted());
    }

    #[test]
    fn names_are_divided_into_stems() {
        let stems = |name| sub_words(name).collect::<Vec<_>>();
        assert_eq!(stems("parseHTTPOptions"), ["parse", "http", "option"]);
        assert_eq!(stems("test_parsing_flags"), ["test", "parsing", "flag"]);
        assert_eq!(stems("class"), ["class"]);
    }

    #[test]
    fn a_file_that_defines_what_the_task_names_matches_best_and_rare_words_count_more() {
        let task = TaskWords::of("Fix the `Queue`: parse_args drops a flag of the runner");
        assert!(task.has_name("Queue") && task.has_name("parse_args") && !task.has_name("flag"));
        let of = |path: &str, definitions: &[&str], text: &str| {
            let definitions: Vec<String> = definitions.iter().map(|&name| name.to_owned()).collect();
            task.matches(path, &definitions, text)
        };
        let files = [
            of("src/queue.rs", &["Queue"], "pub struct Queue;"),
            of("src/arguments.rs", &["parse_args"], "fn parse_args() { flag }"),
            of("src/other.rs", &["other"], "flag"),
            of("src/nothing.rs", &[], ""),
        ];
        let scores = task.scores(&files);
        assert!(scores[0] > scores[2] && scores[1] > scores[2] && scores[2] > scores[3], "{scores:?}");
        assert!(scores[3] == 0.0 && TaskWords::of("the of and").is_empty());
    }
}
