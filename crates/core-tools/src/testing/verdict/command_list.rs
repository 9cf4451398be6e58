//! The commands of a project's test command, and the processes that were found to be of each.

use crate::shell_quote::shell_join;
use crate::testing::project_command::{CommandPart, ScriptCommand, file_name, split_commands};
use crate::testing::results::{TestCommand, TestProcessReport, TestRunProblem, TestRunProblemKind};
use std::path::Path;

/// The name that TAP from standard output has in place of its runner's.
const TAP: &str = "tap";
/// Programs that run no tests, whatever their text looks like: they print what is in a file or comes from another one.
const NO_RUNNERS: &[&str] = &[
    "[",
    "awk",
    "biome",
    "cat",
    "cd",
    "chmod",
    "command",
    "cp",
    "curl",
    "cut",
    "echo",
    "eslint",
    "exit",
    "export",
    "false",
    "faucet",
    "grep",
    "hash",
    "head",
    "jq",
    "less",
    "ls",
    "mkdir",
    "more",
    "mv",
    "nl",
    "pip",
    "pip3",
    "printf",
    "prettier",
    "rg",
    "rimraf",
    "rm",
    "ruff",
    "sed",
    "set",
    "sleep",
    "sort",
    "standard",
    "tac",
    "tail",
    "tap-difflet",
    "tap-dot",
    "tap-min",
    "tap-nyan",
    "tap-parser",
    "tap-spec",
    "tee",
    "test",
    "touch",
    "tr",
    "true",
    "tsc",
    "tslint",
    "type",
    "wget",
    "xo",
];
/// Runners that hold a reporter of ours, where they are started as usual.
const WITH_REPORTER: &[&str] =
    &["ava", "jest", "mocha", "node", "playwright", "pytest", "rspec", "unittest", "vitest"];
/// Other runners, and programs that start some.
const WITHOUT_REPORTER: &[&str] = &[
    "behave", "busted", "bats", "bun", "cargo", "composer", "ctest", "cucumber", "cypress", "deno", "dotnet",
    "go", "gradle", "gradlew", "jasmine", "just", "karma", "make", "mix", "mvn", "mvnw", "nextest", "nose2",
    "nox", "pest", "phpunit", "prove", "rake", "stestr", "swift", "tape", "tap", "tox", "trial", "zig",
];
/// Programs that run a file.
const INTERPRETERS: &[&str] = &[
    "bash", "bundle", "dash", "elixir", "java", "julia", "lua", "perl", "php", "pypy3", "python", "python3",
    "ruby", "sh", "ts-node", "tsx", "uv", "zsh",
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
        let mut list =
            Self { parts, folder, commands: commands.collect(), part_of: vec![None; processes.len()] };
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

    /// Returns true unless what was read from standard output stands within the output of something else: the lines
    /// that a test prints are no report of another runner.
    pub(super) fn may_have_printed(&self, process: &TestProcessReport, runner: &str) -> bool {
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

    /// Returns the commands that ran tests or may have, of which nothing was reported, and whose failure the whole command
    /// would not have passed on: `pytest || true`.
    pub(super) fn unknown_outcomes(&self) -> Vec<&str> {
        // Reports of processes that are no command of the project: what one of them started.
        let others = self.commands.get(self.parts.len()..).unwrap_or_default();
        let mut others: Vec<_> = others.iter().filter_map(|command| command.runner.as_deref()).collect();
        let mut unknown = Vec::new();
        for (index, part) in self.parts.iter().enumerate() {
            let Some(command) = self.commands.get(index) else { continue };
            if !part.command.hides_its_tests() || command.runner.is_some() || command.exit_code == Some(0) {
                continue;
            }
            let is_printed = |runner: &&str| ["cargo", "go"].contains(runner) && names(&part.command, runner);
            if others.iter().any(is_printed) {
                continue;
            }
            // The report of a runner that holds ours is that of its own command, and not of another one.
            let own = WITH_REPORTER.iter().copied().find(|runner| part.command.names_runner(runner));
            match others.iter().position(|runner| own.is_none_or(|own| own == *runner)) {
                Some(other) => drop(others.remove(other)),
                None => unknown.push(part.command.text.as_str()),
            }
        }
        unknown
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

/// How well a process matches a part that it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CommandPartMatch {
    /// Its arguments are others.
    Other,
    /// Only a shell or a wrapper knows the arguments.
    Possible,
    /// The arguments are the same.
    Same,
}

impl CommandPartMatch {
    fn of(part: &CommandPart, process: &TestProcessReport) -> Self {
        // Of these the file has been compared, which is all that both have alike.
        if ["node", "python"].contains(&process.program.as_str()) {
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
    const OTHERS: [&str; 8] = ["ava", "jest", "mocha", "node", "pytest", "rspec", "tape", "vitest"];
    if names(command, program) {
        return true;
    }
    let name = command.program();
    match command.inner_commands() {
        Some(inner) => inner.iter().any(|inner| may_start(inner, program)),
        None => !OTHERS.contains(&name) && !NO_RUNNERS.contains(&name),
    }
}

/// Returns false for a command that runs no tests whatever it is given: `cat old.tap`.
fn may_run_tests(command: &ScriptCommand) -> bool {
    match command.inner_commands() {
        Some(inner) => inner.iter().any(may_run_tests),
        None => !NO_RUNNERS.contains(&command.program()),
    }
}

/// Returns true for a command that starts those of other folders, and runs no tests of its own.
fn starts_packages(command: &ScriptCommand) -> bool {
    const STARTERS: [&str; 9] = ["bun", "lerna", "make", "npm", "npx", "nx", "pnpm", "turbo", "yarn"];
    STARTERS.contains(&command.program()) && !WITH_REPORTER.iter().any(|runner| command.names_runner(runner))
}

impl ScriptCommand {
    /// Returns the commands of `sh -c TEXT`.
    fn inner_commands(&self) -> Option<Vec<Self>> {
        match &self.words[..] {
            [_, option, text, ..]
                if option == "-c" && ["sh", "bash", "dash", "zsh"].contains(&self.program()) =>
            {
                Some(split_commands(text))
            }
            _ => None,
        }
    }

    /// Returns true if it runs tests, as far as its words say, and its failure is not passed on: by its script, or by a
    /// shell that it starts.
    fn hides_its_tests(&self) -> bool {
        match self.inner_commands() {
            Some(mut inner) => inner.iter_mut().any(|inner| {
                inner.is_hidden |= self.is_hidden;
                inner.hides_its_tests()
            }),
            None => self.is_hidden && self.names_tests(),
        }
    }

    /// Returns true if its words take away what loads our reporter: `python -I`, `env -i`, `sudo`.
    fn is_isolated(&self) -> bool {
        const OTHER_ENVIRONMENTS: [&str; 6] = ["chroot", "docker", "doas", "podman", "ssh", "sudo"];
        let is_option = |word: &String| word.starts_with('-') && !word.starts_with("--");
        let of_python = self.words.iter().skip_while(|word| !file_name(word).starts_with("python")).skip(1);
        // What is left of `env` are its options.
        self.words.first().is_some_and(|word| word.starts_with('-'))
            || self.words.iter().any(|word| OTHER_ENVIRONMENTS.contains(&word.as_str()))
            || of_python.take_while(|word| is_option(word)).any(|word| word.contains(['I', 'E', 'S']))
    }

    fn names_runner(&self, runner: &str) -> bool {
        match runner {
            "node" => names(self, "node") && self.words.iter().any(|word| word == "--test"),
            "pytest" => names(self, runner) || names(self, "py.test"),
            "playwright" => names(self, runner) && self.words.iter().any(|word| word == "test"),
            runner => names(self, runner),
        }
    }

    /// Returns true if its words name a runner, or a file of tests that a program runs or that is one.
    fn names_tests(&self) -> bool {
        if NO_RUNNERS.contains(&self.program()) {
            return false;
        }
        let is_build =
            |word: &String| matches!(word.as_str(), "build" | "fmt" | "clippy" | "install" | "lint" | "vet");
        let is_tool_of_build = self.words.get(1).is_some_and(is_build);
        let names_runner = WITH_REPORTER.iter().any(|runner| self.names_runner(runner))
            || (!is_tool_of_build && WITHOUT_REPORTER.iter().any(|runner| names(self, runner)));
        let is_interpreter = |word: &String| {
            let name = file_name(word);
            INTERPRETERS.contains(&name) || name.starts_with("python3.") || name == "node"
        };
        let is_test = |word: &String| {
            let name = word.to_lowercase();
            !word.starts_with('-') && (name.contains("test") || name.contains("spec"))
        };
        let runs_file = match self.words.iter().position(is_interpreter) {
            Some(at) => self.words.iter().skip(at + 1).any(is_test),
            None => self.words.first().is_some_and(is_test),
        };
        names_runner || runs_file
    }
}

/// Returns true if a process may run the command of a part.
fn is_command_of(part: &CommandPart, process: &TestProcessReport) -> bool {
    let words = &part.command.words;
    let is_named = |name: &str| words.iter().any(|word| file_name(word) == name);
    let program = process.program.rsplit('/').next().unwrap_or(&process.program);
    // A script that runs its own tests.
    if program == "python" {
        return process.arguments.first().is_some_and(|script| words.contains(script));
    }
    if program == "unittest" {
        let is_python = |word: &String| file_name(word).starts_with("python");
        let is_django = is_named("manage.py") || is_named("django-admin");
        return is_named(program) || is_django || words.first().is_some_and(is_python);
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
