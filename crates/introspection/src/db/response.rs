//! The answers of `db_bridge`.

use super::query_rows::RowCollector;
use super::{DatabaseSchema, QueryRows};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// The answer to one request.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[non_exhaustive]
pub enum DbResponse {
    /// The rows of a query, or the plan of a statement.
    Rows(QueryRows),
    /// The effect of a seed.
    Seed(SeedReport),
    /// The tables of the database.
    Schema(DatabaseSchema),
}

impl DbResponse {
    /// Records the database that was found in the project, as no name led to it.
    #[cfg(feature = "sqlite")]
    pub(super) fn set_database(&mut self, database: String) {
        match self {
            Self::Rows(rows) => rows.database = Some(database),
            Self::Seed(report) => report.database = Some(database),
            Self::Schema(schema) => schema.database = Some(database),
        }
    }

    /// Records the duration of the request, in milliseconds.
    pub(super) fn set_elapsed_ms(&mut self, elapsed_ms: u64) {
        match self {
            Self::Rows(rows) => rows.elapsed_ms = elapsed_ms,
            Self::Seed(report) => report.elapsed_ms = elapsed_ms,
            Self::Schema(schema) => schema.elapsed_ms = elapsed_ms,
        }
    }
}

/// The effect of a seed.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct SeedReport {
    /// The number of rows that were inserted, changed or deleted.
    pub affected: u64,
    /// The last key that was generated, for engines that report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_insert_id: Option<i64>,
    /// The rows that the statement returned, as `INSERT … RETURNING` does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<Map<String, Value>>,
    /// Parts of `rows` were cut: there are more rows, or a value is longer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Notes: the parts of `rows` that were cut, and warnings of the server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The change was rolled back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The database that was found, and by what, where nothing named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The duration, in milliseconds.
    pub elapsed_ms: u64,
}

impl SeedReport {
    /// Adds the rows that the statement returned.
    pub(super) fn add_returned(&mut self, returned: RowCollector) {
        let QueryRows { rows, truncated, notes, .. } = returned.finish();
        self.rows = rows;
        self.truncated = truncated;
        self.notes.extend(notes);
    }
}
