//! OpenTelemetry: a span of each request of the protocol, and the log, to a collector, over OTLP as protobuf on HTTP.
//!
//! The variables are those of its [specification]; without an endpoint nothing is sent. Names follow its [conventions]
//! for MCP; what they have no word for begins with `coretools.`. Arguments and answers are never sent.
//!
//! [specification]: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
//! [conventions]: https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/mcp.md

use crate::begun::{Begun, Parent};
use async_trait::async_trait;
use core_tools::mcp::{Outcome, Record};
use core_tools::redact::Redactor;
use http::{Request, Response, StatusCode};
use opentelemetry::logs::{AnyValue, LogRecord, Logger, LoggerProvider, Severity};
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{
    FutureExt, SpanBuilder, SpanKind, Status, TraceContextExt, Tracer, TracerProvider,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError};
use opentelemetry_otlp::{LogExporter, SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::{SdkLogger, SdkLoggerProvider};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use server_setup::log::Further;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer;

/// What a collector may take for one request, where `OTEL_EXPORTER_OTLP_TIMEOUT` says nothing.
const PATIENCE: Duration = Duration::from_secs(10);
/// What the last spans and records may take when the server ends.
const LAST: Duration = Duration::from_secs(2);
/// More than a collector says.
const MAX_ANSWER: u64 = 64 * 1024;

/// What is sent, and whereto.
pub(crate) struct Telemetry {
    traces: Option<SdkTracerProvider>,
    logs: Option<SdkLoggerProvider>,
}

impl Telemetry {
    /// As the environment says. None, if it names no collector.
    pub(crate) fn from_environment(
        name: &'static str,
        version: &'static str,
    ) -> Result<Option<Self>, String> {
        let said = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        if said("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let wanted = |signal: &str| {
            let exporter = format!("OTEL_{signal}_EXPORTER");
            let endpoint = format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT");
            match said(&exporter).as_deref() {
                None => Ok(said("OTEL_EXPORTER_OTLP_ENDPOINT").or_else(|| said(&endpoint)).is_some()),
                Some("otlp") => Ok(true),
                Some("none") => Ok(false),
                Some(other) => Err(format!("{exporter}={other}: expected otlp or none")),
            }
        };
        let (traces, logs) = (wanted("TRACES")?, wanted("LOGS")?);
        if !traces && !logs {
            return Ok(None);
        }
        for name in ["PROTOCOL", "TRACES_PROTOCOL", "LOGS_PROTOCOL"] {
            let name = format!("OTEL_EXPORTER_OTLP_{name}");
            if let Some(other) = said(&name).filter(|value| value != "http/protobuf") {
                return Err(format!("{name}={other}: expected http/protobuf"));
            }
        }
        let mut resource = Resource::builder().with_attribute(KeyValue::new("service.version", version));
        // The name is the operator's to give, by either of two variables.
        let named = |list: String| list.split(',').any(|pair| pair.trim().starts_with("service.name="));
        if said("OTEL_SERVICE_NAME").is_none() && !said("OTEL_RESOURCE_ATTRIBUTES").is_some_and(named) {
            resource = resource.with_service_name(name);
        }
        let resource = resource.build();
        let traces = match traces {
            false => None,
            true => {
                let exporter = SpanExporter::builder().with_http().with_http_client(Sender::new("spans"));
                let exporter = exporter.build().map_err(|error| format!("OpenTelemetry: {error}"))?;
                let provider = SdkTracerProvider::builder().with_resource(resource.clone());
                Some(provider.with_batch_exporter(exporter).build())
            }
        };
        let logs = match logs {
            false => None,
            true => {
                let exporter =
                    LogExporter::builder().with_http().with_http_client(Sender::new("log records"));
                let exporter = exporter.build().map_err(|error| format!("OpenTelemetry: {error}"))?;
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

    /// Where the log goes too, masked by `redactor`.
    pub(crate) fn further(&self, redactor: Redactor) -> Option<Further> {
        let logger = self.logs.as_ref()?.logger("mcp-http");
        Some(Box::new(Lines { logger, redactor }))
    }

    /// What makes spans.
    pub(crate) fn spans(&self) -> Option<Spans> {
        let tracer = self.traces.as_ref()?.tracer("mcp-http");
        Some(Spans { tracer, propagator: TraceContextPropagator::new() })
    }

    /// Sends what is left.
    pub(crate) fn close(self) {
        let late = |kind: &str, error: &dyn std::fmt::Display| {
            tracing::warn!("the last {kind} were not sent to the OpenTelemetry collector: {error}");
        };
        if let Some(Err(error)) = self.traces.map(|traces| traces.shutdown_with_timeout(LAST)) {
            late("spans", &error);
        }
        if let Some(Err(error)) = self.logs.map(|logs| logs.shutdown_with_timeout(LAST)) {
            late("log records", &error);
        }
    }
}

/// Makes spans.
#[derive(Debug)]
pub(crate) struct Spans {
    tracer: SdkTracer,
    propagator: TraceContextPropagator,
}

impl Extractor for Parent {
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

/// Methods by name; others are a client's to invent, and spans are counted by their names.
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

impl Spans {
    /// A request begins.
    pub(crate) fn begin(&self, begun: Begun<'_>) -> Span {
        let method = METHODS.into_iter().find(|known| *known == begun.method).unwrap_or("other");
        let mut attributes = vec![
            KeyValue::new("mcp.method.name", method),
            KeyValue::new("network.protocol.name", "http"),
            KeyValue::new("client.address", begun.from),
            KeyValue::new("user.name", begun.principal.to_owned()),
            KeyValue::new("coretools.role", begun.role.to_owned()),
        ];
        if let Some(id) = begun.id {
            attributes.push(KeyValue::new("jsonrpc.request.id", id));
        }
        if let Some(version) = begun.version {
            attributes.push(KeyValue::new("mcp.protocol.version", version.to_owned()));
        }
        let nobody = Context::new();
        let parent = begun
            .parent
            .map_or(nobody.clone(), |parent| self.propagator.extract_with_context(&nobody, parent));
        let span = SpanBuilder::from_name(method).with_kind(SpanKind::Server).with_attributes(attributes);
        Span(nobody.with_span(self.tracer.build_with_context(span, &parent)))
    }
}

/// A request, until [`end`](Span::end).
#[derive(Clone, Debug)]
pub(crate) struct Span(Context);

impl Span {
    /// Its call has come out.
    pub(crate) fn came_out(&self, record: &Record<'_>) {
        let span = self.0.span();
        // A tool that there is not may have any name.
        if record.decision != "unknown" {
            span.update_name(format!("tools/call {}", record.tool));
        }
        span.set_attribute(KeyValue::new("gen_ai.operation.name", "execute_tool"));
        span.set_attribute(KeyValue::new("gen_ai.tool.name", record.tool.to_owned()));
        span.set_attribute(KeyValue::new("coretools.decision", record.decision));
        span.set_attribute(KeyValue::new("coretools.rule", record.rule.to_owned()));
        span.set_attribute(KeyValue::new("coretools.bytes_in", size(record.bytes_in)));
        span.set_attribute(KeyValue::new("coretools.bytes_out", size(record.bytes_out)));
        let error = match record.outcome {
            Outcome::Ok => return,
            Outcome::Failed => "tool_error",
            Outcome::NotRun => record.decision,
        };
        span.set_attribute(KeyValue::new("error.type", error));
        span.set_status(Status::error(""));
    }

    /// Its answer begins.
    pub(crate) fn answered(&self, status: StatusCode) {
        let span = self.0.span();
        span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
        if status.is_client_error() || status.is_server_error() {
            span.set_attribute(KeyValue::new("error.type", status.as_str().to_owned()));
            span.set_status(Status::error(""));
        }
    }

    /// Its client has gone away.
    pub(crate) fn abandoned(&self) {
        let span = self.0.span();
        span.set_attribute(KeyValue::new("error.type", "cancelled"));
        span.set_status(Status::error("the client went away"));
    }

    /// Does `work`, with what it logs belonging to this span.
    pub(crate) async fn around<T>(&self, work: impl Future<Output = T>) -> T {
        work.with_context(self.0.clone()).await
    }

    /// It is over.
    pub(crate) fn end(&self) {
        self.0.span().end();
    }
}

fn size(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// The log, record by record.
struct Lines {
    logger: SdkLogger,
    redactor: Redactor,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: layer::Context<'_, S>) {
        let (level, metadata) = (*event.metadata().level(), event.metadata());
        let mut fields = Fields { redactor: &self.redactor, body: String::new(), others: Vec::new() };
        event.record(&mut fields);
        let mut record = self.logger.create_log_record();
        record.set_timestamp(SystemTime::now());
        record.set_target(metadata.target());
        record.set_severity_text(level.as_str());
        record.set_severity_number(match level {
            Level::ERROR => Severity::Error,
            Level::WARN => Severity::Warn,
            Level::INFO => Severity::Info,
            Level::DEBUG => Severity::Debug,
            Level::TRACE => Severity::Trace,
        });
        record.set_body(AnyValue::from(fields.body));
        record.add_attributes(fields.others);
        self.logger.emit(record);
    }
}

/// The fields of a record, masked.
struct Fields<'a> {
    redactor: &'a Redactor,
    body: String,
    others: Vec<(&'static str, String)>,
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let mut text = String::new();
        // A string takes what it is given.
        let _ = write!(text, "{value:?}");
        self.record_str(field, &text);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let text = self.redactor.redact(value).into_owned();
        match field.name() {
            "message" => self.body = text,
            name => self.others.push((name, text)),
        }
    }
}

/// Sends over the client that the server has anyway. Each batch is sent by a thread of its own, which may block.
#[derive(Debug)]
struct Sender {
    agent: ureq::Agent,
    what: &'static str,
    /// The last one was not taken.
    failing: AtomicBool,
}

impl Sender {
    fn new(what: &'static str) -> Self {
        let said = std::env::var("OTEL_EXPORTER_OTLP_TIMEOUT").ok().and_then(|value| value.parse().ok());
        let patience = said.map_or(PATIENCE, Duration::from_millis);
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(patience))
            .max_redirects(0)
            .http_status_as_error(false)
            .build()
            .into();
        Self { agent, what, failing: AtomicBool::new(false) }
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ureq::Error> {
        let (parts, body) = request.into_parts();
        let mut response = self.agent.run(Request::from_parts(parts, &*body))?;
        let read = response.body_mut().with_config().limit(MAX_ANSWER).read_to_vec()?;
        Ok(response.map(|_| Bytes::from(read)))
    }
}

#[async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let sent = self.send(request);
        let why = match &sent {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("status {}", response.status())),
            Err(error) => Some(error.to_string()),
        };
        // Once, not with each batch.
        let before = self.failing.swap(why.is_some(), Ordering::Relaxed);
        match why {
            Some(why) if !before => {
                tracing::warn!("{} cannot be sent to the OpenTelemetry collector: {why}", self.what);
            }
            None if before => tracing::warn!("{} reach the OpenTelemetry collector again", self.what),
            _ => {}
        }
        Ok(sent?)
    }
}
