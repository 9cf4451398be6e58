//! The names and operators in the text of a statement, as PostgreSQL's own scanner would find them.
//!
//! They decide nothing by themselves: `volatile` looks them up in the catalog. A name too many can only make a statement
//! be refused, so where versions of PostgreSQL scan differently, this takes the reading with more names.
//!
//! <https://www.postgresql.org/docs/current/sql-syntax-lexical.html>

/// PostgreSQL cuts longer names (`NAMEDATALEN` - 1).
const MAX_NAME_BYTES: usize = 63;
/// The characters of operators.
const OPERATOR_CHARACTERS: &str = "+-*/<>=~!@#%^&|`?";

/// The names and operators of one statement, without repetition.
#[derive(Debug, Default, PartialEq)]
pub(super) struct StatementTokens {
    /// Names before an opening parenthesis: calls of functions, among others.
    pub(super) called: Vec<String>,
    /// Names behind a dot, which call a function of one row: `t.f` may mean `f(t)`.
    pub(super) attributes: Vec<String>,
    /// All names and keywords.
    pub(super) names: Vec<String>,
    /// Runs of operator characters; two operators may stand together in one.
    pub(super) operators: Vec<String>,
    /// There is a name with Unicode escapes, which only the server can read.
    pub(super) has_escaped_name: bool,
}

impl StatementTokens {
    /// Reads the tokens of `statement`, which is scanned with `standard_conforming_strings`.
    pub(super) fn read(statement: &str) -> Self {
        let mut scanner = TokenScanner { rest: statement };
        let mut tokens = Self::default();
        // The name before the current token, if it may be called by a parenthesis; and whether a dot stands before.
        let (mut last_name, mut is_behind_dot): (Option<String>, bool) = (None, false);
        loop {
            scanner.skip_blanks();
            let Some(first) = scanner.rest.chars().next() else { break };
            let mut name = None;
            let mut is_dot = false;
            if first == '\'' {
                scanner.skip_string(false);
            } else if first == '"' {
                name = Some(scanner.take_quoted_name());
            } else if first == '$' {
                scanner.skip_dollar();
            } else if is_name_start(first) {
                let word = scanner.take_word();
                if word.eq_ignore_ascii_case("e") && scanner.rest.starts_with('\'') {
                    scanner.skip_string(true);
                } else if word.eq_ignore_ascii_case("u") && scanner.rest.starts_with("&\"") {
                    tokens.has_escaped_name = true;
                } else {
                    // Only ASCII letters are folded where the encoding has several bytes for a character.
                    name = Some(truncated(word.to_ascii_lowercase()));
                }
            } else if OPERATOR_CHARACTERS.contains(first) {
                push_new(&mut tokens.operators, scanner.take_operator());
            } else {
                if first == '('
                    && let Some(called) = last_name.take()
                {
                    push_new(&mut tokens.called, called);
                }
                is_dot = first == '.';
                scanner.rest = &scanner.rest[first.len_utf8()..];
            }
            if let Some(name) = &name {
                if is_behind_dot {
                    push_new(&mut tokens.attributes, name.clone());
                }
                push_new(&mut tokens.names, name.clone());
            }
            (last_name, is_behind_dot) = (name, is_dot);
        }
        tokens.add_implied();
        tokens
    }

    /// Adds the operators that keywords stand for, and the catalog's names of types that SQL calls otherwise.
    fn add_implied(&mut self) {
        let has = |word: &str| self.names.iter().any(|name| name == word);
        let operators: Vec<&str> = KEYWORD_OPERATORS
            .iter()
            .filter(|(keyword, _)| has(keyword))
            .flat_map(|(_, operators)| operators.iter().copied())
            .collect();
        let types: Vec<&str> = TYPE_ALIASES
            .iter()
            .filter(|(alias, _)| has(alias))
            .flat_map(|(_, types)| types.iter().copied())
            .collect();
        for operator in operators {
            push_new(&mut self.operators, operator.to_owned());
        }
        for kind in types {
            push_new(&mut self.names, kind.to_owned());
        }
    }
}

/// Keywords that call an operator of the search path.
const KEYWORD_OPERATORS: [(&str, &[&str]); 10] = [
    ("like", &["~~", "!~~"]),
    ("ilike", &["~~*", "!~~*"]),
    ("similar", &["~", "!~"]),
    ("between", &["<", ">", "<=", ">="]),
    ("in", &["=", "<>"]),
    ("nullif", &["="]),
    ("distinct", &["=", "<>"]),
    ("case", &["="]),
    ("using", &["="]),
    ("natural", &["="]),
];

/// Types whose name in the catalog is another than in SQL.
const TYPE_ALIASES: [(&str, &[&str]); 12] = [
    ("int", &["int4"]),
    ("integer", &["int4"]),
    ("bigint", &["int8"]),
    ("smallint", &["int2"]),
    ("real", &["float4"]),
    ("double", &["float8"]),
    ("float", &["float4", "float8"]),
    ("decimal", &["numeric"]),
    ("boolean", &["bool"]),
    ("character", &["bpchar", "varchar"]),
    ("char", &["bpchar"]),
    ("bit", &["varbit"]),
];

fn push_new(list: &mut Vec<String>, item: String) {
    if !list.contains(&item) {
        list.push(item);
    }
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

/// Cuts a name where PostgreSQL does: at whole characters.
fn truncated(mut name: String) -> String {
    if name.len() > MAX_NAME_BYTES {
        let end = (0..=MAX_NAME_BYTES).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
        name.truncate(end);
    }
    name
}

/// The rest of a statement while its tokens are read.
struct TokenScanner<'a> {
    rest: &'a str,
}

impl<'a> TokenScanner<'a> {
    /// Skips blanks and comments; comments in `/*` nest.
    fn skip_blanks(&mut self) {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
            if let Some(comment) = self.rest.strip_prefix("--") {
                self.rest = comment.find(['\n', '\r']).map_or("", |end| &comment[end..]);
            } else if let Some(comment) = self.rest.strip_prefix("/*") {
                self.rest = behind_comment(comment);
            } else {
                break;
            }
        }
    }

    fn take_word(&mut self) -> &'a str {
        let is_part = |c: char| is_name_start(c) || c.is_ascii_digit() || c == '$';
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// Takes a name in double quotes, in which two stand for one.
    fn take_quoted_name(&mut self) -> String {
        let mut name = String::new();
        let mut characters = self.rest.char_indices().skip(1).peekable();
        while let Some((at, c)) = characters.next() {
            if c == '"' {
                if characters.peek().is_none_or(|(_, next)| *next != '"') {
                    self.rest = &self.rest[at + 1..];
                    return truncated(name);
                }
                characters.next();
            }
            name.push(c);
        }
        self.rest = "";
        truncated(name)
    }

    /// Skips a string that begins here. With `escapes` a backslash hides the next character, also in the parts that
    /// follow on lines of their own.
    fn skip_string(&mut self, escapes: bool) {
        loop {
            let mut characters = self.rest.char_indices().skip(1);
            let mut end = self.rest.len();
            while let Some((at, c)) = characters.next() {
                match c {
                    '\\' if escapes => {
                        characters.next();
                    }
                    // A doubled quote ends this part and begins the next, which comes to the same.
                    '\'' => {
                        end = at + 1;
                        break;
                    }
                    _ => {}
                }
            }
            self.rest = &self.rest[end..];
            if !escapes {
                return;
            }
            if self.rest.starts_with('\'') {
                continue;
            }
            // `E'a'` and `'b'` on the next line are one string, whose escapes go on.
            let before = self.rest;
            self.skip_blanks();
            let skipped = &before[..before.len() - self.rest.len()];
            if !(self.rest.starts_with('\'') && skipped.contains(['\n', '\r'])) {
                return;
            }
        }
    }

    /// Skips a parameter (`$1`) or a string in dollars (`$tag$ … $tag$`).
    fn skip_dollar(&mut self) {
        let rest = &self.rest[1..];
        let end = rest.find(|c: char| !is_name_start(c) && !c.is_ascii_digit()).unwrap_or(rest.len());
        let is_tag = !rest.starts_with(|c: char| c.is_ascii_digit()) && rest[end..].starts_with('$');
        if !is_tag {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            self.rest = &rest[digits..];
            return;
        }
        let delimiter = &self.rest[..end + 2];
        let body = &self.rest[end + 2..];
        self.rest = body.find(delimiter).map_or("", |at| &body[at + delimiter.len()..]);
    }

    /// Takes a run of operator characters up to a comment.
    fn take_operator(&mut self) -> String {
        let run = self.rest.find(|c| !OPERATOR_CHARACTERS.contains(c)).unwrap_or(self.rest.len());
        let run = &self.rest[..run];
        let end = ["--", "/*"].iter().filter_map(|comment| run.find(comment)).min().unwrap_or(run.len());
        self.rest = &self.rest[end..];
        run[..end].to_owned()
    }
}

/// Returns the text behind a comment that has been opened.
fn behind_comment(mut rest: &str) -> &str {
    let mut depth = 1_usize;
    while depth > 0 {
        let Some(at) = rest.find(['*', '/']) else { return "" };
        let found = &rest[at..];
        let length = if found.starts_with("/*") {
            depth += 1;
            2
        } else if found.starts_with("*/") {
            depth -= 1;
            2
        } else {
            1
        };
        rest = &found[length..];
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_behind_everything_that_could_hide_them() {
        for (statement, called) in [
            ("SELECT f(1)", vec!["f"]),
            ("SELECT F /* ( */ -- x\n (1)", vec!["f"]),
            ("SELECT \"F\"\"g\" (1)", vec!["F\"g"]),
            ("SELECT s.f(1), $1f(2)", vec!["f"]),
            ("SELECT 'f(', $$ f( $$, $a$ $$ f( $a$, \"x(\"", vec![]),
            ("SELECT E'\\'f(', f('')", vec!["f"]),
            ("SELECT 'a\\', f('b')", vec!["f"]),
            ("SELECT E'a'\n'\\'', f('b')", vec!["f"]),
            ("SELECT E'a''\\'', f('b')", vec!["f"]),
            ("SELECT 'it''s', f()", vec!["f"]),
            ("SELECT 1--1 f(\n, g()", vec!["g"]),
            ("SELECT 1 /* /* */ f( */ + g()", vec!["g"]),
            ("SELECT x$f$(1), a$$f$$(2)", vec!["x$f$", "a$$f$$"]),
            ("SELECT 1e'\\'', f()--'", vec!["f"]),
            ("SELECT f('never closed", vec!["f"]),
        ] {
            assert_eq!(StatementTokens::read(statement).called, called, "{statement}");
        }
    }

    #[test]
    fn attributes_operators_and_long_names_are_found() {
        let tokens = StatementTokens::read("SELECT t.f, (u).\"G\" FROM t WHERE a =-@ b AND c LIKE 'x'");
        assert_eq!(tokens.attributes, ["f", "G"]);
        assert_eq!(tokens.operators, ["=-@", "~~", "!~~"]);
        let long = "ä".repeat(40);
        assert_eq!(StatementTokens::read(&format!("SELECT {long}()")).called, ["ä".repeat(31)]);
        assert!(StatementTokens::read("SELECT U&\"f\\0061\"()").has_escaped_name);
        assert!(!StatementTokens::read("SELECT u &'f', U&'x'").has_escaped_name);
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_odd(text in "[a-zE'\"$/*\\-.(\\\\ \n1ä&]{0,60}") {
            let _ = StatementTokens::read(&text);
        }
    }
}
