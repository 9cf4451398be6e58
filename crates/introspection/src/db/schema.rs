//! The description of tables, the same for every engine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tables of a database.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct DatabaseSchema {
    /// `sqlite`, `postgres` or `mysql`.
    pub engine: &'static str,
    /// The names of all tables and views that were asked for.
    pub table_names: Vec<String>,
    /// The description of each of them, as far as there is room.
    pub tables: Vec<TableSchema>,
    /// Not all of them are described: give a name as `payload`.
    pub truncated: bool,
    /// The database that was found, and by what, where nothing named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The duration, in milliseconds.
    pub elapsed_ms: u64,
}

/// A table or view.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct TableSchema {
    /// As a statement has to name it, quotes aside.
    pub name: String,
    /// `table`, `view` or another word of the engine.
    #[serde(rename = "type")]
    pub kind: String,
    /// The columns, in their order.
    pub columns: Vec<TableColumn>,
    /// The indexes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<TableIndex>,
    /// The foreign keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign_keys: Vec<ForeignKey>,
    /// The conditions that each row has to meet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckConstraint>,
    /// The approximate number of rows, for engines that know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_estimate: Option<i64>,
    /// The reason why it could not be described.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A column of a table.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct TableColumn {
    /// Its name.
    pub name: String,
    /// Its type, in the engine's words.
    #[serde(rename = "type")]
    pub kind: String,
    /// It may be NULL.
    pub nullable: bool,
    /// Its default, as an expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// It is part of the primary key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub primary_key: bool,
    /// `stored` or `virtual` and the expression, for a generated column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<String>,
    /// The way in which the engine numbers rows by it: `always` or `by default` (identity), `auto_increment`,
    /// `autoincrement`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
}

/// An index.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct TableIndex {
    /// Its name.
    pub name: String,
    /// Its columns, or expressions, in their order.
    pub columns: Vec<String>,
    /// No two rows have the same values in these columns.
    pub unique: bool,
    /// The condition of a partial index: only rows that meet it are in the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicate: Option<String>,
}

/// A foreign key.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ForeignKey {
    /// The columns that refer.
    pub columns: Vec<String>,
    /// The table they refer to.
    pub table: String,
    /// The columns there; none for the primary key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<String>,
    /// The effect of deleting the row that is referred to, such as `cascade`. Absent where that is refused (`no action`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_delete: Option<String>,
    /// The effect of changing the key that is referred to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_update: Option<String>,
}

/// A `CHECK` constraint.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct CheckConstraint {
    /// Its name, which the error for a row that does not meet it has. Absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The condition, in the engine's words.
    pub expression: String,
}

/// Returns the action of a foreign key in lower case; `None` for `NO ACTION`.
pub(super) fn key_action(action: &str) -> Option<String> {
    let action = action.to_ascii_lowercase();
    (!action.is_empty() && action != "no action").then_some(action)
}

/// The approximate limit of the descriptions of one answer, in bytes of JSON.
const MAX_BYTES: usize = 40_000;
/// The most table names in one answer.
const MAX_NAMES: usize = 1000;

impl DatabaseSchema {
    /// A schema with these names and no descriptions yet: [`push_table`](Self::push_table) adds them.
    pub(super) fn new(engine: &'static str, names: Vec<String>) -> Self {
        let truncated = names.len() > MAX_NAMES;
        let table_names = names.into_iter().take(MAX_NAMES).collect();
        Self { engine, table_names, truncated, ..Self::default() }
    }

    /// Adds the description of a table. Returns false if the answer was full. The first is always added, however long
    /// it is: an answer without any would be of no use.
    pub(super) fn push_table(&mut self, table: TableSchema, bytes: &mut usize) -> bool {
        *bytes += serde_json::to_string(&table).map_or(0, |text| text.len());
        if *bytes > MAX_BYTES && !self.tables.is_empty() {
            self.truncated = true;
            return false;
        }
        self.tables.push(table);
        true
    }
}

/// Returns true if `pattern` selects the table `name`. An empty pattern selects all; `*` and `%` stand for any
/// characters; upper and lower case are the same.
pub(super) fn matches_pattern(pattern: &str, name: &str) -> bool {
    let pattern = pattern.trim();
    if pattern.is_empty() || pattern.eq_ignore_ascii_case(name) {
        return true;
    }
    let (pattern, name) = (pattern.to_lowercase(), name.to_lowercase());
    let mut parts = pattern.split(['*', '%']);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut last = None;
    // Each part is matched at the first place where it fits, except the last one, which must be at the end of the name:
    // it is held back by one round.
    for part in parts {
        if let Some(before) = last.replace(part) {
            let Some(start) = str::find(rest, before) else { return false };
            rest = &rest[start + before.len()..];
        }
    }
    last.is_some_and(|last| rest.ends_with(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_selects_by_name_by_wildcard_or_everything() {
        for (pattern, name, matches) in [
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
            assert_eq!(matches_pattern(pattern, name), matches, "{pattern} {name}");
        }
    }
}
