//! [`WordPattern`]: the texts that a word of a line can become.

use crate::shell::{ShellWord, VariableValues};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

/// The most words of a line whose values are worked out. Those behind them are unknown, so that no line takes long to judge.
pub(crate) const MAX_EVALUATIONS: usize = 256;

/// The most texts, with their unknown parts, that one word is taken for. A word with more is unknown as a whole.
const MAX_ALTERNATIVES: usize = 64;

/// The deepest nesting of variables in the values of variables.
const MAX_DEPTH: usize = 4;

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Character(char),
    /// Digits, or nothing.
    Number,
    /// Any name that the shell finds in a folder, or a part of one.
    Name,
    /// A path beneath a folder.
    Found,
    /// Any text.
    Text,
}

/// A text with parts that only the run knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WordPattern(Vec<Part>);

/// The values of variables, as far as they are known before a line runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownValues<'a> {
    pub(crate) home: Option<&'a str>,
    /// The values that the line itself gives.
    pub(crate) assigned: &'a BTreeMap<String, VariableValues>,
    /// The evaluations that are left.
    pub(crate) budget: &'a Cell<usize>,
}

impl WordPattern {
    fn literal(text: &str) -> Self {
        Self(text.chars().map(Part::Character).collect())
    }

    /// Returns the patterns of the texts that `word` can become.
    pub(crate) fn of(word: &ShellWord, known: KnownValues<'_>) -> Vec<Self> {
        alternatives(word, known, 0)
    }

    /// Returns the text, if every part of it is known.
    pub(crate) fn text(&self) -> Option<String> {
        let characters = self.0.iter().map(|part| match part {
            Part::Character(character) => Some(*character),
            _ => None,
        });
        characters.collect()
    }

    /// Returns the text up to the first part that only the run knows, without the name that this part continues.
    pub(crate) fn literal_start(&self) -> String {
        let characters = self.0.iter().map_while(|part| match part {
            Part::Character(character) => Some(*character),
            _ => None,
        });
        let start: String = characters.collect();
        if start.chars().count() == self.0.len() {
            return start;
        }
        start.rfind('/').map_or_else(String::new, |slash| start[..slash].to_owned())
    }

    /// Returns true if some part is found by the shell, in a folder.
    pub(crate) fn is_glob(&self) -> bool {
        self.0.contains(&Part::Name) && !self.0.iter().any(|part| matches!(part, Part::Found | Part::Text))
    }

    /// Returns the patterns of what stands behind `=`, and behind the letter of an option, as well.
    pub(crate) fn with_values(self) -> Vec<Self> {
        let mut patterns = Vec::new();
        if let Some(at) = self.0.iter().rposition(|part| *part == Part::Character('=')) {
            patterns.push(Self(self.0[at + 1..].to_vec()));
        }
        if let [Part::Character('-'), Part::Character(letter), value @ ..] = self.0.as_slice()
            && letter.is_ascii_alphanumeric()
            && !value.is_empty()
        {
            patterns.push(Self(value.to_vec()));
        }
        patterns.push(self);
        patterns
    }

    /// Returns the pattern of the path that this is in `folder`; in one that is not known if that is `None`.
    pub(crate) fn in_folder(&self, folder: Option<&Path>) -> Self {
        let begins_anywhere = matches!(self.0.first(), Some(Part::Text));
        let mut parts = if begins_anywhere || matches!(self.0.first(), Some(Part::Character('/'))) {
            Vec::new()
        } else {
            let mut parts = match folder {
                Some(folder) => Self::literal(&folder.to_string_lossy()).0,
                None => vec![Part::Text],
            };
            parts.push(Part::Character('/'));
            parts
        };
        parts.extend(&self.0);
        Self(normalized(&parts))
    }

    /// Returns true if the pattern can become `text`.
    pub(crate) fn can_be(&self, text: &str) -> bool {
        // The places in the pattern that can be reached with what was read.
        let mut places = vec![false; self.0.len() + 1];
        places[0] = true;
        self.skip_empty(&mut places);
        let mut before = '/';
        for character in text.chars() {
            let mut next = vec![false; places.len()];
            for (at, part) in self.0.iter().enumerate().filter(|(at, _)| places[*at]) {
                match part {
                    Part::Character(expected) if *expected == character => next[at + 1] = true,
                    Part::Number if character.is_ascii_digit() => next[at] = true,
                    // A pattern of the shell does not find a hidden name.
                    Part::Name if character != '/' && !(character == '.' && before == '/') => next[at] = true,
                    Part::Found | Part::Text => next[at] = true,
                    _ => {}
                }
            }
            places = next;
            self.skip_empty(&mut places);
            before = character;
        }
        places[self.0.len()]
    }

    /// Marks the places behind parts that may be empty.
    fn skip_empty(&self, places: &mut [bool]) {
        for (at, part) in self.0.iter().enumerate() {
            if places[at] && !matches!(part, Part::Character(_)) {
                places[at + 1] = true;
            }
        }
    }
}

/// Removes `.` and `..` from a path. Text that only the run knows may have `..` in it, so it takes the place of everything
/// before it.
fn normalized(parts: &[Part]) -> Vec<Part> {
    let mut components: Vec<&[Part]> = Vec::new();
    for component in parts.split(|part| *part == Part::Character('/')) {
        if let Some(at) = component.iter().rposition(|part| *part == Part::Text) {
            components = vec![&component[at..]];
            continue;
        }
        match component {
            [] | [Part::Character('.')] => {}
            [Part::Character('.'), Part::Character('.')] => match components.last() {
                Some([Part::Text, ..] | [Part::Found, ..]) => components = vec![&[Part::Text]],
                _ => {
                    components.pop();
                }
            },
            // The shell may find `..` for it.
            [Part::Character('.'), Part::Name, ..] => components = vec![&[Part::Text]],
            component => components.push(component),
        }
    }
    let mut normal = Vec::new();
    for component in components {
        if component.first() != Some(&Part::Text) {
            normal.push(Part::Character('/'));
        }
        normal.extend_from_slice(component);
    }
    normal
}

fn alternatives(word: &ShellWord, known: KnownValues<'_>, depth: usize) -> Vec<WordPattern> {
    if let Some(text) = word.value() {
        return vec![WordPattern::literal(text)];
    }
    let unknown = || vec![WordPattern(vec![Part::Text])];
    let left = known.budget.get();
    if depth > MAX_DEPTH || left == 0 {
        return unknown();
    }
    known.budget.set(left - 1);
    read(&word.text, known, depth).unwrap_or_else(unknown)
}

/// Reads the source of a word. `None` if it has a form that is not known here.
fn read(source: &str, known: KnownValues<'_>, depth: usize) -> Option<Vec<WordPattern>> {
    let mut patterns = vec![WordPattern::default()];
    let mut quoted = false;
    let mut rest = source;
    if let Some(behind) = source.strip_prefix('~') {
        rest = behind;
        let is_own = rest.is_empty() || rest.starts_with('/');
        patterns = vec![WordPattern::literal(known.home.filter(|_| is_own)?)];
    }
    let push = |patterns: &mut Vec<WordPattern>, part: Part| {
        patterns.iter_mut().for_each(|pattern| pattern.0.push(part));
    };
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        match character {
            '"' => quoted = !quoted,
            '\'' if !quoted => {
                let (text, behind) = rest.split_once('\'')?;
                text.chars().for_each(|character| push(&mut patterns, Part::Character(character)));
                rest = behind;
            }
            '\\' => {
                let escaped = rest.chars().next()?;
                rest = &rest[escaped.len_utf8()..];
                if quoted && !"$`\"\\\n".contains(escaped) {
                    push(&mut patterns, Part::Character('\\'));
                }
                if escaped != '\n' {
                    push(&mut patterns, Part::Character(escaped));
                }
            }
            '$' => {
                if let Some(behind) = rest.strip_prefix("(find)") {
                    push(&mut patterns, Part::Found);
                    rest = behind;
                    continue;
                }
                let (name, behind) = variable(rest)?;
                rest = behind;
                let values = values(name, known, depth);
                patterns = patterns
                    .iter()
                    .flat_map(|pattern| {
                        values.iter().map(|value| WordPattern([&*pattern.0, &*value.0].concat()))
                    })
                    .collect();
                if patterns.len() > MAX_ALTERNATIVES {
                    return None;
                }
            }
            '`' => return None,
            '*' if !quoted => push(&mut patterns, Part::Name),
            '?' if !quoted => push(&mut patterns, Part::Name),
            '[' if !quoted => {
                rest = rest.split_once(']')?.1;
                push(&mut patterns, Part::Name);
            }
            // Several words, and forms of patterns that are off by default.
            '{' | '(' | '<' | '>' if !quoted => return None,
            other => push(&mut patterns, Part::Character(other)),
        }
    }
    (!quoted).then_some(patterns)
}

/// Splits the source behind a `$`: the name of a plain variable. `None` for any other expansion.
fn variable(source: &str) -> Option<(&str, &str)> {
    let is_of_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    if let Some(inner) = source.strip_prefix('{') {
        let (name, behind) = inner.split_once('}')?;
        return name.chars().all(is_of_name).then_some((name, behind));
    }
    let end = source.find(|character| !is_of_name(character)).unwrap_or(source.len());
    (end > 0).then(|| source.split_at(end))
}

fn values(name: &str, known: KnownValues<'_>, depth: usize) -> Vec<WordPattern> {
    match (known.assigned.get(name), known.home) {
        (Some(VariableValues::Number), _) => vec![WordPattern(vec![Part::Number])],
        (Some(VariableValues::Words(words)), _) if words.len() <= MAX_ALTERNATIVES => {
            words.iter().flat_map(|word| alternatives(word, known, depth + 1)).collect()
        }
        (None, Some(home)) if name == "HOME" => vec![WordPattern::literal(home)],
        _ => vec![WordPattern(vec![Part::Text])],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(source: &str, values: &[(&str, VariableValues)]) -> Vec<WordPattern> {
        let assigned = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let budget = Cell::new(MAX_EVALUATIONS);
        let known = KnownValues { home: Some("/home/me"), assigned: &assigned, budget: &budget };
        WordPattern::of(&ShellWord { text: source.to_owned(), is_literal: false }, known)
    }

    fn can_be(source: &str, values: &[(&str, VariableValues)], path: &str) -> bool {
        patterns(source, values).iter().any(|pattern| pattern.in_folder(Some(Path::new("/p"))).can_be(path))
    }

    #[test]
    fn a_word_can_be_what_its_known_parts_allow() {
        for (source, path, expected) in [
            ("\"$HOME/.claude/settings.json\"", "/home/me/.claude/settings.json", true),
            ("$HOME/x", "/home/me/.claude/settings.json", false),
            ("~/.claude/s*", "/home/me/.claude/settings.json", true),
            ("~/.claude/s*", "/home/me/.claude/x", false),
            ("$X", "/home/me/.claude/settings.json", true),
            ("src/$X.rs", "/p/.mcp.json", false),
            ("src/$X", "/p/.mcp.json", true),
            ("*", "/p/.mcp.json", false),
            (".m*", "/p/.mcp.json", true),
            ("*", "/p/coretools.toml", true),
            ("*.rs", "/p/coretools.toml", false),
            ("*/*.toml", "/p/coretools.toml", false),
            (".[a-z]*/settings.json", "/p/.claude/settings.json", true),
            ("{.mcp.json,x}", "/p/.mcp.json", true),
            ("'.'/\"$(find)\"*.rs", "/p/.mcp.json", false),
            ("'.'/\"$(find)\"", "/p/.mcp.json", true),
            ("'src'/\"$(find)\"", "/p/.mcp.json", false),
            (".*", "/p/.mcp.json", true),
            ("`x`", "/p/.mcp.json", true),
        ] {
            assert_eq!(can_be(source, &[], path), expected, "{source} {path}");
        }
    }

    #[test]
    fn the_values_that_a_line_gives_are_known() {
        let words = |words: &[&str]| {
            VariableValues::Words(words.iter().map(|word| ShellWord::literal(*word)).collect())
        };
        let names = [("f", words(&["a.rs", "b.rs"])), ("i", VariableValues::Number)];
        assert!(!can_be("\"$f\"", &names, "/p/.mcp.json"));
        assert!(can_be("\"$f\"", &names, "/p/b.rs"));
        assert!(!can_be("out$i.txt", &names, "/p/.mcp.json"));
        assert!(can_be("$f", &[("f", words(&["a", ".mcp.json"]))], "/p/.mcp.json"));
        assert!(can_be("$f", &[("f", VariableValues::Unknown)], "/p/.mcp.json"));
    }

    #[test]
    fn variables_that_name_each_other_take_no_time() {
        let dynamic = |text: &str| ShellWord { text: text.to_owned(), is_literal: false };
        let words = |name: &str| VariableValues::Words((0..60).map(|_| dynamic(name)).collect());
        let names = [("a", words("$b")), ("b", words("$c")), ("c", words("$d")), ("d", words("$a"))];
        assert!(can_be("$a$b$c", &names, "/p/.mcp.json"));
    }

    #[test]
    fn a_path_in_an_unknown_folder_is_known_by_its_end() {
        let can_be = |text: &str| {
            let word = WordPattern::literal(text).in_folder(None);
            word.can_be("/home/me/.claude/settings.json")
        };
        for text in
            ["settings.json", ".claude/settings.json", ".", "..", "../x/../settings.json", "./settings.json"]
        {
            assert!(can_be(text), "{text}");
        }
        for text in ["test", "--all", "../other.json", "/p/settings.json"] {
            assert!(!can_be(text), "{text}");
        }
    }

    #[test]
    fn the_value_of_an_option_is_looked_at() {
        let values = |text: &str| WordPattern::literal(text).with_values().len();
        assert_eq!((values("x"), values("-of"), values("--a=b"), values("-oa=b")), (1, 2, 2, 3));
    }
}
