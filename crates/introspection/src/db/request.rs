//! The arguments of `db_bridge`, and the checks that its schema cannot make.

use super::action::DbAction;
use super::error::Error;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

/// From here on a number that has lost digits differs from the one that was given by 1 and more.
const FIRST_ROUNDED: f64 = 9_007_199_254_740_992.0;
/// The number of decimal digits that a double keeps in any case.
const EXACT_DIGITS: usize = 15;

/// The arguments of `db_bridge`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DbBridge {
    /// `query` runs one SELECT; `schema` describes the tables; `explain` shows the plan of a statement without running it;
    /// `seed` runs one INSERT, UPDATE or DELETE.
    pub action: DbAction,
    /// One SQL statement. For `schema` it is empty, the name of a table or a pattern such as `order*`.
    #[serde(default)]
    pub payload: String,
    /// The values of the placeholders: `?` in SQLite and MySQL, `$1` in PostgreSQL. With a list of lists a `seed` runs once
    /// for each, all or nothing.
    #[serde(default)]
    pub params: Option<Vec<Value>>,
    /// The database, if there are several: an SQLite file such as `data/app.db`, or its name in the server's settings. By
    /// default it is found.
    #[serde(default)]
    pub database: Option<String>,
    /// The most rows to return. 200 by default.
    #[schemars(range(min = 1, max = 5000))]
    #[serde(default)]
    pub limit: Option<u32>,
    /// Rolls a seed back after it ran, to show how many rows it would change. False by default.
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    pub dry_run: bool,
    /// The time limit of the statement, in milliseconds. 10000 by default.
    #[schemars(range(min = 1, max = 600_000), extend("unlisted" = true))]
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

const DEFAULT_ROW_LIMIT: u32 = 200;
const MAX_ROW_LIMIT: u32 = 5000;
const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(10);
const MAX_TIME_LIMIT: Duration = Duration::from_secs(600);
/// The longest statement, in bytes, for every engine. SQLite's own limit is set to it (`sqlite::guard`).
pub(super) const MAX_STATEMENT_BYTES: usize = 1 << 20;

impl DbBridge {
    /// A request for `action`, with the default of everything else.
    pub fn new(action: DbAction) -> Self {
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

    /// Sets the statement; for a schema, the table.
    #[must_use]
    pub fn payload(mut self, payload: impl Into<String>) -> Self {
        self.payload = payload.into();
        self
    }

    /// Sets the values to bind. A seed takes a list of lists, and runs once for each.
    #[must_use]
    pub fn params(mut self, params: impl IntoIterator<Item = Value>) -> Self {
        self.params = Some(params.into_iter().collect());
        self
    }

    /// Sets the database: its configured name, or an SQLite file.
    #[must_use]
    pub fn database(mut self, database: impl Into<String>) -> Self {
        self.database = Some(database.into());
        self
    }

    /// Sets the largest number of rows to answer.
    #[must_use]
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Has a seed taken back after it ran.
    #[must_use]
    pub fn dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    /// Sets the time limit of the statement, in milliseconds.
    #[must_use]
    pub fn timeout_ms(mut self, timeout_ms: u64) -> Self {
        self.timeout_ms = Some(timeout_ms);
        self
    }

    /// Returns the time limit of the statement: 10 seconds by default, 600 at most.
    pub(super) fn time_limit(&self) -> Duration {
        // The schema has the same maximum, but a caller of the library gets no check by the schema.
        self.timeout_ms.map_or(DEFAULT_TIME_LIMIT, Duration::from_millis).min(MAX_TIME_LIMIT)
    }

    /// Returns the number of rows to answer at most: 200 by default.
    pub(super) fn row_limit(&self) -> Result<usize, Error> {
        let limit = self.limit.unwrap_or(DEFAULT_ROW_LIMIT);
        if !(1..=MAX_ROW_LIMIT).contains(&limit) {
            return Err(Error::argument("limit", format!("{limit} is not in 1 to {MAX_ROW_LIMIT}")));
        }
        Ok(usize::try_from(limit).unwrap_or(usize::MAX))
    }

    /// Returns the statement without the semicolons and blanks at its end: it may be put into another statement.
    pub(super) fn statement(&self) -> Result<&str, Error> {
        if self.payload.len() > MAX_STATEMENT_BYTES {
            return Err(Error::argument("payload", "it is longer than 1 MiB"));
        }
        if self.payload.contains('\0') {
            // SQLite would stop reading at it, and so judge another statement than the one that was sent.
            return Err(Error::argument("payload", "it contains a NUL character"));
        }
        let statement = self.payload.trim_end_matches(|c: char| c.is_ascii_whitespace() || c == ';');
        if statement.trim().is_empty() { Err(Error::StatementCount { found: 0 }) } else { Ok(statement) }
    }

    /// Returns the lists of parameters. A seed whose parameters are all arrays has one list for each run of the
    /// statement; everything else has one list.
    pub(super) fn parameters(&self) -> Result<Vec<&[Value]>, Error> {
        let params = self.params.as_deref().unwrap_or_default();
        params.iter().try_for_each(refuse_rounded)?;
        let lists: Option<Vec<&[Value]>> =
            params.iter().map(|param| param.as_array().map(Vec::as_slice)).collect();
        match lists {
            Some(lists) if self.action == DbAction::Seed && !lists.is_empty() => {
                let length = lists.first().map_or(0, |list| list.len());
                if lists.iter().any(|list| list.len() != length) {
                    return Err(Error::argument(
                        "params",
                        "the lists have different lengths; give each the same number of values",
                    ));
                }
                Ok(lists)
            }
            _ => Ok(vec![params]),
        }
    }
}

/// Refuses a number that may have lost digits when the JSON was read: it would be stored changed, with success.
fn refuse_rounded(param: &Value) -> Result<(), Error> {
    match param {
        Value::Array(list) => list.iter().try_for_each(refuse_rounded),
        Value::Number(number) if number.is_f64() => {
            let real = number.as_f64().unwrap_or_default();
            // The shortest text that reads back as the same number shows how many digits were kept.
            let text = format!("{real:e}");
            let digits = text.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
            if real.abs() < FIRST_ROUNDED || digits <= EXACT_DIGITS {
                return Ok(());
            }
            Err(Error::argument(
                "params",
                format!("a number near {real:e} has more digits than a JSON number keeps; give it as a text"),
            ))
        }
        _ => Ok(()),
    }
}
