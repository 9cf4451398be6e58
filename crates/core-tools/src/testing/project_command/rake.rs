//! The test command of a Rakefile: its task `test` or `spec`, or what it does by default.

use super::command::ProjectCommand;
use crate::ci::project::Project;

/// Returns the command that runs the tests of a Rakefile, with the project's own gems where they are locked.
pub(super) fn test_command(project: &Project) -> ProjectCommand {
    let files = ["Rakefile", "rakefile", "Rakefile.rb", "rakefile.rb"];
    let text = files.iter().find_map(|file| project.read(file)).unwrap_or_default();
    let has_default = text.contains("task :default") || text.contains("task default:");
    let task = match (has_default, text.contains("RakeTask")) {
        (true, _) => None,
        (false, true) => Some("spec"),
        (false, false) => Some("test"),
    };
    let arguments: Vec<_> = if project.contains("Gemfile.lock") { vec!["exec", "rake"] } else { Vec::new() };
    let program = if arguments.is_empty() { "rake" } else { "bundle" };
    let arguments: Vec<_> = arguments.into_iter().chain(task).collect();
    ProjectCommand::new(program, &arguments, Vec::new())
}
