//! The scenarios that are measured.

mod bare;
mod hostile;
mod quiet;

use crate::client::MeasureError;
use crate::fixture::{BenchmarkFolder, FixturePart};
use crate::peers::{PeerJob, PeerServer, Placeholders, ToolCall, fill};
use crate::{BenchmarkError, processes};
use serde_json::{Value, json};
use std::time::Duration;

/// A figure of a scenario.
#[derive(Debug)]
pub(crate) struct ScenarioMetric {
    pub(crate) id: &'static str,
    /// The head of its column.
    pub(crate) title: &'static str,
    pub(crate) unit: MetricUnit,
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricUnit {
    Millis,
    Seconds,
    /// 10^6 bytes.
    Megabytes,
    Bytes,
    /// A second; the only one of which more is better.
    Rate,
    Count,
}

/// Something that servers are asked to do.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// The job that a server must be able to do; `None` if every server can take part.
    pub(crate) job: Option<PeerJob>,
    /// Measured in the first round only, where it takes long and says the same each time.
    pub(crate) once: bool,
    pub(crate) metrics: &'static [ScenarioMetric],
    parts: &'static [FixturePart],
    kind: ScenarioKind,
}

/// How it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScenarioKind {
    Start,
    /// One call after the other; the answer must hold a text so many times.
    Calls(&'static str, usize),
    /// With 32 in flight.
    Rate(&'static str),
    Flood,
    Endless,
    Background,
    Endings,
}

const fn metric(id: &'static str, title: &'static str, unit: MetricUnit) -> ScenarioMetric {
    ScenarioMetric { id, title, unit }
}

const LATENCY: &[ScenarioMetric] = &[
    metric("p50", "p50", MetricUnit::Millis),
    metric("p99", "p99", MetricUnit::Millis),
    metric("bytes", "answer", MetricUnit::Bytes),
];

const RATE: &[ScenarioMetric] = &[metric("rate", "calls/s", MetricUnit::Rate)];

const fn calls(
    id: &'static str,
    title: &'static str,
    job: PeerJob,
    parts: &'static [FixturePart],
    holds: (&'static str, usize),
) -> Scenario {
    let kind = ScenarioKind::Calls(holds.0, holds.1);
    Scenario { id, title, job: Some(job), once: false, metrics: LATENCY, parts, kind }
}

/// All there are, in the order in which a round takes them.
pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        id: "start",
        title: "start, from the process to the answered tools/list",
        job: None,
        once: false,
        metrics: &[
            metric("ready", "start", MetricUnit::Millis),
            metric("cold", "cold start", MetricUnit::Millis),
            metric("pss", "idle, PSS", MetricUnit::Megabytes),
            metric("rss", "idle, RSS", MetricUnit::Megabytes),
            metric("tools", "tools", MetricUnit::Count),
            metric("list", "tools/list", MetricUnit::Bytes),
            metric("exit", "end", MetricUnit::Millis),
        ],
        parts: &[],
        kind: ScenarioKind::Start,
    },
    calls("read", "read of 1 KB", PeerJob::Read, &[FixturePart::File], ("0123456789abcde", 34)),
    Scenario {
        id: "read_32",
        title: "read of 1 KB, 32 in flight",
        job: Some(PeerJob::Read),
        once: false,
        metrics: RATE,
        parts: &[FixturePart::File],
        kind: ScenarioKind::Rate("0123456789abcde"),
    },
    calls("list", "list of 10,000 entries", PeerJob::List, &[FixturePart::Folder], ("file_", 10_000)),
    calls("find", "find by name in 50,000 files", PeerJob::Find, &[FixturePart::Tree], ("file_077.rs", 500)),
    calls("search", "content search in 50,000 files", PeerJob::Search, &[FixturePart::Tree], ("TODO", 500)),
    calls("git", "git status, 300 files", PeerJob::Git, &[FixturePart::Project], ("file_050.rs", 1)),
    calls(
        "git_large",
        "git status, 50,000 files",
        PeerJob::Git,
        &[FixturePart::LargeRepository],
        ("file_050.rs", 1),
    ),
    calls("echo", "`echo` by a command tool", PeerJob::Command, &[], ("hello", 1)),
    Scenario {
        id: "echo_32",
        title: "`echo`, 32 in flight",
        job: Some(PeerJob::Command),
        once: false,
        metrics: RATE,
        parts: &[],
        kind: ScenarioKind::Rate("hello"),
    },
    calls("context", "context of a role", PeerJob::Context, &[FixturePart::Project], ("CONVENTIONS", 1)),
    calls("tests", "5,000 tests of pytest", PeerJob::Tests, &[FixturePart::Tests], ("5000", 1)),
    Scenario {
        id: "flood",
        title: "1 GiB of output",
        job: Some(PeerJob::Command),
        once: false,
        metrics: &[
            metric("answered", "answered", MetricUnit::Seconds),
            metric("growth", "memory grows by", MetricUnit::Megabytes),
            metric("ping", "worst ping meanwhile", MetricUnit::Millis),
        ],
        parts: &[FixturePart::Flood],
        kind: ScenarioKind::Flood,
    },
    Scenario {
        id: "endless",
        title: "a command without end, with a limit of 2 s",
        job: Some(PeerJob::Command),
        once: true,
        metrics: &[
            metric("answered", "answered", MetricUnit::Seconds),
            metric("left", "processes left then", MetricUnit::Count),
        ],
        parts: &[],
        kind: ScenarioKind::Endless,
    },
    Scenario {
        id: "background",
        title: "a command that leaves a child in the background, which holds its output open",
        job: Some(PeerJob::Command),
        once: true,
        metrics: &[
            metric("answered", "answered", MetricUnit::Seconds),
            metric("left", "processes left then", MetricUnit::Count),
            metric("left_exit", "left when the server is gone", MetricUnit::Count),
        ],
        parts: &[],
        kind: ScenarioKind::Background,
    },
    Scenario {
        id: "endings",
        title: "processes of a running command that are left 5 s after",
        job: Some(PeerJob::Command),
        once: true,
        metrics: &[
            metric("cancel", "cancellation", MetricUnit::Count),
            metric("input", "end of input, or client gone", MetricUnit::Count),
            metric("term", "SIGTERM", MetricUnit::Count),
            metric("kill", "SIGKILL", MetricUnit::Count),
        ],
        parts: &[],
        kind: ScenarioKind::Endings,
    },
];

/// The figures of a round by metric, and its problem.
#[derive(Debug, Default)]
pub(crate) struct RoundFigures {
    pub(crate) figures: Vec<(&'static str, f64)>,
    pub(crate) problem: Option<MeasureError>,
    /// Processes that were left after quiet work.
    pub(crate) left: usize,
}

impl From<MeasureError> for RoundFigures {
    fn from(problem: MeasureError) -> Self {
        Self { problem: Some(problem), ..Self::default() }
    }
}

/// The folder, and how long things may take.
#[derive(Debug)]
pub(crate) struct BenchmarkContext {
    pub(crate) fixture: BenchmarkFolder,
    /// How long calls are repeated.
    pub(crate) span: Duration,
    /// How long a server may take for one answer.
    pub(crate) patience: Duration,
}

impl Scenario {
    /// Makes what it needs of the folder.
    pub(crate) fn prepare(&self, bench: &BenchmarkContext) -> Result<(), BenchmarkError> {
        self.parts.iter().try_for_each(|part| bench.fixture.path(*part).map(drop))
    }

    /// Measures a server once.
    pub(crate) fn measure(&self, bench: &BenchmarkContext, peer: &PeerServer) -> RoundFigures {
        let found = match self.kind {
            ScenarioKind::Start => quiet::start(bench, peer),
            ScenarioKind::Calls(text, times) => quiet::calls(bench, peer, self, (text, times)),
            ScenarioKind::Rate(text) => quiet::rate(bench, peer, self, text),
            ScenarioKind::Flood => hostile::flood(bench, peer),
            ScenarioKind::Endless => hostile::endless(bench, peer),
            ScenarioKind::Background => hostile::background(bench, peer),
            ScenarioKind::Endings => hostile::endings(bench, peer),
        };
        // A problem after which the server was dropped: nothing of it may reach the next measurement.
        processes::end(&processes::descendants(std::process::id()));
        found.unwrap_or_else(RoundFigures::from)
    }

    /// Measures the program that does the same by itself. None where there is none.
    pub(crate) fn measure_bare(&self, bench: &BenchmarkContext) -> Option<RoundFigures> {
        bare::measure(bench, self)
    }

    /// The parameters of `tools/call` for a server.
    fn call(&self, bench: &BenchmarkContext, call: &ToolCall) -> Result<Value, MeasureError> {
        let mut values = Placeholders::from([
            ("name", json!("file_077.rs")),
            ("text", json!("TODO")),
            ("command", json!("echo hello")),
            ("argv", json!(["echo", "hello"])),
        ]);
        for part in self.parts {
            let path =
                bench.fixture.path(*part).map_err(|failure| MeasureError::Start(failure.to_string()))?;
            let name = match part {
                FixturePart::File => "file",
                FixturePart::Folder => "folder",
                FixturePart::Tree => "tree",
                FixturePart::LargeRepository | FixturePart::Project if self.job == Some(PeerJob::Git) => {
                    "repository"
                }
                FixturePart::LargeRepository | FixturePart::Project | FixturePart::Tests => "project",
                FixturePart::Flood => continue,
            };
            values.insert(name, json!(path));
        }
        Ok(params(call, &values))
    }
}

fn params(call: &ToolCall, values: &Placeholders) -> Value {
    json!({"name": call.tool, "arguments": fill(&call.arguments, values)})
}
