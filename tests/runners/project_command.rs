//! The project's own test command, with everything that it runs, and its exit code above all.

use crate::support::SampleProject;
use core_tools::testing::{RunTests, TestReport, TestRunProblemKind};
use serde_json::json;
use std::collections::BTreeSet;
use std::process::Command;

macro_rules! sample {
    ($program:expr) => {
        match SampleProject::empty($program) {
            Some(sample) => sample,
            None => return,
        }
    };
}

fn all(sample: &SampleProject) -> TestReport {
    sample.try_run(&RunTests::new()).unwrap()
}

/// The exit code of `npm test` in a terminal.
fn npm_test(sample: &SampleProject) -> i32 {
    let output = Command::new("npm").arg("test").current_dir(sample.path()).output().unwrap();
    output.status.code().unwrap()
}

fn scripts(sample: &SampleProject, scripts: &serde_json::Value) {
    sample.write("package.json", &json!({"name": "sample", "private": true, "scripts": scripts}).to_string());
}

/// The command fails in a terminal, and the report has these counts and no success.
#[track_caller]
fn fails(sample: &SampleProject, passed: u64, failed: u64) -> TestReport {
    assert_ne!(npm_test(sample), 0, "the fixture fails");
    let report = all(sample);
    assert_eq!(report.success, Some(false), "{}", report.to_text());
    assert_eq!((report.passed, report.failed), (passed, failed), "{}", report.to_text());
    assert_eq!(report.command, "npm test");
    assert_ne!(report.exit_code, Some(0));
    report
}

const MOCHA_PASSES: &str = "it('passes', () => {});\n";
const MOCHA_FAILS: &str = "it('fails', () => { throw new Error('why'); });\n";
const JEST_FAILS: &str = "test('fails', () => { throw new Error('why'); });\n";
const JEST_PASSES: &str = "test('passes', () => {});\n";

#[test]
fn mocha_runs_below_its_folder_and_the_patterns_of_the_script() {
    let sample = sample!("mocha");
    scripts(&sample, &json!({"test": "mocha --recursive"}));
    sample.write("test/a.js", MOCHA_PASSES).write("test/deep/b.js", MOCHA_FAILS);
    let report = fails(&sample, 1, 1);
    assert_eq!((report.runner, report.error.as_ref()), ("mocha", None), "{}", report.to_text());
    assert_eq!(report.tests[0].file.as_deref(), Some("test/deep/b.js"));

    let sample = sample!("mocha");
    scripts(&sample, &json!({"test": "mocha \"test/*.js\" \"src/**/*.spec.js\""}));
    sample.write("test/a.js", MOCHA_PASSES).write("src/b/b.spec.js", MOCHA_FAILS);
    fails(&sample, 1, 1);
}

#[test]
fn jest_has_the_configuration_and_the_environment_of_the_script() {
    let sample = sample!("jest");
    scripts(&sample, &json!({"test": "jest --config jest.all.json"}));
    sample.write("jest.all.json", "{\"testMatch\": [\"**/checks/*.js\", \"**/*.test.js\"]}");
    sample.write("a.test.js", JEST_PASSES).write("checks/b.js", JEST_FAILS);
    let report = fails(&sample, 1, 1);
    assert_eq!((report.runner, report.tests[0].line), ("jest", Some(1)), "{}", report.to_text());

    let sample = sample!("jest");
    scripts(&sample, &json!({"test": "MODE=strict jest"}));
    sample.write("a.test.js", "test('lenient', () => expect(process.env.MODE).toBeUndefined());\n");
    fails(&sample, 0, 1);
}

#[test]
fn vitest_has_the_configuration_of_the_script_and_checks_types_where_it_says_so() {
    let sample = sample!("vitest");
    sample.write(
        "package.json",
        "{\"type\":\"module\",\"scripts\":{\"test\":\"vitest run --config vt.all.js\"}}",
    );
    sample.write("vt.all.js", "export default { test: { include: ['**/*.check.js', '**/*.test.js'] } };\n");
    let head = "import { expect, test } from 'vitest';\n";
    sample.write("a.test.js", &format!("{head}{JEST_PASSES}"));
    sample.write("b.check.js", &format!("{head}{JEST_FAILS}"));
    assert_eq!(fails(&sample, 1, 1).runner, "vitest");

    let sample = sample!("vitest");
    sample.write("package.json", "{\"type\":\"module\",\"scripts\":{\"test\":\"vitest run --typecheck\"}}");
    sample.write("tsconfig.json", "{\"compilerOptions\":{\"strict\":true,\"skipLibCheck\":true,\"module\":\"esnext\",\"moduleResolution\":\"bundler\",\"noEmit\":true}}");
    sample.write("a.test.ts", &format!("{head}{JEST_PASSES}"));
    sample.write(
        "b.test-d.ts",
        "import { expectTypeOf, test } from 'vitest';\ntest('is a number', () => { expectTypeOf('a').toEqualTypeOf<number>(); });\n",
    );
    fails(&sample, 1, 1);
}

#[test]
fn node_runs_the_files_of_the_script_whatever_they_are_called() {
    let sample = sample!("node");
    scripts(&sample, &json!({"test": "node --test a.test.js checks/b.js"}));
    let head = "const { test } = require('node:test');\n";
    sample
        .write("a.test.js", &format!("{head}{JEST_PASSES}"))
        .write("checks/b.js", &format!("{head}{JEST_FAILS}"));
    let report = fails(&sample, 1, 1);
    assert_eq!((report.runner, report.error.as_ref()), ("node", None), "{}", report.to_text());
}

#[test]
fn every_command_of_a_script_counts() {
    let sample = sample!("vitest");
    sample.write(
        "package.json",
        "{\"type\":\"module\",\"scripts\":{\"test\":\"vitest run && node integration.js\"}}",
    );
    sample.write("a.test.js", &format!("import {{ test }} from 'vitest';\n{JEST_PASSES}"));
    sample.write("integration.js", "console.error('the server is down');\nprocess.exit(3);\n");
    let report = fails(&sample, 1, 0);
    let error = report.error.as_ref().unwrap();
    assert_eq!(error.kind, TestRunProblemKind::RunnerFailed);
    assert!(error.message.contains("`node integration.js` failed"), "{}", report.to_text());
    assert!(report.output.as_ref().unwrap().contains("the server is down"), "{}", report.to_text());
    let commands: Vec<_> = report
        .commands
        .iter()
        .map(|command| {
            (command.command.as_str(), command.runner.as_deref(), command.exit_code, command.passed)
        })
        .collect();
    assert_eq!(
        commands,
        [("vitest run", Some("vitest"), Some(0), 1), ("node integration.js", None, Some(3), 0)],
        "{}",
        report.to_text()
    );
}

#[test]
fn what_runs_before_and_after_the_tests_counts() {
    for (before, after) in [("node check.js", "true"), ("true", "node check.js")] {
        let sample = sample!("mocha");
        scripts(&sample, &json!({"pretest": before, "test": "mocha", "posttest": after}));
        sample.write("test/a.js", MOCHA_PASSES).write("check.js", "process.exit(1);\n");
        let report = fails(&sample, u64::from(before == "true"), 0);
        let error = &report.error.as_ref().unwrap().message;
        assert!(error.contains("`node check.js` failed"), "{}", report.to_text());
        let scripts: Vec<_> =
            report.commands.iter().filter_map(|command| command.script.as_deref()).collect();
        assert_eq!(scripts, ["pretest", "test", "posttest"]);
    }
}

#[test]
fn an_exit_code_alone_verifies_nothing() {
    for script in ["node run.js || true", "node run.js; true", "./t.sh || true", "echo ok"] {
        let sample = sample!("node");
        scripts(&sample, &json!({"test": script}));
        sample.write("run.js", "console.log('ok');\nprocess.exit(1);\n");
        assert_eq!(npm_test(&sample), 0);
        let report = all(&sample);
        assert_eq!((report.success, report.passed, report.failed), (None, 0, 0), "{}", report.to_text());
        assert!(report.error.is_none() && report.tests.is_empty(), "{}", report.to_text());
        assert!(report.to_text().starts_with("NOTHING VERIFIED"), "{}", report.to_text());
        assert_eq!(serde_json::to_value(&report).unwrap()["success"], json!(null));
    }
    let sample = sample!("node");
    scripts(&sample, &json!({"test": "node run.js"}));
    sample.write("run.js", "console.log('half way');\nprocess.exit(4);\n");
    let report = fails(&sample, 0, 0);
    assert_eq!(report.error.as_ref().unwrap().kind, TestRunProblemKind::RunnerFailed);
    assert!(report.output.as_ref().unwrap().contains("half way"), "{}", report.to_text());
}

#[test]
fn a_failure_that_the_script_hides_is_no_success() {
    let sample = sample!("mocha");
    scripts(&sample, &json!({"test": "mocha || true"}));
    sample.write("test/a.js", MOCHA_PASSES).write("test/b.js", MOCHA_FAILS);
    assert_eq!(npm_test(&sample), 0);
    let report = all(&sample);
    assert_eq!((report.success, report.passed, report.failed), (Some(false), 1, 1), "{}", report.to_text());
    assert_eq!(report.error.as_ref().unwrap().kind, TestRunProblemKind::Mismatch);
}

#[test]
fn tap_is_read_wherever_it_appears() {
    let sample = sample!("node");
    sample.write("t.js", "console.log('TAP version 13\\n# a\\nok 1 adds\\nnot ok 2 divides\\n1..2');\n");
    scripts(&sample, &json!({"test": "node t.js | cat"}));
    let report = all(&sample);
    assert_eq!((report.success, report.passed, report.failed), (Some(false), 1, 1), "{}", report.to_text());
    assert_eq!(report.tests[0].name, "divides");
    sample.write("t.js", "console.log('hello\\nok 1 adds\\nok 2 divides\\n1..2');\n");
    scripts(&sample, &json!({"test": "echo first && node t.js"}));
    let report = all(&sample);
    assert_eq!((report.success, report.passed, report.failed), (Some(true), 2, 0), "{}", report.to_text());
}

#[test]
fn a_file_with_tests_of_node_reports_them_without_the_option() {
    let sample = sample!("node");
    scripts(&sample, &json!({"test": "node test/index.js"}));
    sample.write("test/index.js", "const { test } = require('node:test');\ntest('passes', () => {});\ntest('fails', () => { throw new Error('why'); });\n");
    let report = fails(&sample, 1, 1);
    assert_eq!(report.runner, "node");
}

#[test]
fn the_reporters_of_the_project_stay() {
    let sample = sample!("mocha");
    scripts(&sample, &json!({"test": "mocha --reporter json --reporter-option output=own.json"}));
    sample.write("test/a.js", MOCHA_FAILS);
    fails(&sample, 0, 1);
    assert!(sample.path().join("own.json").exists());

    let sample = sample!("jest");
    sample.write(
        "own.js",
        "module.exports = class { onRunComplete() { require('fs').writeFileSync('own.json', '{}'); } };\n",
    );
    sample.write("package.json", "{\"scripts\":{\"test\":\"jest\"},\"jest\":{\"reporters\":[\"./own.js\"]}}");
    sample.write("a.test.js", JEST_FAILS);
    fails(&sample, 0, 1);
    assert!(sample.path().join("own.json").exists());

    let sample = sample!("vitest");
    sample.write("package.json", "{\"type\":\"module\",\"scripts\":{\"test\":\"vitest run\"}}");
    sample.write(
        "vitest.config.js",
        "export default { test: { reporters: ['junit'], outputFile: 'own.json' } };\n",
    );
    sample.write("a.test.js", &format!("import {{ test }} from 'vitest';\n{JEST_FAILS}"));
    fails(&sample, 0, 1);
    assert!(sample.path().join("own.json").exists());

    let sample = sample!("@playwright/test");
    scripts(&sample, &json!({"test": "playwright test"}));
    sample.write(
        "playwright.config.js",
        "module.exports = { reporter: [['json', { outputFile: 'own.json' }]] };\n",
    );
    sample.write("a.spec.js", &format!("const {{ test }} = require('@playwright/test');\n{JEST_FAILS}"));
    fails(&sample, 0, 1);
    assert!(sample.path().join("own.json").exists());

    let sample = sample!("node");
    scripts(
        &sample,
        &json!({"test": "node --test --test-reporter=dot --test-reporter-destination=own.json a.js"}),
    );
    sample.write("a.js", &format!("const {{ test }} = require('node:test');\n{JEST_FAILS}"));
    fails(&sample, 0, 1);
    assert!(sample.path().join("own.json").exists());
}

#[test]
fn the_script_may_set_options_of_node() {
    for set in ["NODE_OPTIONS=--no-warnings", "NODE_OPTIONS='--no-warnings --trace-exit'"] {
        let sample = sample!("mocha");
        scripts(&sample, &json!({"test": format!("{set} mocha")}));
        sample.write("test/a.js", MOCHA_PASSES).write("test/b.js", MOCHA_FAILS);
        fails(&sample, 1, 1);
    }
}

#[test]
fn every_version_of_node_reports() {
    for version in ["node22", "node24"] {
        let sample = sample!("node");
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../.nodes/node_modules");
        let node = root.join(version).join("bin/node");
        if integration_tests::require(node.exists().then_some(()), "no .nodes; `.ci/run tools` installs it")
            .is_none()
        {
            return;
        }
        scripts(&sample, &json!({"test": format!("{} --test", node.display())}));
        let head = "const { test } = require('node:test');\n";
        sample
            .write("a.test.js", &format!("{head}{JEST_PASSES}"))
            .write("b.test.js", &format!("{head}{JEST_FAILS}"));
        fails(&sample, 1, 1);
    }
}

/// Writes the names of its variables.
const WRITES_ENVIRONMENT: &str =
    "require('fs').writeFileSync('environment.json', JSON.stringify(process.env));\n";

#[test]
fn the_tests_have_the_environment_of_a_terminal() {
    let sample = sample!("mocha");
    scripts(&sample, &json!({"test": "mocha"}));
    sample.write("test/a.js", &format!("it('passes', () => {{ {WRITES_ENVIRONMENT} }});\n"));
    let names = || {
        let text = std::fs::read_to_string(sample.path().join("environment.json")).unwrap();
        let variables: serde_json::Value = serde_json::from_str(&text).unwrap();
        let names = variables.as_object().unwrap().keys().filter(|name| {
            // The first tells the processes of a run, and cargo and nextest set the others for this test.
            // What keeps git and ssh from asking is set for every command, and no program's output depends on it.
            !["PROCESS_RUNNER_RUN_", "CARGO", "NEXTEST", "RUST", "__", "CORETOOLS_", "GCM_", "SSH_ASKPASS"]
                .iter()
                .any(|start| name.starts_with(start))
                && *name != "FORCE_COLOR"
                && *name != "_"
        });
        names.cloned().collect::<BTreeSet<_>>()
    };
    assert_eq!(npm_test(&sample), 0);
    let in_terminal = names();
    let report = all(&sample);
    assert_eq!(report.success, Some(true), "{}", report.to_text());
    assert_eq!(names(), in_terminal);
    assert!(report.notes.iter().any(|note| note.contains("NODE_OPTIONS")), "{}", report.to_text());
}

#[test]
fn the_packages_of_a_workspace_are_one_report() {
    let sample = sample!("mocha");
    sample.write("package.json", "{\"private\":true,\"workspaces\":[\"packages/*\"]}");
    for (name, tests) in [("a", MOCHA_PASSES), ("b", MOCHA_FAILS)] {
        let package = json!({"name": name, "version": "1.0.0", "scripts": {"test": "mocha"}}).to_string();
        sample.write(&format!("packages/{name}/package.json"), &package);
        sample.write(&format!("packages/{name}/test/a.js"), tests);
    }
    let report = all(&sample);
    assert_eq!(report.command, "npm test --workspaces --if-present");
    assert_eq!((report.success, report.passed, report.failed), (Some(false), 1, 1), "{}", report.to_text());
    let folders: Vec<_> =
        report.commands.iter().map(|command| (command.folder.as_deref().unwrap(), command.failed)).collect();
    assert_eq!(folders, [("packages/a", 0), ("packages/b", 1)], "{}", report.to_text());
    // The same where the root says so itself.
    sample.write(
        "package.json",
        "{\"private\":true,\"workspaces\":[\"packages/*\"],\"scripts\":{\"test\":\"npm test --workspaces\"}}",
    );
    let report = all(&sample);
    assert_eq!(report.command, "npm test");
    assert_eq!((report.success, report.passed, report.failed), (Some(false), 1, 1), "{}", report.to_text());
    let folders: Vec<_> = report.commands.iter().map(|command| command.folder.as_deref()).collect();
    // The command of the root only starts the others, which report themselves.
    assert_eq!(folders, [Some("packages/a"), Some("packages/b")], "{}", report.to_text());
    assert!(!report.to_text().contains("no report of tests"), "{}", report.to_text());
    assert!(report.notes.iter().all(|note| !note.contains("not run")), "{}", report.to_text());
    // A script of the root is what the project runs; those of its packages are named.
    sample.write(
        "package.json",
        "{\"private\":true,\"workspaces\":[\"packages/*\"],\"scripts\":{\"test\":\"npm run lint && mocha packages/a/test\",\"lint\":\"true\"}}",
    );
    let report = all(&sample);
    assert_eq!((report.success, report.passed), (Some(true), 1), "{}", report.to_text());
    assert!(report.notes.iter().any(|note| note.ends_with("packages/a, packages/b")), "{}", report.to_text());
}

#[test]
fn scripts_that_the_test_command_calls_are_part_of_it_and_others_are_named() {
    let sample = sample!("mocha");
    scripts(
        &sample,
        &json!({"test": "npm run test:unit", "test:unit": "mocha", "test:e2e": "mocha e2e", "test:watch": "mocha -w"}),
    );
    sample.write("test/a.js", MOCHA_PASSES).write("e2e/b.js", MOCHA_FAILS);
    let report = all(&sample);
    assert_eq!((report.success, report.passed), (Some(true), 1), "{}", report.to_text());
    let [command] = &report.commands[..] else { panic!("{}", report.to_text()) };
    assert_eq!((command.command.as_str(), command.script.as_deref()), ("mocha", Some("test:unit")));
    assert!(report.notes.iter().any(|note| note.ends_with("not run: `test:e2e`")), "{}", report.to_text());
}

#[test]
fn a_runner_that_is_not_installed_is_told() {
    let sample = sample!("node");
    scripts(&sample, &json!({"test": "mocha --recursive"}));
    let report = fails(&sample, 0, 0);
    assert_eq!(
        report.error.as_ref().unwrap().kind,
        TestRunProblemKind::RunnerMissing,
        "{}",
        report.to_text()
    );
}

#[test]
fn a_part_of_the_tests_has_the_flags_and_the_environment_of_the_script() {
    let sample = sample!("jest");
    let package = json!({"scripts": {"test": "MODE=strict jest --config jest.all.json"}, "devDependencies": {"jest": "*"}});
    sample.write("package.json", &package.to_string());
    sample.write("jest.all.json", "{\"testMatch\": [\"**/checks/*.js\"]}");
    sample.write("checks/a.js", "test('is strict', () => expect(process.env.MODE).toBe('strict'));\n");
    sample.write("checks/b.js", JEST_FAILS);
    let report = sample.run("", "checks/a.js");
    assert_eq!((report.success, report.passed, report.failed), (Some(true), 1, 0), "{}", report.to_text());
    assert!(report.command.starts_with("MODE=strict node "), "{}", report.command);
    assert!(report.command.contains(" --config jest.all.json "), "{}", report.command);
}

#[test]
fn colours_are_no_part_of_a_message() {
    let sample = sample!("mocha");
    scripts(&sample, &json!({"test": "mocha"}));
    sample.write("test/a.js", "it('fails', () => { throw new Error('\\u001b[31mred\\u001b[39m'); });\n");
    let report = fails(&sample, 0, 1);
    let error = report.tests[0].error.as_ref().unwrap();
    assert!(error.contains("red") && !error.contains('\u{1b}'), "{error:?}");
}
