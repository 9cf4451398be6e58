//! The tests that failed in the last run of each caller and project, for `failed_only`.

use super::call_context::CallContext;
use super::tool_error::ToolError;
use crate::ci::Commands;
use crate::testing::{FailedTests, TestReport};
use crate::workspace::PathKind;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of runs that are remembered; the oldest is forgotten first.
const MAX_RUNS: usize = 100;

/// The caller of a run and the folder that it was about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TestRunKey {
    owner: String,
    folder: PathBuf,
}

impl TestRunKey {
    /// Returns the key of a run in `project_path`; `None` where there is no such path.
    pub(super) fn new(
        commands: &Commands,
        context: &CallContext,
        project_path: Option<&str>,
    ) -> Option<Self> {
        let path = commands.workspace().locate(project_path.unwrap_or(".")).ok()?;
        let is_folder = matches!(path.kind(), Ok(Some(PathKind::Directory)));
        // A test file and its folder belong to the same project, so that they share one key.
        let folder = if is_folder { path } else { path.parent().unwrap_or(path) };
        let owner = context.owner.as_deref().or_else(|| context.caller.principal()).unwrap_or_default();
        Some(Self { owner: owner.to_owned(), folder: folder.to_absolute() })
    }
}

/// The failed tests of the last runs.
#[derive(Debug, Default)]
pub(super) struct LastTestRuns {
    runs: Mutex<VecDeque<(TestRunKey, FailedTests)>>,
}

impl LastTestRuns {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(TestRunKey, FailedTests)>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the failures of a run, in place of those of the run before. A run that executed no test says nothing
    /// about those.
    pub(super) fn record(&self, key: Option<TestRunKey>, report: &TestReport) {
        let Some(key) = key.filter(|_| report.passed + report.failed > 0) else { return };
        let mut runs = self.lock();
        // The key moves to the end, so that the run that was not repeated for longest is forgotten first.
        runs.retain(|(known, _)| *known != key);
        runs.push_back((key, report.failed_tests.clone()));
        if runs.len() > MAX_RUNS {
            runs.pop_front();
        }
    }

    /// Returns the tests that failed in the last run of this caller and project.
    ///
    /// # Errors
    ///
    /// No run is known, or no test failed in it.
    pub(super) fn failed_tests(&self, key: Option<&TestRunKey>) -> Result<FailedTests, ToolError> {
        let runs = self.lock();
        let last = runs.iter().find(|(known, _)| Some(known) == key).map(|(_, failed)| failed);
        match last {
            Some(failed) if failed.is_empty() => {
                Err(ToolError::new("`failed_only`: no test failed in the last run of this project"))
            }
            Some(failed) => Ok(failed.clone()),
            None => Err(ToolError::new(
                "`failed_only`: this server knows no run of this project by you; run the tests without it first",
            )),
        }
    }

    /// Forgets the runs of a caller that has left.
    pub(super) fn forget(&self, owner: &str) {
        self.lock().retain(|(key, _)| key.owner != owner);
    }
}
