//! The commands of a project's test command, and the processes that were found to be of each.

use super::command_words::{
    CommandPartMatch, WITH_REPORTER, is_command_of, may_run_tests, may_start, names, starts_packages,
};
use super::ignored_failure::IgnoredFailure;
use crate::shell_quote::shell_join;
use crate::testing::project_command::{CommandPart, ScriptCommand};
use crate::testing::results::{TestCommand, TestProcessReport, TestRunProblem, TestRunProblemKind};
use std::path::Path;

/// The name that TAP from standard output has in place of its runner's.
const TAP: &str = "tap";
/// The commands of a project's test command: those that its files name, and those that were found while it ran.
pub(super) struct CommandList<'a> {
    parts: &'a [CommandPart],
    folder: &'a Path,
    /// One for each part, then the others.
    pub(super) commands: Vec<TestCommand>,
    /// The part that each process is.
    part_of: Vec<Option<usize>>,
    /// The commands that failed without a report.
    pub(super) ignored_failures: Vec<IgnoredFailure>,
}

impl<'a> CommandList<'a> {
    pub(super) fn new(parts: &'a [CommandPart], folder: &'a Path, processes: &[TestProcessReport]) -> Self {
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
        let mut list = Self {
            parts,
            folder,
            commands: commands.collect(),
            part_of: vec![None; processes.len()],
            ignored_failures: Vec::new(),
        };
        list.match_parts(processes);
        list
    }

    /// Finds the part that each process is: first those whose arguments say so. The order in which processes begin
    /// says nothing where one of them died before it could tell that it had begun.
    fn match_parts(&mut self, processes: &[TestProcessReport]) {
        for least in [CommandPartMatch::Same, CommandPartMatch::Possible] {
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
    fn folder_of(&self, process: &TestProcessReport) -> String {
        let path = Path::new(&process.folder);
        path.strip_prefix(self.folder).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// Returns the first part that no process is and that this one matches so well.
    fn free_part(&self, process: &TestProcessReport, least: CommandPartMatch) -> Option<usize> {
        let fits = |part: &usize| {
            !self.is_taken(*part) && self.match_of(*part, process).is_some_and(|found| found >= least)
        };
        // One that probably holds no reporter is not the one that reports, if there is another like it.
        let is_isolated = |part: &usize| self.parts[*part].command.is_isolated();
        let usual = (0..self.parts.len()).find(|part| fits(part) && !is_isolated(part));
        usual.or_else(|| (0..self.parts.len()).find(fits))
    }

    /// Returns how well a process matches a part, if it may be it.
    fn match_of(&self, part: usize, process: &TestProcessReport) -> Option<CommandPartMatch> {
        let part = self.parts.get(part)?;
        let folder = self.folder_of(process);
        let fits = (part.folder == folder || !Path::new(&folder).is_relative())
            // Only package managers tell a process the script; the rule of a makefile is not known in it.
            && (process.script.as_ref().is_none_or(|script| *script == part.script))
            && is_command_of(part, process);
        fits.then(|| CommandPartMatch::of(part, process))
    }

    /// Adds a process that reported tests.
    pub(super) fn add_report(
        &mut self,
        process_index: usize,
        process: &TestProcessReport,
        runner: &str,
        problem: Option<&TestRunProblem>,
    ) {
        let counts = process.results.counts;
        let index = match (process.is_printed(), runner) {
            (false, _) => self.part_of.get(process_index).copied().flatten(),
            (true, TAP) => self.only_silent_part(),
            // Each of their runs is a report, in the order of the commands.
            (true, "bun" | "deno" | "phpunit") => {
                self.first_silent_part_with(runner).or_else(|| self.only_silent_part())
            }
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
    pub(super) fn add_without_report(&mut self, process_index: usize, process: &TestProcessReport) {
        if self.is_command_whose_failure_counts(process) {
            self.ignored_failures.extend(IgnoredFailure::of(process, self.folder));
        }
        let Some(index) = self.part_of.get(process_index).copied().flatten() else { return };
        let Some(command) = self.commands.get_mut(index) else { return };
        command.exit_code = process.exit_code;
        command.note = Some(match &process.uninstrumented {
            Some(why) => format!("its tests are not known: {why}"),
            None if process.exit_code.is_none() => {
                "it reported no test, and how it ended is not known".to_owned()
            }
            None => "all that is known is how it ended".to_owned(),
        });
    }

    /// Returns true if a process runs a file of the project as a command of its own, once or in a loop, and no shell looks
    /// at its exit code. What other programs start may be meant to fail.
    fn is_command_whose_failure_counts(&self, process: &TestProcessReport) -> bool {
        let runs_file = ["node", "python", "ruby"].contains(&process.program.as_str());
        if !runs_file || process.is_started_by_another {
            return false;
        }
        let mut fitting =
            self.parts.iter().enumerate().filter(|(index, _)| self.match_of(*index, process).is_some());
        match fitting.next() {
            // A server is ended by the script that has started it.
            Some((_, part)) => {
                let is_used = |part: &CommandPart| part.command.is_condition || part.command.is_background;
                !is_used(part) && !fitting.any(|(_, part)| is_used(part))
            }
            None => self.parts.is_empty() && process.exit_code.is_some(),
        }
    }

    /// Returns true if a command without a report may have started a runner of which nothing is known, however it ended
    /// itself.
    pub(super) fn may_have_started_a_runner(&self) -> bool {
        self.parts.is_empty() || (0..self.parts.len()).any(|index| self.is_silent(index))
    }

    /// Returns true unless what was read from standard output stands within the output of something else: the lines
    /// that a test prints are no report of another runner.
    pub(super) fn may_have_printed(&self, process: &TestProcessReport, runner: &str) -> bool {
        if !process.is_printed() || self.parts.is_empty() {
            return true;
        }
        match runner {
            // What a command prints from its own words is no report, if the tests of the others may fail without a trace.
            TAP if self.prints_tap() => self
                .parts
                .iter()
                .enumerate()
                .any(|(index, part)| self.is_silent(index) && !part.command.is_hidden),
            // One command may print several documents.
            TAP => (0..self.parts.len()).any(|index| self.is_silent(index) || self.has_printed_tap(index)),
            "bun" | "cargo" | "deno" | "go" | "phpunit" => {
                self.parts.iter().any(|part| may_start(&part.command, runner))
            }
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

    /// Returns the commands that ran tests or may have, of which nothing was reported, and whose failure the whole command
    /// would not have passed on: `pytest || true`.
    pub(super) fn unknown_outcomes(&self) -> Vec<String> {
        // Reports of processes that are no command of the project: what one of them started.
        let others = self.commands.get(self.parts.len()..).unwrap_or_default();
        let mut others: Vec<_> = others.iter().filter_map(|command| command.runner.as_deref()).collect();
        // Each with the command of the project that it is in.
        let tests_of = |part: &'a CommandPart| {
            let tests = part.command.test_commands().into_iter();
            tests.map(|command| (command, part.command.text.as_str()))
        };
        let mut open = Vec::new();
        for (part, command) in self.parts.iter().zip(&self.commands) {
            match command.runner.as_deref() {
                _ if command.exit_code == Some(0) => {}
                None => open.extend(tests_of(part)),
                // The report is that of one command of the script.
                Some(runner) if part.command.has_commands() => {
                    others.push(runner);
                    open.extend(tests_of(part));
                }
                Some(_) => {}
            }
        }
        // Returns true if a report that is of no command yet may be of this one, and takes it.
        let mut takes_report = |command: &ScriptCommand| {
            let is_printed = |runner: &&str| {
                ["bun", "cargo", "deno", "go", "phpunit"].contains(runner) && names(command, runner)
            };
            if others.iter().any(is_printed) {
                return true;
            }
            // The report of a runner that holds ours is that of its own command, and not of another one.
            let own = WITH_REPORTER.iter().copied().find(|runner| command.names_runner(runner));
            let found = others.iter().position(|runner| own.is_none_or(|own| own == *runner));
            found.map(|index| others.remove(index)).is_some()
        };
        let (hidden, known): (Vec<_>, Vec<_>) = open.into_iter().partition(|(command, _)| command.is_hidden);
        // What is known to have succeeded may be what has reported.
        for (command, _) in &known {
            takes_report(command);
        }
        let unknown = hidden.into_iter().filter(|(command, _)| !takes_report(command));
        unknown
            .map(|(command, whole)| match command.text == whole {
                true => format!("`{whole}`"),
                false => format!("`{}` in `{whole}`", command.text),
            })
            .collect()
    }

    /// Returns true if a command of the project prints TAP that stands in its own words: `printf '1..1\nok 1\n'`.
    fn prints_tap(&self) -> bool {
        self.parts.iter().any(|part| {
            let has_tap =
                |word: &String| word.starts_with("1..") || word.starts_with("ok ") || word.contains("\\nok ");
            ["echo", "printf"].contains(&part.command.program()) && part.command.words.iter().any(has_tap)
        })
    }

    /// Returns true if a command may have printed the summary of a runner that holds no reporter of ours. `is_silent`
    /// says that nothing reported a test.
    pub(super) fn may_have_unreported_tests(&self, is_silent: bool) -> bool {
        self.parts.is_empty()
            || (0..self.parts.len()).any(|index| {
                let is_known_to_pass =
                    self.commands.get(index).is_some_and(|command| command.exit_code == Some(0));
                self.is_silent(index) && (is_silent || !is_known_to_pass)
            })
    }

    /// Returns true if a command that may start any program reported nothing, and its failure would not have been passed
    /// on.
    pub(super) fn hides_a_silent_command(&self) -> bool {
        (0..self.parts.len()).any(|index| {
            self.is_silent(index)
                && self.parts[index].command.is_hidden
                && self.commands.get(index).is_some_and(|command| command.exit_code != Some(0))
        })
    }

    /// Returns true if a script in a file or in `sh -c`, which reported nothing, may have printed that a test failed and
    /// ended with exit code 0 all the same.
    pub(super) fn has_script_that_hides_failures(&self) -> bool {
        (0..self.parts.len()).any(|index| self.is_silent(index) && self.parts[index].command.hides_failures())
    }

    /// Returns true if a rule of a makefile has a command that may have run tests, reported nothing, and may fail without a
    /// failure of make. A rule that is not in the makefile itself may have any.
    pub(super) fn hides_a_command_of_rule(&self, rule: &str) -> bool {
        let mut parts = (0..self.parts.len()).filter(|index| self.parts[*index].script == rule).peekable();
        parts.peek().is_none()
            || parts.any(|index| {
                let part = &self.parts[index].command;
                let is_known = self.commands.get(index).is_some_and(|command| command.exit_code == Some(0));
                self.is_silent(index) && part.is_hidden && may_run_tests(part) && !is_known
            })
    }

    /// Returns the number of commands whose tests a runner of this name has reported.
    pub(super) fn reports_of(&self, runner: &str) -> usize {
        self.commands.iter().filter(|command| command.runner.as_deref() == Some(runner)).count()
    }

    /// Returns the commands that a report tells of: all but one that only started others, which have reported themselves.
    pub(super) fn into_commands(mut self) -> Vec<TestCommand> {
        let is_silent_starter = |index: &usize| {
            let (part, command) = (&self.parts[*index], &self.commands[*index]);
            command.runner.is_none() && command.exit_code.is_none() && starts_packages(&part.command)
        };
        let mut starters = (0..self.parts.len()).filter(is_silent_starter);
        // With several, a report does not tell which of them it is of.
        if let (Some(starter), None) = (starters.next(), starters.next()) {
            let folder = &self.commands[starter].folder;
            let is_started = |command: &TestCommand| command.runner.is_some() && command.folder != *folder;
            if self.commands[self.parts.len()..].iter().any(is_started) {
                self.commands.remove(starter);
            }
        }
        self.commands
    }

    fn has_printed_tap(&self, index: usize) -> bool {
        self.commands.get(index).is_some_and(|command| command.runner.as_deref() == Some(TAP))
    }

    /// Returns true for a part without another report that may print one.
    fn is_silent(&self, index: usize) -> bool {
        self.parts.get(index).is_some_and(|part| may_run_tests(&part.command))
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

    /// Returns the first part whose words name a runner and of which there is no report yet.
    fn first_silent_part_with(&self, runner: &str) -> Option<usize> {
        (0..self.parts.len())
            .find(|index| names(&self.parts[*index].command, runner) && self.is_silent(*index))
    }

    /// Returns the problem of a command that failed and whose TAP has no failure: it may have ended in the middle.
    pub(super) fn failed_beside_its_report(&self) -> Option<TestRunProblem> {
        self.commands.iter().filter(|command| command.runner.is_some()).find_map(|command| {
            let code = command.exit_code.filter(|code| *code != 0)?;
            let message = format!(
                "`{}` failed with exit code {code} without a failed test, though the whole command ended with exit code 0",
                command.command
            );
            Some(TestRunProblem::new(TestRunProblemKind::RunnerFailed, message))
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

/// Returns a process that is no part of the script, as it was started.
fn shown(process: &TestProcessReport, runner: &str) -> String {
    if runner == TAP {
        return "TAP on standard output".to_owned();
    }
    if process.is_printed() {
        return format!("the report of {runner}");
    }
    let program = process.program.rsplit('/').next().unwrap_or(runner).to_owned();
    shell_join(std::iter::once(&program).chain(&process.arguments))
}
