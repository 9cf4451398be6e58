//! Rows as they are answered, within bounds.

use super::value::Cell;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// What a query found.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Rows {
    /// Each row by the names of its columns. Of columns with one name, the second has `_2` behind it.
    pub rows: Vec<Map<String, Value>>,
    /// The columns, in their order.
    pub columns: Vec<Column>,
    /// How many rows are here.
    pub row_count: usize,
    /// There are more rows than these.
    pub truncated: bool,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
    /// What was cut, and how to get it; what the connection may do that it should not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A column of a result.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type, in the engine's words; empty where the engine has none.
    #[serde(rename = "type")]
    pub kind: String,
}

/// About how many bytes of values one answer has.
const MOST_BYTES: usize = 40_000;

/// Rows, as they come.
#[derive(Debug)]
pub(super) struct Collector {
    rows: Rows,
    limit: usize,
    bytes: usize,
    cut: usize,
    full: bool,
}

impl Collector {
    pub(super) fn new(columns: Vec<Column>, limit: usize) -> Self {
        Self {
            rows: Rows { columns: distinct(columns), ..Rows::default() },
            limit,
            bytes: 0,
            cut: 0,
            full: false,
        }
    }

    /// Takes one more row. Says whether there is room for another: if not, there was none for this one.
    pub(super) fn push(&mut self, cells: impl Iterator<Item = Cell>) -> bool {
        if self.rows.rows.len() == self.limit || self.bytes >= MOST_BYTES {
            self.full = self.bytes >= MOST_BYTES;
            self.rows.truncated = true;
            return false;
        }
        let mut row = Map::new();
        for (column, (value, cut)) in self.rows.columns.iter_mut().zip(cells) {
            self.bytes += column.name.len() + weight(&value);
            self.cut += usize::from(cut);
            row.insert(column.name.clone(), value);
        }
        self.rows.rows.push(row);
        true
    }

    #[cfg(any(feature = "postgres", feature = "mysql"))]
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.rows.notes.push(note.into());
    }

    pub(super) fn finish(mut self) -> Rows {
        self.rows.row_count = self.rows.rows.len();
        if self.full {
            self.rows.notes.push(format!(
                "cut at about {MOST_BYTES} bytes: ask for fewer columns, or go on with LIMIT and OFFSET"
            ));
        } else if self.rows.truncated {
            self.rows.notes.push(format!("there are more than {} rows: see `limit`", self.limit));
        }
        if self.cut > 0 {
            self.rows.notes.push(format!("{} values are cut; use substr() for the rest", self.cut));
        }
        self.rows
    }
}

fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 6,
        Value::Object(_) | Value::Array(_) => value.to_string().len() + 4,
        _ => 12,
    }
}

/// The columns with names of which no two are the same.
fn distinct(mut columns: Vec<Column>) -> Vec<Column> {
    let mut seen = std::collections::HashSet::new();
    for column in &mut columns {
        let plain = column.name.clone();
        let mut number = 1;
        while !seen.insert(column.name.clone()) {
            number += 1;
            column.name = format!("{plain}_{number}");
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str) -> Column {
        Column { name: name.to_owned(), kind: String::new() }
    }

    #[test]
    fn columns_of_one_name_are_told_apart() {
        let columns = distinct(vec![column("a"), column("a_2"), column("a"), column("a")]);
        let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["a", "a_2", "a_3", "a_4"]);
    }

    #[test]
    fn more_rows_than_the_limit_are_said_and_as_many_are_not() {
        for (there, truncated) in [(2, false), (3, true)] {
            let mut rows = Collector::new(vec![column("a")], 2);
            for _ in 0..there {
                rows.push(std::iter::once((Value::Null, false)));
            }
            let rows = rows.finish();
            assert_eq!((rows.row_count, rows.truncated), (2, truncated));
        }
    }

    #[test]
    fn rows_end_where_their_bytes_do() {
        let mut rows = Collector::new(vec![column("a")], 5000);
        while rows.push(std::iter::once(("x".repeat(2000).into(), false))) {}
        let rows = rows.finish();
        assert!(rows.truncated && rows.row_count < 25 && rows.notes[0].contains("40000 bytes"));
    }
}
