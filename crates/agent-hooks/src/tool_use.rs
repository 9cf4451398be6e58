//! [`ToolUse`]: what a client's own tool would do, in terms of our tools.

use role_policy::Access;
use serde_json::{Map, Value};

/// The use of a native tool, in terms of our tools.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ToolUse {
    /// A line of a shell: `run_command`.
    Line {
        /// The line.
        line: String,
        /// The folder that it runs in, if the tool names one.
        folder: Option<String>,
    },
    /// A command in words: `run_command`.
    Words {
        /// The program and its arguments.
        words: Vec<String>,
        /// The folder that it runs in, if the tool names one.
        folder: Option<String>,
    },
    /// Files that are read, listed or written.
    Files(Vec<FileUse>),
    /// A patch in the form of `apply_patch`.
    Patch(String),
    /// The web: `web_fetch` or `web_search`, which are tools of an open world and none of ours.
    Web(&'static str),
    /// Another agent: `run_agent_command`.
    Agent,
    /// A tool of an MCP server.
    Server {
        /// The name of the server in the client.
        server: String,
        /// The tool.
        tool: String,
    },
    /// The client's own bookkeeping, such as a list of tasks.
    Internal,
    /// Nothing that is known here.
    Unknown,
}

/// One file that a tool uses, and the call of ours that does the same.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FileUse {
    /// Our tool.
    pub tool: &'static str,
    /// The access.
    pub access: Access,
    /// The path, as the client gives it.
    pub path: String,
    /// The other arguments of our tool.
    pub arguments: Map<String, Value>,
}

impl FileUse {
    /// Creates the use of a file by one of our tools, without other arguments.
    pub fn new(tool: &'static str, access: Access, path: impl Into<String>) -> Self {
        Self { tool, access, path: path.into(), arguments: Map::new() }
    }

    pub(crate) fn with(mut self, name: &str, value: Value) -> Self {
        self.arguments.insert(name.to_owned(), value);
        self
    }
}
