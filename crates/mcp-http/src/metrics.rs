//! Figures for Prometheus, in its text format 0.0.4.

use core_tools::mcp::{Outcome, Record};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What is counted.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    calls: Mutex<BTreeMap<(String, String), Calls>>,
    refused: Mutex<BTreeMap<&'static str, u64>>,
    /// Requests that were turned away, by reason.
    turned_away: Mutex<BTreeMap<&'static str, u64>>,
    pub(crate) in_flight: AtomicI64,
    pub(crate) connections: AtomicI64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
}

#[derive(Debug, Default)]
struct Calls {
    ok: u64,
    failed: u64,
    buckets: [u64; BOUNDS.len()],
    seconds: f64,
}

/// Upper bounds in seconds: from what a file takes to what a build takes.
const BOUNDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 5.0, 30.0, 120.0, 600.0];

/// What is true now, and kept elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) sessions: usize,
    pub(crate) waiting: u64,
    /// Rows of the audit that its database has, and that were lost.
    pub(crate) archived: Option<(u64, u64)>,
    pub(crate) children: usize,
    pub(crate) draining: bool,
}

impl Metrics {
    /// A call has ended, or was not run.
    pub(crate) fn call(&self, record: &Record<'_>) {
        if record.outcome == Outcome::NotRun {
            *lock(&self.refused).entry(record.decision).or_default() += 1;
            return;
        }
        let mut calls = lock(&self.calls);
        let calls = calls.entry((record.tool.to_owned(), record.caller.role())).or_default();
        match record.outcome {
            Outcome::Ok => calls.ok += 1,
            _ => calls.failed += 1,
        }
        let seconds = record.duration.as_secs_f64();
        calls.seconds += seconds;
        if let Some(place) = BOUNDS.iter().position(|bound| seconds <= *bound)
            && let Some(bucket) = calls.buckets.get_mut(place)
        {
            *bucket += 1;
        }
    }

    /// A request was turned away before it was read.
    pub(crate) fn turned_away(&self, reason: &'static str) {
        *lock(&self.turned_away).entry(reason).or_default() += 1;
    }

    /// All of it, as text.
    pub(crate) fn render(&self, now: Now) -> String {
        let mut text = String::new();
        let head = |text: &mut String, name: &str, kind: &str, help: &str| {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        };
        let calls = lock(&self.calls);
        head(&mut text, "coretools_calls_total", "counter", "Calls that ran, by how they came out.");
        for ((tool, role), calls) in calls.iter() {
            for (outcome, number) in [("ok", calls.ok), ("failed", calls.failed)] {
                let _ = writeln!(
                    text,
                    "coretools_calls_total{{tool=\"{}\",role=\"{}\",outcome=\"{outcome}\"}} {number}",
                    label(tool),
                    label(role)
                );
            }
        }
        head(&mut text, "coretools_call_duration_seconds", "histogram", "From a call's arrival to its end.");
        for ((tool, role), calls) in calls.iter() {
            let labels = format!("tool=\"{}\",role=\"{}\"", label(tool), label(role));
            let mut sum = 0;
            for (bound, bucket) in BOUNDS.iter().zip(calls.buckets) {
                sum += bucket;
                let _ =
                    writeln!(text, "coretools_call_duration_seconds_bucket{{{labels},le=\"{bound}\"}} {sum}");
            }
            let all = calls.ok + calls.failed;
            let _ = writeln!(text, "coretools_call_duration_seconds_bucket{{{labels},le=\"+Inf\"}} {all}");
            let _ = writeln!(text, "coretools_call_duration_seconds_sum{{{labels}}} {}", calls.seconds);
            let _ = writeln!(text, "coretools_call_duration_seconds_count{{{labels}}} {all}");
        }
        drop(calls);
        head(
            &mut text,
            "coretools_calls_not_run_total",
            "counter",
            "Calls that were not run, by what was decided.",
        );
        for (decision, number) in lock(&self.refused).iter() {
            let _ = writeln!(text, "coretools_calls_not_run_total{{decision=\"{decision}\"}} {number}");
        }
        head(
            &mut text,
            "coretools_requests_turned_away_total",
            "counter",
            "Requests that were turned away, by reason.",
        );
        for (reason, number) in lock(&self.turned_away).iter() {
            let _ = writeln!(text, "coretools_requests_turned_away_total{{reason=\"{reason}\"}} {number}");
        }
        head(&mut text, "coretools_bytes_total", "counter", "Bytes of requests and answers.");
        for (direction, number) in [("in", &self.bytes_in), ("out", &self.bytes_out)] {
            let _ = writeln!(
                text,
                "coretools_bytes_total{{direction=\"{direction}\"}} {}",
                number.load(Ordering::Relaxed)
            );
        }
        if let Some((written, lost)) = now.archived {
            let help = "Records of the audit, by whether its database has them.";
            head(&mut text, "coretools_audit_rows_total", "counter", help);
            for (outcome, number) in [("written", written), ("lost", lost)] {
                let _ = writeln!(text, "coretools_audit_rows_total{{outcome=\"{outcome}\"}} {number}");
            }
        }
        let gauge = |counter: &AtomicI64| counter.load(Ordering::Relaxed).to_string();
        for (name, help, value) in [
            ("coretools_calls_in_flight", "Calls that are running.", gauge(&self.in_flight)),
            ("coretools_calls_waiting", "Calls that wait for a place.", now.waiting.to_string()),
            ("coretools_connections", "Connections that are open.", gauge(&self.connections)),
            ("coretools_sessions", "Sessions that are open.", now.sessions.to_string()),
            ("coretools_children", "Programs that are running.", now.children.to_string()),
            ("coretools_draining", "Whether the server is ending.", u8::from(now.draining).to_string()),
        ] {
            head(&mut text, name, "gauge", help);
            let _ = writeln!(text, "{name} {value}");
        }
        text
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use role_policy::Caller;
    use std::time::Duration;

    #[test]
    fn a_call_is_in_every_bucket_that_it_fits_into() {
        let (metrics, caller) = (Metrics::default(), Caller::new("dev"));
        for (duration, outcome) in [(3, Outcome::Ok), (700_000, Outcome::Failed), (0, Outcome::NotRun)] {
            metrics.call(&Record {
                caller: &caller,
                tool: "read\"file",
                decision: "refused",
                rule: "",
                outcome,
                duration: Duration::from_millis(duration),
                arguments: "",
                bytes_in: 0,
                bytes_out: 0,
            });
        }
        let text =
            metrics.render(Now { sessions: 1, waiting: 0, archived: None, children: 2, draining: false });
        for line in [
            r#"coretools_calls_total{tool="read\"file",role="dev",outcome="failed"} 1"#,
            r#"coretools_call_duration_seconds_bucket{tool="read\"file",role="dev",le="0.0025"} 0"#,
            r#"coretools_call_duration_seconds_bucket{tool="read\"file",role="dev",le="0.005"} 1"#,
            r#"coretools_call_duration_seconds_bucket{tool="read\"file",role="dev",le="600"} 1"#,
            r#"coretools_call_duration_seconds_bucket{tool="read\"file",role="dev",le="+Inf"} 2"#,
            r#"coretools_calls_not_run_total{decision="refused"} 1"#,
            "coretools_children 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
        }
    }
}
