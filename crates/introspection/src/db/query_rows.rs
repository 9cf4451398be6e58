//! The rows of an answer, within its bounds.

use super::json_value::ValueCell;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// The rows of a query.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct QueryRows {
    /// Each row by the names of its columns. Of columns with one name, the second has `_2` behind it.
    pub rows: Vec<Map<String, Value>>,
    /// The columns, in their order.
    pub columns: Vec<ResultColumn>,
    /// The number of rows in this answer.
    pub row_count: usize,
    /// Parts of the answer were cut: there are more rows, or a value is longer. `notes` say which.
    pub truncated: bool,
    /// The duration, in milliseconds.
    pub elapsed_ms: u64,
    /// Notes: the parts that were cut, and how to get them; rights that the connection should not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The database that was found, and by what, where nothing named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
}

/// A column of a result.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ResultColumn {
    /// Its name.
    pub name: String,
    /// Its type, in the engine's words; empty where the engine has none.
    #[serde(rename = "type")]
    pub kind: String,
}

/// The approximate limit of the values of one answer, in bytes of JSON.
const MAX_BYTES: usize = 40_000;

/// Collects the rows of an answer until it is full.
#[derive(Debug)]
pub(super) struct RowCollector {
    rows: QueryRows,
    row_limit: usize,
    bytes: usize,
    truncated_values: usize,
    is_out_of_bytes: bool,
}

impl RowCollector {
    pub(super) fn new(columns: Vec<ResultColumn>, row_limit: usize) -> Self {
        Self {
            rows: QueryRows { columns: with_distinct_names(columns), ..QueryRows::default() },
            row_limit,
            bytes: 0,
            truncated_values: 0,
            is_out_of_bytes: false,
        }
    }

    /// Adds a row. Returns false if the answer was already full: the row is dropped, and none should follow.
    pub(super) fn push(&mut self, cells: impl Iterator<Item = ValueCell>) -> bool {
        // Checked before a row is added, so that the answer is only called truncated if there is another row.
        if self.rows.rows.len() == self.row_limit || self.bytes >= MAX_BYTES {
            self.is_out_of_bytes = self.bytes >= MAX_BYTES;
            self.rows.truncated = true;
            return false;
        }
        let mut row = Map::new();
        for (column, cell) in self.rows.columns.iter_mut().zip(cells) {
            self.bytes += column.name.len() + estimated_bytes(&cell.value);
            self.truncated_values += usize::from(cell.is_truncated);
            row.insert(column.name.clone(), cell.value);
        }
        self.rows.rows.push(row);
        true
    }

    #[cfg(any(feature = "postgres", feature = "mysql"))]
    /// Adds a note to the answer.
    pub(super) fn add_note(&mut self, note: impl Into<String>) {
        self.rows.notes.push(note.into());
    }

    /// Sets the columns, if there are none yet.
    #[cfg(feature = "mysql")]
    pub(super) fn name_columns(&mut self, columns: impl FnOnce() -> Vec<ResultColumn>) {
        if self.rows.columns.is_empty() {
            self.rows.columns = with_distinct_names(columns());
        }
    }

    #[cfg(feature = "mysql")]
    /// Returns true if a row was dropped.
    pub(super) fn is_full(&self) -> bool {
        self.rows.truncated
    }

    /// Returns the rows, with notes on everything that was cut.
    pub(super) fn finish(mut self) -> QueryRows {
        self.rows.row_count = self.rows.rows.len();
        if self.is_out_of_bytes {
            self.rows.notes.push(format!(
                "cut at about {MAX_BYTES} bytes: ask for fewer columns, or go on with LIMIT and OFFSET"
            ));
        } else if self.rows.truncated {
            self.rows.notes.push(format!("there are more than {} rows: see `limit`", self.row_limit));
        }
        if self.truncated_values > 0 {
            self.rows.truncated = true;
            self.rows
                .notes
                .push(format!("{} values are cut; use substr() for the rest", self.truncated_values));
        }
        self.rows
    }
}

/// Estimates the length of `value` as JSON. An estimate is enough for the limit, and costs no second serialization of
/// every value.
fn estimated_bytes(value: &Value) -> usize {
    match value {
        // Two quotes, and four for the quotes of the name, the colon and the comma.
        Value::String(text) => text.len() + 6,
        Value::Object(_) | Value::Array(_) => value.to_string().len() + 4,
        _ => 12,
    }
}

/// Renames columns so that no two have the same name: a row is an object, in which the later one would replace the
/// earlier.
fn with_distinct_names(mut columns: Vec<ResultColumn>) -> Vec<ResultColumn> {
    let mut seen = std::collections::HashSet::new();
    for column in &mut columns {
        let base = column.name.clone();
        let mut number = 1;
        while !seen.insert(column.name.clone()) {
            number += 1;
            column.name = format!("{base}_{number}");
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str) -> ResultColumn {
        ResultColumn { name: name.to_owned(), kind: String::new() }
    }

    #[test]
    fn columns_of_one_name_are_told_apart() {
        let columns = with_distinct_names(vec![column("a"), column("a_2"), column("a"), column("a")]);
        let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["a", "a_2", "a_3", "a_4"]);
    }

    #[test]
    fn more_rows_than_the_limit_are_said_and_as_many_are_not() {
        for (pushed, truncated) in [(2, false), (3, true)] {
            let mut rows = RowCollector::new(vec![column("a")], 2);
            for _ in 0..pushed {
                rows.push(std::iter::once(ValueCell::whole(Value::Null)));
            }
            let rows = rows.finish();
            assert_eq!((rows.row_count, rows.truncated), (2, truncated));
        }
    }

    #[test]
    fn rows_end_where_their_bytes_do() {
        let mut rows = RowCollector::new(vec![column("a")], 5000);
        while rows.push(std::iter::once(ValueCell::whole("x".repeat(2000)))) {}
        let rows = rows.finish();
        assert!(rows.truncated && rows.row_count < 25 && rows.notes[0].contains("40000 bytes"));
    }
}
