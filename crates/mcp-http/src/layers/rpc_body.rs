//! Reads the JSON-RPC message of a request, strictly. The inner layers find the [`RpcRequest`] in the request.

use crate::mcp_request::{McpRequest, RpcRequest};
use crate::middleware::Next;
use crate::response;
use crate::state::App;
use crate::telemetry::attributes::TraceParent;
use axum::body::{Body, Bytes};
use axum::response::Response;
use http::{HeaderMap, Method, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use json_rpc::json::Json;
use json_rpc::message::{Message, MessageKind};
use std::error::Error;
use std::sync::Arc;

/// The header with the id of a session.
pub(crate) const SESSION_HEADER: &str = "mcp-session-id";
/// The header with the revision of the protocol.
pub(crate) const VERSION_HEADER: &str = "mcp-protocol-version";
/// The header with a role to which a client asks to be narrowed.
pub(crate) const ROLE_HEADER: &str = "x-coretools-role";

/// The headers that a request has once or not at all. Proxies in front of the server could read either of two.
const SINGLE_HEADERS: [&str; 8] = [
    SESSION_HEADER,
    VERSION_HEADER,
    ROLE_HEADER,
    "mcp-method",
    "mcp-name",
    "last-event-id",
    "content-type",
    "content-length",
];

/// The JSON-RPC error of a message that is not JSON, and of one that is not a valid request.
const PARSE_ERROR: i32 = -32700;
pub(crate) const INVALID_REQUEST: i32 = -32600;

/// Reads the body of a request and refuses one that two parsers could read differently: rmcp parses it again.
pub(crate) async fn read_message(
    app: App,
    mut request: Box<McpRequest>,
    next: impl Next<Box<McpRequest>>,
) -> Response {
    if let Some(name) = repeated_header(request.http.headers()) {
        let message = format!("the header {name} is there twice");
        return response::rpc_error(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, &message);
    }
    let body = std::mem::take(request.http.body_mut());
    // Another method asks for a stream of events, or ends a session.
    if request.http.method() == Method::POST {
        let body = match read_body(app, request.http.headers(), body).await {
            Ok(body) => body,
            Err(error) => return error.into_response(app),
        };
        request.account.charge(body.len());
        app.metrics.bytes_received.inc_by(body.len() as u64);
        match RpcRequest::parse(&body) {
            Ok(message) => request.message = Arc::new(message),
            Err(refusal) => return *refusal,
        }
        *request.http.body_mut() = Body::from(body);
    }
    next(request).await
}

/// Returns the first of [`SINGLE_HEADERS`] that a request has twice.
fn repeated_header(headers: &HeaderMap) -> Option<&'static str> {
    // As many values as names: nothing is repeated. Looking up each name costs as much as reading a small message.
    if headers.len() == headers.keys_len() {
        return None;
    }
    SINGLE_HEADERS.into_iter().find(|name| headers.get_all(*name).iter().nth(1).is_some())
}

/// A body that could not be read.
#[derive(Clone, Copy, Debug)]
enum BodyError {
    TooLarge,
    Broken,
    TimedOut,
}

impl BodyError {
    fn into_response(self, app: App) -> Response {
        let (status, code, message) = match self {
            Self::TooLarge => {
                let message = format!("a request may have {} bytes", app.max_body_bytes);
                (StatusCode::PAYLOAD_TOO_LARGE, INVALID_REQUEST, message)
            }
            Self::Broken => (StatusCode::BAD_REQUEST, PARSE_ERROR, "the request broke off".to_owned()),
            Self::TimedOut => {
                let message = "the request did not come to its end".to_owned();
                (StatusCode::REQUEST_TIMEOUT, PARSE_ERROR, message)
            }
        };
        response::rpc_error(status, None, code, &message)
    }
}

/// Reads a body within the limits on its size and its time.
async fn read_body(app: App, headers: &HeaderMap, body: Body) -> Result<Bytes, BodyError> {
    // A declared length is refused before a byte is read. `Limited` counts the bytes of a body that declares none.
    let length =
        headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > app.max_body_bytes as u64) {
        return Err(BodyError::TooLarge);
    }
    match tokio::time::timeout(app.body_timeout, Limited::new(body, app.max_body_bytes).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if is_length_limit(&*error) => Err(BodyError::TooLarge),
        Ok(Err(_)) => Err(BodyError::Broken),
        Err(_) => Err(BodyError::TimedOut),
    }
}

fn is_length_limit(error: &(dyn Error + 'static)) -> bool {
    error.is::<LengthLimitError>()
}

impl RpcRequest {
    fn parse(body: &[u8]) -> Result<Self, Box<Response>> {
        let message = Message::parse(body).map_err(|invalid| {
            let (id, code) = (invalid.id.as_ref(), invalid.code);
            Box::new(response::rpc_error(StatusCode::BAD_REQUEST, id, code, &invalid.problem))
        })?;
        let tool =
            message.params().and_then(|params| params.get("name")).and_then(Json::as_str).unwrap_or_default();
        let tool = tool.to_owned();
        let meta = |name: &str| message.meta()?.get(name)?.as_str().map(str::to_owned);
        let parent = meta("traceparent")
            .map(|traceparent| TraceParent { traceparent, tracestate: meta("tracestate") });
        Ok(match message.kind {
            MessageKind::Request { id, method } => {
                let tool = (method == "tools/call").then_some(tool);
                Self { id: Some(id), method, tool, parent }
            }
            MessageKind::Notification { method } => Self { id: None, method, tool: None, parent },
            MessageKind::Response { .. } => Self::default(),
        })
    }
}
