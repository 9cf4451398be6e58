//! The build without OpenTelemetry: the types have no values, so that nothing is left of what uses them.

use super::attributes::SpanAttributes;
use super::error::TelemetryError;
use core_tools::mcp::CallRecord;
use core_tools::redact::Redactor;
use http::StatusCode;
use server_setup::log::ExtraLayer;

/// The exporters, of which this build has none.
pub(crate) enum Telemetry {}

/// The source of spans, of which this build has none.
#[derive(Debug)]
pub(crate) enum RequestTracer {}

/// The span of a request, of which this build has none.
#[derive(Clone, Debug)]
pub(crate) enum RequestSpan {}

impl Telemetry {
    /// Fails where the environment names a collector: that it hears nothing would be noticed too late.
    pub(crate) fn from_environment(_name: &str, _version: &str) -> Result<Option<Self>, TelemetryError> {
        match std::env::var_os("OTEL_EXPORTER_OTLP_ENDPOINT").is_some_and(|value| !value.is_empty()) {
            true => Err(TelemetryError::NotBuilt),
            false => Ok(None),
        }
    }

    pub(crate) fn log_layer(&self, _redactor: Redactor) -> Option<ExtraLayer> {
        match *self {}
    }

    pub(crate) fn tracer(&self) -> Option<RequestTracer> {
        match *self {}
    }

    pub(crate) fn close(self) {
        match self {}
    }
}

impl RequestTracer {
    pub(crate) fn start(&self, _attributes: SpanAttributes<'_>) -> RequestSpan {
        match *self {}
    }
}

impl RequestSpan {
    pub(crate) fn record_call(&self, _record: &CallRecord<'_>) {
        match *self {}
    }

    pub(crate) fn record_status(&self, _status: StatusCode) {
        match *self {}
    }

    pub(crate) fn record_abandoned(&self) {
        match *self {}
    }

    pub(crate) async fn in_scope<T>(&self, work: impl Future<Output = T>) -> T {
        work.await
    }

    pub(crate) fn end(&self) {
        match *self {}
    }
}
