//! The span of a request.

use super::attributes::{SpanAttributes, TraceParent};
use core_tools::mcp::{CallDecision, CallRecord, Outcome};
use http::StatusCode;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{FutureExt, SpanBuilder, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracer;

/// The source of spans.
#[derive(Debug)]
pub(crate) struct RequestTracer {
    tracer: SdkTracer,
    propagator: TraceContextPropagator,
}

impl Extractor for TraceParent {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => Some(&self.traceparent),
            "tracestate" => self.tracestate.as_deref(),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}

/// The methods that a span is named after. Any other name is a client's invention, and collectors count spans by name.
const METHODS: [&str; 9] = [
    "initialize",
    "ping",
    "server/discover",
    "subscriptions/listen",
    "tools/list",
    "tools/call",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
];

impl RequestTracer {
    /// Makes spans with `tracer`.
    pub(super) fn new(tracer: SdkTracer) -> Self {
        Self { tracer, propagator: TraceContextPropagator::new() }
    }

    /// Starts the span of a request.
    pub(crate) fn start(&self, request: SpanAttributes<'_>) -> RequestSpan {
        let method = METHODS.into_iter().find(|known| *known == request.method).unwrap_or("other");
        let mut attributes = vec![
            KeyValue::new("mcp.method.name", method),
            KeyValue::new("network.protocol.name", "http"),
            KeyValue::new("client.address", request.peer),
            KeyValue::new("user.name", request.principal.to_owned()),
            KeyValue::new("coretools.role", request.role.to_owned()),
        ];
        if let Some(id) = request.request_id {
            attributes.push(KeyValue::new("jsonrpc.request.id", id));
        }
        if let Some(version) = request.protocol_version {
            attributes.push(KeyValue::new("mcp.protocol.version", version.to_owned()));
        }
        let no_parent = Context::new();
        let parent = request
            .parent
            .map_or(no_parent.clone(), |parent| self.propagator.extract_with_context(&no_parent, parent));
        let span = SpanBuilder::from_name(method).with_kind(SpanKind::Server).with_attributes(attributes);
        RequestSpan(no_parent.with_span(self.tracer.build_with_context(span, &parent)))
    }
}

/// The span of a request, until [`end`](RequestSpan::end).
#[derive(Clone, Debug)]
pub(crate) struct RequestSpan(Context);

impl RequestSpan {
    /// Adds the outcome of the call.
    pub(crate) fn record_call(&self, record: &CallRecord<'_>) {
        let span = self.0.span();
        // The name of a tool that does not exist is a client's invention.
        if record.decision != CallDecision::Unknown {
            span.update_name(format!("tools/call {}", record.tool));
        }
        span.set_attribute(KeyValue::new("gen_ai.operation.name", "execute_tool"));
        span.set_attribute(KeyValue::new("gen_ai.tool.name", record.tool.to_owned()));
        span.set_attribute(KeyValue::new("coretools.decision", record.decision.as_str()));
        span.set_attribute(KeyValue::new("coretools.rule", record.rule.to_owned()));
        span.set_attribute(KeyValue::new("coretools.bytes_in", attribute_size(record.bytes_in)));
        span.set_attribute(KeyValue::new("coretools.bytes_out", attribute_size(record.bytes_out)));
        let error = match record.outcome {
            // By the conventions of OpenTelemetry, a call that succeeded leaves the status unset.
            Outcome::Ok => return,
            Outcome::Failed => "tool_error",
            Outcome::NotRun => record.decision.as_str(),
        };
        span.set_attribute(KeyValue::new("error.type", error));
        span.set_status(Status::error(""));
    }

    /// Adds the status of the answer.
    pub(crate) fn record_status(&self, status: StatusCode) {
        let span = self.0.span();
        span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
        if status.is_client_error() || status.is_server_error() {
            span.set_attribute(KeyValue::new("error.type", status.as_str().to_owned()));
            span.set_status(Status::error(""));
        }
    }

    /// Marks the request as cancelled: the client has gone away.
    pub(crate) fn record_abandoned(&self) {
        let span = self.0.span();
        span.set_attribute(KeyValue::new("error.type", "cancelled"));
        span.set_status(Status::error("the client went away"));
    }

    /// Runs `work`, so that what it logs belongs to this span.
    pub(crate) async fn in_scope<T>(&self, work: impl Future<Output = T>) -> T {
        work.with_context(self.0.clone()).await
    }

    /// Ends the span.
    pub(crate) fn end(&self) {
        self.0.span().end();
    }
}

fn attribute_size(bytes: usize) -> i64 {
    // Attributes of OpenTelemetry have only signed numbers.
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
