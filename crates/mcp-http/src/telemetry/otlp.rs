//! OpenTelemetry: a span for each request of the protocol, and the log, to a collector over OTLP (protobuf on HTTP).
//!
//! The environment variables are those of the [specification]; without an endpoint nothing is sent. Names follow the
//! [conventions] for MCP; what those have no name for begins with `coretools.`. Arguments and answers are never sent.
//!
//! [specification]: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
//! [conventions]: https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/mcp.md

use super::error::TelemetryError;
use super::export::OtlpClient;
use super::log_layer::LogLayer;
use super::request_span::RequestTracer;
use core_tools::redact::Redactor;
use opentelemetry::KeyValue;
use opentelemetry::logs::LoggerProvider;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{LogExporter, SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use server_setup::log::ExtraLayer;
use std::time::Duration;

/// The time that the last spans and records have when the server ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The exporters of spans and of the log.
pub(crate) struct Telemetry {
    traces: Option<SdkTracerProvider>,
    logs: Option<SdkLoggerProvider>,
}

impl Telemetry {
    /// Sets up the exporters that the environment asks for. Returns `None` where it names no collector.
    pub(crate) fn from_environment(
        name: &'static str,
        version: &'static str,
    ) -> Result<Option<Self>, TelemetryError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let is_exported = |signal: &str| {
            let exporter = format!("OTEL_{signal}_EXPORTER");
            let endpoint = format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT");
            match variable(&exporter).as_deref() {
                // The specification would send to a collector on this machine by default. Nothing is sent unasked here.
                None => Ok(variable("OTEL_EXPORTER_OTLP_ENDPOINT").or_else(|| variable(&endpoint)).is_some()),
                Some("otlp") => Ok(true),
                Some("none") => Ok(false),
                Some(other) => Err(TelemetryError::Exporter { variable: exporter, value: other.to_owned() }),
            }
        };
        let (traces, logs) = (is_exported("TRACES")?, is_exported("LOGS")?);
        if !traces && !logs {
            return Ok(None);
        }
        for name in ["PROTOCOL", "TRACES_PROTOCOL", "LOGS_PROTOCOL"] {
            let name = format!("OTEL_EXPORTER_OTLP_{name}");
            if let Some(value) = variable(&name).filter(|value| value != "http/protobuf") {
                // Another protocol is an error: a server that silently sends nothing would be noticed too late.
                return Err(TelemetryError::Protocol { variable: name, value });
            }
        }
        let mut resource = Resource::builder().with_attribute(KeyValue::new("service.version", version));
        // The operator may give the name by either of two variables.
        let has_name = |list: String| list.split(',').any(|pair| pair.trim().starts_with("service.name="));
        if variable("OTEL_SERVICE_NAME").is_none()
            && !variable("OTEL_RESOURCE_ATTRIBUTES").is_some_and(has_name)
        {
            resource = resource.with_service_name(name);
        }
        let resource = resource.build();
        let traces = match traces {
            false => None,
            true => {
                let exporter = SpanExporter::builder().with_http().with_http_client(OtlpClient::new("spans"));
                let exporter = exporter.build().map_err(TelemetryError::Build)?;
                let provider = SdkTracerProvider::builder().with_resource(resource.clone());
                Some(provider.with_batch_exporter(exporter).build())
            }
        };
        let logs = match logs {
            false => None,
            true => {
                let exporter =
                    LogExporter::builder().with_http().with_http_client(OtlpClient::new("log records"));
                let exporter = exporter.build().map_err(TelemetryError::Build)?;
                Some(
                    SdkLoggerProvider::builder()
                        .with_resource(resource)
                        .with_batch_exporter(exporter)
                        .build(),
                )
            }
        };
        Ok(Some(Self { traces, logs }))
    }

    /// Returns the layer that sends the log too, redacted by `redactor`.
    pub(crate) fn log_layer(&self, redactor: Redactor) -> Option<ExtraLayer> {
        let logger = self.logs.as_ref()?.logger("mcp-http");
        Some(Box::new(LogLayer::new(logger, redactor)))
    }

    /// Returns the source of spans, if they are exported.
    pub(crate) fn tracer(&self) -> Option<RequestTracer> {
        Some(RequestTracer::new(self.traces.as_ref()?.tracer("mcp-http")))
    }

    /// Sends the last spans and records.
    pub(crate) fn close(self) {
        let not_sent = |kind: &str, error: &dyn std::fmt::Display| {
            tracing::warn!("the last {kind} were not sent to the OpenTelemetry collector: {error}");
        };
        if let Some(Err(error)) = self.traces.map(|traces| traces.shutdown_with_timeout(FLUSH_TIMEOUT)) {
            not_sent("spans", &error);
        }
        if let Some(Err(error)) = self.logs.map(|logs| logs.shutdown_with_timeout(FLUSH_TIMEOUT)) {
            not_sent("log records", &error);
        }
    }
}
