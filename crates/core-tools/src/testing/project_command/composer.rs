//! The test command of a PHP project: Composer's script `test`.

use super::command::{CommandPart, ProjectCommand, RunnerOwnReport};
use crate::ci::project::Project;
use crate::testing::project_command::script::file_name;
use crate::testing::runner::TestRunner;
use serde_json::Value;

/// Returns the command that runs Composer's script `test`, or `None` if there is none.
pub(super) fn test_command(project: &Project) -> Option<ProjectCommand> {
    let manifest: Value = serde_json::from_str(&project.read("composer.json")?).ok()?;
    let script = manifest.pointer("/scripts/test")?;
    let commands: Vec<_> = match script {
        Value::String(command) => vec![command.as_str()],
        script => script.as_array()?.iter().filter_map(Value::as_str).collect(),
    };
    let parts: Vec<_> = commands.iter().flat_map(|command| CommandPart::of_text("test", command)).collect();
    // Composer gives further arguments to each command of a script.
    let is_phpunit = |part: &CommandPart| part.command.words.iter().any(|word| file_name(word) == "phpunit");
    let takes_report = matches!(&parts[..], [part] if is_phpunit(part));
    let own_report = takes_report.then_some(RunnerOwnReport {
        runner: TestRunner::Phpunit,
        separator: Some("--"),
        option: "--log-junit=",
    });
    Some(ProjectCommand { own_report, ..ProjectCommand::new("composer", &["test"], parts) })
}
