//! One command of a run.

use super::report_folder::{EVENTS_VARIABLE, ReportFolder};
use crate::shell_quote::{shell_join, shell_quote};
use crate::testing::parse::{EventsParser, IgnoreLines, LineParser, ProcessEvents};
use crate::testing::project_command::{CommandPart, RunnerFlags};
use crate::testing::runner::TestRunner;
use std::path::PathBuf;

/// A command of a run, and where its results are.
pub(crate) struct TestStep {
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    /// The words that are added to variables that hold lists.
    pub(crate) additions: Vec<EnvironmentAddition>,
    /// The virtual environment of Python that is active for the command.
    pub(crate) virtual_environment: Option<PathBuf>,
    /// The number of variables, from the first on, that a person would type with the command.
    pub(crate) shown_variables: usize,
    /// The command as a person would type it.
    pub(crate) display: String,
    pub(crate) source: TestResultSource,
    pub(crate) purpose: TestStepPurpose,
    /// The commands that the project's own command consists of.
    pub(crate) parts: Vec<CommandPart>,
}

/// A word that is added to a variable that holds a list.
#[derive(Clone, Debug)]
pub(crate) struct EnvironmentAddition {
    name: &'static str,
    word: String,
    separator: char,
    is_first: bool,
}

impl EnvironmentAddition {
    /// Creates an addition before what the variable has.
    pub(crate) fn first(name: &'static str, word: String, separator: char) -> Self {
        Self { name, word, separator, is_first: true }
    }

    /// Creates an addition after what the variable has.
    pub(crate) fn last(name: &'static str, word: String, separator: char) -> Self {
        Self { name, word, separator, is_first: false }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns what a reporter takes out of the environment again: the variable, the word and what separates it.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        serde_json::json!([self.name, self.word, self.separator])
    }

    /// Returns the whole value, after or before what the variable has.
    pub(crate) fn value(&self, inherited: Option<&str>) -> String {
        let Self { word, separator, is_first, .. } = self;
        match inherited.filter(|value| !value.is_empty()) {
            Some(value) if *is_first => format!("{word}{separator}{value}"),
            Some(value) => format!("{value}{separator}{word}"),
            None => word.clone(),
        }
    }
}

/// The purpose of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestStepPurpose {
    /// It runs tests.
    Tests,
    /// It runs the project's own test command, in which runners may be several, or none.
    ProjectCommand,
    /// It configures or builds the tests, and runs none.
    Preparation,
    /// It runs the tests in documentation, which a package without a library cannot have.
    Doctests,
}

/// The place where a step's results are read.
pub(crate) enum TestResultSource {
    /// Standard output.
    Stdout(Box<dyn LineParser>),
    /// Both output streams, merged: the order of their lines matters.
    MergedOutput(Box<dyn LineParser>),
    /// The file of events in the folder of reports.
    Events,
    /// The same file, to which several processes write, and the reports that others print on standard output. A
    /// runner that was given an argument for a report writes XML to the folder of reports.
    ProcessEvents { xml_of: Option<TestRunner> },
    /// XML files in the folder of reports.
    Xml,
    /// XML files in the folder of reports, written at the end; until then standard output.
    XmlAfterStdout(Box<dyn LineParser>),
    /// XML files that the run writes to folders of these names in the project.
    XmlInProject(&'static [&'static str]),
    /// The exit code alone.
    ExitCode,
}

impl TestResultSource {
    /// Takes the parser of the lines that the step prints or writes.
    pub(crate) fn take_parser(&mut self) -> Box<dyn LineParser> {
        match self {
            Self::Stdout(parser) | Self::MergedOutput(parser) | Self::XmlAfterStdout(parser) => {
                // The step keeps a parser that ignores lines, so that a second call gets no state of the first.
                std::mem::replace(parser, Box::new(IgnoreLines))
            }
            Self::Events => Box::new(EventsParser),
            Self::ProcessEvents { .. } => Box::new(ProcessEvents::default()),
            Self::Xml | Self::XmlInProject(_) | Self::ExitCode => Box::new(IgnoreLines),
        }
    }

    pub(crate) fn reads_events(&self) -> bool {
        matches!(self, Self::Events | Self::ProcessEvents { .. })
    }

    pub(crate) fn reads_stdout(&self) -> bool {
        matches!(
            self,
            Self::Stdout(_) | Self::MergedOutput(_) | Self::XmlAfterStdout(_) | Self::ProcessEvents { .. }
        )
    }
}

impl TestStep {
    pub(crate) fn new(program: &str, arguments: &[&str], source: TestResultSource) -> Self {
        let step = Self {
            display: String::new(),
            shown_variables: 0,
            program: program.to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
            additions: Vec::new(),
            virtual_environment: None,
            parts: Vec::new(),
            source,
            purpose: TestStepPurpose::Tests,
        };
        step.args(arguments)
    }

    /// Adds arguments.
    pub(crate) fn args(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|&argument| argument.to_owned()));
        self
    }

    /// Adds an argument, if there is one.
    pub(crate) fn maybe_arg(self, argument: Option<&str>) -> Self {
        match argument {
            Some(argument) => self.args(&[argument]),
            None => self,
        }
    }

    /// Adds an option and its value, if there is a value.
    pub(crate) fn option(self, option: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.args(&[option, value]),
            None => self,
        }
    }

    pub(crate) fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Makes a virtual environment active, if there is one.
    pub(crate) fn active(self, virtual_environment: Option<PathBuf>) -> Self {
        Self { virtual_environment, ..self }
    }

    /// Adds to variables that hold lists.
    pub(crate) fn additions(mut self, additions: impl IntoIterator<Item = EnvironmentAddition>) -> Self {
        self.additions.extend(additions);
        self
    }

    /// Adds the options and the variables that the project's own script gives the runner.
    pub(crate) fn flags(mut self, flags: &RunnerFlags) -> Self {
        self.arguments.extend(flags.options.iter().cloned());
        self.environment.extend(flags.assignments.iter().cloned());
        self.shown_variables = flags.assignments.len();
        self
    }

    /// Tells the reporter that the runner loads where to write its events.
    pub(crate) fn events_to(self, reports: &ReportFolder) -> Self {
        self.env(EVENTS_VARIABLE, reports.events())
    }

    pub(crate) fn purpose(self, purpose: TestStepPurpose) -> Self {
        Self { purpose, ..self }
    }

    /// Displays the command as `words`, followed by the arguments after the first `skip`.
    pub(crate) fn display_as(mut self, words: &str, skip: usize) -> Self {
        let rest = self.arguments.iter().skip(skip).map(|word| shell_quote(word).into_owned());
        self.display = std::iter::once(words.to_owned()).chain(rest).collect::<Vec<_>>().join(" ");
        self
    }

    /// Completes the step. The command is displayed without the arguments that are there for our report: a
    /// person would not type them.
    pub(crate) fn finish(mut self, reports: &ReportFolder) -> Self {
        const REPORT_OPTIONS: [&str; 6] = [
            "--test-reporter-destination=stdout",
            "--reporter",
            "--reporter=junit",
            "--output-junit",
            "--log-junit",
            "--results-directory",
        ];
        // Options whose value is the next word.
        const REPORT_LIMITS: [&str; 2] = ["--test-output-size-passed", "--test-output-truncation"];
        if self.display.is_empty() {
            let mut is_value = false;
            let is_typed = |word: &&String| {
                let is_limit = REPORT_LIMITS.contains(&word.as_str());
                let is_value = std::mem::replace(&mut is_value, is_limit);
                let is_left_out = is_limit
                    || is_value
                    || word.contains(reports.path())
                    || REPORT_OPTIONS.contains(&word.as_str());
                !is_left_out
            };
            let words = std::iter::once(&self.program).chain(&self.arguments).filter(is_typed);
            let variables = self.environment.iter().take(self.shown_variables);
            let variables = variables.map(|(name, value)| format!("{name}={} ", shell_quote(value)));
            self.display = variables.collect::<String>() + &shell_join(words);
        }
        self
    }
}
