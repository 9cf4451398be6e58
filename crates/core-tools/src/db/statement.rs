//! The first word of a statement. It chooses words for an error and decides nothing.

/// Words that begin what defines, changes or removes something other than rows.
const DEFINING: [&str; 18] = [
    "alter", "analyze", "cluster", "comment", "create", "drop", "grant", "import", "optimize", "refresh",
    "reindex", "rename", "repair", "revoke", "security", "truncate", "vacuum", "reassign",
];

/// The first word, in small letters, comments and parentheses passed over.
pub(super) fn first_word(statement: &str) -> String {
    let mut rest = statement;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '(' || c == ';');
        if let Some(comment) = rest.strip_prefix("--").or_else(|| rest.strip_prefix('#')) {
            rest = comment.split_once('\n').map_or("", |(_, rest)| rest);
        } else if let Some(version) = rest.strip_prefix("/*M!").or_else(|| rest.strip_prefix("/*!")) {
            // MySQL and MariaDB run what is in it.
            rest = version.trim_start_matches(|c: char| c.is_ascii_digit());
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = after_comment(comment);
        } else {
            break;
        }
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    rest[..end].to_ascii_lowercase()
}

/// What follows a comment, which in PostgreSQL may hold others.
fn after_comment(mut rest: &str) -> &str {
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

/// Whether the statement, which an engine has refused, defines something.
pub(super) fn defines(statement: &str) -> bool {
    let word = first_word(statement);
    let inner = if word == "explain" { statement.to_ascii_lowercase() } else { String::new() };
    DEFINING.contains(&word.as_str())
        || DEFINING.iter().any(|word| inner.split_whitespace().skip(1).take(3).any(|inner| inner == *word))
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
    fn what_defines_is_known_by_its_first_word() {
        assert!(defines("TRUNCATE t") && defines("explain analyze create table t as select 1"));
        assert!(!defines("SELECT 'drop'") && !defines("delete from t"));
    }
}
