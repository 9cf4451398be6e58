//! The log, sent to a collector.

use core_tools::redact::Redactor;
use opentelemetry::logs::{AnyValue, LogRecord, Logger, Severity};
use opentelemetry_sdk::logs::SdkLogger;
use std::fmt::Write;
use std::time::SystemTime;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer;

/// A layer of the log that sends each record.
pub(super) struct LogLayer {
    logger: SdkLogger,
    redactor: Redactor,
}

impl LogLayer {
    /// Sends to `logger` what `redactor` leaves of a record.
    pub(super) fn new(logger: SdkLogger, redactor: Redactor) -> Self {
        Self { logger, redactor }
    }
}

impl<S: Subscriber> Layer<S> for LogLayer {
    fn on_event(&self, event: &Event<'_>, _: layer::Context<'_, S>) {
        let (level, metadata) = (*event.metadata().level(), event.metadata());
        let mut fields = RedactedFields { redactor: &self.redactor, body: String::new(), others: Vec::new() };
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

/// The fields of a record, redacted.
struct RedactedFields<'a> {
    redactor: &'a Redactor,
    body: String,
    others: Vec<(&'static str, String)>,
}

impl Visit for RedactedFields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let mut text = String::new();
        // Writing to a string cannot fail.
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
