//! The verdict on a project's own test command: each report that was found in it, and above them its exit code.

use super::exit::RunnerExit;
use super::explain::explain_failure;
use super::judge::judge;
use crate::ci::quote::shell_join;
use crate::testing::plan::TestStep;
use crate::testing::project_command::{CommandPart, file_name};
use crate::testing::results::{
    ProblemKind, ProcessReport, RunProblem, RunnerEnd, TestCommand, TestCounts, TestResults,
};
use crate::testing::runner::TestRunner;
use std::path::Path;

/// The name that TAP from standard output has in place of its runner's.
const TAP: &str = "tap";
/// The exit code of a shell that did not find a program.
const NOT_FOUND_CODE: u32 = 127;

/// The verdict on a project's own test command.
pub(super) struct ProjectVerdict {
    pub(super) problem: Option<RunProblem>,
    pub(super) commands: Vec<TestCommand>,
    /// It succeeded, and no test is known to have been executed.
    pub(super) is_unverified: bool,
    /// The failed tests explain the verdict without the output.
    pub(super) explains_itself: bool,
}

/// Judges the reports of the processes of `step`, moves their tests into `results`, and weighs the exit code of
/// the whole command above them.
pub(super) fn judge_project_command(
    step: &TestStep,
    folder: &Path,
    results: &mut TestResults,
    exit: RunnerExit,
    text: &str,
) -> ProjectVerdict {
    let processes = std::mem::take(&mut results.processes);
    let mut list = CommandList::new(&step.parts, folder);
    let mut problems: Vec<RunProblem> = results.problems.clone();
    for mut process in processes {
        let Some(runner) = process.runner.clone() else {
            list.add_without_report(&process);
            continue;
        };
        let problem = judge_process(&mut process, &runner, exit, text);
        list.add_report(&process, &runner, problem.as_ref());
        problems.extend(problem);
        results.absorb(process.results);
    }
    let failed_silently = list.failed_without_report();
    let counts = results.counts;
    let problem = match exit {
        RunnerExit::Exited(code) => {
            exit_problem(step, code, problems, counts, failed_silently.as_deref(), text)
        }
        exit => judge(results, exit, None),
    };
    let is_unverified = exit == RunnerExit::Exited(0) && problem.is_none() && counts.executed() == 0;
    ProjectVerdict {
        explains_itself: problem.is_none() && failed_silently.is_none() && !is_unverified,
        problem,
        commands: list.commands,
        is_unverified,
    }
}

/// Returns what is wrong with the report of one process, whatever the whole command came to.
fn judge_process(
    process: &mut ProcessReport,
    runner: &str,
    exit: RunnerExit,
    text: &str,
) -> Option<RunProblem> {
    let process_program = &process.program;
    let results = &mut process.results;
    let own_exit = match (process.exit_code, exit) {
        (Some(code), _) => RunnerExit::Exited(code),
        // The end of its report is there, and its exit code is not: it agrees with the report.
        (None, RunnerExit::Exited(_))
            if is_printed(process_program) || results.runner_end == RunnerEnd::Reached =>
        {
            RunnerExit::Exited(u32::from(results.counts.failed > 0))
        }
        (None, RunnerExit::Exited(_)) => RunnerExit::Unknown,
        (None, exit) => exit,
    };
    if let (true, Some(runner)) = (own_exit != RunnerExit::Exited(0), TestRunner::from_name(runner)) {
        let explained = explain_failure(runner, text, results);
        results.problems.extend(explained);
    }
    let problem = judge(results, own_exit, None)?;
    // A runner that is content without tests is none of our business; the whole command says whether it counts.
    (problem.kind != ProblemKind::NoTests || own_exit != RunnerExit::Exited(0)).then_some(problem)
}

/// Returns true for a report that was read from standard output, or from a file that the command was told to write:
/// of which program it is, nothing says.
fn is_printed(program: &str) -> bool {
    program.is_empty()
}

/// Returns the problem of a command that ended with an exit code, which outranks the reports in it.
fn exit_problem(
    step: &TestStep,
    code: u32,
    problems: Vec<RunProblem>,
    counts: TestCounts,
    failed_silently: Option<&str>,
    text: &str,
) -> Option<RunProblem> {
    // A runner without tests is a problem only where the project takes it for one.
    let gravest = problems
        .into_iter()
        .filter(|problem| code != 0 || problem.kind != ProblemKind::NoTests)
        .min_by_key(|problem| problem.kind);
    if gravest.is_some() {
        return gravest;
    }
    if code == 0 {
        return (counts.failed > 0).then(|| {
            let message = format!(
                "the exit code of `{}` is 0, though {} tests failed in it",
                step.display, counts.failed
            );
            RunProblem::new(ProblemKind::Mismatch, message)
        });
    }
    if counts.failed > 0 {
        return None;
    }
    let command = &step.display;
    if counts.total() == 0
        && (code == NOT_FOUND_CODE || text.contains("Error 127"))
        && let Some(line) =
            text.lines().find(|line| line.contains("not found") || line.contains("No such file"))
    {
        let is_of_node = ["npm", "pnpm", "yarn", "bun"].contains(&step.program.as_str());
        let advice = if is_of_node {
            format!(". Its dependencies are usually installed so: {} install", step.program)
        } else {
            String::new()
        };
        let message = format!("{}{advice}", line.trim());
        return Some(RunProblem::new(ProblemKind::RunnerMissing, message));
    }
    let culprit = failed_silently.map_or_else(String::new, |command| format!(": {command} failed"));
    let message = match counts.total() {
        0 => format!("`{command}` failed with exit code {code} and reported no test{culprit}"),
        total => format!(
            "`{command}` failed with exit code {code}, though none of the {total} tests that were reported failed{culprit}"
        ),
    };
    Some(RunProblem::new(ProblemKind::RunnerFailed, message))
}

/// The commands of a project's test command: those that its files name, and those that were found while it ran.
struct CommandList<'a> {
    parts: &'a [CommandPart],
    folder: &'a Path,
    /// One for each part, then the others.
    commands: Vec<TestCommand>,
    /// The parts that a process belongs to.
    is_matched: Vec<bool>,
}

impl<'a> CommandList<'a> {
    fn new(parts: &'a [CommandPart], folder: &'a Path) -> Self {
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
        Self { parts, folder, commands: commands.collect(), is_matched: vec![false; parts.len()] }
    }

    /// Returns the folder of a process, relative to the project's.
    fn folder_of(&self, process: &ProcessReport) -> String {
        let path = Path::new(&process.folder);
        path.strip_prefix(self.folder).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// Returns the first part that a process may be and that no other is.
    fn part_of(&self, process: &ProcessReport) -> Option<usize> {
        let folder = self.folder_of(process);
        let fits = |part: &CommandPart| {
            (part.folder == folder || !Path::new(&folder).is_relative())
                // Only package managers tell a process the script; the rule of a makefile is not known in it.
                && (process.script.as_ref().is_none_or(|script| *script == part.script))
                && is_command_of(part, process)
        };
        (0..self.parts.len()).find(|index| !self.is_matched[*index] && fits(&self.parts[*index]))
    }

    /// Adds a process that reported tests.
    fn add_report(&mut self, process: &ProcessReport, runner: &str, problem: Option<&RunProblem>) {
        let counts = process.results.counts;
        let index = match (is_printed(&process.program), runner) {
            (false, _) => self.part_of(process),
            (true, TAP) => self.only_silent_part(),
            (true, runner) => self.silent_part_with(runner).or_else(|| self.only_silent_part()),
        };
        let command = match index {
            Some(index) => {
                if let Some(is_matched) = self.is_matched.get_mut(index) {
                    *is_matched = true;
                }
                self.commands.get_mut(index)
            }
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
    fn add_without_report(&mut self, process: &ProcessReport) {
        let Some(index) = self.part_of(process) else { return };
        let (Some(command), Some(is_matched)) =
            (self.commands.get_mut(index), self.is_matched.get_mut(index))
        else {
            return;
        };
        *is_matched = true;
        command.exit_code = process.exit_code;
        command.note = Some(match &process.uninstrumented {
            Some(why) => format!("its tests are not known: {why}"),
            None => "all that is known is how it ended".to_owned(),
        });
    }

    /// Returns the one part that may have printed TAP, if there is only one without another report.
    fn only_silent_part(&self) -> Option<usize> {
        let mut silent = (0..self.parts.len()).filter(|index| self.commands[*index].runner.is_none());
        let first = silent.next()?;
        silent.next().is_none().then_some(first)
    }

    /// Returns the first part without another report whose words name a runner.
    fn silent_part_with(&self, runner: &str) -> Option<usize> {
        let names_it = |part: &CommandPart| part.command.words.iter().any(|word| file_name(word) == runner);
        (0..self.parts.len())
            .find(|index| self.commands[*index].runner.is_none() && names_it(&self.parts[*index]))
    }

    /// Returns a command that failed and reported no test, as far as exit codes are known.
    fn failed_without_report(&self) -> Option<String> {
        let failed = self
            .commands
            .iter()
            .find(|command| command.runner.is_none() && command.exit_code.is_some_and(|code| code != 0));
        failed.map(|command| format!("`{}`", command.command))
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
    if is_printed(&process.program) {
        return format!("the report of {runner}");
    }
    let program = process.program.rsplit('/').next().unwrap_or(runner).to_owned();
    shell_join(std::iter::once(&program).chain(&process.arguments))
}
