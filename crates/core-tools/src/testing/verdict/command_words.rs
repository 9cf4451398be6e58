//! The words of a command of a script: the programs that they name, and the processes that may be it.

use crate::testing::project_command::{CommandPart, ScriptCommand, file_name, is_keyword, split_commands};
use crate::testing::results::TestProcessReport;

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

/// Returns true if the words of a command name a program.
pub(super) fn names(command: &ScriptCommand, program: &str) -> bool {
    command.words.iter().any(|word| file_name(word.trim_start_matches('(')) == program)
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
        None => !OTHERS.contains(&name) && !NO_RUNNERS.contains(&name),
    }
}

/// Returns false for a command that runs no tests whatever it is given: `cat old.tap`.
pub(super) fn may_run_tests(command: &ScriptCommand) -> bool {
    match command.inner_commands() {
        Some(inner) => inner.iter().any(may_run_tests),
        None => !NO_RUNNERS.contains(&command.program()),
    }
}

/// Returns true for a command that starts those of other folders, and runs no tests of its own.
pub(super) fn starts_packages(command: &ScriptCommand) -> bool {
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

    /// Returns true if it runs tests, as far as its words say, and its failure is not passed on: by its script, by a
    /// shell that it starts, or by a script that it runs.
    pub(super) fn hides_its_tests(&self) -> bool {
        // Of a script in a file only what would have reported is told: it may be a build.
        let hides_runner = |inner: &Self| {
            (inner.is_hidden || self.is_hidden)
                && WITH_REPORTER.iter().any(|runner| inner.names_runner(runner))
        };
        self.file_commands.iter().any(hides_runner)
            || match self.inner_commands() {
                Some(mut inner) => inner.iter_mut().any(|inner| {
                    inner.is_hidden |= self.is_hidden;
                    inner.hides_its_tests()
                }),
                None => self.is_hidden && self.names_tests(),
            }
    }

    /// Returns true for a script in a file or in `sh -c` that does not pass on the failure of each of its commands.
    pub(super) fn hides_failures(&self) -> bool {
        // Commands that set something up or print, and check nothing.
        const NO_CHECKS: [&str; 7] = ["cd", "echo", "export", "printf", "set", "trap", "true"];
        let inner = self.inner_commands().unwrap_or_default();
        let may_check = |command: &Self| !NO_CHECKS.contains(&command.program());
        self.file_commands.iter().chain(&inner).any(|command| command.is_hidden && may_check(command))
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
    pub(super) fn names_tests(&self) -> bool {
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
        let is_test = |word: &String| names_test_file(word);
        // The file that a loop or `find` puts in the place of a word is one of those that these name.
        let is_test_of_many = |word: &String| {
            let is_of_many = word.contains('$') || word.contains("{}");
            is_of_many
                && (self.loop_words.iter().any(is_test)
                    || (self.is_find_of_many() && self.words.iter().any(is_test)))
        };
        let mut words = self.words.iter().skip_while(|word| is_keyword(word));
        if self.is_find_of_many() {
            words.by_ref().find(|word| word.starts_with("-exec") || *word == "-ok");
        }
        let words: Vec<&String> = words.collect();
        if words.first().is_some_and(|program| NO_RUNNERS.contains(&file_name(program))) {
            return names_runner;
        }
        let runs_file = match words.iter().position(|word| is_interpreter(word)) {
            Some(at) => words.iter().skip(at + 1).any(|word| is_test(word) || is_test_of_many(word)),
            None => words.first().is_some_and(|word| is_test(word) || is_test_of_many(word)),
        };
        names_runner || runs_file
    }
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
