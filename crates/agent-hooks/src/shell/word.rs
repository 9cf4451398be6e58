//! [`ShellWord`]: one word of a line, evaluated where its value does not depend on the run.

use tree_sitter::Node;

/// One word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShellWord {
    /// The value of a literal word; else the word as it is written.
    pub text: String,
    /// True if the word has this value whenever the line runs.
    pub is_literal: bool,
}

impl ShellWord {
    /// Creates a word with a fixed value.
    pub fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_literal: true }
    }

    /// Creates a word whose value is known only when the line runs.
    pub(super) fn dynamic(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_literal: false }
    }

    /// Returns the value if it is fixed.
    pub fn value(&self) -> Option<&str> {
        self.is_literal.then_some(self.text.as_str())
    }
}

/// Evaluates the word at `node`: quotes are removed as bash removes them. `home` takes the place of a `~` at its start.
pub(super) fn evaluate(node: Node<'_>, source: &str, home: Option<&str>) -> ShellWord {
    let raw = source.get(node.byte_range()).unwrap_or_default();
    match value(node, source, home) {
        Some(text) => ShellWord::literal(text),
        None => ShellWord::dynamic(raw),
    }
}

fn value(node: Node<'_>, source: &str, home: Option<&str>) -> Option<String> {
    let raw = source.get(node.byte_range())?;
    match node.kind() {
        "word" | "number" | "test_operator" | "variable_name" | "special_variable_name" => {
            unquoted(raw, home)
        }
        "raw_string" => raw.strip_prefix('\'')?.strip_suffix('\'').map(str::to_owned),
        "string" => double_quoted(raw.strip_prefix('"')?.strip_suffix('"')?),
        "command_name" => value(only_child(node)?, source, home),
        "concatenation" => {
            let mut text = String::new();
            let mut end = node.start_byte();
            let mut outside_quotes = String::new();
            for index in 0..node.child_count() {
                let part = node.child(u32::try_from(index).ok()?)?;
                // A gap would be text that no part accounts for.
                if part.start_byte() != end {
                    return None;
                }
                end = part.end_byte();
                if !matches!(part.kind(), "string" | "raw_string") {
                    outside_quotes.push_str(source.get(part.byte_range())?);
                }
                let home = home.filter(|_| index == 0);
                text.push_str(&value(part, source, home)?);
            }
            // `a{b,c}` comes in parts.
            let expands = unquoted(&outside_quotes, Some("")).is_none();
            (end == node.end_byte() && !expands).then_some(text)
        }
        // A bracket or a brace that stands alone, as in `{}`.
        "{" | "}" | "[" | "]" | "$" if !node.is_named() => {
            unquoted(raw, None).or_else(|| Some(raw.to_owned()))
        }
        _ => None,
    }
}

fn only_child(node: Node<'_>) -> Option<Node<'_>> {
    let child = node.child(0)?;
    (node.child_count() == 1 && child.byte_range() == node.byte_range()).then_some(child)
}

/// Returns the value of text without quotes, or `None` if the shell would expand it.
fn unquoted(raw: &str, home: Option<&str>) -> Option<String> {
    let (mut text, rest) = match raw.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => (home?.to_owned(), rest),
        // Another user's home, or a folder of the stack.
        Some(_) => return None,
        None => (String::new(), raw),
    };
    let mut characters = rest.chars();
    let mut braces = false;
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next()? {
                '\n' => {}
                escaped => text.push(escaped),
            },
            '$' | '`' | '"' | '\'' | '*' | '?' | '[' | '\n' => return None,
            '{' => {
                braces = true;
                text.push(character);
            }
            // `{a,b}` and `{1..3}` are several words.
            ',' if braces => return None,
            '.' if braces && text.ends_with('.') => return None,
            other => text.push(other),
        }
    }
    Some(text)
}

/// Returns the value of text between double quotes, or `None` if the shell would expand it.
fn double_quoted(raw: &str) -> Option<String> {
    let mut text = String::new();
    let mut characters = raw.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next()? {
                '\n' => {}
                escaped @ ('$' | '`' | '"' | '\\') => text.push(escaped),
                other => text.extend(['\\', other]),
            },
            '`' | '"' => return None,
            // A dollar before a blank, or at the end, is itself.
            '$' if characters
                .peek()
                .is_some_and(|next| !next.is_whitespace() && !"%.,:/)".contains(*next)) =>
            {
                return None;
            }
            other => text.push(other),
        }
    }
    Some(text)
}
