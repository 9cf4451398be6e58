//! The commands of a run that takes several, such as nextest and the tests in documentation after it.

use crate::testing::plan::{TestStep, TestStepPurpose};
use crate::testing::results::{TestCommand, TestRunProblemKind};
use crate::testing::runner::TestRunner;
use crate::testing::verdict::StepVerdict;

/// The commands of a run, in their order, and what became of each.
pub(crate) struct StepCommands {
    steps: Vec<StepCommand>,
}

/// One command of a run.
struct StepCommand {
    command: TestCommand,
    purpose: TestStepPurpose,
    has_run: bool,
    has_failed: bool,
    /// It has nothing to tell: there are no tests of its kind.
    is_empty: bool,
}

impl StepCommands {
    /// Creates the list of the commands that `steps` will run.
    pub(crate) fn new(runner: TestRunner, steps: &[TestStep]) -> Self {
        let steps = steps.iter().map(|step| StepCommand {
            command: TestCommand {
                command: step.display.clone(),
                script: None,
                folder: None,
                runner: match step.purpose {
                    TestStepPurpose::Doctests => Some(TestRunner::Cargo.name().to_owned()),
                    TestStepPurpose::Tests => Some(runner.name().to_owned()),
                    TestStepPurpose::ProjectCommand | TestStepPurpose::Preparation => None,
                },
                exit_code: None,
                passed: 0,
                failed: 0,
                skipped: 0,
                note: None,
            },
            purpose: step.purpose,
            has_run: false,
            has_failed: false,
            is_empty: false,
        });
        Self { steps: steps.collect() }
    }

    /// Returns all commands as one line of a shell. A command that is run whatever came of the one before follows `;`.
    pub(crate) fn display_line(&self) -> String {
        let mut line = String::new();
        for (index, step) in self.steps.iter().enumerate() {
            if index > 0 {
                // The tests in documentation run even if the tests before them fail, as with `cargo test
                // --no-fail-fast`.
                line.push_str(if step.purpose == TestStepPurpose::Doctests { "; " } else { " && " });
            }
            line.push_str(&step.command.command);
        }
        line
    }

    /// Records what became of the command at `index`.
    pub(crate) fn record(&mut self, index: usize, verdict: &StepVerdict) {
        let ran_after_failure = self.steps.iter().take(index).any(|step| step.has_failed);
        let Some(step) = self.steps.get_mut(index) else { return };
        let counts = verdict.results.counts;
        (step.command.passed, step.command.failed, step.command.skipped) =
            (counts.passed, counts.failed, counts.skipped);
        step.command.exit_code = verdict.exit_code;
        step.has_run = true;
        step.has_failed = verdict.exit_code != Some(0);
        let has_no_tests =
            verdict.problem.as_ref().is_some_and(|problem| problem.kind == TestRunProblemKind::NoTests);
        step.is_empty = has_no_tests && counts.total() == 0;
        if ran_after_failure {
            step.command.note = Some("it ran although the command before it had failed".to_owned());
        }
    }

    /// Returns what a report tells of the commands that run tests: nothing if there is only one.
    pub(crate) fn into_commands(self) -> Vec<TestCommand> {
        let runs_tests =
            |step: &StepCommand| matches!(step.purpose, TestStepPurpose::Tests | TestStepPurpose::Doctests);
        let told: Vec<_> = self.steps.into_iter().filter(|step| runs_tests(step) && !step.is_empty).collect();
        if told.len() < 2 {
            return Vec::new();
        }
        let commands = told.into_iter().map(|step| match step.has_run {
            true => step.command,
            false => TestCommand {
                runner: None,
                note: Some("it was not run: the command before it ended the run".to_owned()),
                ..step.command
            },
        });
        commands.collect()
    }
}
