//! The actions of `db_bridge`.

use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt;

/// An action of `db_bridge`: read rows, describe the tables, change rows, or say how a statement would be run.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[allow(
    missing_docs,
    reason = "the doc of the type describes all actions; words here would be in every list of tools"
)]
#[non_exhaustive]
pub enum DbAction {
    Query,
    Schema,
    Seed,
    Explain,
}

impl DbAction {
    /// Returns the name of the action in arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Schema => "schema",
            Self::Seed => "seed",
            Self::Explain => "explain",
        }
    }
}

impl fmt::Display for DbAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
