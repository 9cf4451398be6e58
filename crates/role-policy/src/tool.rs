//! What a policy knows of a tool and of one call of it.

use serde_json::{Map, Value};

/// The toolset of tools of other servers.
const EXTERNAL: &str = "external";

/// What a policy knows of a tool beside its name. Whoever registers a tool vouches for these; what another
/// server says of its own tools is no fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolFacts<'a> {
    /// The canonical name. Aliases are resolved before a policy is asked.
    pub name: &'a str,
    /// The toolset it belongs to.
    pub toolset: &'a str,
    /// It changes nothing.
    pub read_only: bool,
    /// It may overwrite or remove what was there.
    pub destructive: bool,
    /// It reaches beyond this machine, or runs programs that may.
    pub open_world: bool,
    /// What its arguments reach. An argument that is not named here reaches nothing.
    pub effects: &'a [Effect],
}

impl<'a> ToolFacts<'a> {
    /// A tool of another server, in the toolset `external`: nothing that it says of itself is believed.
    pub fn external(name: &'a str) -> Self {
        Self { name, toolset: EXTERNAL, read_only: false, destructive: true, open_world: true, effects: &[] }
    }

    /// Nobody here vouches for it, so that what its arguments reach is not known.
    pub(crate) fn is_external(&self) -> bool {
        self.toolset == EXTERNAL
    }
}

/// What one argument of a tool reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// The argument is a path, or an array of paths, that is read; of a folder, whatever in it may be read. Left
    /// out, it is the primary root.
    Reads(&'static str),
    /// The argument is a path, or an array of paths, that is written. Left out, it is the primary root.
    Writes(&'static str),
    /// The argument is a path whose name is made, replaced or removed: what a link leads to stays, the link
    /// itself is what changes.
    Replaces(&'static str),
    /// The argument is a path that goes elsewhere with all that it holds, which can then be read there. Of a
    /// link the link itself.
    Moves(&'static str),
    /// The argument is a command: an array of program and arguments, or one line.
    Runs {
        /// The argument that holds the command.
        command: &'static str,
        /// The argument that holds environment variables, by name. Empty if there is none.
        environment: &'static str,
    },
    /// The argument says what is done with a database: `query`, `schema` and `explain` read, all else writes.
    Sql(&'static str),
    /// The argument names a role to act as, or to start another agent as.
    Role(&'static str),
}

/// One call, as it is judged and as it is run: the canonical tool name and the normalised arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    tool: String,
    arguments: Map<String, Value>,
}

impl Call {
    /// A call of `tool` with `arguments`. Both must be in their canonical form already: what is judged
    /// here is what runs.
    pub fn new(tool: impl Into<String>, arguments: Map<String, Value>) -> Self {
        Self { tool: tool.into(), arguments }
    }

    /// The canonical tool name.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The normalised arguments.
    pub fn arguments(&self) -> &Map<String, Value> {
        &self.arguments
    }

    pub(crate) fn into_arguments(self) -> Map<String, Value> {
        self.arguments
    }
}
