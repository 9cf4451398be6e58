//! The test command of a makefile or a justfile: its rule `test`, or make's `check`.

use super::command::{CommandPart, ProjectCommand};
use crate::ci::project::Project;
use crate::testing::detect::{MAKEFILES, is_rule};

/// The number of commands that are told.
const MAX_PARTS: usize = 200;
/// The number of rules that a rule may need in a row.
const MAX_DEPTH: usize = 6;

/// Returns the command that runs the rule `test` of a makefile, or `check` where there is no such rule.
pub(super) fn make(project: &Project) -> ProjectCommand {
    let text = MAKEFILES.iter().find_map(|file| project.read(file)).unwrap_or_default();
    let has_rule = |name: &str| text.lines().any(|line| is_rule(line, name));
    let target = if !has_rule("test") && has_rule("check") { "check" } else { "test" };
    let mut parts = Vec::new();
    add_rule(&text, target, &mut parts, 0);
    let mut command = ProjectCommand::new("make", &[target], parts);
    if target == "test" && has_rule("check") {
        let note = "the makefile also has a target `check`, which was not run on its own".to_owned();
        command.notes.push(note);
    }
    command
}

/// Returns the command that runs the recipe `test` of a justfile.
pub(super) fn just(project: &Project) -> ProjectCommand {
    let text = ["justfile", "Justfile", ".justfile"].iter().find_map(|file| project.read(file));
    let mut parts = Vec::new();
    add_rule(&text.unwrap_or_default(), "test", &mut parts, 0);
    ProjectCommand::new("just", &["test"], parts)
}

/// Adds the commands of a rule after those of the rules that it needs, as far as they are in this file.
fn add_rule(text: &str, name: &str, parts: &mut Vec<CommandPart>, depth: usize) {
    if depth > MAX_DEPTH || parts.iter().any(|part| part.script == name) {
        return;
    }
    let mut lines = text.lines();
    let Some(rule) = lines.find(|line| is_rule(line, name)) else { return };
    let (_, rule) = rule.split_once(':').unwrap_or_default();
    // Of a double colon the second one, and a recipe on the line of its rule.
    let (needed, first) = rule.trim_start_matches(':').split_once(';').unwrap_or((rule, ""));
    for needed in needed.split_whitespace().take_while(|word| !word.starts_with('#')) {
        add_rule(text, needed, parts, depth + 1);
    }
    let mut recipe = String::from(first);
    for line in lines.take_while(|line| line.trim().is_empty() || line.starts_with(['\t', ' ', '#'])) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match line.strip_suffix('\\') {
            Some(line) => recipe.push_str(line),
            None => {
                recipe.push_str(line);
                recipe.push('\n');
            }
        }
    }
    for line in recipe.lines() {
        // The marks of make and just: silent, with its error ignored, and run in any case.
        let line = line.trim();
        let command = line.trim_start_matches(['@', '-', '+', ' ']);
        let marks = &line[..line.len() - command.len()];
        let command = command.replace("$$", "$");
        let room = MAX_PARTS.saturating_sub(parts.len());
        let mut commands = CommandPart::of_text(name, &command);
        for part in &mut commands {
            part.command.is_hidden |= marks.contains('-');
        }
        parts.extend(commands.into_iter().take(room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_a_rule_are_those_of_the_rules_that_it_needs_and_its_own() {
        let text = "check := 1\n.PHONY: test\ntest: build # all\n\t-@pytest -q && \\\n\t  node a.js\n\n\t@echo $$HOME\nbuild:\n\tgcc a.c\nother:\n\tfalse\n";
        let mut parts = Vec::new();
        add_rule(text, "test", &mut parts, 0);
        let told: Vec<_> =
            parts.iter().map(|part| (part.script.as_str(), part.command.text.as_str())).collect();
        assert_eq!(
            told,
            [("build", "gcc a.c"), ("test", "pytest -q"), ("test", "node a.js"), ("test", "echo $HOME")]
        );
        let hidden: Vec<_> = parts.iter().map(|part| part.command.is_hidden).collect();
        assert_eq!(hidden, [false, true, true, false], "`-` in front of a line");
    }
}
