//! Answers that are not the protocol's own.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use json_rpc::message::{Id, Message};
use std::time::Duration;

/// The JSON-RPC error code of a request that may be made again later. It is outside of the codes that JSON-RPC and MCP
/// reserve.
const TRY_LATER: i32 = -31_429;

/// Makes an answer of plain text.
pub(crate) fn text(status: StatusCode, text: impl Into<String>) -> Response {
    document(status, "text/plain; charset=utf-8", text.into())
}

/// Makes an answer of the given media type, which no cache keeps and no browser takes for another type.
pub(crate) fn document(status: StatusCode, content_type: &'static str, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Makes a JSON-RPC error.
pub(crate) fn rpc_error(status: StatusCode, id: Option<&Id>, code: i32, message: &str) -> Response {
    let body = Message::error(id, code, message).to_line();
    document(status, "application/json", String::from_utf8_lossy(&body).trim_end().to_owned())
}

/// Makes a JSON-RPC error that says when to try again.
pub(crate) fn try_later(
    status: StatusCode,
    id: Option<&Id>,
    message: &str,
    retry_after: Duration,
) -> Response {
    let mut response = rpc_error(status, id, TRY_LATER, message);
    // Rounded up: a client that comes back too early would be refused again.
    let seconds = retry_after.as_millis().div_ceil(1000).max(1);
    if let Ok(seconds) = HeaderValue::from_str(&seconds.to_string()) {
        response.headers_mut().insert(header::RETRY_AFTER, seconds);
    }
    response
}

/// Makes the answer to a request whose connection has put no peer into it, or whose caller is not identified: a defect.
pub(crate) fn peer_unknown() -> Response {
    text(StatusCode::INTERNAL_SERVER_ERROR, "the peer is not known\n")
}

/// Makes the answer to a look-up of an authorization server: this is none, and names none.
pub(crate) fn no_authorization_server() -> Response {
    let description =
        "this server issues no tokens and names no authorization server; its operator makes tokens";
    let body = serde_json::json!({"error": "not_found", "error_description": description});
    document(StatusCode::NOT_FOUND, "application/json", body.to_string())
}

/// Makes the answer to a request for a path that there is not.
pub(crate) fn not_found() -> Response {
    text(StatusCode::NOT_FOUND, "there is nothing here; the protocol is at /mcp, the page at /ui\n")
}
