//! The tools that a text names, and the text without those that its reader does not have.

use rmcp::model::Tool;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

/// The names of all tools that texts may speak of, whether or not a server has them.
#[derive(Debug, Default)]
pub(crate) struct KnownToolNames(HashSet<&'static str>);

impl FromIterator<&'static str> for KnownToolNames {
    fn from_iter<I: IntoIterator<Item = &'static str>>(names: I) -> Self {
        Self(names.into_iter().collect())
    }
}

impl KnownToolNames {
    /// Returns the tools that `text` names. A name of one word, such as `build`, counts only between backticks: it is a
    /// word of the language as well.
    fn named<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'static str> + 'a {
        // Names are ASCII, and so are the bounds of their slices.
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let bytes = text.as_bytes();
        let mut position = 0;
        std::iter::from_fn(move || {
            loop {
                let start = position + bytes.get(position..)?.iter().position(is_part)?;
                let length = bytes.get(start..)?.iter().position(|byte| !is_part(byte));
                let end = length.map_or(bytes.len(), |length| start + length);
                position = end;
                let name = text.get(start..end)?;
                let is_quoted = text.get(..start)?.ends_with('`') && bytes.get(end) == Some(&b'`');
                // Most words are no names, and hashing each takes longer than finding that out.
                if (is_quoted || name.contains('_'))
                    && let Some(known) = self.0.get(name)
                {
                    return Some(*known);
                }
            }
        })
    }

    fn names_other(&self, text: &str, available: &HashSet<&str>) -> bool {
        self.named(text).any(|name| !available.contains(name))
    }

    /// Returns the tools that the texts of a definition name.
    pub(crate) fn named_by(&self, tool: &Tool) -> Box<[&'static str]> {
        let mut names: Vec<&'static str> =
            self.named(tool.description.as_deref().unwrap_or_default()).collect();
        self.collect_from_schema(&tool.input_schema, &mut names);
        names.sort_unstable();
        names.dedup();
        names.into()
    }

    fn collect_from_schema(&self, schema: &Map<String, Value>, names: &mut Vec<&'static str>) {
        for (key, value) in schema {
            match value {
                Value::String(text) if key == "description" => names.extend(self.named(text)),
                Value::Object(inner) => self.collect_from_schema(inner, names),
                _ => {}
            }
        }
    }

    /// Returns `text` without the sentences that name other tools than `available`.
    fn without_sentences<'a>(&self, text: &'a str, available: &HashSet<&str>) -> Cow<'a, str> {
        if !self.names_other(text, available) {
            return Cow::Borrowed(text);
        }
        let kept: Vec<&str> =
            sentences(text).into_iter().filter(|sentence| !self.names_other(sentence, available)).collect();
        Cow::Owned(kept.join(" "))
    }

    /// Returns the message of an error without the advice that names other tools than `available`: what follows a
    /// semicolon or stands in brackets.
    pub(crate) fn without_advice<'a>(&self, message: &'a str, available: &HashSet<&str>) -> Cow<'a, str> {
        /// Longer messages, and those of several lines, quote what is no word of ours.
        const MAX_BYTES: usize = 400;
        if message.len() > MAX_BYTES || message.contains('\n') || !self.names_other(message, available) {
            return Cow::Borrowed(message);
        }
        let kept: Vec<Cow<'_, str>> = message
            .split("; ")
            .map(|clause| self.without_brackets(clause, available))
            .enumerate()
            // The first clause says what was wrong, and stays even if it names a tool.
            .filter(|(place, clause)| *place == 0 || !self.names_other(clause, available))
            .map(|(_, clause)| clause)
            .collect();
        Cow::Owned(kept.join("; "))
    }

    fn without_brackets<'a>(&self, clause: &'a str, available: &HashSet<&str>) -> Cow<'a, str> {
        if let Some((before, rest)) = clause.split_once(" (")
            && let Some((inside, after)) = rest.split_once(')')
            && self.names_other(inside, available)
        {
            return Cow::Owned(format!("{before}{after}"));
        }
        Cow::Borrowed(clause)
    }

    /// Returns a definition whose texts name no other tools than `available`.
    pub(crate) fn shortened(&self, tool: &Tool, available: &HashSet<&str>) -> Tool {
        let mut tool = tool.clone();
        let description =
            tool.description.as_deref().map(|text| self.without_sentences(text, available).into_owned());
        tool.description = description.map(Cow::Owned);
        self.shorten_schema(Arc::make_mut(&mut tool.input_schema), available);
        tool
    }

    fn shorten_schema(&self, schema: &mut Map<String, Value>, available: &HashSet<&str>) {
        for (key, value) in schema {
            match value {
                Value::String(text) if key == "description" => {
                    if let Cow::Owned(shortened) = self.without_sentences(text, available) {
                        *text = shortened;
                    }
                }
                Value::Object(inner) => self.shorten_schema(inner, available),
                _ => {}
            }
        }
    }
}

/// Splits a text into its sentences: each ends with a full stop before a blank and a new beginning.
fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for (stop, _) in text.match_indices(". ") {
        let next = text[stop + 2..].chars().next();
        let begins = next.is_some_and(|next| next.is_uppercase() || next == '`' || next.is_ascii_digit());
        // The full stop of an abbreviation ends no sentence.
        let is_shortening = text[..stop].ends_with("e.g") || text[..stop].ends_with("i.e");
        if begins && !is_shortening {
            sentences.push(text[start..=stop].trim());
            start = stop + 2;
        }
    }
    sentences.push(text[start..].trim());
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> KnownToolNames {
        ["read_file", "read_media_file", "run_command", "build"].into_iter().collect()
    }

    fn available() -> HashSet<&'static str> {
        ["read_file"].into_iter().collect()
    }

    #[test]
    fn a_sentence_that_names_a_tool_which_is_not_there_is_left_out() {
        for (text, expected) in [
            ("Reads text. Images are for read_media_file. At most 40 KB.", "Reads text. At most 40 KB."),
            (
                "Reads text, e.g. `a.txt`. Use read_file. `build` runs it.",
                "Reads text, e.g. `a.txt`. Use read_file.",
            ),
            ("A build is no tool. See unread_media_files.", "A build is no tool. See unread_media_files."),
            ("Use `run_command`.", ""),
        ] {
            assert_eq!(known().without_sentences(text, &available()), expected);
        }
    }

    #[test]
    fn advice_that_names_a_tool_which_is_not_there_is_left_out_of_an_error() {
        for (message, expected) in [
            ("`x.png` is an image; use read_media_file", "`x.png` is an image"),
            (
                "too many files; run git itself for that (run_command)",
                "too many files; run git itself for that",
            ),
            ("`x` is binary; use read_file", "`x` is binary; use read_file"),
            ("line 3 says: run_command\nand more", "line 3 says: run_command\nand more"),
        ] {
            assert_eq!(known().without_advice(message, &available()), expected);
        }
    }

    #[test]
    fn parameters_are_described_in_the_same_way() {
        let schema = serde_json::json!({
            "type": "object",
            "properties": {"path": {"type": "string", "description": "The file. Images: read_media_file."}}
        });
        let tool = Tool::new("read_file", "Reads text.", schema.as_object().cloned().unwrap());
        assert_eq!(*known().named_by(&tool), ["read_media_file"]);
        let shortened = known().shortened(&tool, &available());
        assert_eq!(shortened.input_schema["properties"]["path"]["description"], "The file.");
        assert!(known().named_by(&shortened).is_empty());
    }
}
