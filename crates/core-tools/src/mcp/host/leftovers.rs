//! The processes that the commands of a call have left running: who takes them over, and how the answer names them.

use super::tools::ToolTable;
use crate::mcp::answer::{Answer, ToolError};
use process_runner::{LeftoverTree, RunOwner};
use std::fmt;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The caller of one call, for whom its programs run.
pub(super) struct CallRunOwner {
    principal: String,
    /// Weak, since the runner keeps the owner of every run, and a tool may keep a run.
    tools: Weak<ToolTable>,
    left_running: Mutex<Vec<LeftoverTree>>,
}

impl CallRunOwner {
    pub(super) fn new(principal: &str, tools: &Arc<ToolTable>) -> Self {
        Self { principal: principal.to_owned(), tools: Arc::downgrade(tools), left_running: Mutex::default() }
    }

    /// Adds to the result of the call what its commands have left running, unless it names that itself.
    pub(super) fn name_leftovers(&self, result: Result<Answer, ToolError>) -> Result<Answer, ToolError> {
        let trees = std::mem::take(&mut *self.left_running.lock().unwrap_or_else(PoisonError::into_inner));
        if trees.is_empty() {
            return result;
        }
        let named = match &result {
            Ok(answer) => answer.to_text(),
            Err(error) => error.message().to_owned(),
        };
        let mut note = String::new();
        for process in trees.iter().flat_map(LeftoverTree::processes) {
            let pid = format!("pid {}", process.pid);
            if named.contains(&format!("({pid})")) {
                continue;
            }
            let separator = if note.is_empty() { "left running: " } else { ", " };
            let command = process.command_line.as_deref().unwrap_or(&process.name);
            let _ = write!(note, "{separator}`{command}` ({pid})");
        }
        if note.is_empty() {
            return result;
        }
        note.push_str("; list_commands lists it and stop_command ends it");
        match result {
            Ok(answer) => Ok(answer.then(note)),
            Err(error) => Err(ToolError::new(format!("{}; {note}", error.message()))),
        }
    }
}

impl RunOwner for CallRunOwner {
    fn name(&self) -> &str {
        &self.principal
    }

    fn take_leftovers(&self, tree: LeftoverTree) {
        match self.tools.upgrade() {
            Some(tools) => tools.take_leftovers(&self.principal, &tree),
            // The tools are gone, and with them everything that could name or end it for its caller.
            None => tree.kill(),
        }
        self.left_running.lock().unwrap_or_else(PoisonError::into_inner).push(tree);
    }
}

impl fmt::Debug for CallRunOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallRunOwner").field("principal", &self.principal).finish_non_exhaustive()
    }
}
