//! Answers that are not the protocol's.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use role_policy::proxy::message::{Id, Message};
use std::convert::Infallible;
use std::time::Duration;

/// The body of any answer.
pub(crate) type Body = BoxBody<Bytes, Infallible>;

/// Some text.
pub(crate) fn text(status: StatusCode, text: impl Into<String>) -> Response<Body> {
    with(status, "text/plain; charset=utf-8", text.into())
}

/// A document.
pub(crate) fn with(status: StatusCode, kind: &'static str, body: String) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(body)).boxed());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// A JSON-RPC error.
pub(crate) fn error(status: StatusCode, id: Option<&Id>, code: i32, message: &str) -> Response<Body> {
    let body = Message::error(id, code, message).to_line();
    with(status, "application/json", String::from_utf8_lossy(&body).trim_end().to_owned())
}

/// No, for now: `message` says why, `wait` for how long.
pub(crate) fn later(status: StatusCode, id: Option<&Id>, message: &str, wait: Duration) -> Response<Body> {
    let mut response = error(status, id, BUSY, message);
    let seconds = wait.as_millis().div_ceil(1000).max(1);
    if let Ok(seconds) = HeaderValue::from_str(&seconds.to_string()) {
        response.headers_mut().insert(header::RETRY_AFTER, seconds);
    }
    response
}

/// The JSON-RPC error of a request that may be made later. Outside of the codes that JSON-RPC and MCP reserve.
const BUSY: i32 = -31_429;
