//! What is asked for.

use super::Error;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

/// What `db_bridge` does: read rows, describe the tables, change rows, or say how a statement would be run.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[allow(missing_docs, reason = "said above: words here are in every list of tools")]
pub enum Action {
    Query,
    Schema,
    Seed,
    Explain,
}

/// What `db_bridge` takes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DbBridge {
    /// seed writes
    pub action: Action,
    /// Statement; schema: table
    #[serde(default)]
    pub payload: String,
    /// To bind
    #[serde(default)]
    pub params: Option<Vec<Value>>,
    /// Name or SQLite file
    #[serde(default)]
    pub database: Option<String>,
    /// Rows; 200
    #[schemars(range(min = 1, max = 5000))]
    #[serde(default)]
    pub limit: Option<u32>,
    /// Take a seed back after it ran.
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    pub dry_run: bool,
    /// Default 10000.
    #[schemars(range(min = 1, max = 600_000), extend("unlisted" = true))]
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

const DEFAULT_ROWS: u32 = 200;
pub(super) const MOST_ROWS: u32 = 5000;
const DEFAULT_TIME: Duration = Duration::from_secs(10);
const MOST_TIME: Duration = Duration::from_secs(600);
/// The longest statement, as SQLite's limit is set.
pub(super) const MOST_STATEMENT_BYTES: usize = 1 << 20;

impl DbBridge {
    /// `action` with nothing else said.
    pub fn new(action: Action) -> Self {
        Self {
            action,
            payload: String::new(),
            params: None,
            database: None,
            limit: None,
            dry_run: false,
            timeout_ms: None,
        }
    }

    pub(super) fn time_limit(&self) -> Duration {
        self.timeout_ms.map_or(DEFAULT_TIME, Duration::from_millis).min(MOST_TIME)
    }

    pub(super) fn row_limit(&self) -> Result<usize, Error> {
        let limit = self.limit.unwrap_or(DEFAULT_ROWS);
        if !(1..=MOST_ROWS).contains(&limit) {
            return Err(Error::argument("limit", format!("{limit} is not in 1 to {MOST_ROWS}")));
        }
        Ok(usize::try_from(limit).unwrap_or(usize::MAX))
    }

    /// The statement, without what ends it.
    pub(super) fn statement(&self) -> Result<&str, Error> {
        if self.payload.len() > MOST_STATEMENT_BYTES {
            return Err(Error::argument("payload", "it is longer than 1 MiB"));
        }
        if self.payload.contains('\0') {
            return Err(Error::argument("payload", "it contains a NUL character"));
        }
        let statement = self.payload.trim_end_matches(|c: char| c.is_ascii_whitespace() || c == ';');
        if statement.trim().is_empty() { Err(Error::Statements { found: 0 }) } else { Ok(statement) }
    }

    /// The lists of parameters: one, but for a seed that has one list for each row.
    pub(super) fn parameters(&self) -> Result<Vec<&[Value]>, Error> {
        let params = self.params.as_deref().unwrap_or_default();
        let lists: Option<Vec<&[Value]>> =
            params.iter().map(|param| param.as_array().map(Vec::as_slice)).collect();
        match lists {
            Some(lists) if self.action == Action::Seed && !lists.is_empty() => {
                let length = lists.first().map_or(0, |list| list.len());
                if lists.iter().any(|list| list.len() != length) {
                    return Err(Error::argument("params", "the lists are not of one length"));
                }
                Ok(lists)
            }
            _ => Ok(vec![params]),
        }
    }
}
