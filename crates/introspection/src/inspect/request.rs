//! The arguments of `inspect_state`.

use schemars::JsonSchema;
use serde::Deserialize;

/// The arguments of `inspect_state`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct InspectState {
    /// The value to read: names with dots, list places and quoted keys, such as `shop.carts[42].items[0]` or
    /// `a["any key"]`, also for the keys of a Map. `local:FILE/NAME` is a variable that a module does not export, such as
    /// `local:cart.js/total`. An empty text is everything that can be reached by name.
    #[schemars(extend("alias" = ["expression", "expr", "variable"]))]
    pub path: String,
    /// The levels below the value that are shown; what lies deeper is counted. 3 by default.
    #[schemars(range(min = 1, max = 10), extend("default" = 3))]
    #[serde(default)]
    pub depth: Option<u32>,
    /// The process, if there are several: `pid:N`, `port:N` where it or its inspector listens, `process:NAME` for its program
    /// or script, the URL of its inspector, or `file:PATH` for a JSON file that it writes. By default it is found.
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
