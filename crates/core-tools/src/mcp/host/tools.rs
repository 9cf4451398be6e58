//! The tools of a host, by name.

use super::error::HostError;
use crate::mcp::answer::AnswerFormat;
use crate::mcp::selection::ToolSelection;
use crate::mcp::tool::Tool;
use crate::mcp::toolset::Toolset;
use role_policy::{EffectResolver, ToolFacts};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The tools over one workspace, and what resolves the paths in their arguments.
pub(super) struct ToolTable {
    tools: Vec<RegisteredTool>,
    /// Canonical names and aliases, to indices in `tools`.
    names: HashMap<&'static str, usize>,
    pub(super) effects: Arc<dyn EffectResolver + Send + Sync>,
}

/// A tool of a host.
#[derive(Debug)]
pub(super) struct RegisteredTool {
    pub(super) tool: Tool,
    pub(super) toolset: &'static str,
    /// Its entry in the list that a client gets. Built once, since building it clones the whole schema.
    pub(super) listed: rmcp::model::Tool,
}

impl RegisteredTool {
    pub(super) fn facts(&self) -> ToolFacts<'static> {
        self.tool.facts(self.toolset)
    }
}

impl ToolTable {
    /// Registers those tools of `toolsets` that are selected.
    pub(super) fn new(
        selection: &ToolSelection,
        toolsets: Vec<Toolset>,
        effects: Arc<dyn EffectResolver + Send + Sync>,
        format: AnswerFormat,
    ) -> Result<Self, HostError> {
        let selected = selection.resolve(&toolsets)?;
        let mut tools = Vec::new();
        let mut names = HashMap::new();
        for toolset in toolsets {
            for tool in toolset.tools {
                if !selected.contains(tool.name()) {
                    continue;
                }
                // An alias counts as a name: a tool of the user must not take over calls of another by its former name.
                for name in std::iter::once(tool.name()).chain(tool.alias_names().iter().copied()) {
                    if names.insert(name, tools.len()).is_some() {
                        return Err(HostError::DuplicateName(name.to_owned()));
                    }
                }
                let listed = tool.listed(format);
                tools.push(RegisteredTool { tool, toolset: toolset.name, listed });
            }
        }
        Ok(Self { tools, names, effects })
    }

    /// Returns the tool with this name or alias.
    pub(super) fn get(&self, name: &str) -> Option<&RegisteredTool> {
        self.names.get(name).and_then(|index| self.tools.get(*index))
    }

    /// Iterates over all tools, in the order of the list.
    pub(super) fn iter(&self) -> impl Iterator<Item = &RegisteredTool> {
        self.tools.iter()
    }
}

impl fmt::Debug for ToolTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolTable").field("tools", &self.tools).finish_non_exhaustive()
    }
}
