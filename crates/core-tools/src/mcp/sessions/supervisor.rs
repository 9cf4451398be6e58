//! The supervisor of the sessions, as the tools ask it.

use crate::mcp::call_context::CallContext;
use crate::mcp::tool_error::ToolError;
use crate::sessions::{Error, SessionService};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        Self::from_error(&error)
    }
}

/// Returns the sessions that the caller knows: its own, where a server has several callers.
pub(super) fn sessions_of_caller(sessions: &SessionService, context: &CallContext) -> SessionService {
    sessions.for_principal(context.owner.as_deref().or(context.caller.principal()))
}

/// Reads the answer of a supervisor, which may be a process of another version.
pub(super) fn decode<T: DeserializeOwned>(answer: Value) -> Result<T, ToolError> {
    serde_json::from_value(answer)
        .map_err(|error| ToolError::new(format!("the supervisor's answer is not of this version: {error}")))
}

/// The output schema that is listed, which every conversation pays for: an object. Its members are documented, and tested.
#[derive(Serialize, JsonSchema)]
pub(super) struct AnyObject {}
