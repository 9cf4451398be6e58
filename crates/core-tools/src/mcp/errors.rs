//! The JSON-RPC errors: for calls that cannot be routed or read. Everything else is a result.

use super::host::NoSuchTool;
use rmcp::ErrorData;
use rmcp::model::{ErrorCode, ProtocolVersion};

/// No such tool, or none that the caller may know of.
///
/// The one place that decides the code: the `initialize` era's contract is -32601, and on 2026-07-28,
/// whose schema counts an unknown tool name among the invalid params and whose HTTP binding turns -32601
/// into a 404, it is -32602.
pub(crate) fn no_such_tool(error: &NoSuchTool, version: Option<&ProtocolVersion>) -> ErrorData {
    let modern = version.is_some_and(|version| *version >= ProtocolVersion::V_2026_07_28);
    let code = if modern { ErrorCode::INVALID_PARAMS } else { ErrorCode::METHOD_NOT_FOUND };
    ErrorData::new(code, error.to_string(), None)
}

/// Nobody is known to have made the request. A transport that serves many must have found out who did.
pub(crate) fn nobody() -> ErrorData {
    ErrorData::invalid_request("not authenticated", None)
}

/// A list here is one page, so no cursor was ever given out.
pub(crate) fn invalid_cursor(cursor: &str) -> ErrorData {
    let short: String = cursor.chars().take(64).collect();
    ErrorData::invalid_params(format!("no such cursor: {short:?}; this list has one page"), None)
}

/// A request that did not fit any known shape: a method that exists with parameters that do not fit it, or
/// a method that does not exist.
pub(crate) fn unreadable_request(method: &str) -> ErrorData {
    let short: String = method.chars().take(64).collect();
    match method {
        "tools/call" => ErrorData::invalid_params(
            "the parameters of tools/call do not fit: expected {\"name\": string, \"arguments\": object}",
            None,
        ),
        "prompts/get" | "resources/read" | "completion/complete" | "subscriptions/listen" => {
            ErrorData::invalid_params(format!("the parameters of {method} do not fit its schema"), None)
        }
        _ => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("no method is called `{short}`"), None),
    }
}
