//! The test command of a makefile or a justfile: its rule `test`, or make's `check`.

use super::command::{CommandPart, ProjectCommand};
use super::make_text::{MakeVariables, called_rules};
use super::shell::ShellOptions;
use crate::ci::project::Project;
use crate::testing::detect::{MAKEFILES, is_rule};
use std::collections::HashSet;

/// The number of commands that are told.
const MAX_PARTS: usize = 200;
/// The number of rules that a rule may need in a row.
const MAX_DEPTH: usize = 6;
/// The number of rules that are looked for.
const MAX_RULES: usize = 500;

/// Returns the command that runs the rule `test` of a makefile, or `check` where there is no such rule.
pub(super) fn make(project: &Project) -> ProjectCommand {
    let text = MAKEFILES.iter().find_map(|file| project.read(file)).unwrap_or_default();
    let has_rule = |name: &str| text.lines().any(|line| is_rule(line, name));
    let target = if !has_rule("test") && has_rule("check") { "check" } else { "test" };
    let mut parts = parts_of_rule(&text, target);
    let ignored = IgnoredRules::of(&text);
    for part in parts.iter_mut().filter(|part| ignored.has(&part.script)) {
        part.command.is_hidden = true;
    }
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
    ProjectCommand::new("just", &["test"], parts_of_rule(&text.unwrap_or_default(), "test"))
}

/// The rules whose commands may fail without a failure of make.
enum IgnoredRules {
    All,
    Named(Vec<String>),
}

impl IgnoredRules {
    /// Reads `.IGNORE:` and the option `-i` in `MAKEFLAGS`.
    fn of(text: &str) -> Self {
        let mut named = Vec::new();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            if let Some(rules) =
                line.strip_prefix(".IGNORE").and_then(|rest| rest.trim_start().strip_prefix(':'))
            {
                let rules: Vec<_> = rules.split_whitespace().map(str::to_owned).collect();
                if rules.is_empty() {
                    return Self::All;
                }
                named.extend(rules);
            }
            let assigned = line.trim_start().trim_start_matches("override ").trim_start_matches("export ");
            if let Some(flags) = assigned.strip_prefix("MAKEFLAGS").and_then(|rest| rest.split_once('='))
                && ignores_errors(flags.1.split_whitespace())
            {
                return Self::All;
            }
        }
        Self::Named(named)
    }

    fn has(&self, rule: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(rules) => rules.iter().any(|name| name == rule),
        }
    }
}

/// Returns true if the options of make ignore errors. The first word of `MAKEFLAGS` may be letters without a hyphen.
fn ignores_errors<'w>(options: impl Iterator<Item = &'w str>) -> bool {
    options.enumerate().any(|(index, option)| {
        let letters = option.strip_prefix('-').or(Some(option).filter(|_| index == 0));
        option == "--ignore-errors"
            || letters.is_some_and(|letters| {
                letters.chars().all(|letter| letter.is_ascii_alphabetic()) && letters.contains('i')
            })
    })
}

/// Returns the options that `.SHELLFLAGS` gives the shell of a recipe.
fn shell_options(text: &str) -> ShellOptions {
    let mut options = ShellOptions::default();
    for line in text.lines().filter(|line| line.starts_with(".SHELLFLAGS")) {
        let flags = line.split_once('=').map_or("", |(_, flags)| flags);
        options.apply(flags.split_whitespace());
    }
    options
}

/// Returns true if one shell runs all lines of a recipe.
fn is_one_shell(text: &str) -> bool {
    let is_set =
        |line: &str| line.strip_prefix(".ONESHELL").is_some_and(|rest| rest.trim_start().starts_with(':'));
    text.lines().any(is_set)
}

/// Returns the commands of a rule after those of the rules that it needs, as far as they are in this file.
fn parts_of_rule(text: &str, name: &str) -> Vec<CommandPart> {
    let mut rules = RuleReader {
        text,
        variables: MakeVariables::of(text),
        options: shell_options(text),
        is_one_shell: is_one_shell(text),
        seen: HashSet::new(),
        parts: Vec::new(),
    };
    rules.add_rule(name, 0);
    rules.parts
}

/// A reader of the rules that a rule needs, each of them once.
struct RuleReader<'f> {
    text: &'f str,
    variables: MakeVariables<'f>,
    options: ShellOptions,
    is_one_shell: bool,
    /// The names of the rules that were looked for.
    seen: HashSet<String>,
    parts: Vec<CommandPart>,
}

impl RuleReader<'_> {
    fn is_full(&self) -> bool {
        self.parts.len() >= MAX_PARTS || self.seen.len() >= MAX_RULES
    }

    fn add_rule(&mut self, name: &str, depth: usize) {
        if depth > MAX_DEPTH || self.is_full() || !self.seen.insert(name.to_owned()) {
            return;
        }
        let mut lines = self.text.lines();
        let Some(rule) = lines.find(|line| is_rule(line, name)) else { return };
        let (_, rule) = rule.split_once(':').unwrap_or_default();
        // Of a double colon the second one, and a recipe on the line of its rule.
        let (needed, first) = rule.trim_start_matches(':').split_once(';').unwrap_or((rule, ""));
        for needed in needed.split_whitespace().take_while(|word| !word.starts_with('#')) {
            self.add_rule(needed, depth + 1);
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
        // The marks of make and just: silent, with its error ignored, and run in any case.
        let without_marks = |line: &str| line.trim().trim_start_matches(['@', '-', '+', ' ']).to_owned();
        let lines: Vec<_> = if self.is_one_shell {
            vec![recipe.lines().map(without_marks).collect::<Vec<_>>().join("\n")]
        } else {
            recipe.lines().map(without_marks).collect()
        };
        let marked = if self.is_one_shell { vec![recipe.as_str()] } else { recipe.lines().collect() };
        for (line, marked) in lines.iter().zip(marked) {
            if self.is_full() {
                break;
            }
            let marks = marked.trim_start().trim_end_matches(|c| !matches!(c, '@' | '-' | '+' | ' '));
            let marks =
                marks.find(|c| !matches!(c, '@' | '-' | '+' | ' ')).map_or(marks, |end| &marks[..end]);
            let is_ignored = marks.contains('-');
            let line = self.variables.expand(line);
            for mut part in CommandPart::of_text(name, &line, self.options) {
                part.command.is_hidden |= is_ignored;
                self.add_part(part, depth);
            }
        }
    }

    /// Adds a command of a rule, or in its place those of the rules of the same file that it makes: `$(MAKE) unit`.
    fn add_part(&mut self, part: CommandPart, depth: usize) {
        if self.is_full() {
            return;
        }
        let called = called_rules(&part.command);
        let is_known = |rule: &String| self.text.lines().any(|line| is_rule(line, rule));
        if called.is_empty() || called.len() > MAX_RULES || !called.iter().all(is_known) || depth >= MAX_DEPTH
        {
            self.parts.push(part);
            return;
        }
        let first = self.parts.len();
        for rule in &called {
            self.add_rule(rule, depth + 1);
        }
        let ignores = ignores_errors(
            part.command.words.iter().map(String::as_str).filter(|word| word.starts_with('-')),
        );
        for made in self.parts.iter_mut().skip(first) {
            made.command.is_hidden |= part.command.is_hidden || ignores;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_a_rule_are_those_of_the_rules_that_it_needs_and_its_own() {
        let text = "check := 1\n.PHONY: test\ntest: build # all\n\t-@pytest -q && \\\n\t  node a.js\n\n\t@echo $$HOME\nbuild:\n\tgcc a.c\nother:\n\tfalse\n";
        let parts = parts_of_rule(text, "test");
        let told: Vec<_> =
            parts.iter().map(|part| (part.script.as_str(), part.command.text.as_str())).collect();
        assert_eq!(
            told,
            [("build", "gcc a.c"), ("test", "pytest -q"), ("test", "node a.js"), ("test", "echo $HOME")]
        );
        let hidden: Vec<_> = parts.iter().map(|part| part.command.is_hidden).collect();
        assert_eq!(hidden, [false, true, true, false], "`-` in front of a line");
    }

    #[test]
    fn commands_whose_failure_make_ignores_are_hidden() {
        let rules = "test: unit\n\tpytest -q\nunit:\n\t./unit_tests\n\t./more\n";
        for (before, hidden) in [
            ("", [false; 3]),
            (".IGNORE:\n", [true; 3]),
            (".IGNORE: unit\n", [true, true, false]),
            ("MAKEFLAGS += -i\n", [true; 3]),
            ("MAKEFLAGS := ki\n", [true; 3]),
            ("MAKEFLAGS += --no-print-directory -j4\n", [false; 3]),
            (".ONESHELL:\n", [true, false, false]),
            (".ONESHELL:\n.SHELLFLAGS = -ec\n", [false; 3]),
        ] {
            let text = format!("{before}{rules}");
            let parts = parts_of_rule(&text, "test");
            let ignored = IgnoredRules::of(&text);
            let found: Vec<_> =
                parts.iter().map(|part| part.command.is_hidden || ignored.has(&part.script)).collect();
            assert_eq!(found, hidden, "{before}");
        }
    }

    #[test]
    fn rules_that_need_each_other_many_times_are_read_once() {
        let needed = "a b ".repeat(1_000);
        let text = format!("test: {needed}\na: {needed}\nb: {needed}\n\tsh b.sh\n");
        assert_eq!(parts_of_rule(&text, "test").len(), 1);
        let long = format!("test:\n{}", "\t$(X) a.sh\n".repeat(1_000));
        assert_eq!(parts_of_rule(&long, "test").len(), MAX_PARTS);
    }
}
