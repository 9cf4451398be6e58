//! The options and the variables that a project gives its runner, for a run of a part of its tests.

use super::script::{ScriptCommand, file_name};
use crate::testing::runner::TestRunner;

/// The options and the variables with which a project's script calls a runner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunnerFlags {
    pub(crate) assignments: Vec<(String, String)>,
    /// The options without those that select tests, report or watch: a request says which tests, and a report
    /// is ours.
    pub(crate) options: Vec<String>,
}

/// Options that take no value, where a word that follows is a file.
const SWITCHES: [&str; 62] = [
    "A",
    "S",
    "all",
    "allow-uncaught",
    "allowOnly",
    "b",
    "bail",
    "check-leaks",
    "ci",
    "color",
    "colors",
    "debug",
    "delay",
    "detectOpenHandles",
    "diff",
    "dry-run",
    "e",
    "enable-source-maps",
    "errorOnDeprecated",
    "exit",
    "expand",
    "expose-gc",
    "expose_gc",
    "fail-fast",
    "failFast",
    "failZero",
    "fail-zero",
    "forbid-only",
    "forbid-pending",
    "forceExit",
    "full-trace",
    "fully-parallel",
    "globals",
    "headed",
    "i",
    "inline-diffs",
    "isolate",
    "json",
    "leaks",
    "logHeapUsage",
    "o",
    "onlyChanged",
    "p",
    "parallel",
    "pass-on-failing-test-suite",
    "pass-with-no-tests",
    "passWithNoTests",
    "quiet",
    "recursive",
    "runInBand",
    "s",
    "serial",
    "silent",
    "sort",
    "standalone",
    "test",
    "test-force-exit",
    "test-only",
    "typecheck",
    "useStderr",
    "v",
    "verbose",
];
/// Options that select tests, report, measure or watch, and take a value.
const LEFT_OUT_WITH_VALUE: [&str; 24] = [
    "f",
    "fgrep",
    "findRelatedTests",
    "g",
    "grep",
    "m",
    "match",
    "O",
    "R",
    "reporter",
    "reporter-option",
    "reporter-options",
    "reporters",
    "runTestsByPath",
    "shard",
    "spec",
    "t",
    "test-name-pattern",
    "test-reporter",
    "test-reporter-destination",
    "testNamePattern",
    "testPathPattern",
    "testPathPatterns",
    "test-skip-pattern",
];
/// Options of these kinds without a value. A part of the tests does not reach the coverage of all.
const LEFT_OUT: [&str; 8] =
    ["collectCoverage", "coverage", "experimental-test-coverage", "run", "tap", "ui", "watch", "watchAll"];

/// Returns the flags of the first command that calls a runner, or none where its words are known only to a shell.
pub(crate) fn runner_flags<'a>(
    commands: impl IntoIterator<Item = &'a ScriptCommand>,
    runner: TestRunner,
) -> Option<RunnerFlags> {
    commands.into_iter().find_map(|command| {
        let at = runner_position(command, runner)?;
        let words: Vec<_> = command.words.get(at + 1..)?.iter().map(String::as_str).collect();
        // The runner is started without a shell, which would have expanded such words.
        let is_for_a_shell = |word: &&str| word.contains(['$', '`', '>', '<']);
        if words.iter().any(is_for_a_shell) {
            return None;
        }
        Some(RunnerFlags { assignments: command.assignments.clone(), options: options(&words, runner) })
    })
}

fn runner_position(command: &ScriptCommand, runner: TestRunner) -> Option<usize> {
    let position = |name: &str| command.words.iter().position(|word| file_name(word) == name);
    match runner {
        TestRunner::Node => position("node").filter(|_| command.words.iter().any(|word| word == "--test")),
        TestRunner::Mocha => position("mocha").or_else(|| position("_mocha")),
        runner => position(runner.name()),
    }
}

fn options(words: &[&str], runner: TestRunner) -> Vec<String> {
    let mut options = Vec::new();
    let mut words = words.iter().peekable();
    while let Some(&word) = words.next() {
        if word == "--" {
            break;
        }
        // Files are selected by the request, and `run` or `test` is a subcommand.
        if !word.starts_with('-') {
            continue;
        }
        let text = word.trim_start_matches('-');
        let (name, has_value) = text.split_once('=').map_or((text, false), |(name, _)| (name, true));
        let is_left_out_with_value = LEFT_OUT_WITH_VALUE.contains(&name);
        let is_left_out = is_left_out_with_value
            || LEFT_OUT.iter().any(|other| name == *other || name.strip_prefix(other).is_some_and(|rest| rest.starts_with(['.', 'D', 'R', 'T', 'P'])))
            // For other runners these are something else.
            || (runner == TestRunner::Node && name == "test")
            || (runner == TestRunner::Mocha && name == "w");
        let is_switch = SWITCHES.contains(&name)
            || name.starts_with("no-")
            || name.starts_with("experimental-")
            || (LEFT_OUT.contains(&name))
            || (runner == TestRunner::Mocha && name == "c")
            || (runner == TestRunner::Deno && !["c", "config", "import-map"].contains(&name));
        if !is_left_out {
            options.push(word.to_owned());
        }
        if !has_value
            && !is_switch
            && let Some(value) = words.next_if(|next| !next.starts_with('-'))
            && !is_left_out
        {
            options.push((*value).to_owned());
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::project_command::shell::split_commands;

    fn flags(script: &str, runner: TestRunner) -> String {
        let flags = runner_flags(&split_commands(script), runner).unwrap_or_default();
        let variables = flags.assignments.iter().map(|(name, value)| format!("{name}={value}"));
        variables.chain(flags.options).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_flags_of_the_script_are_kept_without_what_selects_reports_measures_or_watches() {
        for (script, runner, expected) in [
            (
                "tsc && MODE=strict jest --config jest.all.json src",
                TestRunner::Jest,
                "MODE=strict --config jest.all.json",
            ),
            ("jest --coverage --coverageThreshold={} -t x --ci a.js", TestRunner::Jest, "--ci"),
            (
                "mocha -R dot -r ts-node/register --recursive \"test/*.ts\"",
                TestRunner::Mocha,
                "-r ts-node/register --recursive",
            ),
            (
                "npx vitest run --config vt.all.js --typecheck",
                TestRunner::Vitest,
                "--config vt.all.js --typecheck",
            ),
            ("node --import tsx --test --test-reporter spec a.ts", TestRunner::Node, "--import tsx"),
            (
                "playwright test --project=chromium --reporter=list",
                TestRunner::Playwright,
                "--project=chromium",
            ),
            ("jest --config $CONFIG", TestRunner::Jest, ""),
            ("node a.js", TestRunner::Node, ""),
        ] {
            assert_eq!(flags(script, runner), expected, "{script}");
        }
    }
}
