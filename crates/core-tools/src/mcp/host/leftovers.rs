//! The processes that the commands of a call have left running: who takes them over, and how the answer names them.

use super::tools::ToolTable;
use crate::mcp::answer::Answer;
use crate::mcp::permits::{NoPermit, ProcessPermits};
use crate::mcp::tool_error::ToolError;
use process_runner::{LeftoverDecision, LeftoverProcess, LeftoverTree, RunOwner};
use std::fmt;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The caller of one call, for whom its programs run.
pub(super) struct CallRunOwner {
    principal: String,
    tool: &'static str,
    /// Weak, since the runner keeps the owner of every run, and a tool may keep a run.
    tools: Weak<ToolTable>,
    /// The permits for programs that go on after their call, where the caller may run so many.
    process_permits: Option<ProcessPermits>,
    left_running: Mutex<Vec<LeftoverTree>>,
    /// The processes that were ended because the caller may leave no more running, and the reason.
    ended: Mutex<Vec<(LeftoverProcess, String)>>,
}

impl CallRunOwner {
    pub(super) fn new(
        principal: &str,
        tool: &'static str,
        tools: &Arc<ToolTable>,
        process_permits: Option<ProcessPermits>,
    ) -> Self {
        Self {
            principal: principal.to_owned(),
            tool,
            tools: Arc::downgrade(tools),
            process_permits,
            left_running: Mutex::default(),
            ended: Mutex::default(),
        }
    }

    /// Hands a tree over to the tool that lists and ends it, with the permits that it needs.
    fn keep(&self, tree: &LeftoverTree) -> Result<(), NoPermit> {
        // The tools may be gone, and with them everything that could name or end it for its caller.
        let tools = self.tools.upgrade().ok_or_else(|| NoPermit::new("the server is ending"))?;
        // The permit comes first, because a tree that a tool has taken over cannot be given back.
        let permit = self.process_permits.as_ref().map(ProcessPermits::try_acquire).transpose()?;
        tools.take_leftovers(&self.principal, tree)?;
        if let Some(permit) = permit {
            tree.hold(permit);
        }
        Ok(())
    }

    /// Adds to the result of the call what its commands have left running, unless it names that itself, and what was ended
    /// because that was too much.
    pub(super) fn name_leftovers(&self, result: Result<Answer, ToolError>) -> Result<Answer, ToolError> {
        let ended = std::mem::take(&mut *self.ended.lock().unwrap_or_else(PoisonError::into_inner));
        let result = self.name_left_running(result);
        let Some((_, reason)) = ended.first() else { return result };
        let told = text_of(&result);
        let untold = ended.iter().map(|(process, _)| process).filter(|process| !names(&told, process));
        let untold: Vec<_> = untold.map(name_of).collect();
        if untold.is_empty() {
            return result;
        }
        let note = format!("ended, and not left running: {}: {reason}", untold.join(", "));
        add_note(result, note)
    }

    fn name_left_running(&self, result: Result<Answer, ToolError>) -> Result<Answer, ToolError> {
        let trees = std::mem::take(&mut *self.left_running.lock().unwrap_or_else(PoisonError::into_inner));
        if trees.is_empty() {
            return result;
        }
        let named = text_of(&result);
        let mut note = String::new();
        for process in trees.iter().flat_map(LeftoverTree::processes) {
            if names(&named, &process) {
                continue;
            }
            let separator = if note.is_empty() { "left running: " } else { ", " };
            let _ = write!(note, "{separator}{}", name_of(&process));
        }
        if note.is_empty() {
            return result;
        }
        note.push_str("; list_commands lists it and stop_command ends it");
        add_note(result, note)
    }
}

fn text_of(result: &Result<Answer, ToolError>) -> String {
    match result {
        Ok(answer) => answer.to_text(),
        Err(error) => error.message().to_owned(),
    }
}

/// Returns true if the text of an answer names the process.
fn names(text: &str, process: &LeftoverProcess) -> bool {
    text.contains(&format!("(pid {})", process.pid))
}

/// Returns the command line of a process and its number.
fn name_of(process: &LeftoverProcess) -> String {
    format!("`{}` (pid {})", process.command_line.as_deref().unwrap_or(&process.name), process.pid)
}

fn add_note(result: Result<Answer, ToolError>, note: String) -> Result<Answer, ToolError> {
    match result {
        Ok(answer) => Ok(answer.then(note)),
        Err(error) => Err(ToolError::new(format!("{}; {note}", error.message()))),
    }
}

impl RunOwner for CallRunOwner {
    fn name(&self) -> &str {
        &self.principal
    }

    fn purpose(&self) -> Option<&str> {
        Some(self.tool)
    }

    fn take_leftovers(&self, tree: LeftoverTree) -> LeftoverDecision {
        match self.keep(&tree) {
            Ok(()) => {
                self.left_running.lock().unwrap_or_else(PoisonError::into_inner).push(tree);
                LeftoverDecision::Keep
            }
            Err(reason) => {
                let reason = reason.to_string();
                let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
                ended.extend(tree.processes().into_iter().map(|process| (process, reason.clone())));
                LeftoverDecision::End { reason }
            }
        }
    }
}

impl fmt::Debug for CallRunOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallRunOwner").field("principal", &self.principal).finish_non_exhaustive()
    }
}
