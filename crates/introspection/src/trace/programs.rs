//! [`ProfilerPrograms`]: finds and runs the profilers that are programs of their own.

use super::error::Error;
use process_runner::{Command, EnvPolicy, Limits, Output, Runner, Termination};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use workspace::Workspace;

/// Finds and runs profilers.
#[derive(Clone, Debug)]
pub(super) struct ProfilerPrograms {
    pub(super) runner: Runner,
    /// The value of `PATH`.
    pub(super) path: Option<OsString>,
    /// The workspace, beneath whose roots no program is run: the client may have written it, and profilers run without
    /// a sandbox.
    pub(super) workspace: Arc<Workspace>,
}

/// The environment variables that profilers get.
const ENVIRONMENT: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "TZ", "LD_LIBRARY_PATH"];

impl ProfilerPrograms {
    /// Returns the path of the program `name` in the first absolute folder of `PATH` that has it outside the roots.
    pub(super) fn find(&self, name: &str) -> Option<PathBuf> {
        // A relative folder would be searched beneath the working folder, which may be a root.
        let folders = std::env::split_paths(self.path.as_deref()?).filter(|folder| folder.is_absolute());
        let path = std::env::join_paths(folders).ok()?;
        // A link outside the roots may lead to a program beneath one.
        let real = |found: &PathBuf| found.canonicalize().unwrap_or_else(|_| found.clone());
        let outside = |found: &PathBuf| {
            let real = real(found);
            !self.workspace.roots().any(|root| found.starts_with(root) || real.starts_with(root))
        };
        which::which_in_global(name, Some(path)).ok()?.find(outside)
    }

    /// Returns the path of `program`, or an error with `remedy` where it is not installed.
    pub(super) fn require(&self, program: &'static str, remedy: &'static str) -> Result<PathBuf, Error> {
        self.find(program).ok_or(Error::NoProgram { program, remedy })
    }

    /// Creates a command that runs `program` for at most `limit` and keeps at most `max_output_bytes` bytes of its
    /// output.
    pub(super) fn command(program: &Path, limit: Duration, max_output_bytes: usize) -> Command {
        let limits =
            Limits::default().timeout(limit).term_grace(Duration::from_millis(200)).capture(max_output_bytes);
        Command::new(program, "/")
            .noninteractive()
            .env_policy(EnvPolicy::Allow(ENVIRONMENT.map(OsString::from).to_vec()))
            // perf's configuration file can name further programs to run.
            .env("PERF_CONFIG", "/dev/null")
            .limits(limits)
    }
}

/// Returns the last lines that a profiler printed, for a message.
pub(super) fn last_lines(output: &Output) -> String {
    let text = output.stderr_text();
    let text = if text.trim().is_empty() { output.stdout_text() } else { text };
    let text = process_runner::clean(text.trim()).into_owned();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.iter().skip(lines.len().saturating_sub(4)).copied().collect::<Vec<_>>().join("; ");
    let last: String = last.chars().take(500).collect();
    if last.is_empty() { output.summary() } else { last }
}

/// Returns true if the program ended because the capture was cancelled.
pub(super) fn was_cancelled(output: &Output) -> bool {
    matches!(output.termination, Termination::Cancelled { .. })
}
