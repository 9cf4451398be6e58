//! The command of a project's own test command.

use super::report_folder::{PROGRAMS_FOLDER, ReportFolder};
use super::step::{EnvironmentAddition, ResultSource, StepPurpose, TestStep};
use crate::testing::project_command::{CommandPart, ProjectCommand, ReporterLoading};

/// The variable in which every Node process finds options.
const NODE_OPTIONS: &str = "NODE_OPTIONS";

/// Returns the step that runs a project's own test command as it is, with our reporter in its processes.
pub(super) fn test(command: &ProjectCommand, reports: &ReportFolder) -> TestStep {
    let arguments: Vec<_> = command.arguments.iter().map(String::as_str).collect();
    let step = TestStep::new(&command.program, &arguments, ResultSource::ProcessEvents);
    let step = match command.loading {
        ReporterLoading::NodeOptions => step.additions(node_additions(command, reports)),
    };
    TestStep { parts: command.parts.clone(), ..step.purpose(StepPurpose::ProjectCommand) }
}

/// Returns the additions that make each Node process load our module. A script that sets `NODE_OPTIONS` itself takes ours away:
/// there a `node` before the others in `PATH` loads it.
fn node_additions(command: &ProjectCommand, reports: &ReportFolder) -> Vec<EnvironmentAddition> {
    let option = node_option("--require", &reports.file("preload.cjs"));
    let mut additions = vec![EnvironmentAddition::Option { name: NODE_OPTIONS, option }];
    let sets_options = |part: &CommandPart| part.command.text.contains("NODE_OPTIONS=");
    if cfg!(unix) && command.parts.iter().any(sets_options) {
        additions.push(EnvironmentAddition::PathFolder(reports.file(PROGRAMS_FOLDER)));
    }
    additions
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
