//! The commands of a project's test command, and the processes that were found to be of each.

use crate::ci::shell_quote::shell_join;
use crate::testing::project_command::{CommandPart, ScriptCommand, file_name, split_commands};
use crate::testing::results::{ProblemKind, ProcessReport, RunProblem, TestCommand};
use std::path::Path;

/// The name that TAP from standard output has in place of its runner's.
const TAP: &str = "tap";
/// Programs that print no report of tests, whatever their text looks like.
const NO_RUNNERS: [&str; 26] = [
    "[", "biome", "cd", "chmod", "cp", "echo", "eslint", "exit", "export", "false", "mkdir", "mv", "printf",
    "prettier", "rimraf", "rm", "ruff", "set", "sleep", "standard", "test", "touch", "true", "tsc", "tslint",
    "xo",
];

/// The commands of a project's test command: those that its files name, and those that were found while it ran.
pub(super) struct CommandList<'a> {
    parts: &'a [CommandPart],
    folder: &'a Path,
    /// One for each part, then the others.
    pub(super) commands: Vec<TestCommand>,
    /// The part that each process is.
    part_of: Vec<Option<usize>>,
}

impl<'a> CommandList<'a> {
    pub(super) fn new(parts: &'a [CommandPart], folder: &'a Path, processes: &[ProcessReport]) -> Self {
        let commands = parts.iter().map(|part| TestCommand {
            command: part.command.text.clone(),
            script: Some(part.script.clone()),
            folder: Some(part.folder.clone()).filter(|folder| !folder.is_empty()),
            runner: None,
            exit_code: None,
            passed: 0,
            failed: 0,
            skipped: 0,
            note: Some(
                "it did not run, or holds no reporter of ours, so that its exit code is not known".to_owned(),
            ),
        });
        let mut list =
            Self { parts, folder, commands: commands.collect(), part_of: vec![None; processes.len()] };
        list.match_parts(processes);
        list
    }

    /// Finds the part that each process is: first those whose arguments say so. The order in which processes begin
    /// says nothing where one of them died before it could tell that it had begun.
    fn match_parts(&mut self, processes: &[ProcessReport]) {
        for least in [PartMatch::Same, PartMatch::Possible] {
            for (index, process) in processes.iter().enumerate() {
                if self.part_of[index].is_none() && !process.is_printed() {
                    self.part_of[index] = self.free_part(process, least);
                }
            }
        }
        // A wrapper may have changed the arguments of the only command that it can be.
        for (index, process) in processes.iter().enumerate() {
            let fits = |part: &usize| self.match_of(*part, process).is_some();
            let mut fitting = (0..self.parts.len()).filter(fits);
            if let (None, false, Some(part), None) =
                (self.part_of[index], process.is_printed(), fitting.next(), fitting.next())
                && !self.is_taken(part)
            {
                self.part_of[index] = Some(part);
            }
        }
    }

    fn is_taken(&self, part: usize) -> bool {
        self.part_of.contains(&Some(part))
    }

    /// Returns the folder of a process, relative to the project's.
    fn folder_of(&self, process: &ProcessReport) -> String {
        let path = Path::new(&process.folder);
        path.strip_prefix(self.folder).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// Returns the first part that no process is and that this one matches so well.
    fn free_part(&self, process: &ProcessReport, least: PartMatch) -> Option<usize> {
        (0..self.parts.len()).find(|part| {
            !self.is_taken(*part) && self.match_of(*part, process).is_some_and(|found| found >= least)
        })
    }

    /// Returns how well a process matches a part, if it may be it.
    fn match_of(&self, part: usize, process: &ProcessReport) -> Option<PartMatch> {
        let part = self.parts.get(part)?;
        let folder = self.folder_of(process);
        let fits = (part.folder == folder || !Path::new(&folder).is_relative())
            // Only package managers tell a process the script; the rule of a makefile is not known in it.
            && (process.script.as_ref().is_none_or(|script| *script == part.script))
            && is_command_of(part, process);
        fits.then(|| PartMatch::of(part, process))
    }

    /// Adds a process that reported tests.
    pub(super) fn add_report(
        &mut self,
        process_index: usize,
        process: &ProcessReport,
        runner: &str,
        problem: Option<&RunProblem>,
    ) {
        let counts = process.results.counts;
        let index = match (process.is_printed(), runner) {
            (false, _) => self.part_of.get(process_index).copied().flatten(),
            (true, TAP) => self.only_silent_part(),
            (true, runner) => self.only_silent_part_with(runner).or_else(|| self.only_silent_part()),
        };
        let command = match index {
            Some(index) => self.commands.get_mut(index),
            None => {
                let folder = self.folder_of(process);
                self.commands.push(TestCommand {
                    command: shown(process, runner),
                    script: process.script.clone(),
                    folder: Some(folder).filter(|folder| !folder.is_empty()),
                    runner: None,
                    exit_code: None,
                    passed: 0,
                    failed: 0,
                    skipped: 0,
                    note: None,
                });
                self.commands.last_mut()
            }
        };
        let Some(command) = command else { return };
        command.runner = Some(runner.to_owned());
        command.exit_code = process.exit_code.or(command.exit_code);
        (command.passed, command.failed, command.skipped) = (counts.passed, counts.failed, counts.skipped);
        command.note = match problem {
            Some(problem) => Some(problem.message.lines().next().unwrap_or_default().to_owned()),
            None if counts.executed() == 0 => Some("no test was executed".to_owned()),
            None => None,
        };
    }

    /// Adds a process without a report: a part of the command, or something that one of them started.
    pub(super) fn add_without_report(&mut self, process_index: usize, process: &ProcessReport) {
        let Some(index) = self.part_of.get(process_index).copied().flatten() else { return };
        let Some(command) = self.commands.get_mut(index) else { return };
        command.exit_code = process.exit_code;
        command.note = Some(match &process.uninstrumented {
            Some(why) => format!("its tests are not known: {why}"),
            None => "all that is known is how it ended".to_owned(),
        });
    }

    /// Returns true unless what was read from standard output stands within the output of something else: the lines
    /// that a test prints are no report of another runner.
    pub(super) fn may_have_printed(&self, process: &ProcessReport, runner: &str) -> bool {
        if !process.is_printed() || self.parts.is_empty() {
            return true;
        }
        match runner {
            // One command may print several documents.
            TAP => (0..self.parts.len()).any(|index| self.is_silent(index) || self.has_printed_tap(index)),
            "go" | "cargo" => self.parts.iter().any(|part| may_start(&part.command, runner)),
            _ => true,
        }
    }

    /// Returns true if a command of the project names cargo, or has reported suites of libtest.
    pub(super) fn runs_cargo(&self) -> bool {
        self.parts.iter().any(|part| names(&part.command, "cargo"))
            || self.commands.iter().any(|command| command.runner.as_deref() == Some("cargo"))
    }

    /// Returns true if a command of the project names prove, or has printed TAP, as it does.
    pub(super) fn runs_prove(&self) -> bool {
        self.parts.iter().any(|part| names(&part.command, "prove"))
            || (0..self.commands.len()).any(|index| self.has_printed_tap(index))
    }

    fn has_printed_tap(&self, index: usize) -> bool {
        self.commands.get(index).is_some_and(|command| command.runner.as_deref() == Some(TAP))
    }

    /// Returns true for a part without another report that may print one.
    fn is_silent(&self, index: usize) -> bool {
        let program = self.parts.get(index).map_or("", |part| part.command.program());
        !NO_RUNNERS.contains(&program)
            && self.commands.get(index).is_some_and(|command| command.runner.is_none())
    }

    /// Returns the one part that may have printed TAP, if there is only one without another report.
    fn only_silent_part(&self) -> Option<usize> {
        let mut silent = (0..self.parts.len()).filter(|index| self.is_silent(*index));
        let first = silent.next()?;
        silent.next().is_none().then_some(first)
    }

    /// Returns the part whose words name a runner, if there is only one: the text of several is one report.
    fn only_silent_part_with(&self, runner: &str) -> Option<usize> {
        let mut named = (0..self.parts.len()).filter(|index| names(&self.parts[*index].command, runner));
        let first = named.next()?;
        (named.next().is_none() && self.is_silent(first)).then_some(first)
    }

    /// Returns the problem of a command that failed and whose TAP has no failure: it may have ended in the middle.
    pub(super) fn failed_beside_its_report(&self) -> Option<RunProblem> {
        self.commands.iter().filter(|command| command.runner.is_some()).find_map(|command| {
            let code = command.exit_code.filter(|code| *code != 0)?;
            let message = format!(
                "`{}` failed with exit code {code} without a failed test, though the whole command ended with exit code 0",
                command.command
            );
            Some(RunProblem::new(ProblemKind::RunnerFailed, message))
        })
    }

    /// Returns a command that failed and reported no test, as far as exit codes are known.
    pub(super) fn failed_without_report(&self) -> Option<String> {
        let failed = self
            .commands
            .iter()
            .find(|command| command.runner.is_none() && command.exit_code.is_some_and(|code| code != 0));
        failed.map(|command| format!("`{}`", command.command))
    }
}

/// How well a process matches a part that it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PartMatch {
    /// Its arguments are others.
    Other,
    /// Only a shell or a wrapper knows the arguments.
    Possible,
    /// The arguments are the same.
    Same,
}

impl PartMatch {
    fn of(part: &CommandPart, process: &ProcessReport) -> Self {
        // Of node the file has been compared, which is all that both have alike.
        if process.program == "node" {
            return Self::Same;
        }
        let program = process.program.rsplit('/').next().unwrap_or_default();
        let runner = process.runner.as_deref().unwrap_or(program);
        let is_name = |word: &String| {
            let name = file_name(word);
            name == program || name == runner || name.strip_prefix('_') == Some(program)
        };
        let words = &part.command.words;
        match words.iter().rposition(is_name).and_then(|index| words.get(index + 1..)) {
            Some(arguments) if arguments == process.arguments => Self::Same,
            Some(arguments) if !arguments.iter().any(|word| is_of_shell(word)) => Self::Other,
            _ => Self::Possible,
        }
    }
}

/// Returns true for a word that a shell or a wrapper replaces.
fn is_of_shell(word: &str) -> bool {
    word.contains(['$', '*', '?', '{', '[', '~', '`', '(', ')'])
}

/// Returns true if the words of a command name a program.
fn names(command: &ScriptCommand, program: &str) -> bool {
    command.words.iter().any(|word| file_name(word.trim_start_matches('(')) == program)
}

/// Returns true for a command that names a program, or that may start any: a script, a wrapper. Of some it is known that
/// they do not.
fn may_start(command: &ScriptCommand, program: &str) -> bool {
    const OTHERS: [&str; 9] = ["ava", "cat", "jest", "mocha", "node", "pytest", "rspec", "tape", "vitest"];
    if names(command, program) {
        return true;
    }
    let name = command.program();
    match &command.words[..] {
        [_, option, text, ..] if option == "-c" && ["sh", "bash", "dash", "zsh"].contains(&name) => {
            split_commands(text).iter().any(|inner| may_start(inner, program))
        }
        _ => !OTHERS.contains(&name) && !NO_RUNNERS.contains(&name),
    }
}

/// Returns true if a process may run the command of a part.
fn is_command_of(part: &CommandPart, process: &ProcessReport) -> bool {
    let words = &part.command.words;
    let is_named = |name: &str| words.iter().any(|word| file_name(word) == name);
    let program = process.program.rsplit('/').next().unwrap_or(&process.program);
    if program == "unittest" {
        let is_python = |word: &String| file_name(word).starts_with("python");
        return is_named(program) || words.first().is_some_and(is_python);
    }
    if program != "node" {
        let runner = process.runner.as_deref().unwrap_or(program);
        return is_named(program) || is_named(runner) || is_named(&format!("_{program}"));
    }
    // The last word that is no option is the file, or the pattern of files.
    let file = words.iter().rev().find(|word| !word.starts_with('-')).map_or("", String::as_str);
    let file = file.trim_start_matches("./");
    // A shell may have replaced a pattern, and node the folder.
    let is_replaced = file == "." || file.contains(['*', '$', '{']);
    let runs_file = is_replaced || process.arguments.iter().any(|argument| argument.ends_with(file));
    (is_named("node") || part.command.program() == file_name(file))
        && (runs_file || file_name(file) == "node")
}

/// Returns a process that is no part of the script, as it was started.
fn shown(process: &ProcessReport, runner: &str) -> String {
    if runner == TAP {
        return "TAP on standard output".to_owned();
    }
    if process.is_printed() {
        return format!("the report of {runner}");
    }
    let program = process.program.rsplit('/').next().unwrap_or(runner).to_owned();
    shell_join(std::iter::once(&program).chain(&process.arguments))
}
