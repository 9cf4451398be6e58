//! Tables as they are described.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tables of a database.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Schema {
    /// `sqlite`, `postgres` or `mysql`.
    pub engine: &'static str,
    /// The names of all tables and views that were asked for.
    pub table_names: Vec<String>,
    /// The same, described, as far as there is room.
    pub tables: Vec<Table>,
    /// Not all of them are described: give a name as `payload`.
    pub truncated: bool,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
}

/// A table or view.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Table {
    /// As a statement has to name it, quotes aside.
    pub name: String,
    /// `table`, `view` or another word of the engine.
    #[serde(rename = "type")]
    pub kind: String,
    /// The columns, in their order.
    pub columns: Vec<TableColumn>,
    /// The indexes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<Index>,
    /// The foreign keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign_keys: Vec<ForeignKey>,
    /// About how many rows there are, where the engine knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_estimate: Option<i64>,
    /// Why it could not be described.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A column of a table.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct TableColumn {
    /// Its name.
    pub name: String,
    /// Its type, in the engine's words.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Its default, as an expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Whether it is part of the primary key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub primary_key: bool,
}

/// An index.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Its columns, or expressions, in their order.
    pub columns: Vec<String>,
    /// Whether no two rows have the same.
    pub unique: bool,
}

/// A foreign key.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct ForeignKey {
    /// The columns that refer.
    pub columns: Vec<String>,
    /// The table they refer to.
    pub table: String,
    /// The columns there; none for the primary key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<String>,
}

/// About how many bytes the descriptions of one answer have.
const MOST_BYTES: usize = 40_000;
/// The most names of one answer.
const MOST_NAMES: usize = 1000;

impl Schema {
    /// The schema in which tables of these names are described, in their order, by
    /// [`describe`](Self::describe).
    pub(super) fn of(engine: &'static str, names: Vec<String>) -> Self {
        let truncated = names.len() > MOST_NAMES;
        let table_names = names.into_iter().take(MOST_NAMES).collect();
        Self { engine, table_names, truncated, ..Self::default() }
    }

    /// Takes the description of one more table. Says whether there is room for another.
    pub(super) fn describe(&mut self, table: Table, bytes: &mut usize) -> bool {
        *bytes += serde_json::to_string(&table).map_or(0, |text| text.len());
        if *bytes > MOST_BYTES && !self.tables.is_empty() {
            self.truncated = true;
            return false;
        }
        self.tables.push(table);
        true
    }
}

/// Whether `name` is what `pattern` asks for: all if empty, a name, or one with `*` or `%` in it.
pub(super) fn is_asked_for(pattern: &str, name: &str) -> bool {
    let pattern = pattern.trim();
    if pattern.is_empty() || pattern.eq_ignore_ascii_case(name) {
        return true;
    }
    let (pattern, name) = (pattern.to_lowercase(), name.to_lowercase());
    let mut parts = pattern.split(['*', '%']);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(before) = last.replace(part) {
            let Some(at) = str::find(rest, before) else { return false };
            rest = &rest[at + before.len()..];
        }
    }
    // A schema's own tables are shown without it.
    last.is_some_and(|last| rest.ends_with(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_asked_for_by_name_by_pattern_or_not_at_all() {
        for (pattern, name, asked) in [
            ("", "users", true),
            ("Users", "users", true),
            ("user", "users", false),
            ("user*", "users", true),
            ("%ser%", "users", true),
            ("u*s*s", "uses", true),
            ("u*s*s", "us", false),
            ("audit.*", "audit.log", true),
            ("*", "x", true),
        ] {
            assert_eq!(is_asked_for(pattern, name), asked, "{pattern} {name}");
        }
    }
}
