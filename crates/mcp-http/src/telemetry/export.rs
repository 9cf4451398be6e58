//! The HTTP client that sends spans and log records.

use async_trait::async_trait;
use http::{Request, Response};
use opentelemetry_http::{Bytes, HttpClient, HttpError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The time that a collector has for one request, unless `OTEL_EXPORTER_OTLP_TIMEOUT` says otherwise.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The size of a collector's answer, in bytes.
const MAX_ANSWER_BYTES: u64 = 64 * 1024;

/// Sends batches with the blocking client that the server has anyway: the SDK sends each on a thread of its own.
#[derive(Debug)]
pub(super) struct OtlpClient {
    agent: ureq::Agent,
    /// The name of what is sent, for the log.
    signal: &'static str,
    /// The last batch was not accepted.
    failing: AtomicBool,
}

impl OtlpClient {
    /// Makes a client for `signal`.
    pub(super) fn new(signal: &'static str) -> Self {
        let configured =
            std::env::var("OTEL_EXPORTER_OTLP_TIMEOUT").ok().and_then(|value| value.parse().ok());
        let timeout = configured.map_or(REQUEST_TIMEOUT, Duration::from_millis);
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(timeout))
            .max_redirects(0)
            .http_status_as_error(false)
            .build()
            .into();
        Self { agent, signal, failing: AtomicBool::new(false) }
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ureq::Error> {
        let (parts, body) = request.into_parts();
        let mut response = self.agent.run(Request::from_parts(parts, &*body))?;
        let read = response.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_vec()?;
        Ok(response.map(|_| Bytes::from(read)))
    }
}

#[async_trait]
impl HttpClient for OtlpClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let sent = self.send(request);
        let error = match &sent {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("status {}", response.status())),
            Err(error) => Some(error.to_string()),
        };
        // Said once when it begins to fail and once when it works again, not with each batch.
        let was_failing = self.failing.swap(error.is_some(), Ordering::Relaxed);
        match error {
            Some(error) if !was_failing => {
                tracing::warn!("{} cannot be sent to the OpenTelemetry collector: {error}", self.signal);
            }
            None if was_failing => tracing::warn!("{} reach the OpenTelemetry collector again", self.signal),
            _ => {}
        }
        Ok(sent?)
    }
}
