//! The tests of a run: of which project, by which runner, and which part of them.

use crate::ci::project::Project;
use crate::testing::error::TestError;
use crate::testing::project_command::{ProjectCommand, RunnerFlags};
use crate::testing::runner::TestRunner;

/// The part of a project's tests that is to run. The default is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TestFilter {
    /// A file or folder, relative to the project's folder, with `/` between the names; empty for the whole
    /// project.
    pub(crate) path: String,
    /// `path` is a folder.
    pub(crate) is_folder: bool,
    /// The name of a test, or a part of it.
    pub(crate) name: Option<String>,
    /// A pattern of names, as the runner's own option takes it.
    pub(crate) pattern: Option<String>,
    /// The full names of the tests that failed before and are to run again.
    pub(crate) failed: Vec<String>,
}

impl TestFilter {
    /// Returns the file or folder, or `None` for the whole project.
    pub(crate) fn path(&self) -> Option<&str> {
        Some(self.path.as_str()).filter(|path| !path.is_empty())
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns what the runner's option for names gets: the requested pattern as it is, or what `literal` makes of
    /// a name that is meant literally.
    pub(crate) fn pattern(&self, literal: impl FnOnce(&str) -> String) -> Option<String> {
        self.pattern.clone().or_else(|| self.name().map(literal))
    }
}

/// The tests of a run.
#[derive(Clone, Debug)]
pub(crate) struct TestTarget {
    pub(crate) runner: TestRunner,
    pub(crate) project: Project,
    pub(crate) filter: TestFilter,
    /// The other runners that the project's files ask for.
    pub(crate) other_runners: Vec<TestRunner>,
    /// The project's own test command, where all of its tests are to run.
    pub(crate) project_command: Option<ProjectCommand>,
    /// The arguments that the caller adds to those of the runner.
    pub(crate) arguments: Vec<String>,
    /// The options and variables that the project gives the runner, where a part of its tests is to run.
    pub(crate) flags: RunnerFlags,
    /// The managers of Python environments that cannot be used: one that is not installed, or that would create an
    /// environment in the project.
    pub(crate) unusable_managers: Vec<&'static str>,
}

impl TestTarget {
    /// Creates the error that the runner cannot select what was requested; `instead` says what it can select.
    pub(crate) fn cannot_select(&self, instead: &'static str) -> TestError {
        let TestFilter { path, name, pattern, failed, .. } = &self.filter;
        if !failed.is_empty() {
            return TestError::CannotRerun(format!("{} cannot select tests by their names", self.runner));
        }
        if pattern.is_some() {
            return TestError::NoPatterns { runner: self.runner, instead };
        }
        let selection = if path.is_empty() { name.clone().unwrap_or_default() } else { path.clone() };
        TestError::CannotSelect { runner: self.runner, selection, instead }
    }
}
