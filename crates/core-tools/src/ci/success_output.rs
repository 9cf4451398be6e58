//! The part of a long report that a tool's schema promises.

use schemars::JsonSchema;
use serde::Serialize;

/// The part of a report on a build, or on tests, that is promised in a tool's output schema. The schema of the
/// whole report would be in the context of every conversation.
#[derive(Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct SuccessOutput {
    /// All went well.
    pub success: bool,
}
