//! The arguments of `inspect_state`.

use schemars::JsonSchema;
use serde::Deserialize;

/// The arguments of `inspect_state`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct InspectState {
    /// `a.b[0]`, `local:FILE/name`
    pub path: String,
    /// Levels
    #[schemars(range(min = 1, max = 10), extend("default" = 3))]
    #[serde(default)]
    pub depth: Option<u32>,
    /// pid:, port:, process:, URL, file:
    #[serde(default)]
    pub target: Option<String>,
}

impl InspectState {
    /// Creates a request for the value under `path`, with defaults for everything else.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), ..Self::default() }
    }

    /// Sets the number of levels that are answered.
    #[must_use]
    pub fn depth(mut self, depth: u32) -> Self {
        self.depth = Some(depth);
        self
    }

    /// Sets the process or address to ask: `pid:N`, `port:N`, `process:NAME`, a URL or `file:`.
    #[must_use]
    pub fn target(mut self, target: impl Into<String>) -> Self {
        self.target = Some(target.into());
        self
    }
}
