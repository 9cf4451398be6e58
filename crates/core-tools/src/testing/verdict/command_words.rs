//! The words of a command of a script: the programs that they name, and the processes that may be it.

use crate::testing::project_command::{
    CommandPart, ScriptCommand, ShellOptions, commands_of_shell, file_name, split_commands,
};
use crate::testing::results::TestProcessReport;

/// Programs that run no tests, whatever their text looks like: they print what is in a file or comes from another one.
const NO_RUNNERS: &[&str] = &[
    ":",
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
    "which",
    "xo",
];
/// Runners that hold a reporter of ours, where they are started as usual.
pub(super) const WITH_REPORTER: &[&str] =
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

/// The text that a command stands in.
#[derive(Clone, Copy)]
enum TextKind {
    /// A line of the project's own test command.
    Command,
    /// A script in a file.
    File,
    /// A script in a file that is a test itself.
    TestFile,
}

/// How well a process matches a part that it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CommandPartMatch {
    /// Its arguments are others.
    Other,
    /// Only a shell or a wrapper knows the arguments.
    Possible,
    /// The arguments are the same.
    Same,
}

impl CommandPartMatch {
    pub(super) fn of(part: &CommandPart, process: &TestProcessReport) -> Self {
        // Of these the file has been compared, which is all that both have alike.
        if ["node", "python", "ruby"].contains(&process.program.as_str()) {
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

/// The runners among those without a reporter that do something else as well, such as a build.
const WITH_OTHER_TASKS: &[&str] = &[
    "bun", "cargo", "composer", "deno", "dotnet", "go", "gradle", "gradlew", "just", "make", "mix", "mvn",
    "mvnw", "rake", "swift", "zig",
];

/// Returns true if the words of a command name a program.
pub(super) fn names(command: &ScriptCommand, program: &str) -> bool {
    command.words.iter().any(|word| file_name(word) == program)
}

/// Returns true for a word that names a program which runs no tests. A path names a program of the project.
fn is_no_runner(word: &str) -> bool {
    let is_of_system = !word.contains('/') || word.starts_with("/bin/") || word.starts_with("/usr/bin/");
    is_of_system && NO_RUNNERS.contains(&file_name(word))
}

/// Returns true for a command that names a program, or that may start any: a script, a wrapper. Of some it is known that
/// they do not.
pub(super) fn may_start(command: &ScriptCommand, program: &str) -> bool {
    const OTHERS: [&str; 8] = ["ava", "jest", "mocha", "node", "pytest", "rspec", "tape", "vitest"];
    if names(command, program) {
        return true;
    }
    let name = command.program();
    match command.inner_commands() {
        Some(inner) => inner.iter().any(|inner| may_start(inner, program)),
        None => !OTHERS.contains(&name) && !is_no_runner(first_word(command)),
    }
}

fn first_word(command: &ScriptCommand) -> &str {
    command.words.first().map_or("", String::as_str)
}

/// Returns false for a command that runs no tests whatever it is given: `cat old.tap`.
pub(super) fn may_run_tests(command: &ScriptCommand) -> bool {
    match command.inner_commands() {
        Some(inner) => inner.iter().any(may_run_tests),
        // Only variables get a value.
        None if command.words.is_empty() && !command.assignments.is_empty() => false,
        None => !is_no_runner(first_word(command)),
    }
}

/// Returns true for a command that starts those of other folders, and runs no tests of its own.
pub(super) fn starts_packages(command: &ScriptCommand) -> bool {
    const STARTERS: [&str; 9] = ["bun", "lerna", "make", "npm", "npx", "nx", "pnpm", "turbo", "yarn"];
    STARTERS.contains(&command.program()) && !WITH_REPORTER.iter().any(|runner| command.names_runner(runner))
}

impl ScriptCommand {
    /// Returns the commands of `sh -c TEXT` and of `eval TEXT`.
    fn inner_commands(&self) -> Option<Vec<Self>> {
        let [program, arguments @ ..] = self.words.as_slice() else { return None };
        if program == "eval" {
            return Some(split_commands(&arguments.join(" ")));
        }
        if !["sh", "bash", "dash", "zsh"].contains(&self.program()) {
            return None;
        }
        // `-ec` and `-o pipefail -c` are options as well.
        let at = arguments.iter().position(|word| is_command_option(word))?;
        let options = arguments.iter().take(at + 1).map(String::as_str);
        arguments.first().filter(|word| word.starts_with('-'))?;
        Some(commands_of_shell(arguments.get(at + 1)?, ShellOptions::of_words(options)))
    }

    /// Returns the commands in it that name tests: those of the script or the text that it runs, or else itself. The failure of a
    /// hidden one does not become that of the whole.
    pub(super) fn test_commands(&self) -> Vec<Self> {
        self.test_commands_in(TextKind::Command)
    }

    fn test_commands_in(&self, kind: TextKind) -> Vec<Self> {
        let is_test_file = self.words.iter().any(|word| names_test_file(word));
        let kind_of_file = if is_test_file { TextKind::TestFile } else { TextKind::File };
        let of_file = self.file_commands.iter().flat_map(|command| command.test_commands_in(kind_of_file));
        let inner = self.inner_commands().unwrap_or_default();
        let of_text = inner.iter().flat_map(|command| command.test_commands_in(kind));
        let found = of_file.chain(of_text);
        let found: Vec<_> =
            found.map(|command| Self { is_hidden: command.is_hidden || self.is_hidden, ..command }).collect();
        if found.is_empty() && self.names_tests_in(kind) { vec![self.clone()] } else { found }
    }

    fn names_tests_in(&self, kind: TextKind) -> bool {
        // The commands of a script in a file are not all there for tests: it may build something.
        let is_of_tests = |word: &String| names_test_file(word) || word.contains("check");
        let is_build = || {
            WITH_OTHER_TASKS.iter().any(|runner| names(self, runner))
                && !self.words.iter().skip(1).any(is_of_tests)
        };
        match kind {
            TextKind::Command => self.names_tests(),
            // A word without a folder is a function or an installed program: `test_expect_success` is none of the tests.
            TextKind::File => {
                let is_program = || self.is_test_program() && self.names_path_of_test();
                (self.names_a_runner() || self.runs_test_file() || is_program()) && !is_build()
            }
            // A test may look at the output of its programs, whatever they are called.
            TextKind::TestFile => (self.names_a_runner() || self.runs_test_file()) && !is_build(),
        }
    }

    /// Returns true if it, or a command of the script that it runs, is one that `matches` takes.
    pub(crate) fn any(&self, matches: &dyn Fn(&Self) -> bool) -> bool {
        matches(self) || self.file_commands.iter().any(|command| command.any(matches))
    }

    /// Returns true if the commands of the script in a file, or of the text, that it runs are known.
    pub(super) fn has_commands(&self) -> bool {
        !self.file_commands.is_empty() || self.inner_commands().is_some()
    }

    /// Returns true for a script in a file or in `sh -c` that does not pass on the failure of each of its commands.
    pub(super) fn hides_failures(&self) -> bool {
        // Commands that set something up or print, and check nothing.
        const NO_CHECKS: [&str; 7] = ["cd", "echo", "export", "printf", "set", "trap", "true"];
        let inner = self.inner_commands().unwrap_or_default();
        let may_check = |command: &Self| !NO_CHECKS.contains(&command.program());
        self.file_commands
            .iter()
            .chain(&inner)
            .any(|command| command.is_hidden && !command.words.is_empty() && may_check(command))
    }

    /// Returns true if its words take away what loads our reporter: `python -I`, `env -i`, `sudo`.
    pub(super) fn is_isolated(&self) -> bool {
        const OTHER_ENVIRONMENTS: [&str; 6] = ["chroot", "docker", "doas", "podman", "ssh", "sudo"];
        let is_option = |word: &String| word.starts_with('-') && !word.starts_with("--");
        let of_python = self.words.iter().skip_while(|word| !file_name(word).starts_with("python")).skip(1);
        // What is left of `env` are its options.
        self.words.first().is_some_and(|word| word.starts_with('-'))
            || self.words.iter().any(|word| OTHER_ENVIRONMENTS.contains(&word.as_str()))
            || of_python.take_while(|word| is_option(word)).any(|word| word.contains(['I', 'E', 'S']))
    }

    pub(super) fn names_runner(&self, runner: &str) -> bool {
        match runner {
            "node" => names(self, "node") && self.words.iter().any(|word| word == "--test"),
            "pytest" => names(self, runner) || names(self, "py.test"),
            "playwright" => names(self, runner) && self.words.iter().any(|word| word == "test"),
            runner => names(self, runner),
        }
    }

    /// Returns true if its words name a runner, or a file of tests that a program runs or that is one.
    pub(crate) fn names_tests(&self) -> bool {
        !is_no_runner(first_word(self))
            && (self.names_a_runner() || self.runs_test_file() || self.is_test_program())
    }

    fn names_a_runner(&self) -> bool {
        let is_build =
            |word: &String| matches!(word.as_str(), "build" | "fmt" | "clippy" | "install" | "lint" | "vet");
        let is_tool_of_build = self.words.get(1).is_some_and(is_build);
        !is_no_runner(first_word(self))
            && (WITH_REPORTER.iter().any(|runner| self.names_runner(runner))
                || (!is_tool_of_build && WITHOUT_REPORTER.iter().any(|runner| names(self, runner))))
    }

    /// Returns the words behind those that may stand before any program, and behind `find … -exec`.
    fn program_words(&self) -> Vec<&String> {
        let is_before = |word: &&String| {
            ["exec", "nice", "nohup", "time"].contains(&word.as_str()) || word.starts_with('-')
        };
        let mut words = self.words.iter().skip_while(is_before);
        if self.is_find_of_many() {
            words.by_ref().find(|word| word.starts_with("-exec") || *word == "-ok");
        }
        words.collect()
    }

    /// Returns true for a file of tests, and for a word in whose place a loop or `find` puts one.
    fn is_test_file(&self, word: &str) -> bool {
        let is_of_many = word.contains('$') || word.contains("{}");
        let is_test = |word: &String| names_test_file(word);
        names_test_file(word)
            || (is_of_many
                && (self.loop_words.iter().any(is_test)
                    || (self.is_find_of_many() && self.words.iter().any(is_test))))
    }

    /// Returns true if a program that runs files is given a file of tests: `sh tests/a.sh`.
    fn runs_test_file(&self) -> bool {
        let is_interpreter = |word: &String| {
            let name = file_name(word);
            INTERPRETERS.contains(&name) || name.starts_with("python3.") || name == "node"
        };
        let words = self.program_words();
        let at = words.iter().position(|word| is_interpreter(word));
        words.first().is_some_and(|word| !is_no_runner(word))
            && at.is_some_and(|at| words.iter().skip(at + 1).any(|word| self.is_test_file(word)))
    }

    /// Returns true if the first word is a path, or one that a loop over paths of tests puts in its place.
    fn names_path_of_test(&self) -> bool {
        let is_path = |word: &String| names_test_file(word) && word.contains('/');
        let words = self.program_words();
        words.first().is_some_and(|word| is_path(word) || self.loop_words.iter().any(is_path))
    }

    /// Returns true if the program itself is a file of tests: `./unit_tests`.
    fn is_test_program(&self) -> bool {
        let words = self.program_words();
        words.first().is_some_and(|word| !is_no_runner(word) && self.is_test_file(word))
    }
}

/// Returns true for the option of a shell behind which its text follows: `-c`, `-ec`.
fn is_command_option(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.ends_with('c')
}

/// Returns true if a process may run the command of a part.
pub(super) fn is_command_of(part: &CommandPart, process: &TestProcessReport) -> bool {
    let words = &part.command.words;
    let is_named = |name: &str| words.iter().any(|word| file_name(word) == name);
    let program = process.program.rsplit('/').next().unwrap_or(&process.program);
    // A script that runs its own tests.
    if ["python", "ruby"].contains(&program) {
        // A shell may have put the name in its place.
        let is_named = is_named(program) || (program == "python" && is_named("python3"));
        return process.arguments.first().is_some_and(|script| words.contains(script))
            || (is_named && words.last().is_some_and(|word| is_of_shell(word)));
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

/// Returns true for a word that is the path of a file of tests, as far as its name says.
pub(super) fn names_test_file(word: &str) -> bool {
    let name = word.to_lowercase();
    !word.starts_with('-') && (name.contains("test") || name.contains("spec") || name.ends_with(".t"))
}
