//! Opens a span for a request, where spans are sent to a collector. The inner layers find the [`RequestSpan`] in the request.
#![cfg_attr(
    not(feature = "telemetry"),
    allow(unused_mut, unused_variables, reason = "without OpenTelemetry there is no tracer")
)]

use super::rpc_body::VERSION_HEADER;
use crate::app_state::App;
use crate::auth::principal::Principal;
use crate::mcp_request::{McpRequest, RpcRequest};
use crate::middleware::Next;
use crate::net::address::ConnectionPeer;
use crate::response_guard::{self, ResponseGuard};
use crate::telemetry::attributes::{SpanAttributes, TraceParent};
use crate::telemetry::{RequestSpan, RequestTracer};
use axum::response::Response;
use http::HeaderMap;

/// Traces a request until its answer was sent.
pub(crate) async fn trace(
    app: App,
    mut request: Box<McpRequest>,
    next: impl Next<Box<McpRequest>>,
) -> Response {
    let McpRequest { http, peer, principal, message, .. } = &*request;
    tracing::debug!(principal = %principal.name, from = peer.label(), method = %message.method, "a request");
    let Some(tracer) = &app.tracer else { return next(request).await };
    let span = start_span(tracer, http.headers(), *peer, principal, message);
    let guard = OpenSpan { span: span.clone(), is_complete: false };
    request.span = Some(span.clone());
    let response = span.in_scope(next(request)).await;
    span.record_status(response.status());
    // The span ends with the body, since an answer may stream for minutes after its head.
    response_guard::hold(response, Some(guard))
}

fn start_span(
    tracer: &RequestTracer,
    headers: &HeaderMap,
    peer: ConnectionPeer,
    principal: &Principal,
    message: &RpcRequest,
) -> RequestSpan {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let parent_in_headers = || {
        let tracestate = header("tracestate").map(str::to_owned);
        Some(TraceParent { traceparent: header("traceparent")?.to_owned(), tracestate })
    };
    tracer.start(SpanAttributes {
        method: &message.method,
        request_id: message.id.as_ref().map(ToString::to_string),
        parent: message.parent.clone().or_else(parent_in_headers).as_ref(),
        protocol_version: header(VERSION_HEADER),
        principal: &principal.name,
        role: &principal.role,
        peer: peer.label(),
    })
}

/// A span that ends with its answer.
struct OpenSpan {
    span: RequestSpan,
    is_complete: bool,
}

impl ResponseGuard for OpenSpan {
    fn complete(mut self) {
        self.is_complete = true;
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        if !self.is_complete {
            self.span.record_abandoned();
        }
        self.span.end();
    }
}
