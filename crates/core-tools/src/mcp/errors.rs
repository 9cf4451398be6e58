//! The JSON-RPC errors, for requests that cannot be routed or read. Everything else is a result.

use super::host::NoSuchTool;
use rmcp::ErrorData;
use rmcp::model::{ErrorCode, ProtocolVersion};

/// The error for a tool that does not exist or that the caller does not see.
///
/// The one place that decides its code: in the `initialize` era it is -32601. On 2026-07-28 it is -32602, since that
/// schema counts an unknown tool name among the invalid params, and its HTTP binding turns -32601 into a 404.
pub(crate) fn no_such_tool(error: &NoSuchTool, version: Option<&ProtocolVersion>) -> ErrorData {
    let modern = version.is_some_and(|version| *version >= ProtocolVersion::V_2026_07_28);
    let code = if modern { ErrorCode::INVALID_PARAMS } else { ErrorCode::METHOD_NOT_FOUND };
    ErrorData::new(code, error.to_string(), None)
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
        "prompts/get" | "resources/read" | "completion/complete" | "subscriptions/listen" => {
            ErrorData::invalid_params(format!("the parameters of {method} do not fit its schema"), None)
        }
        _ => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("no method is called `{short}`"), None),
    }
}
