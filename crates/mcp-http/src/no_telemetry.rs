//! This build sends nothing to an OpenTelemetry collector.

use crate::begun::Begun;
use core_tools::mcp::Record;
use core_tools::redact::Redactor;
use http::StatusCode;
use server_setup::log::Further;

/// Of which there is none.
pub(crate) enum Telemetry {}

/// Of which there is none.
#[derive(Debug)]
pub(crate) enum Spans {}

/// Of which there is none.
#[derive(Clone, Debug)]
pub(crate) enum Span {}

impl Telemetry {
    /// A collector that is named and hears nothing would be missed too late.
    pub(crate) fn from_environment(_name: &str, _version: &str) -> Result<Option<Self>, String> {
        match std::env::var_os("OTEL_EXPORTER_OTLP_ENDPOINT").is_some_and(|value| !value.is_empty()) {
            true => Err("OTEL_EXPORTER_OTLP_ENDPOINT: this build has no OpenTelemetry (feature `telemetry`)"
                .to_owned()),
            false => Ok(None),
        }
    }

    pub(crate) fn further(&self, _redactor: Redactor) -> Option<Further> {
        match *self {}
    }

    pub(crate) fn spans(&self) -> Option<Spans> {
        match *self {}
    }

    pub(crate) fn close(self) {
        match self {}
    }
}

impl Spans {
    pub(crate) fn begin(&self, _begun: Begun<'_>) -> Span {
        match *self {}
    }
}

impl Span {
    pub(crate) fn came_out(&self, _record: &Record<'_>) {
        match *self {}
    }

    pub(crate) fn answered(&self, _status: StatusCode) {
        match *self {}
    }

    pub(crate) fn abandoned(&self) {
        match *self {}
    }

    pub(crate) async fn around<T>(&self, work: impl Future<Output = T>) -> T {
        work.await
    }

    pub(crate) fn end(&self) {
        match *self {}
    }
}
