//! The order of tools by how well they match a query.

use super::tool_directory::DirectoryEntry;
use rmcp::model::Tool;
use serde_json::{Map, Value};

/// A tool with the words by which it is found.
pub(crate) struct Ranked {
    pub(crate) definition: Tool,
    pub(crate) rarely_needed: Map<String, Value>,
    pub(crate) is_listed: bool,
    /// Each word, with the weight of the place where it stands.
    words: Vec<(String, f64)>,
}

/// The weights of the places: a word of the name says more than one of a parameter's description.
const NAME: f64 = 8.0;
const TITLE: f64 = 4.0;
const TOOLSET: f64 = 3.0;
const DESCRIPTION: f64 = 2.0;
const PARAMETER: f64 = 2.0;
const PARAMETER_DESCRIPTION: f64 = 1.0;

/// The words of a query that are compared, at most.
const MAX_QUERY_WORDS: usize = 24;

impl Ranked {
    /// Takes apart the definition of a tool.
    pub(crate) fn new(entry: DirectoryEntry<'_>) -> Self {
        let DirectoryEntry { toolset, definition, rarely_needed, is_listed } = entry;
        let mut ranked = Self { definition: definition.clone(), rarely_needed, is_listed, words: Vec::new() };
        ranked.add(&definition.name, NAME);
        ranked.add(definition.title.as_deref().unwrap_or_default(), TITLE);
        ranked.add(toolset, TOOLSET);
        ranked.add(definition.description.as_deref().unwrap_or_default(), DESCRIPTION);
        let properties = definition.input_schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            ranked.add(name, PARAMETER);
            let description = property.get("description").and_then(Value::as_str);
            ranked.add(description.unwrap_or_default(), PARAMETER_DESCRIPTION);
        }
        ranked
    }

    fn add(&mut self, text: &str, weight: f64) {
        self.words.extend(words(text).map(|word| (word, weight)));
    }

    /// Returns the weight of the best place where a word stands, 0 for none.
    fn weight(&self, wanted: &str) -> f64 {
        let weights = self.words.iter().map(|(word, weight)| weight * likeness(wanted, word));
        weights.fold(0.0, f64::max)
    }
}

/// The part of a query that a tool has to match, by the rarity of the words: a tool that only has a word of most tools
/// does not fit.
const LEAST_MATCHED: f64 = 0.4;
/// The rarity of a word that no tool has. It says little: a task is often described in words that no tool uses.
const UNKNOWN_WORD_RARITY: f64 = 1.0;

/// Returns the tools that match a query, the best first, and of equally good ones in their order.
pub(crate) fn rank<'a>(query: &str, tools: &'a [Ranked]) -> Vec<&'a Ranked> {
    let mut scores = vec![0.0; tools.len()];
    let mut matched = vec![0.0; tools.len()];
    let mut rarities = 0.0;
    for wanted in words(query).take(MAX_QUERY_WORDS) {
        let weights: Vec<f64> = tools.iter().map(|tool| tool.weight(&wanted)).collect();
        let matching = weights.iter().filter(|weight| **weight > 0.0).count();
        // A word that most tools have says little (inverse document frequency).
        let rarity = match matching {
            0 => UNKNOWN_WORD_RARITY,
            matching => (1.0 + tools.len() as f64 / matching as f64).ln(),
        };
        rarities += rarity;
        let has_word = matched.iter_mut().zip(&weights).filter(|(_, weight)| **weight > 0.0);
        has_word.for_each(|(matched, _)| *matched += rarity);
        scores.iter_mut().zip(weights).for_each(|(score, weight)| *score += weight * rarity);
    }
    for (score, matched) in scores.iter_mut().zip(matched) {
        if matched < LEAST_MATCHED * rarities {
            *score = 0.0;
        }
    }
    let best = scores.iter().copied().fold(0.0, f64::max);
    // What is far behind the best matches by a word that stands everywhere; and what is found is added to a list.
    let mut ranked: Vec<(f64, &Ranked)> =
        scores.into_iter().zip(tools).filter(|(score, _)| *score > 0.0 && *score >= best / 2.5).collect();
    ranked.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    ranked.into_iter().map(|(_, tool)| tool).collect()
}

/// Words that stand in every sentence.
const STOP_WORDS: [&str; 24] = [
    "a", "an", "and", "as", "at", "by", "for", "from", "in", "is", "it", "its", "of", "on", "or", "that",
    "the", "to", "what", "which", "with", "how", "me", "my",
];

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|character: char| !character.is_alphanumeric())
        .map(|word| stem(&word.to_lowercase()))
        .filter(|word| !word.is_empty() && !STOP_WORDS.contains(&word.as_str()))
}

/// Cuts the endings that English verbs and plurals have, so that `pausing` is `pause` and `files` is `file`.
fn stem(word: &str) -> String {
    for ending in ["ing", "ies", "es", "ed", "s", "e", "y"] {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.len() >= 3
        {
            return stem.to_owned();
        }
    }
    word.to_owned()
}

/// Returns 1 for the same word, less for one that begins with the other, 0 for others.
fn likeness(wanted: &str, word: &str) -> f64 {
    const PREFIX: f64 = 0.5;
    if wanted == word {
        return 1.0;
    }
    let shorter = wanted.len().min(word.len());
    if shorter >= 4 && (wanted.starts_with(word) || word.starts_with(wanted)) { PREFIX } else { 0.0 }
}
