//! The test command of a PHP project: Composer's script `test`.

use super::command::{CommandPart, ProjectCommand, RunnerOwnReport};
use super::shell::ShellOptions;
use crate::ci::project::Project;
use crate::testing::project_command::script::file_name;
use crate::testing::runner::TestRunner;
use serde_json::Value;

/// The number of scripts that may call each other in a row.
const MAX_DEPTH: usize = 6;
/// The number of commands that are told.
const MAX_PARTS: usize = 200;

/// Returns the command that runs Composer's script `test`, or `None` if there is none.
pub(super) fn test_command(project: &Project) -> Option<ProjectCommand> {
    let manifest: Value = serde_json::from_str(&project.read("composer.json")?).ok()?;
    let scripts = manifest.get("scripts")?;
    let script = scripts.get("test").filter(|script| script.is_string() || script.is_array())?;
    let mut parts = Vec::new();
    add_script(scripts, "test", &mut parts, 0);
    // Composer gives further arguments to each command of a script.
    let is_phpunit = |part: &CommandPart| part.command.words.iter().any(|word| file_name(word) == "phpunit");
    let calls_no_other = commands(script).all(|command| !command.starts_with('@'));
    let takes_report = calls_no_other && matches!(&parts[..], [part] if is_phpunit(part));
    let own_report = takes_report.then_some(RunnerOwnReport {
        runner: TestRunner::Phpunit,
        separator: Some("--"),
        option: "--log-junit=",
    });
    Some(ProjectCommand { own_report, ..ProjectCommand::new("composer", &["test"], parts) })
}

/// Adds the commands of a script, and of those that it calls: `@lint`, `@composer lint`.
fn add_script(scripts: &Value, name: &str, parts: &mut Vec<CommandPart>, depth: usize) {
    for command in scripts.get(name).into_iter().flat_map(commands) {
        let words: Vec<_> = command.split_whitespace().collect();
        let called = match words[..] {
            ["@composer", "run" | "run-script", name, ..] | ["@composer", name, ..] => Some(name),
            [word, ..] => word.strip_prefix('@'),
            [] => None,
        };
        match called.filter(|name| scripts.get(name).is_some()) {
            // Scripts may call each other in a circle.
            Some(called) if depth < MAX_DEPTH => add_script(scripts, called, parts, depth + 1),
            _ => {
                let command =
                    command.strip_prefix("@php ").map_or(command.to_owned(), |rest| format!("php {rest}"));
                let room = MAX_PARTS.saturating_sub(parts.len());
                parts.extend(
                    CommandPart::of_text(name, &command, ShellOptions::default()).into_iter().take(room),
                );
            }
        }
    }
}

/// Returns the commands of a script, which is one or a list.
fn commands(script: &Value) -> impl Iterator<Item = &str> {
    let list = script.as_array().map(Vec::as_slice).unwrap_or_default();
    script.as_str().into_iter().chain(list.iter().filter_map(Value::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_called_scripts_are_those_of_the_script() {
        let scripts = serde_json::json!({
            "test": ["@lint", "@composer unit", "@php check.php", "@putenv A=1"],
            "lint": "phpcs src || true",
            "unit": ["phpunit a", "@test"],
        });
        let mut parts = Vec::new();
        add_script(&scripts, "test", &mut parts, 0);
        let texts: Vec<_> = parts.iter().map(|part| part.command.text.as_str()).collect();
        assert_eq!(&texts[..3], ["phpcs src", "true", "phpunit a"]);
        assert!(texts.contains(&"php check.php") && texts.contains(&"@putenv A=1"), "{texts:?}");
        assert!(parts.len() <= MAX_PARTS);
    }
}
