//! The test command of a Deno project: its task `test`.

use super::command::{CommandPart, ProjectCommand, RunnerOwnReport};
use super::shell::ShellOptions;
use crate::ci::project::Project;
use crate::testing::runner::TestRunner;
use serde_json::Value;

/// Returns the command that runs the task `test`, or `None` if there is none.
pub(super) fn test_command(project: &Project) -> Option<ProjectCommand> {
    let text = ["deno.json", "deno.jsonc"].iter().find_map(|file| project.read(file))?;
    let manifest: Value = serde_json::from_str(&without_comments(&text)).ok()?;
    let task = manifest.get("tasks")?.get("test")?;
    let task = task.as_str().or_else(|| task.get("command")?.as_str()).unwrap_or_default();
    let parts = CommandPart::of_text("test", task, ShellOptions::default());
    // Further arguments go to the last command of a task.
    let is_test = |part: &&CommandPart| part.command.words.starts_with(&["deno".into(), "test".into()]);
    let takes_report = parts.last().filter(is_test).is_some() && !task.contains("--junit-path");
    let own_report = takes_report.then_some(RunnerOwnReport {
        runner: TestRunner::Deno,
        separator: None,
        option: "--junit-path=",
    });
    Some(ProjectCommand { own_report, ..ProjectCommand::new("deno", &["task", "test"], parts) })
}

/// Returns JSON without the comments and the commas at the ends of lists that `deno.jsonc` may have.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut in_string = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' if in_string => {
                plain.push(c);
                plain.extend(chars.next());
                continue;
            }
            '"' => in_string = !in_string,
            '/' if !in_string && chars.peek() == Some(&'/') => {
                while chars.next_if(|next| *next != '\n').is_some() {}
                continue;
            }
            '/' if !in_string && chars.peek() == Some(&'*') => {
                let mut previous = ' ';
                chars.next();
                for next in chars.by_ref() {
                    if previous == '*' && next == '/' {
                        break;
                    }
                    previous = next;
                }
                continue;
            }
            '}' | ']' if !in_string => {
                // JSON allows no comma before a closing bracket, and `deno.jsonc` does.
                let end = plain.trim_end().strip_suffix(',').map(str::len);
                plain.truncate(end.unwrap_or(plain.len()));
            }
            _ => {}
        }
        plain.push(c);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_last_commas_are_no_part_of_json() {
        let text = "{ // a\n \"a\": \"b // \\\" c\", /* d */ \"e\": [1, 2,\n], }";
        let read: Value = serde_json::from_str(&without_comments(text)).unwrap();
        assert_eq!(read, serde_json::json!({"a": "b // \" c", "e": [1, 2]}));
    }
}
