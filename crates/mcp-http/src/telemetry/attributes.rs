//! The facts of a request with which its span begins, in builds with and without OpenTelemetry.
#![cfg_attr(
    not(feature = "telemetry"),
    allow(dead_code, reason = "without OpenTelemetry nothing reads them")
)]

/// The attributes of a span when it begins.
#[derive(Debug)]
pub(crate) struct SpanAttributes<'a> {
    pub(crate) method: &'a str,
    pub(crate) request_id: Option<String>,
    pub(crate) parent: Option<&'a TraceParent>,
    pub(crate) protocol_version: Option<&'a str>,
    pub(crate) principal: &'a str,
    pub(crate) role: &'a str,
    pub(crate) peer: String,
}

/// The span of the client that a request belongs to (W3C Trace Context): from `_meta`, or else from the headers.
#[derive(Debug, Default, Clone)]
pub(crate) struct TraceParent {
    pub(crate) traceparent: String,
    pub(crate) tracestate: Option<String>,
}
