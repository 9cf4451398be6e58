//! The tools that one caller may call, for a tool that searches among them.

use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// One tool that the caller may call.
pub(crate) struct DirectoryEntry<'a> {
    /// Its toolset.
    pub(crate) toolset: &'static str,
    /// Its definition, with all its parameters.
    pub(crate) definition: &'a rmcp::model::Tool,
    /// The parameters of it that a list leaves out.
    pub(crate) rarely_needed: Map<String, Value>,
    /// True if the list has it.
    pub(crate) is_listed: bool,
}

type Visit = dyn Fn(&mut dyn FnMut(DirectoryEntry<'_>)) + Send + Sync;

/// The tools that the caller of one call may call. What its role hides is not among them.
#[derive(Clone)]
pub(crate) struct ToolDirectory(Arc<Visit>);

impl ToolDirectory {
    /// A directory of what `visit` calls its argument with, in the order of the list.
    pub(crate) fn new(visit: impl Fn(&mut dyn FnMut(DirectoryEntry<'_>)) + Send + Sync + 'static) -> Self {
        Self(Arc::new(visit))
    }

    /// Calls `visit` with each tool, in the order of the list.
    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(DirectoryEntry<'_>)) {
        (self.0)(visit);
    }
}

impl fmt::Debug for ToolDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToolDirectory")
    }
}
