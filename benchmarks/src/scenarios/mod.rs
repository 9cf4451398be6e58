//! The scenarios that are measured.

mod bare;
mod hostile;
mod quiet;

use crate::client::Problem;
use crate::fixture::{Fixture, Part};
use crate::peers::{Call, Job, Peer, Values, fill};
use crate::{Failure, processes};
use serde_json::{Value, json};
use std::time::Duration;

/// A figure of a scenario.
#[derive(Debug)]
pub(crate) struct Metric {
    pub(crate) id: &'static str,
    /// The head of its column.
    pub(crate) title: &'static str,
    pub(crate) unit: Unit,
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
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
    pub(crate) job: Option<Job>,
    /// Measured in the first round only, where it takes long and says the same each time.
    pub(crate) once: bool,
    pub(crate) metrics: &'static [Metric],
    parts: &'static [Part],
    kind: Kind,
}

/// How it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
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

const fn metric(id: &'static str, title: &'static str, unit: Unit) -> Metric {
    Metric { id, title, unit }
}

const LATENCY: &[Metric] = &[
    metric("p50", "p50", Unit::Millis),
    metric("p99", "p99", Unit::Millis),
    metric("bytes", "answer", Unit::Bytes),
];

const RATE: &[Metric] = &[metric("rate", "calls/s", Unit::Rate)];

const fn calls(
    id: &'static str,
    title: &'static str,
    job: Job,
    parts: &'static [Part],
    holds: (&'static str, usize),
) -> Scenario {
    let kind = Kind::Calls(holds.0, holds.1);
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
            metric("ready", "start", Unit::Millis),
            metric("cold", "cold start", Unit::Millis),
            metric("pss", "idle, PSS", Unit::Megabytes),
            metric("rss", "idle, RSS", Unit::Megabytes),
            metric("tools", "tools", Unit::Count),
            metric("list", "tools/list", Unit::Bytes),
            metric("exit", "end", Unit::Millis),
        ],
        parts: &[],
        kind: Kind::Start,
    },
    calls("read", "read of 1 KB", Job::Read, &[Part::File], ("0123456789abcde", 34)),
    Scenario {
        id: "read_32",
        title: "read of 1 KB, 32 in flight",
        job: Some(Job::Read),
        once: false,
        metrics: RATE,
        parts: &[Part::File],
        kind: Kind::Rate("0123456789abcde"),
    },
    calls("list", "list of 10,000 entries", Job::List, &[Part::Folder], ("file_", 10_000)),
    calls("find", "find by name in 50,000 files", Job::Find, &[Part::Tree], ("file_077.rs", 500)),
    calls("search", "content search in 50,000 files", Job::Search, &[Part::Tree], ("TODO", 500)),
    calls("git", "git status, 300 files", Job::Git, &[Part::Project], ("file_050.rs", 1)),
    calls("git_large", "git status, 50,000 files", Job::Git, &[Part::LargeRepository], ("file_050.rs", 1)),
    calls("echo", "`echo` by a command tool", Job::Command, &[], ("hello", 1)),
    Scenario {
        id: "echo_32",
        title: "`echo`, 32 in flight",
        job: Some(Job::Command),
        once: false,
        metrics: RATE,
        parts: &[],
        kind: Kind::Rate("hello"),
    },
    calls("context", "context of a role", Job::Context, &[Part::Project], ("CONVENTIONS", 1)),
    calls("tests", "5,000 tests of pytest", Job::Tests, &[Part::Tests], ("5000", 1)),
    Scenario {
        id: "flood",
        title: "1 GiB of output",
        job: Some(Job::Command),
        once: false,
        metrics: &[
            metric("answered", "answered", Unit::Seconds),
            metric("growth", "memory grows by", Unit::Megabytes),
            metric("ping", "worst ping meanwhile", Unit::Millis),
        ],
        parts: &[Part::Flood],
        kind: Kind::Flood,
    },
    Scenario {
        id: "endless",
        title: "a command without end, with a limit of 2 s",
        job: Some(Job::Command),
        once: true,
        metrics: &[
            metric("answered", "answered", Unit::Seconds),
            metric("left", "processes left then", Unit::Count),
        ],
        parts: &[],
        kind: Kind::Endless,
    },
    Scenario {
        id: "background",
        title: "a command that leaves a child in the background, which holds its output open",
        job: Some(Job::Command),
        once: true,
        metrics: &[
            metric("answered", "answered", Unit::Seconds),
            metric("left", "processes left then", Unit::Count),
            metric("left_exit", "left when the server is gone", Unit::Count),
        ],
        parts: &[],
        kind: Kind::Background,
    },
    Scenario {
        id: "endings",
        title: "processes of a running command that are left 5 s after",
        job: Some(Job::Command),
        once: true,
        metrics: &[
            metric("cancel", "cancellation", Unit::Count),
            metric("input", "end of input, or client gone", Unit::Count),
            metric("term", "SIGTERM", Unit::Count),
            metric("kill", "SIGKILL", Unit::Count),
        ],
        parts: &[],
        kind: Kind::Endings,
    },
];

/// The figures of a round by metric, and its problem.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) figures: Vec<(&'static str, f64)>,
    pub(crate) problem: Option<Problem>,
    /// Processes that were left after quiet work.
    pub(crate) left: usize,
}

impl From<Problem> for Found {
    fn from(problem: Problem) -> Self {
        Self { problem: Some(problem), ..Self::default() }
    }
}

/// The folder, and how long things may take.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) fixture: Fixture,
    /// How long calls are repeated.
    pub(crate) span: Duration,
    /// How long a server may take for one answer.
    pub(crate) patience: Duration,
}

impl Scenario {
    /// Makes what it needs of the folder.
    pub(crate) fn prepare(&self, bench: &Bench) -> Result<(), Failure> {
        self.parts.iter().try_for_each(|part| bench.fixture.path(*part).map(drop))
    }

    /// Measures a server once.
    pub(crate) fn measure(&self, bench: &Bench, peer: &Peer) -> Found {
        let found = match self.kind {
            Kind::Start => quiet::start(bench, peer),
            Kind::Calls(text, times) => quiet::calls(bench, peer, self, (text, times)),
            Kind::Rate(text) => quiet::rate(bench, peer, self, text),
            Kind::Flood => hostile::flood(bench, peer),
            Kind::Endless => hostile::endless(bench, peer),
            Kind::Background => hostile::background(bench, peer),
            Kind::Endings => hostile::endings(bench, peer),
        };
        // A problem after which the server was dropped: nothing of it may reach the next measurement.
        processes::end(&processes::descendants(std::process::id()));
        found.unwrap_or_else(Found::from)
    }

    /// Measures the program that does the same by itself. None where there is none.
    pub(crate) fn measure_bare(&self, bench: &Bench) -> Option<Found> {
        bare::measure(bench, self)
    }

    /// The parameters of `tools/call` for a server.
    fn call(&self, bench: &Bench, call: &Call) -> Result<Value, Problem> {
        let mut values = Values::from([
            ("name", json!("file_077.rs")),
            ("text", json!("TODO")),
            ("command", json!("echo hello")),
            ("argv", json!(["echo", "hello"])),
        ]);
        for part in self.parts {
            let path = bench.fixture.path(*part).map_err(|failure| Problem::Start(failure.to_string()))?;
            let name = match part {
                Part::File => "file",
                Part::Folder => "folder",
                Part::Tree => "tree",
                Part::LargeRepository | Part::Project if self.job == Some(Job::Git) => "repository",
                Part::LargeRepository | Part::Project | Part::Tests => "project",
                Part::Flood => continue,
            };
            values.insert(name, json!(path));
        }
        Ok(params(call, &values))
    }
}

fn params(call: &Call, values: &Values) -> Value {
    json!({"name": call.tool, "arguments": fill(&call.arguments, values)})
}
