//! Reads the JSON-RPC message of a request, strictly. The inner layers find the [`RpcRequest`] in the request.

use crate::app_state::App;
use crate::limits::account::CallerAccount;
use crate::mcp_request::{McpRequest, RpcRequest};
use crate::middleware::Next;
use crate::refusal;
use crate::response;
use crate::telemetry::attributes::TraceParent;
use axum::body::{Body, Bytes};
use axum::response::Response;
use core_tools::mcp::RequestedOffer;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use json_rpc::json::{Json, JsonObject};
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

/// The largest message that is read and parsed beside others of its caller, in bytes.
const MAX_SMALL_BODY_BYTES: usize = 64 * 1024;
/// The most values of a message, names of members aside. What is large for a good reason has long strings.
const MAX_MESSAGE_VALUES: usize = 50_000;
/// The bytes that a caller is charged for each value of its messages, beside their own: parsed, it takes as many.
const CHARGED_VALUE_BYTES: usize = 32;

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
        let headers = request.http.headers();
        if let Some(refusal) = encoded_body(headers) {
            return refusal;
        }
        let length = declared_length(headers);
        // A large message is read and parsed beside no other of its caller: its memory and its time are bounded before
        // they are spent.
        let permit = match length.is_none_or(|length| length > MAX_SMALL_BODY_BYTES as u64) {
            false => None,
            true => match request.account.acquire_message().await {
                Ok(permit) => Some(permit),
                Err(rejection) => return refusal::over_limit(app, &request.principal, None, &rejection),
            },
        };
        let body = match read_body(app, length, body).await {
            Ok(body) => body,
            Err(error) => return error.into_response(app),
        };
        app.metrics.bytes_received.inc_by(body.len() as u64);
        let (message, values) = parse(&request.account, &body).await;
        request.account.charge(body.len() + values * CHARGED_VALUE_BYTES);
        drop(permit);
        match message {
            // A session keeps what its client says of itself for as long as it lives.
            Ok(message) if message.method == "initialize" && body.len() > MAX_SMALL_BODY_BYTES => {
                let why = format!("an `initialize` request may have {MAX_SMALL_BODY_BYTES} bytes");
                return response::rpc_error(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    message.id.as_ref(),
                    INVALID_REQUEST,
                    &why,
                );
            }
            Ok(message) => request.message = Arc::new(message),
            Err(refusal) => return *refusal,
        }
        *request.http.body_mut() = Body::from(body);
    }
    next(request).await
}

/// Parses a message, a large one on a thread of its own: the threads of the runtime answer other callers meanwhile.
/// Returns also the number of values that the caller is charged for.
async fn parse(account: &CallerAccount, body: &Bytes) -> (Result<RpcRequest, Box<Response>>, usize) {
    if body.len() <= MAX_SMALL_BODY_BYTES {
        return RpcRequest::parse(body);
    }
    let permit = account.acquire_parser().await;
    let copy = body.clone();
    let parsed = tokio::task::spawn_blocking(move || {
        let parsed = RpcRequest::parse(&copy);
        drop(permit);
        parsed
    });
    parsed.await.unwrap_or_else(|_| {
        // The runtime ends, or the parser panicked: nothing was read.
        let refusal =
            response::rpc_error(StatusCode::SERVICE_UNAVAILABLE, None, PARSE_ERROR, "the server ends");
        (Err(Box::new(refusal)), 0)
    })
}

/// Refuses a body that is encoded, which this server does not decode (RFC 9110 §8.4): a proxy that does would read
/// another message.
fn encoded_body(headers: &HeaderMap) -> Option<Response> {
    let is_plain = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if headers.get_all(header::CONTENT_ENCODING).iter().all(is_plain) {
        return None;
    }
    let message = "a request's body is not encoded: send it without Content-Encoding";
    let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    Some(response::rpc_error(status, None, INVALID_REQUEST, message))
}

fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok())
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

/// Reads a body of this declared length within the limits on its size and its time.
async fn read_body(app: App, length: Option<u64>, body: Body) -> Result<Bytes, BodyError> {
    // A declared length is refused before a byte is read. `Limited` counts the bytes of a body that declares none.
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
    /// Returns the request in `body`, or the answer to one that cannot be read, and the number of values in it.
    fn parse(body: &[u8]) -> (Result<Self, Box<Response>>, usize) {
        match Message::parse_within(body, MAX_MESSAGE_VALUES) {
            Ok((message, values)) => (Ok(Self::new(&message)), values),
            Err(invalid) => {
                let (id, code) = (invalid.id.as_ref(), invalid.code);
                let refusal = response::rpc_error(StatusCode::BAD_REQUEST, id, code, &invalid.problem);
                // As much as it may have cost: a value and its sign have two bytes.
                (Err(Box::new(refusal)), (body.len() / 2).min(MAX_MESSAGE_VALUES))
            }
        }
    }

    fn new(message: &Message<'_>) -> Self {
        let meta = |name: &str| message.meta()?.get(name)?.as_str().map(str::to_owned);
        let parent = meta("traceparent")
            .map(|traceparent| TraceParent { traceparent, tracestate: meta("tracestate") });
        match &message.kind {
            MessageKind::Request { id, method } => {
                let offer = requested_offer(method, message.params());
                Self { id: Some(id.clone()), method: method.clone(), offer, parent }
            }
            MessageKind::Notification { method } => {
                Self { id: None, method: method.clone(), offer: None, parent }
            }
            MessageKind::Response { .. } => Self::default(),
        }
    }
}

/// Returns the tool, prompt, resource or suggestions that a request asks for.
fn requested_offer(method: &str, params: Option<&JsonObject<'_>>) -> Option<RequestedOffer> {
    let text = |object: Option<&JsonObject<'_>>, name: &str| {
        object.and_then(|object| object.get(name)).and_then(Json::as_str).unwrap_or_default().to_owned()
    };
    match method {
        "tools/call" => Some(RequestedOffer::Tool(text(params, "name"))),
        "prompts/get" => Some(RequestedOffer::Prompt(text(params, "name"))),
        "resources/read" => Some(RequestedOffer::Resource(text(params, "uri"))),
        "completion/complete" => {
            let reference = params.and_then(|params| params.get("ref")?.as_object());
            match text(reference, "type").as_str() {
                "ref/prompt" => Some(RequestedOffer::PromptCompletions(text(reference, "name"))),
                "ref/resource" => Some(RequestedOffer::ResourceCompletions(text(reference, "uri"))),
                _ => None,
            }
        }
        _ => None,
    }
}
