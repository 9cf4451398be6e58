//! What is asked for.

use super::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a profile is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(description = "Of what", inline)]
pub enum TraceType {
    /// Where time goes.
    Cpu,
    /// What takes memory.
    Heap,
    /// Whom it talks to.
    Network,
}

impl TraceType {
    /// As answers name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Heap => "heap",
            Self::Network => "network",
        }
    }
}

/// What `capture_trace` takes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaptureTrace {
    /// Time
    #[schemars(range(min = 100, max = 30_000))]
    pub duration_ms: u64,
    #[allow(missing_docs, reason = "its name and values say it, and every conversation pays for words")]
    #[serde(rename = "type")]
    pub kind: TraceType,
    /// pid:N, port:N, server
    #[serde(default)]
    pub target: Option<String>,
    /// Answer the flame graph of a `cpu` profile as a picture too.
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    pub image: bool,
    /// Of `heap`: everything that is in the heap, for which the application stands still.
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    pub snapshot: bool,
    /// Answer the profile itself too, in base64, where it has at most 64 KiB.
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    pub data: bool,
}

const SHORTEST: u64 = 100;
const LONGEST: u64 = 30_000;

impl CaptureTrace {
    /// A capture of `kind` for so long, with nothing else said.
    pub fn new(kind: TraceType, duration_ms: u64) -> Self {
        Self { duration_ms, kind, target: None, image: false, snapshot: false, data: false }
    }

    pub(super) fn duration(&self) -> Result<Duration, Error> {
        if !(SHORTEST..=LONGEST).contains(&self.duration_ms) {
            let reason = format!("{} is not in {SHORTEST} to {LONGEST}", self.duration_ms);
            return Err(Error::Argument { parameter: "duration_ms", reason });
        }
        Ok(Duration::from_millis(self.duration_ms))
    }
}
