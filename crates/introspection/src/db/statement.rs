//! The first word of a statement. It chooses words for an error and decides nothing.

/// First words of statements that define, change or remove something other than rows.
const DDL_KEYWORDS: [&str; 18] = [
    "alter", "analyze", "cluster", "comment", "create", "drop", "grant", "import", "optimize", "refresh",
    "reindex", "rename", "repair", "revoke", "security", "truncate", "vacuum", "reassign",
];

/// Returns the first word in lower case. Comments and parentheses before it are skipped.
pub(super) fn first_word(statement: &str) -> String {
    let mut rest = statement;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '(' || c == ';');
        if let Some(comment) = rest.strip_prefix("--").or_else(|| rest.strip_prefix('#')) {
            rest = comment.split_once('\n').map_or("", |(_, rest)| rest);
        } else if let Some(version) = rest.strip_prefix("/*M!").or_else(|| rest.strip_prefix("/*!")) {
            // MySQL and MariaDB run the contents of such a comment.
            rest = version.trim_start_matches(|c: char| c.is_ascii_digit());
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = skip_comment(comment);
        } else {
            break;
        }
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    rest[..end].to_ascii_lowercase()
}

/// Returns the text behind a comment that has been opened. Comments nest, as in PostgreSQL.
fn skip_comment(mut rest: &str) -> &str {
    let mut depth = 1_usize;
    while depth > 0 {
        let Some(next) = rest.find(['*', '/']) else { return "" };
        let (open, close) = (rest[next..].starts_with("/*"), rest[next..].starts_with("*/"));
        if open {
            depth += 1;
        } else if close {
            depth -= 1;
        }
        rest = &rest[next + if open || close { 2 } else { 1 }..];
    }
    rest
}

/// Returns true if a statement, which an engine has refused, looks like DDL. This chooses the error message only.
pub(super) fn is_ddl(statement: &str) -> bool {
    let word = first_word(statement);
    // `EXPLAIN ANALYZE CREATE …`: the word follows the options of EXPLAIN, of which ANALYZE is one.
    let inner = if word == "explain" { statement.to_ascii_lowercase() } else { String::new() };
    DDL_KEYWORDS.contains(&word.as_str())
        || DDL_KEYWORDS
            .iter()
            .filter(|word| **word != "analyze")
            .any(|word| inner.split_whitespace().skip(1).take(3).any(|inner| inner == *word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_found_behind_comments_and_parentheses() {
        for (statement, word) in [
            ("  DROP TABLE t", "drop"),
            ("-- a\n/* b */ ((SELECT 1))", "select"),
            ("/* a /* b */ c */ create table", "create"),
            ("/*!50000 DROP TABLE t */", "drop"),
            ("/*M!100000 drop*/", "drop"),
            ("# a\ninsert", "insert"),
            ("/* never closed", ""),
            ("/", ""),
            ("", ""),
        ] {
            assert_eq!(first_word(statement), word, "{statement}");
        }
    }

    #[test]
    fn ddl_is_recognised_by_its_first_word() {
        assert!(is_ddl("TRUNCATE t") && is_ddl("explain analyze create table t as select 1"));
        assert!(!is_ddl("SELECT 'drop'") && !is_ddl("delete from t"));
        assert!(!is_ddl("explain analyze delete from t") && is_ddl("analyze t"));
    }
}
