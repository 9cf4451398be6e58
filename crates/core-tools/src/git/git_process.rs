//! Runs git, and takes what it prints.

use super::error::Error;
use super::invocation::{GitAccess, GitInvocation};
use super::printed_text::printable_line;
use super::repository::Repository;
use crate::ci::{CommandError, CommandScope, Commands};
use crate::workspace::Workspace;
use process_runner::{CapturedStream, Output, Termination, clean};

/// The most bytes of git's messages that an error or a result shows.
const MAX_MESSAGE_BYTES: usize = 2_000;

/// git, in repositories beneath the roots of a workspace.
#[derive(Clone, Debug)]
pub struct Git {
    pub(super) commands: Commands,
}

/// The standard output of a run that succeeded.
pub(super) struct GitOutput {
    pub(super) bytes: Vec<u8>,
    /// False if the output was longer than its limit, and was cut there.
    pub(super) is_complete: bool,
}

impl Git {
    /// Creates a git that runs as `commands` run theirs: beneath the same roots, with the same confinement.
    pub fn new(commands: Commands) -> Self {
        Self { commands }
    }

    /// Returns the same git for a caller who may reach less.
    #[must_use]
    pub fn narrowed(&self, scope: &CommandScope) -> Self {
        Self { commands: self.commands.narrowed(scope) }
    }

    /// Returns the repository that `path` is in: see [`Repository::discover`].
    ///
    /// # Errors
    /// There is none, or it leads outside the roots.
    pub fn repository(&self, path: Option<&str>) -> Result<Repository, Error> {
        Repository::discover(self.commands.workspace(), path)
    }

    /// Returns `text` with secrets masked. To be called before text is cut: half a secret is not recognized.
    pub(super) fn mask(&self, text: &[u8]) -> String {
        self.commands.redactor.redact(&String::from_utf8_lossy(text)).into_owned()
    }

    /// Runs git, whatever its exit code, in a repository that git trusts.
    pub(super) async fn run(&self, invocation: GitInvocation<'_>) -> Result<Output, Error> {
        if invocation.repository.has_other_owner {
            self.check_ownership(&invocation).await?;
        }
        self.execute(invocation).await
    }

    /// Lets git decide if it trusts a repository of another user. It checks that only when it finds the repository
    /// itself, which it otherwise does not.
    async fn check_ownership(&self, invocation: &GitInvocation<'_>) -> Result<(), Error> {
        let words = ["rev-parse", "--git-dir"];
        let check = GitInvocation::new(invocation.repository, GitAccess::Read, invocation.cancel, &words);
        let output = self.execute(check.discovers_repository()).await?;
        if output.success() {
            return Ok(());
        }
        // git has no exit code of its own for this; the setting's name stands in the message in every version.
        if memchr::memmem::find(output.stderr.bytes(), b"safe.directory").is_some() {
            return Err(Error::DubiousOwnership);
        }
        Err(Error::Failed {
            action: "git",
            message: self.messages(&invocation.repository.workspace, &output),
        })
    }

    async fn execute(&self, invocation: GitInvocation<'_>) -> Result<Output, Error> {
        let (runs_hooks, reaches_ssh_agent) = (invocation.runs_hooks(), invocation.reaches_ssh_agent());
        let mut command = invocation.into_command()?;
        if runs_hooks {
            command = self.commands.environment_policy().withhold_secrets(command);
        }
        let confined = match reaches_ssh_agent {
            true => self.commands.confine_with_ssh_agent(command),
            false => self.commands.confine(command),
        };
        let command = confined.map_err(CommandError::from)?;
        let output = self.commands.runner.run(command).await.map_err(CommandError::from)?;
        match &output.termination {
            Termination::TimedOut { after, .. } => Err(Error::TimedOut(*after)),
            Termination::Cancelled { .. } => Err(Error::Cancelled),
            _ => Ok(output),
        }
    }

    /// Runs git, which must succeed, and returns its standard output.
    pub(super) async fn run_checked(
        &self,
        action: &'static str,
        invocation: GitInvocation<'_>,
    ) -> Result<GitOutput, Error> {
        let workspace = invocation.repository.workspace.clone();
        let max_bytes = invocation.max_output_bytes as u64;
        let output = self.run(invocation).await?;
        let is_truncated = output.stdout.truncated();
        let is_complete = output.stdout.total_bytes < max_bytes && !is_truncated;
        // A run that was stopped for its output has no exit code of success.
        if !output.success() && is_complete {
            return Err(Error::Failed { action, message: self.messages(&workspace, &output) });
        }
        // Of a truncated output both ends are kept; the head alone is consecutive.
        let bytes = if is_truncated { output.stdout.head().to_vec() } else { output.stdout.into_bytes() };
        Ok(GitOutput { bytes, is_complete })
    }

    /// Returns what git and its hooks printed on both streams, masked, with paths relative to the roots; a summary of the
    /// run where that is nothing.
    pub(super) fn messages(&self, workspace: &Workspace, output: &Output) -> String {
        let text = self.printed(workspace, &[&output.stderr, &output.stdout]);
        if text.is_empty() { printable_line(&output.summary()) } else { text }
    }

    /// Returns what git and its hooks printed on standard error, masked; empty where that is nothing.
    pub(super) fn error_output(&self, repository: &Repository, output: &Output) -> String {
        self.printed(&repository.workspace, &[&output.stderr])
    }

    fn printed(&self, workspace: &Workspace, streams: &[&CapturedStream]) -> String {
        let mut text = String::new();
        for stream in streams {
            let part = self.mask(clean(&String::from_utf8_lossy(stream.bytes())).as_bytes());
            let part = part.trim();
            if !part.is_empty() {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(part);
            }
        }
        for root in workspace.roots() {
            if let Some(root) = root.to_str().filter(|root| root.len() > 1) {
                text = text.replace(&format!("{root}/"), "").replace(root, ".");
            }
        }
        if text.len() > MAX_MESSAGE_BYTES {
            // The end is kept: programs print the error last.
            let start = text.ceil_char_boundary(text.len() - MAX_MESSAGE_BYTES);
            text = format!("[...] {}", text.get(start..).unwrap_or_default());
        }
        text
    }
}
