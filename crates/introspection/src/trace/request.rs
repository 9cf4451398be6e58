//! [`CaptureTrace`], the arguments of a capture.

use super::error::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The kind of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(
    description = "What to measure: `cpu` for the time by function and line, `heap` for the memory by class or function, `network` for HTTP requests and connections.",
    inline
)]
#[non_exhaustive]
pub enum TraceType {
    /// CPU time by function.
    Cpu,
    /// Memory by constructor, class or function.
    Heap,
    /// HTTP requests and TCP connections.
    Network,
}

impl TraceType {
    /// Returns the name that requests and answers use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Heap => "heap",
            Self::Network => "network",
        }
    }
}

/// The arguments of `capture_trace`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CaptureTrace {
    /// How long to observe, in milliseconds. 3000 is enough for a process that is busy.
    #[schemars(range(min = 100, max = 30_000))]
    pub duration_ms: u64,
    #[allow(missing_docs, reason = "its name and values say it, and every conversation pays for words")]
    #[serde(rename = "type")]
    pub kind: TraceType,
    /// The process, if there are several: `pid:N`, `port:N` where it listens, `process:NAME` for its program or script, or
    /// the URL of its inspector. By default it is found.
    #[serde(default)]
    pub target: Option<String>,
    /// Returns the flame graph of a `cpu` profile as a picture too. False by default.
    #[serde(default)]
    pub image: bool,
    /// Makes a `heap` profile of everything in the heap, for which the application stands still, and not of samples.
    /// False by default.
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    pub snapshot: bool,
    /// Returns the profile itself too, in base64, where it has at most 64 KiB. False by default.
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    pub data: bool,
}

// The schema states the same range.
/// The shortest and the longest capture, in milliseconds.
const MIN_DURATION_MS: u64 = 100;
const MAX_DURATION_MS: u64 = 30_000;

impl CaptureTrace {
    /// Creates a request for a profile of `kind` over `duration_ms` milliseconds, with defaults for everything else.
    pub fn new(kind: TraceType, duration_ms: u64) -> Self {
        Self { duration_ms, kind, target: None, image: false, snapshot: false, data: false }
    }

    /// Sets the process: `pid:N`, `port:N`, `process:NAME`, or `server` for the process that captures.
    #[must_use]
    pub fn target(mut self, target: impl Into<String>) -> Self {
        self.target = Some(target.into());
        self
    }

    /// Has the flame graph of CPU time answered as a picture too.
    #[must_use]
    pub fn image(mut self, image: bool) -> Self {
        self.image = image;
        self
    }

    /// Has everything in the heap recorded, for which the application stands still.
    #[must_use]
    pub fn snapshot(mut self, snapshot: bool) -> Self {
        self.snapshot = snapshot;
        self
    }

    /// Has a small profile answered itself too, in base64.
    #[must_use]
    pub fn data(mut self, data: bool) -> Self {
        self.data = data;
        self
    }

    /// Returns the duration, if it is within the limits.
    pub(super) fn duration(&self) -> Result<Duration, Error> {
        if !(MIN_DURATION_MS..=MAX_DURATION_MS).contains(&self.duration_ms) {
            let reason = format!("{} is not in {MIN_DURATION_MS} to {MAX_DURATION_MS}", self.duration_ms);
            return Err(Error::Argument { parameter: "duration_ms", reason });
        }
        Ok(Duration::from_millis(self.duration_ms))
    }
}
