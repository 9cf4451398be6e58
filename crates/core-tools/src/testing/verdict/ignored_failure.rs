//! Commands of a project's test command that failed, although the whole command succeeded: `node a.js; mocha`.

use super::command_words::names_test_file;
use crate::shell_quote::shell_join;
use crate::testing::results::{TestProcessReport, TestRunProblem, TestRunProblemKind};
use std::path::Path;

/// The number of commands that a note names.
const MAX_NAMED: usize = 5;

/// A command that failed, and whose failure the whole command does not pass on.
pub(super) struct IgnoredFailure {
    command: String,
    /// The exit code. Absent where a signal ended the command.
    exit_code: Option<u32>,
    /// Its words name a file of tests.
    is_test: bool,
}

impl IgnoredFailure {
    /// Returns the failure of a process that reported no test. `folder` is that of the project.
    pub(super) fn of(process: &TestProcessReport, folder: &Path) -> Option<Self> {
        // Of other programs than those of Node only failures are told.
        if process.exit_code == Some(0) || (process.program != "node" && process.exit_code.is_none()) {
            return None;
        }
        let of_project = |word: &String| match Path::new(word).strip_prefix(folder) {
            Ok(path) => path.to_string_lossy().into_owned(),
            Err(_) => word.clone(),
        };
        let words: Vec<_> = process.arguments.iter().map(of_project).collect();
        let is_code =
            // With one of these options the words are code, and a name in code is no file that was run.
            words.iter().any(|word| ["-e", "-p", "--eval", "--print", "-c"].contains(&word.as_str()));
        Some(Self {
            command: shell_join(std::iter::once(&process.program).chain(&words)),
            exit_code: process.exit_code,
            is_test: !is_code && words.iter().any(|word| names_test_file(word)),
        })
    }

    fn end(&self) -> String {
        match self.exit_code {
            Some(code) => format!("failed with exit code {code}"),
            None => "was ended by a signal".to_owned(),
        }
    }
}

/// Returns the problem of the first command that failed and whose words name a file of tests.
pub(super) fn failed_test_command(failures: &[IgnoredFailure]) -> Option<TestRunProblem> {
    let failure = failures.iter().find(|failure| failure.is_test)?;
    let message =
        format!("`{}` {}, though the whole command ended with exit code 0", failure.command, failure.end());
    let kind = if failure.exit_code.is_some() {
        TestRunProblemKind::RunnerFailed
    } else {
        TestRunProblemKind::Crashed
    };
    Some(TestRunProblem::new(kind, message))
}

/// Returns a note on the commands that failed: each may be a test.
pub(super) fn ignored_failures_note(failures: &[IgnoredFailure]) -> Option<String> {
    if failures.is_empty() {
        return None;
    }
    let named =
        failures.iter().take(MAX_NAMED).map(|failure| format!("`{}` {}", failure.command, failure.end()));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = failures.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    Some(format!("not verified: {named}{more}, and the test command succeeds all the same"))
}
