//! The command of a project's own test command.

use super::report_folder::{PROGRAMS_FOLDER, ReportFolder};
use super::step::{EnvironmentAddition, TestResultSource, TestStep, TestStepPurpose};
use crate::shell_quote::shell_quote;
use crate::testing::project_command::{CommandPart, ProjectCommand, ReporterLoading, RunnerOwnReport};

/// The variable in which every Node process finds options.
const NODE_OPTIONS: &str = "NODE_OPTIONS";
/// The file that a report in XML is written to, if the command takes an argument for one.
const OWN_REPORT: &str = "own.xml";

/// Returns the step that runs a project's own test command as it is, with our reporters in its processes.
pub(super) fn test(command: &ProjectCommand, reports: &ReportFolder) -> TestStep {
    let arguments: Vec<_> = command.arguments.iter().map(String::as_str).collect();
    let source = TestResultSource::ProcessEvents { xml_of: command.own_report.map(|report| report.runner) };
    let mut step = TestStep::new(&command.program, &arguments, source);
    if let Some(RunnerOwnReport { separator, option, .. }) = command.own_report {
        let name = command.program.rsplit('/').next().unwrap_or(&command.program);
        let words = std::iter::once(name).chain(arguments);
        step.display = words.collect::<Vec<_>>().join(" ");
        step = step.maybe_arg(separator).args(&[&format!("{option}{}", reports.file(OWN_REPORT))]);
    } else if let Some((_, name)) =
        command.program.rsplit_once("bin/").filter(|_| command.program.starts_with('/'))
    {
        // The program of a local environment is what a person types without its path.
        step = step.display_as(name, 0);
    }
    if starts_only_programs_without_reporters(command) {
        return TestStep { parts: command.parts.clone(), ..step.purpose(TestStepPurpose::ProjectCommand) };
    }
    let mut additions = node_additions(command, reports);
    if command.loading == ReporterLoading::EveryLanguage {
        additions.extend(additions_of_languages(command, reports));
    }
    let step = step.additions(additions);
    TestStep { parts: command.parts.clone(), ..step.purpose(TestStepPurpose::ProjectCommand) }
}

/// Returns true if a command starts no program that could load a reporter of ours: then the environment of its tests is
/// that of a terminal. What the tests themselves start is theirs.
fn starts_only_programs_without_reporters(command: &ProjectCommand) -> bool {
    const PROGRAMS: [&str; 12] = [
        "bats",
        "cargo",
        "cd",
        "cmake",
        "ctest",
        "echo",
        "go",
        "gofmt",
        "golangci-lint",
        "mkdir",
        "rm",
        "rustfmt",
    ];
    let is_one = |part: &CommandPart| PROGRAMS.contains(&part.command.program());
    !command.parts.is_empty() && command.parts.iter().all(is_one)
}

/// Returns the additions that make each Node process load our module. A script that sets `NODE_OPTIONS` itself takes ours away:
/// there a `node` before the others in `PATH` loads it.
fn node_additions(command: &ProjectCommand, reports: &ReportFolder) -> Vec<EnvironmentAddition> {
    let option = node_option("--require", &reports.file("preload.cjs"));
    let mut additions = vec![EnvironmentAddition::last(NODE_OPTIONS, option, ' ')];
    let sets_options = |part: &CommandPart| part.command.text.contains("NODE_OPTIONS=");
    if cfg!(unix) && command.parts.iter().any(sets_options) {
        additions.push(EnvironmentAddition::first("PATH", reports.file(PROGRAMS_FOLDER), ':'));
    }
    additions
}

/// Returns the additions by which pytest, unittest, `RSpec`, minitest and test-unit load our reporters. Each is read only by
/// programs of its language.
fn additions_of_languages(command: &ProjectCommand, reports: &ReportFolder) -> Vec<EnvironmentAddition> {
    let separator = if cfg!(windows) { ';' } else { ':' };
    let mut additions = vec![
        EnvironmentAddition::first("PYTHONPATH", reports.file("python"), separator),
        EnvironmentAddition::first("RUBYLIB", reports.file("ruby"), separator),
        // By its path: a command may take `RUBYLIB` away.
        EnvironmentAddition::last("SPEC_OPTS", rspec_option(&reports.file("ruby/core_tools_rspec.rb")), ' '),
    ];
    let test_unit = reports.file("ruby/core_tools_test_unit.rb");
    // The options in this variable have no quotes.
    if !test_unit.contains(char::is_whitespace) {
        additions.push(EnvironmentAddition::last("RUBYOPT", format!("-r{test_unit}"), ' '));
    }
    if let Some((name, words)) = &command.pass_on {
        additions.push(EnvironmentAddition::last(name, words.clone(), ';'));
    }
    additions
}

/// Returns the option that loads a file, as `SPEC_OPTS` holds it: split like the words of a shell.
fn rspec_option(path: &str) -> String {
    format!("--require {}", shell_quote(path))
}

/// Returns an option as `NODE_OPTIONS` holds it: a value with a space is quoted.
fn node_option(option: &str, value: &str) -> String {
    if value.contains([' ', '"', '\\']) {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        format!("{option} \"{value}\"")
    } else {
        format!("{option} {value}")
    }
}
