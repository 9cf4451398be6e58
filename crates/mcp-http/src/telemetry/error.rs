//! The errors of setting up telemetry.

/// The reason why the telemetry that the environment asks for cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TelemetryError {
    #[cfg(feature = "telemetry")]
    #[error("{variable}={value}: expected otlp or none")]
    Exporter { variable: String, value: String },
    #[cfg(feature = "telemetry")]
    #[error("{variable}={value}: expected http/protobuf")]
    Protocol { variable: String, value: String },
    /// An exporter cannot be built. Its message has its own causes, so it is no source.
    #[cfg(feature = "telemetry")]
    #[error("OpenTelemetry: {0}")]
    Build(opentelemetry_otlp::ExporterBuildError),
    #[cfg(not(feature = "telemetry"))]
    #[error("OTEL_EXPORTER_OTLP_ENDPOINT: this build has no OpenTelemetry (feature `telemetry`)")]
    NotBuilt,
}
