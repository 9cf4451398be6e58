//! Metrics for Prometheus, as `OpenMetrics` text.

use crate::process_usage::ProcessUsage;
use crate::refusal_reason::RefusalReason;
use core_tools::mcp::{CallRecord, Outcome};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// The media type of [`Metrics::render`].
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics that are counted as they happen.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    calls: Family<OutcomeLabels, Counter>,
    callers: Family<CallerLabels, Counter>,
    named_callers: Mutex<HashSet<String>>,
    durations: Family<CallLabels, Histogram, fn() -> Histogram>,
    not_run: Family<DecisionLabels, Counter>,
    turned_away: Family<ReasonLabels, Counter>,
    pub(crate) calls_in_flight: Gauge,
    pub(crate) connections: Gauge,
    pub(crate) bytes_received: Counter,
    pub(crate) bytes_sent: Counter,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OutcomeLabels {
    tool: String,
    role: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CallerLabels {
    caller: String,
    outcome: &'static str,
}

/// The callers that have time series of their own. The calls of all others are counted together: an issuer of JWTs may name
/// any number.
const MAX_NAMED_CALLERS: usize = 200;
/// The name of all other callers. No token and no other caller can have it.
const OTHER_CALLERS: &str = "(others)";

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CallLabels {
    tool: String,
    role: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct DecisionLabels {
    decision: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReasonLabels {
    reason: RefusalReason,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct DirectionLabels {
    direction: &'static str,
}

/// The upper bounds of the buckets in seconds: from what reading a file takes to what a build takes.
const BUCKETS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 5.0, 30.0, 120.0, 600.0];

/// The metrics that are kept elsewhere, at the moment of a scrape.
#[derive(Clone, Debug)]
pub(crate) struct MetricsSnapshot {
    /// Sessions that are open.
    pub(crate) sessions: usize,
    /// Calls that wait for a permit.
    pub(crate) queued: u64,
    /// Rows of the audit that its database has, and rows that were lost.
    pub(crate) audit_rows: Option<(u64, u64)>,
    /// Calls that wait for the approval of an operator.
    pub(crate) approvals_waiting: usize,
    /// Questions that were answered, by the verdict.
    pub(crate) approvals: Vec<(&'static str, u64)>,
    /// Programs that are running.
    pub(crate) children: usize,
    /// The server is shutting down.
    pub(crate) draining: bool,
    /// The tokens that are valid.
    pub(crate) tokens: Vec<TokenTimes>,
    /// The resources of this process.
    pub(crate) process: ProcessUsage,
    /// The version of this program.
    pub(crate) version: &'static str,
}

/// The times of a token.
#[derive(Clone, Debug)]
pub(crate) struct TokenTimes {
    pub(crate) name: String,
    /// The time at which it ends, in seconds since 1970.
    pub(crate) expires: Option<u64>,
    /// The time of its last use.
    pub(crate) last_used: Option<u64>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let calls = Family::default();
        registry.register("coretools_calls", "Calls that ran, by their outcome", calls.clone());
        let callers = Family::default();
        registry.register("coretools_caller_calls", "Calls of a caller, by their outcome", callers.clone());
        let durations = Family::new_with_constructor((|| Histogram::new(BUCKETS)) as fn() -> Histogram);
        registry.register(
            "coretools_call_duration_seconds",
            "Time from the arrival of a call to its end",
            durations.clone(),
        );
        let not_run = Family::default();
        registry.register(
            "coretools_calls_not_run",
            "Calls that were not run, by the decision",
            not_run.clone(),
        );
        let turned_away = Family::default();
        registry.register(
            "coretools_requests_turned_away",
            "Requests that were turned away, by the reason",
            turned_away.clone(),
        );
        let bytes = Family::<DirectionLabels, Counter>::default();
        registry.register("coretools_bytes", "Bytes of requests and answers", bytes.clone());
        let calls_in_flight = Gauge::default();
        registry.register("coretools_calls_in_flight", "Calls that are running", calls_in_flight.clone());
        let connections = Gauge::default();
        registry.register("coretools_connections", "Connections that are open", connections.clone());
        Self {
            registry,
            calls,
            callers,
            named_callers: Mutex::default(),
            durations,
            not_run,
            turned_away,
            calls_in_flight,
            connections,
            bytes_received: bytes.get_or_create_owned(&DirectionLabels { direction: "in" }),
            bytes_sent: bytes.get_or_create_owned(&DirectionLabels { direction: "out" }),
        }
    }
}

impl Metrics {
    /// Counts a call that has ended, or was not run.
    pub(crate) fn record_call(&self, record: &CallRecord<'_>) {
        let caller = self.caller_label(record.caller.principal().unwrap_or_default());
        self.callers.get_or_create(&CallerLabels { caller, outcome: record.outcome.as_str() }).inc();
        let outcome = match record.outcome {
            // Counted without its tool: a client can invent names, and each would be a time series.
            Outcome::NotRun => {
                self.not_run.get_or_create(&DecisionLabels { decision: record.decision.as_str() }).inc();
                return;
            }
            Outcome::Ok => "ok",
            Outcome::Failed => "failed",
        };
        let (tool, role) = (record.tool.to_owned(), record.caller.role());
        let labels = CallLabels { tool: tool.clone(), role: role.clone() };
        self.durations.get_or_create(&labels).observe(record.duration.as_secs_f64());
        self.calls.get_or_create(&OutcomeLabels { tool, role, outcome }).inc();
    }

    /// Returns the name under which the calls of a caller are counted.
    fn caller_label(&self, principal: &str) -> String {
        let mut named = self.named_callers.lock().unwrap_or_else(PoisonError::into_inner);
        if named.contains(principal) {
            return principal.to_owned();
        }
        if named.len() >= MAX_NAMED_CALLERS {
            return OTHER_CALLERS.to_owned();
        }
        named.insert(principal.to_owned());
        principal.to_owned()
    }

    /// Counts a request or a connection that was turned away.
    pub(crate) fn turned_away(&self, reason: RefusalReason) {
        self.turned_away.get_or_create(&ReasonLabels { reason }).inc();
    }

    /// Writes all metrics as text of [`CONTENT_TYPE`].
    pub(crate) fn render(&self, snapshot: MetricsSnapshot) -> String {
        let mut output = String::new();
        let mut current = Registry::default();
        current.register_collector(Box::new(snapshot));
        // Writing to a string cannot fail.
        // `encode` also writes the end of the text, so it comes last.
        let _ = text::encode_registry(&mut output, &self.registry)
            .and_then(|()| text::encode(&mut output, &current));
        output
    }
}

impl Collector for MetricsSnapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        if let Some((written, lost)) = self.audit_rows {
            let help = "Records of the audit, by whether its database has them.";
            let mut rows =
                encoder.encode_descriptor("coretools_audit_rows", help, None, MetricType::Counter)?;
            for (outcome, count) in [("written", written), ("lost", lost)] {
                ConstCounter::new(count).encode(rows.encode_family(&[("outcome", outcome)])?)?;
            }
        }
        if !self.approvals.is_empty() {
            let help = "Calls that a person was asked about, by the answer.";
            let mut answers =
                encoder.encode_descriptor("coretools_approvals", help, None, MetricType::Counter)?;
            for (answer, count) in &self.approvals {
                ConstCounter::new(*count).encode(answers.encode_family(&[("answer", *answer)])?)?;
            }
        }
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        for (name, help, time) in [
            (
                "coretools_token_expires_timestamp_seconds",
                "The time at which a token ends.",
                (|token| token.expires) as fn(&TokenTimes) -> Option<u64>,
            ),
            ("coretools_token_last_used_timestamp_seconds", "The last use of a token here.", |token| {
                token.last_used
            }),
        ] {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for token in &self.tokens {
                if let Some(time) = time(token) {
                    let labels = [("token", token.name.as_str())];
                    ConstGauge::new(i64::try_from(time).unwrap_or(i64::MAX))
                        .encode(family.encode_family(&labels)?)?;
                }
            }
        }
        let mut build =
            encoder.encode_descriptor("coretools_build", "The running program.", None, MetricType::Info)?;
        build.encode_info(&[("version", self.version)])?;
        self.process.encode(&mut encoder)?;
        for (name, help, value) in [
            (
                "coretools_calls_waiting",
                "Calls that wait for a permit.",
                i64::try_from(self.queued).unwrap_or(i64::MAX),
            ),
            (
                "coretools_approvals_waiting",
                "Calls that wait for the approval of an operator.",
                number(self.approvals_waiting),
            ),
            ("coretools_sessions", "Sessions that are open.", number(self.sessions)),
            ("coretools_children", "Programs that are running.", number(self.children)),
            ("coretools_draining", "1 while the server is shutting down.", i64::from(self.draining)),
        ] {
            let gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(gauge)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_tools::mcp::CallDecision;
    use role_policy::Caller;
    use std::time::Duration;

    #[test]
    fn a_call_is_in_every_bucket_that_it_fits_into() {
        let (metrics, caller) = (Metrics::default(), Caller::new("dev").with_principal("ada"));
        for (duration, outcome) in [(3, Outcome::Ok), (700_000, Outcome::Failed), (0, Outcome::NotRun)] {
            let record = CallRecord::new(&caller, "read\"file", CallDecision::Refused, outcome);
            metrics.record_call(&record.duration(Duration::from_millis(duration)));
        }
        metrics.turned_away(RefusalReason::NoToken);
        metrics.bytes_sent.inc_by(5);
        let snapshot = MetricsSnapshot {
            sessions: 1,
            queued: 0,
            audit_rows: Some((7, 8)),
            approvals_waiting: 3,
            approvals: vec![("allowed once", 4)],
            children: 2,
            draining: false,
            tokens: vec![
                TokenTimes {
                    name: "ci".to_owned(),
                    expires: Some(1_900_000_000),
                    last_used: Some(1_800_000_000),
                },
                TokenTimes { name: "endless".to_owned(), expires: None, last_used: None },
            ],
            process: ProcessUsage::now(),
            version: "1.2.3",
        };
        let text = metrics.render(snapshot);
        for line in [
            "# TYPE coretools_calls counter",
            r#"coretools_calls_total{tool="read\"file",role="dev",outcome="failed"} 1"#,
            r#"coretools_call_duration_seconds_bucket{le="0.0025",tool="read\"file",role="dev"} 0"#,
            r#"coretools_call_duration_seconds_bucket{le="0.005",tool="read\"file",role="dev"} 1"#,
            r#"coretools_call_duration_seconds_bucket{le="600.0",tool="read\"file",role="dev"} 1"#,
            r#"coretools_call_duration_seconds_bucket{le="+Inf",tool="read\"file",role="dev"} 2"#,
            r#"coretools_calls_not_run_total{decision="refused"} 1"#,
            r#"coretools_requests_turned_away_total{reason="no_token"} 1"#,
            r#"coretools_bytes_total{direction="out"} 5"#,
            r#"coretools_audit_rows_total{outcome="lost"} 8"#,
            r#"coretools_approvals_total{answer="allowed once"} 4"#,
            "coretools_approvals_waiting 3",
            r#"coretools_caller_calls_total{caller="ada",outcome="ok"} 1"#,
            r#"coretools_caller_calls_total{caller="ada",outcome="not_run"} 1"#,
            r#"coretools_token_expires_timestamp_seconds{token="ci"} 1900000000"#,
            r#"coretools_token_last_used_timestamp_seconds{token="ci"} 1800000000"#,
            r#"coretools_build_info{version="1.2.3"} 1"#,
            "# TYPE process_cpu_seconds counter",
            "# TYPE process_resident_memory_bytes gauge",
            "coretools_children 2",
            "coretools_draining 0",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
        }
    }

    #[test]
    fn however_many_callers_there_are_few_have_series_of_their_own() {
        let metrics = Metrics::default();
        for number in 0..2 * MAX_NAMED_CALLERS {
            let caller = Caller::new("dev").with_principal(format!("jwt:{number}"));
            metrics.record_call(&CallRecord::new(&caller, "read_file", CallDecision::Allowed, Outcome::Ok));
        }
        let mut text = String::new();
        text::encode_registry(&mut text, &metrics.registry).unwrap();
        assert_eq!(text.matches("coretools_caller_calls_total{").count(), MAX_NAMED_CALLERS + 1);
        let others =
            format!("coretools_caller_calls_total{{caller=\"(others)\",outcome=\"ok\"}} {MAX_NAMED_CALLERS}");
        assert!(text.contains(&others), "{text}");
    }
}
