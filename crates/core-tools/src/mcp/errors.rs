//! The JSON-RPC errors, for requests that cannot be routed or read. Everything else is a result.
#![allow(
    deprecated,
    reason = "SEP-2577 takes sampling and roots out of the protocol one day, and today's clients have them"
)]

use super::answer::Answer;
use super::client_requests::ClientCapability;
use super::host::NoSuchTool;
use super::tool_error::FailureCause;
use rmcp::ErrorData;
use rmcp::model::{ClientCapabilities, ErrorCode, ProtocolVersion};
use serde_json::json;

/// The error for a tool that does not exist or that the caller does not see.
///
/// The one place that decides its code: in the `initialize` era it is -32601. On 2026-07-28 it is -32602, since that
/// schema counts an unknown tool name among the invalid params, and its HTTP binding turns -32601 into a 404.
pub(crate) fn no_such_tool(error: &NoSuchTool, version: Option<&ProtocolVersion>) -> ErrorData {
    let modern = version.is_some_and(|version| *version >= ProtocolVersion::V_2026_07_28);
    let code = if modern { ErrorCode::INVALID_PARAMS } else { ErrorCode::METHOD_NOT_FOUND };
    ErrorData::new(code, error.to_string(), None)
}

/// The error for a prompt that does not exist or that the caller does not see.
pub(crate) fn no_such_prompt(name: &str) -> ErrorData {
    ErrorData::invalid_params(
        format!("no prompt is called `{}`; prompts/list names those there are", short(name)),
        None,
    )
}

/// The error for a resource that does not exist or that the caller may not read.
pub(crate) fn no_such_resource(uri: &str) -> ErrorData {
    // A missing and a hidden resource have the same words, so that the error does not reveal hidden resources.
    ErrorData::resource_not_found("no such resource", Some(json!({ "uri": short(uri) })))
}

/// The error for a task that does not exist or is not one of the caller.
pub(crate) fn no_such_task() -> ErrorData {
    ErrorData::invalid_params(
        "no such task: it was never there, has expired, or is not one of this caller",
        None,
    )
}

/// The error for a request state that this server has not given out.
pub(crate) fn forged_state() -> ErrorData {
    ErrorData::invalid_params(
        "this `requestState` is none that this server has given out; call again without it",
        None,
    )
}

/// The error for a header that does not say what the body says.
pub(crate) fn header_mismatch(message: String) -> ErrorData {
    ErrorData::header_mismatch(message, None)
}

/// The error for a client that has no tasks, where a tool makes sense as a task alone.
pub(crate) fn tasks_required() -> ErrorData {
    ErrorData::missing_required_client_capability(ClientCapabilities::builder().enable_tasks().build())
}

/// The error for a client that lacks capabilities which a tool needs.
pub(crate) fn capabilities_required(missing: &[ClientCapability]) -> ErrorData {
    let mut required = ClientCapabilities::default();
    for capability in missing {
        match capability {
            ClientCapability::Elicitation => required.elicitation = Some(Default::default()),
            ClientCapability::Sampling => required.sampling = Some(Default::default()),
            ClientCapability::Roots => required.roots = Some(Default::default()),
        }
    }
    ErrorData::missing_required_client_capability(required)
}

/// The error for a prompt or a resource that could not be made: these have no results that say so.
pub(crate) fn failed_answer(answer: &Answer, uri: Option<&str>) -> ErrorData {
    match (answer.cause(), uri) {
        (FailureCause::NotFound, Some(uri)) => {
            ErrorData::resource_not_found(answer.to_text(), Some(json!({ "uri": short(uri) })))
        }
        (FailureCause::Defect, _) => ErrorData::internal_error(answer.to_text(), None),
        _ => ErrorData::invalid_params(answer.to_text(), None),
    }
}

/// Returns the beginning of a text of the caller, which may be of any length.
fn short(text: &str) -> String {
    text.chars().take(256).collect()
}

/// The error for a request without a caller. A transport that serves many callers identifies each before it comes here.
pub(crate) fn not_authenticated() -> ErrorData {
    ErrorData::invalid_request("not authenticated", None)
}

/// The error for any cursor: a list here is one page, so none was ever given out.
pub(crate) fn invalid_cursor(cursor: &str) -> ErrorData {
    let short: String = cursor.chars().take(64).collect();
    ErrorData::invalid_params(format!("no such cursor: {short:?}; this list has one page"), None)
}

/// The error for a request that rmcp could not read: the method exists and its parameters do not fit, or there is no such
/// method.
pub(crate) fn unreadable_request(method: &str) -> ErrorData {
    let short: String = method.chars().take(64).collect();
    match method {
        "tools/call" => ErrorData::invalid_params(
            "the parameters of tools/call do not fit: expected {\"name\": string, \"arguments\": object}",
            None,
        ),
        "prompts/get"
        | "resources/read"
        | "completion/complete"
        | "subscriptions/listen"
        | "tasks/get"
        | "tasks/update"
        | "tasks/cancel" => {
            ErrorData::invalid_params(format!("the parameters of {method} do not fit its schema"), None)
        }
        _ => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("no method is called `{short}`"), None),
    }
}
