//! [`ExecutorPolicy`]: the decision about each command and each path.

use crate::refusal::ExecutorRefusal;
use crate::sandbox::SandboxLimits;
use process_runner::Command;
use std::path::Path;
use workspace::ConfinedPath;

/// A command that Codex asks for.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CodexCommand<'a> {
    /// The program and its arguments. There is at least one word.
    pub words: &'a [String],
    /// The folder to run in.
    pub folder: &'a Path,
    /// True for a command with a terminal.
    pub terminal: bool,
    /// The sandbox that Codex asks for, if it does.
    pub sandbox: Option<&'a SandboxLimits>,
    /// The conversation.
    pub session: Option<&'a str>,
}

/// The operation on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileOperation {
    /// Reads a file.
    Read,
    /// Writes a file.
    Write,
    /// Creates a folder.
    CreateFolder,
    /// Describes a path.
    Describe,
    /// Lists a folder.
    List,
    /// Removes a file or a folder.
    Remove,
}

impl FileOperation {
    /// Returns true if the operation changes something.
    pub const fn changes(self) -> bool {
        matches!(self, Self::Write | Self::CreateFolder | Self::Remove)
    }
}

/// An operation on a path that Codex asks for.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FileRequest<'a> {
    /// The operation.
    pub operation: FileOperation,
    /// The absolute path.
    pub path: &'a Path,
    /// The name of the request.
    pub method: &'static str,
}

/// The decisions about the requests of Codex. The decisions are made on blocking threads.
pub trait ExecutorPolicy: Send + Sync + 'static {
    /// The record of something that was allowed, until it has ended.
    type Permit: Send + 'static;

    /// Decides about a command. Returns it ready to start, with its environment, its confinement and its time limit.
    ///
    /// # Errors
    /// It may not run.
    fn command(&self, request: &CodexCommand<'_>) -> Result<(Command, Self::Permit), ExecutorRefusal>;

    /// Decides about an operation on a path. Returns the path, which can be opened.
    ///
    /// # Errors
    /// The operation is refused.
    fn file(&self, request: &FileRequest<'_>) -> Result<(ConfinedPath, Self::Permit), ExecutorRefusal>;

    /// Records the end of something that was allowed. Returns what the agent should know about it.
    fn ended(&self, permit: Self::Permit, succeeded: bool) -> Vec<String>;
}
