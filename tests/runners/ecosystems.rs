//! The test commands of ecosystems beside npm's: tox, nox, make, rake, Deno's tasks, programs of the project; and the
//! package managers of Node.

use crate::support::SampleProject;
use core_tools::testing::{RunTests, TestReport, TestRunProblemKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
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

/// All tests of a sample have these counts, and the verdict that follows from them.
#[track_caller]
fn counts(sample: &SampleProject, command: &str, passed: u64, failed: u64) -> TestReport {
    let report = all(sample);
    assert_eq!(report.command, command, "{}", report.to_text());
    assert_eq!((report.passed, report.failed), (passed, failed), "{}", report.to_text());
    assert_eq!(report.success, Some(failed == 0), "{}", report.to_text());
    assert!(report.error.is_none(), "{}", report.to_text());
    report
}

/// The commands of a report, each with the runner that reported it, and the numbers of tests.
fn told(report: &TestReport) -> Vec<(&str, Option<&str>, u64, u64)> {
    let commands = report.commands.iter();
    commands
        .map(|command| (command.command.as_str(), command.runner.as_deref(), command.passed, command.failed))
        .collect()
}

fn program(sample: &SampleProject, path: &str, text: &str) {
    sample.write(path, text);
    std::fs::set_permissions(sample.path().join(path), std::fs::Permissions::from_mode(0o755)).unwrap();
}

const PYTEST: &str = "import os
def test_passes():
    assert 'PYTEST_PLUGINS' not in os.environ and 'PYTHONPATH' not in os.environ
def test_fails():
    assert 1 == 2
";
const UNITTEST: &str = "import unittest
class SampleProject(unittest.TestCase):
    def test_passes(self):
        pass
    def test_fails(self):
        self.assertEqual(1, 2)
    def test_parts(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertNotEqual(number, 1)
    @unittest.skip('why')
    def test_is_skipped(self):
        pass
    @unittest.expectedFailure
    def test_is_known(self):
        self.fail()
";

#[test]
fn pytest_has_the_options_of_the_project() {
    let options = "addopts = -W error --doctest-modules\ntestpaths = checks\npython_files = check_*.py\n";
    let in_pyproject = "[tool.pytest.ini_options]\naddopts = '-W error --doctest-modules'\ntestpaths = ['checks']\npython_files = ['check_*.py']\n";
    for (file, text) in [
        ("pyproject.toml", in_pyproject.to_owned()),
        ("setup.cfg", format!("[tool:pytest]\n{options}")),
        ("tox.ini", format!("[pytest]\n{options}")),
        ("pytest.ini", format!("[pytest]\n{options}")),
    ] {
        let sample = sample!("pytest");
        sample.write(file, &text).write("elsewhere/check_b.py", PYTEST).write(
            "checks/check_a.py",
            "import warnings\ndef add():\n    \"\"\"\n    >>> add()\n    3\n    \"\"\"\n    return 3\ndef test_warns():\n    warnings.warn('why')\n",
        );
        counts(&sample, ".venv/bin/python -m pytest -q", 1, 1);
    }
}

#[test]
fn tox_runs_where_nothing_else_configures_the_tests() {
    let sample = sample!("tox");
    sample.write("checks/test_a.py", PYTEST).write(
        "tox.ini",
        "[tox]\nenv_list = one, two\nno_package = true\n[testenv]\nskip_install = true\nallowlist_externals = *\ncommands = {toxinidir}/.venv/bin/pytest -q checks\n[testenv:two]\npass_env = HOME\ncommands = {toxinidir}/.venv/bin/pytest -q checks -k passes\n",
    );
    let report = counts(&sample, "tox", 2, 1);
    let environments: Vec<_> = report
        .commands
        .iter()
        .map(|command| (command.script.as_deref(), command.runner.as_deref(), command.passed, command.failed))
        .collect();
    let pytest = Some("pytest");
    assert_eq!(
        environments,
        [(Some("one"), pytest, 1, 1), (Some("two"), pytest, 1, 0)],
        "{}",
        report.to_text()
    );
}

#[test]
fn tox_and_nox_are_named_where_pytest_is_configured_and_a_part_of_the_tests_is_of_pytest() {
    let sample = sample!("pytest");
    sample.write("tox.ini", "[tox]\nenv_list = py\n").write("noxfile.py", "").write("test_a.py", PYTEST);
    let part = sample.run("", "test_a.py::test_passes");
    assert_eq!(
        (part.command.as_str(), part.success),
        (".venv/bin/python -m pytest -q test_a.py::test_passes", Some(true))
    );
    sample.write("pytest.ini", "[pytest]\n");
    let report = counts(&sample, ".venv/bin/python -m pytest -q", 1, 1);
    assert!(report.notes[0].contains("tests of tox, nox, which were not run"), "{}", report.to_text());
}

#[test]
fn nox_runs_its_sessions_and_an_error_in_one_is_a_failure() {
    let sample = sample!("nox");
    let noxfile = |more: &str| {
        format!(
            "import nox\n@nox.session(venv_backend='none')\ndef unit(session):\n    session.run('.venv/bin/pytest', '-q', 'checks', '-k', 'passes')\n{more}"
        )
    };
    sample.write("checks/test_a.py", PYTEST).write("noxfile.py", &noxfile(""));
    let report = counts(&sample, "nox", 1, 0);
    assert_eq!((report.runner, report.commands[0].script.as_deref()), ("pytest", Some("unit")));
    sample.write(
        "noxfile.py",
        &noxfile("@nox.session(venv_backend='none')\ndef lint(session):\n    session.error('unclean')\n"),
    );
    let report = all(&sample);
    assert_eq!((report.success, report.passed), (Some(false), 1), "{}", report.to_text());
    assert_eq!(report.error.as_ref().unwrap().kind, TestRunProblemKind::RunnerFailed);
    assert!(report.output.as_ref().unwrap().contains("unclean"), "{}", report.to_text());
}

#[test]
fn a_package_whose_tests_within_it_use_unittest_is_run_by_unittest() {
    let Some(sample) = SampleProject::empty("python3") else { return };
    let test = "from unittest import TestCase\nclass T(TestCase):\n    def test_a(self): pass\n";
    for path in ["setup.py", "pkg/__init__.py", "pkg/tests/__init__.py"] {
        sample.write(path, "");
    }
    sample.write("pkg/tests/test_a.py", test);
    let report = sample.run("", "");
    assert_eq!((report.runner, report.passed), ("unittest", 1), "{}", report.to_text());
}

#[test]
fn a_project_of_unittest_alone_is_run_by_unittest() {
    let sample = sample!("python3");
    sample.write("setup.py", "").write("tests/__init__.py", "").write("tests/test_a.py", UNITTEST);
    let report = counts(&sample, "python3 -m unittest discover", 1, 2);
    assert_eq!((report.runner, report.skipped), ("unittest", 2), "{}", report.to_text());
    let names: Vec<_> = report.tests.iter().map(|test| test.name.as_str()).collect();
    assert!(names.contains(&"tests.test_a.SampleProject.test_parts (number=1)"), "{names:?}");
    let failure = report.tests.iter().find(|test| test.name.ends_with("test_fails")).unwrap();
    assert_eq!((failure.file.as_deref(), failure.line), (Some("tests/test_a.py"), Some(6)));
    let part = sample.run("", "tests/test_a.py::test_passes");
    assert_eq!((part.passed, part.failed, part.success), (1, 0, Some(true)), "{}", part.to_text());
    let folder = sample.run("", "tests");
    assert_eq!((folder.passed, folder.failed), (1, 2), "{}", folder.to_text());
    sample.write("tests/test_b.py", "import nothing_of_this_name\n");
    let broken = all(&sample);
    assert_eq!(
        broken.error.as_ref().unwrap().kind,
        TestRunProblemKind::CollectionError,
        "{}",
        broken.to_text()
    );
}

#[test]
fn a_lock_of_uv_creates_nothing_and_the_active_environment_runs() {
    let sample = sample!("python3");
    sample.write("pyproject.toml", "[project]\nname = \"sample\"\n").write("uv.lock", "version = 1\n");
    sample.write(
        "test_a.py",
        "import unittest\nclass A(unittest.TestCase):\n    def test_a(self):\n        pass\n",
    );
    let report = counts(&sample, "python3 -m unittest discover", 1, 0);
    assert!(report.notes[0].contains("`uv sync`"), "{}", report.to_text());
    assert!(!sample.path().join(".venv").exists());
}

#[test]
fn make_reports_what_the_programs_in_it_report() {
    let sample = sample!("pytest");
    if SampleProject::empty("make").is_none() || SampleProject::empty("node").is_none() {
        return;
    }
    sample.write("Makefile", "test: unit\n\t.venv/bin/python -m pytest -q checks\n\tnode --test a.test.js\n\t./t.sh # TAP\nunit:\n\t@python3 -m unittest units/test_u.py\n");
    let unit = "import unittest\nclass A(unittest.TestCase):\n    def test_a(self):\n        pass\n";
    sample.write("checks/test_a.py", "def test_a():\n    pass\n").write("units/test_u.py", unit);
    sample.write("a.test.js", "require('node:test').test('a', () => {});\n");
    program(&sample, "t.sh", "#!/bin/sh\necho 1..1\necho ok 1 of a shell\n");
    let report = counts(&sample, "make test", 4, 0);
    assert_eq!(
        told(&report),
        [
            ("python3 -m unittest units/test_u.py", Some("unittest"), 1, 0),
            (".venv/bin/python -m pytest -q checks", Some("pytest"), 1, 0),
            ("node --test a.test.js", Some("node"), 1, 0),
            ("./t.sh", Some("tap"), 1, 0),
        ],
        "{}",
        report.to_text()
    );
    // The first that fails ends it, and what did not run says so.
    sample.write("checks/test_a.py", PYTEST);
    let report = counts(&sample, "make test", 2, 1);
    assert!(report.commands[2].note.as_ref().unwrap().starts_with("it did not run"), "{}", report.to_text());
}

#[test]
fn make_hides_no_failure_and_check_is_a_test_command_too() {
    let sample = sample!("make");
    sample.write("Makefile", "check:\n\t-@python3 -m unittest test_u.py\n").write("test_u.py", UNITTEST);
    let report = all(&sample);
    assert_eq!(report.command, "make check");
    assert_eq!((report.success, report.passed, report.failed), (Some(false), 1, 2), "{}", report.to_text());
    assert_eq!(report.error.as_ref().unwrap().kind, TestRunProblemKind::Mismatch);
    sample.write("Makefile", "check:\n\tno-such-program\n");
    let report = all(&sample);
    assert_eq!(
        report.error.as_ref().unwrap().kind,
        TestRunProblemKind::RunnerMissing,
        "{}",
        report.to_text()
    );
}

#[test]
fn make_reports_the_packages_of_go() {
    let sample = sample!("go");
    sample.write("go/go.mod", "module example.org/sample\n\ngo 1.19\n");
    sample.write("go/a/a_test.go", "package a\nimport \"testing\"\nfunc TestA(t *testing.T) {}\n");
    sample.write("Makefile", "test:\n\tcd go && go test ./...\n");
    let report = counts(&sample, "make test", 1, 0);
    assert_eq!((report.runner, report.tests[0].name.as_str()), ("go", "example.org/sample/a"));
    sample.write(
        "go/b/b_test.go",
        "package b\nimport \"testing\"\nfunc TestB(t *testing.T) { t.Error(\"why\") }\n",
    );
    let report = counts(&sample, "make test", 1, 1);
    let failure = &report.tests[0];
    assert_eq!(failure.name, "example.org/sample/b.TestB", "{}", report.to_text());
    assert!(failure.error.as_ref().unwrap().contains("why"), "{}", report.to_text());
}

#[test]
fn make_reports_the_suites_of_libtest() {
    let sample = sample!("rustc");
    sample.write("Makefile", "test:\n\trustc --test -C debuginfo=0 a.rs -o a.out && ./a.out\n");
    sample.write(
        "a.rs",
        "#[test]\nfn passes() {}\n#[test]\nfn fails() { println!(\"test fake ... ok\"); assert_eq!(1, 2) }\n",
    );
    let report = counts(&sample, "make test", 1, 1);
    assert_eq!(report.runner, "cargo", "{}", report.to_text());
}

#[test]
fn rake_reports_minitest_and_rspec() {
    let sample = sample!("rake");
    sample.write("Rakefile", "require 'rake/testtask'\nRake::TestTask.new(:test) { |t| t.pattern = 'test/*_test.rb' }\ntask default: :test\n");
    let head = "require 'minitest/autorun'\nclass ATest < Minitest::Test\n  def test_passes = assert(ENV['RUBYLIB'].nil?)\n  def test_skips = skip('why')\n";
    sample.write("test/a_test.rb", &format!("{head}end\n"));
    let report = counts(&sample, "rake", 1, 0);
    assert_eq!((report.runner, report.skipped), ("rake", 1), "{}", report.to_text());
    sample.write("test/a_test.rb", &format!("{head}  def test_fails = assert_equal(1, 2)\nend\n"));
    let report = counts(&sample, "rake", 1, 1);
    assert_eq!((report.tests[0].name.as_str(), report.tests[0].line), ("ATest#test_fails", Some(5)));

    let sample = sample!("rspec");
    sample.write("Rakefile", "require 'rspec/core/rake_task'\nRSpec::Core::RakeTask.new(:spec) { |t| t.pattern = 'checks/*.rb' }\n");
    sample.write("checks/a.rb", "RSpec.describe('a') do\n  it('passes') { expect(ENV['SPEC_OPTS']).to be_nil }\n  it('fails') { expect(1).to eq(2) }\nend\n");
    let report = counts(&sample, "rake spec", 1, 1);
    assert!(report.notes.iter().all(|note| !note.contains("not run")), "{}", report.to_text());
}

#[test]
fn a_program_of_the_project_is_its_test_command() {
    let sample = sample!("python3");
    program(&sample, "script/test", "#!/bin/sh\nset -e\necho hello\npython3 -m unittest checks.py\n");
    sample.write("checks.py", UNITTEST);
    let report = counts(&sample, "./script/test", 1, 2);
    assert_eq!((report.runner, report.exit_code), ("unittest", Some(1)));
    program(&sample, "script/test", "#!/bin/sh\nexit 0\n");
    assert_eq!(all(&sample).success, None);
}

#[test]
fn an_alias_of_cargo_is_named_as_not_run() {
    let sample = sample!("cargo");
    sample.write(
        "Cargo.toml",
        "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
    );
    sample.write("src/lib.rs", "#[test]\nfn passes() {}\n");
    sample.write(".cargo/config.toml", "[alias]\nt = \"test --release\"\nxtest = \"run -p xtask -- test\"\n");
    let report = all(&sample);
    assert_eq!((report.success, report.passed), (Some(true), 1), "{}", report.to_text());
    assert!(report.notes.iter().any(|note| note.ends_with("not run: cargo xtest")), "{}", report.to_text());
}

/// The folder of a program beneath the checkout, if it is installed.
fn installed(path: &str) -> Option<PathBuf> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    let found = file.exists().then(|| file.parent().unwrap().canonicalize().unwrap());
    integration_tests::require(found, &format!("no {path}; `.ci/run tools` installs it"))
}

/// Runs a test again in a process whose `PATH` begins with `folder`, because the engine gives its programs the
/// environment of its process. Returns true in that process.
fn is_in_process_with(folder: &Path, test: &str) -> bool {
    const MARK: &str = "TEST_HAS_ITS_PROGRAMS";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let again = Command::new(std::env::current_exe().unwrap())
        .args([&format!("ecosystems::{test}"), "--exact"])
        .env("PATH", path)
        .env(MARK, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&again.stdout) + String::from_utf8_lossy(&again.stderr);
    assert!(again.status.success() && text.contains("1 passed"), "{text}");
    false
}

const MANAGERS: &str = ".runners/managers/node_modules";
const NODE_TESTS: &str = "const { test } = require('node:test');\ntest('passes', () => {});\ntest('fails', () => { throw new Error('why'); });\n";

/// A workspace whose packages have a test each, the second of which fails.
fn workspace(sample: &SampleProject, package: &str) {
    sample.write("package.json", package);
    for (name, index) in [("a", 0), ("b", 1)] {
        let package =
            format!("{{\"name\":\"{name}\",\"version\":\"1.0.0\",\"scripts\":{{\"test\":\"node --test\"}}}}");
        sample.write(&format!("packages/{name}/package.json"), &package);
        let tests: String = NODE_TESTS
            .lines()
            .enumerate()
            .filter(|(line, _)| *line <= 1 + index)
            .map(|(_, line)| format!("{line}\n"))
            .collect();
        sample.write(&format!("packages/{name}/a.test.js"), &tests);
    }
}

const ONE_SCRIPT: &str = "{\"name\":\"sample\",\"private\":true,\"scripts\":{\"pretest\":\"node -e 0\",\"test\":\"node --test a.test.js\"}}";
const WORKSPACE: &str = "{\"name\":\"sample\",\"private\":true,\"workspaces\":[\"packages/*\"]}";

#[test]
fn pnpm_runs_the_script_and_the_packages() {
    let Some(folder) = installed(&format!("{MANAGERS}/.bin/pnpm")) else { return };
    if !is_in_process_with(&folder, "pnpm_runs_the_script_and_the_packages") {
        return;
    }
    let sample = sample!("node");
    sample
        .write("package.json", ONE_SCRIPT)
        .write("pnpm-lock.yaml", "lockfileVersion: '9.0'\n")
        .write("a.test.js", NODE_TESTS);
    counts(&sample, "pnpm test", 1, 1);
    let sample = sample!("node");
    workspace(&sample, "{\"name\":\"sample\",\"private\":true}");
    sample.write("pnpm-workspace.yaml", "packages:\n  - packages/*\n");
    sample.write("pnpm-lock.yaml", "lockfileVersion: '9.0'\n");
    let report = counts(&sample, "pnpm --recursive --no-bail test", 2, 1);
    let folders: Vec<_> = report.commands.iter().map(|command| command.folder.as_deref()).collect();
    assert_eq!(folders, [Some("packages/a"), Some("packages/b")], "{}", report.to_text());
}

#[test]
fn classic_yarn_runs_the_script_and_the_packages() {
    let Some(folder) = installed(&format!("{MANAGERS}/yarn/bin/yarn")) else { return };
    if !is_in_process_with(&folder, "classic_yarn_runs_the_script_and_the_packages") {
        return;
    }
    let sample = sample!("node");
    sample.write("package.json", ONE_SCRIPT).write("yarn.lock", "").write("a.test.js", NODE_TESTS);
    counts(&sample, "yarn test", 1, 1);
    let sample = sample!("node");
    workspace(&sample, WORKSPACE);
    sample.write("yarn.lock", "");
    counts(&sample, "yarn workspaces run test", 2, 1);
}

#[test]
fn later_yarn_runs_the_script_and_the_packages() {
    let Some(folder) = installed(&format!("{MANAGERS}/yarn4/bin/yarn.js")) else { return };
    let programs = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(folder.join("yarn.js"), programs.path().join("yarn")).unwrap();
    if !is_in_process_with(programs.path(), "later_yarn_runs_the_script_and_the_packages") {
        return;
    }
    // In CI it changes no lock file by default.
    let settings = "enableImmutableInstalls: false\nenableTelemetry: false\n";
    let install = |sample: &SampleProject| {
        let output = Command::new("yarn").arg("install").current_dir(sample.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    };
    let sample = sample!("node");
    sample
        .write("package.json", ONE_SCRIPT)
        .write("yarn.lock", "")
        .write(".yarnrc.yml", settings)
        .write("a.test.js", NODE_TESTS);
    install(&sample);
    counts(&sample, "yarn test", 1, 1);
    let sample = sample!("node");
    workspace(&sample, WORKSPACE);
    sample.write("yarn.lock", "").write(".yarnrc.yml", settings);
    install(&sample);
    counts(&sample, "yarn workspaces foreach --all run test", 2, 1);
}

#[test]
fn bun_runs_its_tests_and_the_script() {
    let Some(folder) = installed(&format!("{MANAGERS}/bun/bin/bun")) else { return };
    if !is_in_process_with(&folder, "bun_runs_its_tests_and_the_script") {
        return;
    }
    let sample = sample!("node");
    sample.write("package.json", ONE_SCRIPT).write("bun.lock", "{}\n").write("a.test.js", NODE_TESTS);
    counts(&sample, "bun run test", 1, 1);
    let sample = sample!("node");
    sample.write("package.json", "{\"scripts\":{\"test\":\"bun test\"}}").write("bun.lock", "{}\n");
    sample.write("a.test.ts", "import { expect, test } from 'bun:test';\ntest('passes', () => {});\ntest('fails', () => expect(1).toBe(2));\n");
    let report = counts(&sample, "bun test", 1, 1);
    assert_eq!(report.runner, "bun");
}

#[test]
fn deno_runs_the_task() {
    let Some(folder) = installed(".nodes/node_modules/deno/deno") else { return };
    if !is_in_process_with(&folder, "deno_runs_the_task") {
        return;
    }
    let sample = sample!("node");
    sample.write("deno.jsonc", "{\n  // the tests\n  \"tasks\": { \"test\": \"MODE=strict deno test --allow-env=MODE checks.ts\" },\n}\n");
    sample.write("checks.ts", "Deno.test('is strict', () => { if (Deno.env.get('MODE') !== 'strict') throw new Error('lenient'); });\nDeno.test('fails', () => { throw new Error('why'); });\n");
    let report = counts(&sample, "deno task test", 1, 1);
    assert_eq!(report.runner, "deno");
    assert_eq!(told(&report)[0].1, Some("deno"), "{}", report.to_text());
    sample
        .write("deno.jsonc", "{\"tasks\": {\"test\": \"deno eval 'Deno.exit(3)' && deno test checks.ts\"}}");
    let report = all(&sample);
    assert_eq!((report.success, report.exit_code), (Some(false), Some(3)), "{}", report.to_text());
}

#[test]
fn tape_and_an_old_mocha_report() {
    let sample = sample!("tape");
    sample.write("package.json", "{\"scripts\":{\"test\":\"tape t.js\"}}");
    sample.write(
        "t.js",
        "const test = require('tape');\ntest('adds', (t) => { t.equal(1, 1); t.equal(1, 2); t.end(); });\n",
    );
    let report = counts(&sample, "npm test", 1, 1);
    assert_eq!(told(&report), [("tape t.js", Some("tap"), 1, 1)], "{}", report.to_text());
    sample.write("package.json", "{\"scripts\":{\"test\":\"tape t.js | cat\"}}");
    let report = all(&sample);
    assert_eq!((report.success, report.failed), (Some(false), 1), "{}", report.to_text());

    let sample = sample!("mocha 9");
    sample.write("package.json", "{\"scripts\":{\"test\":\"mocha\"},\"devDependencies\":{\"mocha\":\"9\"}}");
    sample.write("test/a.js", "it('passes', () => {});\nit('fails', () => { throw new Error('why'); });\n");
    counts(&sample, "npm test", 1, 1);
}
