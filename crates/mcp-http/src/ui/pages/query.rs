//! The query of a page's address: filters, and what a form has done.

use super::super::form;
use http::Uri;
use std::collections::HashMap;

/// The fields of a query. One that is no query, or has a field twice, has none.
#[derive(Debug, Default)]
pub(super) struct PageQuery(HashMap<String, String>);

impl PageQuery {
    pub(super) fn of(uri: &Uri) -> Self {
        Self(form::parse(uri.query().unwrap_or_default().as_bytes()).unwrap_or_default())
    }

    /// Returns a field without blanks around it; empty if it is missing.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |value| value.trim())
    }
}

/// Returns true if a filter of names shows `name`: a part of it is enough, in capitals or not, and with a `*`, which stands for
/// any text, the whole must fit.
pub(super) fn name_matches(filter: &str, name: &str) -> bool {
    let (filter, name) = (filter.to_lowercase(), name.to_lowercase());
    let mut parts = filter.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(last) = parts.next_back() else { return name.contains(first) };
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Returns the glob by which the audit finds the names that [`name_matches`] shows for `filter`.
pub(super) fn name_glob(filter: &str) -> String {
    let mut glob = String::new();
    for letter in filter.chars() {
        let (lower, upper): (String, String) =
            (letter.to_lowercase().collect(), letter.to_uppercase().collect());
        match letter {
            '*' => glob.push('*'),
            _ if lower != upper && lower.chars().count() == 1 && upper.chars().count() == 1 => {
                glob.push_str(&format!("[{lower}{upper}]"));
            }
            _ if letter.is_alphanumeric() || letter == '_' => glob.push(letter),
            _ => glob.extend(['\\', letter]),
        }
    }
    if filter.contains('*') { glob } else { format!("*{glob}*") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use audit_log::{AuditEntry, AuditEvent, AuditQuery};

    #[test]
    fn a_part_of_a_name_is_enough_and_a_star_stands_for_any_text() {
        for (filter, name, is_shown) in [
            ("", "ada", true),
            ("AD", "jwt:ada", true),
            ("ada", "bob", false),
            ("jwt:*", "jwt:ada", true),
            ("jwt:*", "ada", false),
            ("*a", "jwt:ada", true),
            ("delete_*", "delete_file", true),
            ("delete_*", "undelete_file", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxcyyb", false),
            ("ab*ba", "aba", false),
            ("*", "", true),
            ("ä*", "Äb", true),
            ("{a", "x{A]", true),
            ("[a]", "a", false),
        ] {
            assert_eq!(name_matches(filter, name), is_shown, "{filter} {name}");
            let mut entry = AuditEntry::new(AuditEvent::Call, std::time::SystemTime::now());
            entry.principal = Some(name.to_owned());
            let query = AuditQuery::default().caller(&name_glob(filter)).unwrap();
            assert_eq!(query.matches(&entry), is_shown, "{filter} {name} in the audit");
        }
    }
}
