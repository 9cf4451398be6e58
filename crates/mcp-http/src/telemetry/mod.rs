//! OpenTelemetry: spans and log records to a collector.

pub(crate) mod attributes;
#[cfg(not(feature = "telemetry"))]
mod disabled;
mod error;
#[cfg(feature = "telemetry")]
mod export;
#[cfg(feature = "telemetry")]
mod log_layer;
#[cfg(feature = "telemetry")]
mod otlp;
#[cfg(feature = "telemetry")]
mod request_span;

pub(crate) use error::TelemetryError;

#[cfg(not(feature = "telemetry"))]
pub(crate) use disabled::{RequestSpan, RequestTracer, Telemetry};
#[cfg(feature = "telemetry")]
pub(crate) use otlp::Telemetry;
#[cfg(feature = "telemetry")]
pub(crate) use request_span::{RequestSpan, RequestTracer};
