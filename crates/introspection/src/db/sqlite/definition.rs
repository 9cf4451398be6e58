//! Reads from the text of `CREATE TABLE` and `CREATE INDEX` what no pragma of SQLite tells.

use super::super::schema::CheckConstraint;

/// A word, a name in quotes, or a sign of a statement, as byte offsets.
#[derive(Clone, Copy, Debug)]
struct SqlToken<'a> {
    text: &'a str,
    start: usize,
    /// The number of parentheses that are open before it.
    depth: usize,
}

/// The parts of `CREATE TABLE` that the pragmas leave out.
#[derive(Debug, Default)]
pub(super) struct TableDefinition {
    /// The word `AUTOINCREMENT` stands at the primary key.
    pub(super) autoincrement: bool,
    /// The `CHECK` constraints of the table and of its columns.
    pub(super) checks: Vec<CheckConstraint>,
    /// Each generated column with its expression.
    generated: Vec<(String, String)>,
}

impl TableDefinition {
    /// Reads the statement. What is not understood is left out.
    pub(super) fn parse(sql: &str) -> Self {
        let tokens = tokens(sql);
        let mut definition = Self {
            autoincrement: tokens.iter().any(|token| token.text.eq_ignore_ascii_case("AUTOINCREMENT")),
            ..Self::default()
        };
        // A column begins behind the first parenthesis and behind each comma at its depth.
        let (mut column, mut name) = (None, None);
        let mut begins = false;
        for (index, token) in tokens.iter().enumerate() {
            match (token.text, token.depth) {
                ("(", 0) | (",", 1) => (begins, name) = (true, None),
                (text, 1) if text.eq_ignore_ascii_case("CHECK") => {
                    begins = false;
                    let open = tokens.get(index + 1);
                    if let Some(expression) = open.and_then(|open| parenthesized(sql, &tokens, open)) {
                        let expression = expression.to_owned();
                        definition.checks.push(CheckConstraint { name: name.take(), expression });
                    }
                }
                (text, 1) if text.eq_ignore_ascii_case("CONSTRAINT") => {
                    begins = false;
                    name = tokens.get(index + 1).map(|token| unquote(token.text));
                }
                (text, 1) if begins => {
                    (column, begins) = (Some(unquote(text)), false);
                }
                (text, 1) if text.eq_ignore_ascii_case("AS") => {
                    let expression = tokens.get(index + 1).and_then(|open| parenthesized(sql, &tokens, open));
                    if let (Some(column), Some(expression)) = (&column, expression) {
                        definition.generated.push((column.clone(), expression.to_owned()));
                    }
                }
                _ => {}
            }
        }
        definition
    }

    /// Returns the expression of the generated column `name`, with its parentheses.
    pub(super) fn generated(&self, name: &str) -> Option<&str> {
        let found = self.generated.iter().find(|(column, _)| column.eq_ignore_ascii_case(name));
        found.map(|(_, expression)| expression.as_str())
    }
}

/// Returns the condition of a partial index: what stands behind `WHERE` in its `CREATE INDEX`.
pub(super) fn index_predicate(sql: &str) -> Option<String> {
    let tokens = tokens(sql);
    let end = tokens.iter().find(|token| token.depth == 0 && token.text.eq_ignore_ascii_case("WHERE"))?;
    Some(sql.get(end.start + end.text.len()..)?.trim().to_owned())
}

/// Returns the text from the parenthesis `open` to the one that closes it.
fn parenthesized<'a>(sql: &'a str, tokens: &[SqlToken<'_>], open: &SqlToken<'_>) -> Option<&'a str> {
    if open.text != "(" {
        return None;
    }
    let is_close = |token: &&SqlToken<'_>| {
        token.text == ")" && token.start > open.start && token.depth == open.depth + 1
    };
    let close = tokens.iter().find(is_close)?;
    sql.get(open.start..=close.start)
}

/// Splits a statement into its tokens; comments are left out.
fn tokens(sql: &str) -> Vec<SqlToken<'_>> {
    let bytes = sql.as_bytes();
    let (mut found, mut depth, mut at) = (Vec::new(), 0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        let rest = sql.get(at..).unwrap_or_default();
        let length = match byte {
            b'\'' | b'"' | b'`' => quoted_length(rest, char::from(*byte)),
            b'[' => rest.find(']').map_or(rest.len(), |end| end + 1),
            b'-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            b'/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            byte if is_word(*byte) => rest.bytes().position(|byte| !is_word(byte)).unwrap_or(rest.len()),
            _ => 1,
        };
        let text = rest.get(..length).unwrap_or_default();
        let is_comment = text.starts_with("--") || text.starts_with("/*");
        if !is_comment && !byte.is_ascii_whitespace() {
            found.push(SqlToken { text, start: at, depth });
            match text {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        at += length;
    }
    found
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || !byte.is_ascii()
}

/// Returns the length of the text in quotes that `rest` begins with; a doubled quote is part of it.
fn quoted_length(rest: &str, quote: char) -> usize {
    let mut inner = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = inner.next() {
        if c == quote && inner.next_if(|(_, next)| *next == quote).is_none() {
            return at + c.len_utf8();
        }
    }
    rest.len()
}

/// Returns a name without its quotes.
fn unquote(name: &str) -> String {
    let inner = |quote: char| {
        let inner = name.strip_prefix(quote)?.strip_suffix(quote)?;
        Some(inner.replace(&format!("{quote}{quote}"), &quote.to_string()))
    };
    let bracketed = || Some(name.strip_prefix('[')?.strip_suffix(']')?.to_owned());
    inner('"')
        .or_else(|| inner('`'))
        .or_else(|| inner('\''))
        .or_else(bracketed)
        .unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn expressions_are_found_behind_their_columns_whatever_is_quoted() {
        let definition = TableDefinition::parse(
            "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, \"a b\" TEXT DEFAULT 'x) AS (y', -- AS (no)\n\
             [full] TEXT GENERATED ALWAYS AS (upper(\"a b\") || ')') STORED, n INT AS (id * (2 + 1)))",
        );
        assert!(definition.autoincrement);
        assert_eq!(definition.generated("full"), Some("(upper(\"a b\") || ')')"));
        assert_eq!(definition.generated("N"), Some("(id * (2 + 1))"));
        assert_eq!(definition.generated("a b"), None);
        assert!(!TableDefinition::parse("CREATE TABLE autoincrement_log (a)").autoincrement);
    }

    #[test]
    fn checks_of_columns_and_of_the_table_are_found_with_their_names() {
        let definition = TableDefinition::parse(
            "CREATE TABLE \"check\" (n INT CHECK (n > (0)) CONSTRAINT positive NOT NULL, [check] TEXT CHECK(\"check\" <> ')'), \
             m INT CONSTRAINT \"m of n\" CHECK (m < n) CHECK (m > 1), CONSTRAINT both CHECK (n + m < 9), CHECK (1))",
        );
        let checks: Vec<(Option<&str>, &str)> = definition
            .checks
            .iter()
            .map(|check| (check.name.as_deref(), check.expression.as_str()))
            .collect();
        assert_eq!(
            checks,
            [
                (None, "(n > (0))"),
                (None, "(\"check\" <> ')')"),
                (Some("m of n"), "(m < n)"),
                (None, "(m > 1)"),
                (Some("both"), "(n + m < 9)"),
                (None, "(1)"),
            ]
        );
    }

    #[test]
    fn the_condition_of_an_index_is_what_stands_behind_where() {
        let sql = "CREATE INDEX i ON t (coalesce(a, ' WHERE ')) WHERE deleted_at IS NULL AND n > (1)";
        assert_eq!(index_predicate(sql).as_deref(), Some("deleted_at IS NULL AND n > (1)"));
        assert_eq!(index_predicate("CREATE INDEX i ON t (a)"), None);
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(sql in "(CREATE|AS|WHERE|[a-zé\"'`\\[\\](),/*\\-\n ]){0,40}") {
            TableDefinition::parse(&sql);
            index_predicate(&sql);
        }
    }
}
