//! The profilers that are programs of their own.

use super::Error;
use crate::workspace::Workspace;
use process_runner::{Command, EnvPolicy, Limits, Output, Runner, Termination};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Finds and runs profilers.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    pub(super) runner: Runner,
    /// The value of `PATH`.
    pub(super) path: Option<OsString>,
    /// What lies beneath its roots may have been written by who asks, and a profiler runs without a fence.
    pub(super) workspace: Arc<Workspace>,
}

/// What a profiler needs of the environment.
const ENVIRONMENT: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "TZ", "LD_LIBRARY_PATH"];

impl Programs {
    /// The program called `name`, from the first absolute folder of `PATH` that has it.
    pub(super) fn find(&self, name: &str) -> Option<PathBuf> {
        let folders = std::env::split_paths(self.path.as_deref()?).filter(|folder| folder.is_absolute());
        let path = std::env::join_paths(folders).ok()?;
        let real = |found: &PathBuf| found.canonicalize().unwrap_or_else(|_| found.clone());
        let outside = |found: &PathBuf| {
            let real = real(found);
            !self.workspace.roots().any(|root| found.starts_with(root) || real.starts_with(root))
        };
        which::which_in_global(name, Some(path)).ok()?.find(outside)
    }

    /// The same, or what to do.
    pub(super) fn need(&self, program: &'static str, remedy: &'static str) -> Result<PathBuf, Error> {
        self.find(program).ok_or(Error::NoProgram { program, remedy })
    }

    /// A run of `program` that ends within `limit`, of whose output `kept` bytes are.
    pub(super) fn command(program: &Path, limit: Duration, kept: usize) -> Command {
        let limits = Limits::default().timeout(limit).term_grace(Duration::from_millis(200)).capture(kept);
        Command::new(program, "/")
            .noninteractive()
            .env_policy(EnvPolicy::Allow(ENVIRONMENT.map(OsString::from).to_vec()))
            // No configuration of the user's that names further programs.
            .env("PERF_CONFIG", "/dev/null")
            .limits(limits)
    }
}

/// What a profiler said last, for a message.
pub(super) fn said(output: &Output) -> String {
    let text = output.stderr_text();
    let text = if text.trim().is_empty() { output.stdout_text() } else { text };
    let text = process_runner::clean(text.trim()).into_owned();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.iter().skip(lines.len().saturating_sub(4)).copied().collect::<Vec<_>>().join("; ");
    let last: String = last.chars().take(500).collect();
    if last.is_empty() { output.summary() } else { last }
}

/// Whether it ended because we told it to.
pub(super) fn was_cancelled(output: &Output) -> bool {
    matches!(output.termination, Termination::Cancelled { .. })
}
