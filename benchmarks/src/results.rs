//! The results of a run: `peers.json`.

use crate::stats;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct RunResults {
    /// The day, UTC.
    pub(crate) date: String,
    /// The machine that it ran on.
    pub(crate) machine: MachineInfo,
    /// How often each scenario was measured with each server.
    pub(crate) rounds: usize,
    /// How long all of it took, in seconds.
    pub(crate) took_s: u64,
    /// Those that were asked for, in the order of the tables.
    pub(crate) servers: Vec<MeasuredServer>,
    /// One for each scenario and server.
    pub(crate) cells: Vec<ScenarioResult>,
    /// The programs of this workspace, in bytes.
    pub(crate) binaries: BTreeMap<String, u64>,
}

/// A machine, and what ran on it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct MachineInfo {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) memory_gb: u64,
    pub(crate) system: String,
    /// Load averages before and after.
    pub(crate) load: [String; 2],
    /// Programs and what they say of their version.
    pub(crate) versions: BTreeMap<String, String>,
}

/// A server.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct MeasuredServer {
    pub(crate) name: String,
    pub(crate) version: String,
    /// `stdio` or `HTTP`.
    pub(crate) transport: String,
    pub(crate) note: String,
    /// Processes that it left after quiet work, over all rounds; those of hostile work are figures.
    pub(crate) left: usize,
}

/// The figures of one scenario with one server.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct ScenarioResult {
    pub(crate) scenario: String,
    pub(crate) server: String,
    /// By metric, one value a round.
    pub(crate) figures: BTreeMap<String, Vec<f64>>,
    /// It has no tool for that.
    #[serde(default)]
    pub(crate) lacks: bool,
    /// The first problem.
    #[serde(default)]
    pub(crate) problem: Option<String>,
}

impl ScenarioResult {
    /// Returns true if the server did not answer.
    pub(crate) fn silent(&self) -> bool {
        self.problem.as_ref().is_some_and(|problem| problem.starts_with("no answer"))
    }
}

/// The name of the row of bare programs.
pub(crate) const BARE: &str = "no server";

impl RunResults {
    pub(crate) fn cell(&self, scenario: &str, server: &str) -> Option<&ScenarioResult> {
        self.cells.iter().find(|cell| cell.scenario == scenario && cell.server == server)
    }

    /// The median of the rounds.
    pub(crate) fn median(&self, scenario: &str, server: &str, metric: &str) -> Option<f64> {
        stats::median(self.cell(scenario, server)?.figures.get(metric)?)
    }
}
