//! Tests whose exit code a text of shell loses, as bash runs it, beside a runner that reports. In each fixture the command
//! ends with exit code 0 in a terminal.

use crate::support::SampleProject;
use crate::swallowed::{Files, run_script};
use core_tools::testing::{RunTests, TestReport};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

macro_rules! sample {
    ($program:expr) => {
        match SampleProject::empty($program) {
            Some(sample) => sample,
            None => return,
        }
    };
}

const NODE_PASSES: &str = "require('node:test').test('a', () => {});\n";
const FILES: &Files =
    &[("a.test.js", NODE_PASSES), ("t/test_b.sh", "exit 1\n"), ("t/a.t", "print \"1..1\\nok 1\\n\";\n")];

#[track_caller]
fn is_not_verified(report: &TestReport, words: &str) {
    let text = report.to_text();
    assert_eq!((report.success, report.error.as_ref()), (None, None), "{text}");
    assert!(report.notes.iter().any(|note| note.contains(words)), "{words}\n{text}");
}

#[track_caller]
fn is_ok(report: &TestReport, script: &str) {
    assert_eq!((report.success, report.passed), (Some(true), 1), "{script}\n{}", report.to_text());
}

#[test]
fn what_a_script_of_npm_loses_is_not_verified() {
    for script in [
        "node --test a.test.js && (sh t/test_b.sh; true)",
        "node --test a.test.js && echo $(sh t/test_b.sh)",
        "node --test a.test.js && { sh t/test_b.sh | cat; }",
        "node --test a.test.js && cat <<END\n$(sh t/test_b.sh)\nEND",
        "node --test a.test.js; if sh t/test_b.sh; then echo ok; fi",
        "node --test a.test.js; eval 'sh t/test_b.sh; true'",
        "node --test a.test.js && bash -ec 'sh t/test_b.sh | cat'",
    ] {
        let sample = sample!("node");
        is_not_verified(&run_script(&sample, script, FILES), "`sh t/test_b.sh");
    }
    let sample = sample!("node");
    for (path, text) in FILES {
        sample.write(path, text);
    }
    for called in ["npm run -s b", "npm --silent run b", "npm run b"] {
        let scripts =
            json!({"test": format!("node --test a.test.js; {called}"), "b": "sh t/test_b.sh & exit 0"});
        sample.write("package.json", &json!({"private": true, "scripts": scripts}).to_string());
        is_not_verified(&sample.try_run(&RunTests::new()).unwrap(), "`sh t/test_b.sh`");
    }
}

/// Runs the rule `test` of a makefile, which ends well.
#[track_caller]
fn run_makefile(sample: &SampleProject, makefile: &str) -> TestReport {
    for (path, text) in FILES {
        sample.write(path, text);
    }
    sample.write("Makefile", makefile);
    let made = Command::new("make").arg("test").current_dir(sample.path()).output().unwrap();
    assert!(made.status.success(), "the fixture ends well: {}", String::from_utf8_lossy(&made.stderr));
    sample.try_run(&RunTests::new()).unwrap()
}

#[test]
fn what_a_make_in_a_makefile_loses_is_not_verified() {
    for makefile in [
        "test:\n\tperl t/a.t\n\t$(MAKE) -i -s extra\nextra:\n\tsh t/test_b.sh\n",
        "test:\n\tperl t/a.t\n\t@$(MAKE) -s extra 2>/dev/null; true\nextra:\n\tsh t/test_b.sh\n",
        "SHELL_TESTS = $(wildcard t/test_*.sh)\ntest:\n\tperl t/a.t\n\tfor f in $(SHELL_TESTS); do sh $$f; done; true\n",
        "test:\n\tperl t/a.t\n\tx=$$(sh t/test_b.sh); true\n",
    ] {
        let sample = sample!("make");
        let report = run_makefile(&sample, makefile);
        is_not_verified(&report, "`sh ");
        assert_eq!(report.passed, 1, "{}", report.to_text());
    }
    // Nothing but printf printed TAP.
    let sample = sample!("make");
    let makefile = "test: a b\na:\n\t@printf \"1..1\\nok 1 - a\\n\"\nb:\n\t@sh t/test_b.sh &\n";
    let report = run_makefile(&sample, makefile);
    is_not_verified(&report, "`sh t/test_b.sh`");
    assert_eq!(report.passed, 0, "{}", report.to_text());
    // A make that passes the failure of its rule on.
    let sample = sample!("make");
    let makefile = "test:\n\tperl t/a.t\n\t$(MAKE) -s extra\nextra:\n\tsh t/good_test.sh\n";
    sample.write("t/good_test.sh", "exit 0\n");
    is_ok(&run_makefile(&sample, makefile), makefile);
}

/// Scripts that lose the exit code of `sh t/test_b.sh`.
const LOSE: &[&str] = &[
    "set -e\nsh t/test_b.sh | cat\nperl t/a.t\n",
    "set -e\nrun() { sh t/test_b.sh; echo done; }\nif run; then perl t/a.t; fi\n",
    "set -e\nf() { local out=$(sh t/test_b.sh); echo \"$out\"; }\nf\nperl t/a.t\n",
    "set -e\nsh t/test_b.sh && echo fine\nperl t/a.t\n",
    "set -e\ncat <(sh t/test_b.sh)\nperl t/a.t\n",
    "trap \"exit 0\" EXIT\nset -e\nperl t/a.t\nsh t/test_b.sh\n",
    "sh t/test_b.sh\nperl t/a.t\n",
    "set -e\n! sh t/test_b.sh\nperl t/a.t\n",
    "set -e\nsh t/test_b.sh &\nwait\nperl t/a.t\n",
    "sh t/test_b.sh & wait $!\nperl t/a.t\n",
    "if sh t/test_b.sh; then echo ok; elif [ -n \"$NEVER\" ]; then exit 1; fi\nperl t/a.t\n",
    "sh t/test_b.sh || { [ -n \"$NEVER\" ] && exit 1; true; }\nperl t/a.t\n",
    "set -e\n(sh t/test_b.sh; echo) || true\nperl t/a.t\n",
    "set -e\nwhile sh t/test_b.sh; do :; done\nperl t/a.t\n",
    "set -e\nrun() { sh \"$1\" || true; }\nrun t/test_b.sh\nperl t/a.t\n",
];

/// Scripts that pass on the failure of each command.
const PASS_ON: &[&str] = &[
    "set -e\nsh t/test_c.sh\nperl t/a.t\n",
    "sh t/test_c.sh && perl t/a.t\n",
    "sh t/test_c.sh || exit 1\nperl t/a.t\n",
    "set -eo pipefail\nsh t/test_c.sh | cat\nperl t/a.t\n",
    "failed=0\nfor f in t/test_c.sh; do sh $f || failed=1; done\nperl t/a.t || failed=1\nexit $failed\n",
    "if ! sh t/test_c.sh; then echo failed; exit 1; fi\nexec perl t/a.t\n",
    "set -e\n# sh t/test_c.sh | cat →\ncommand -v perl >/dev/null || exit 1\nrun() { sh t/test_c.sh; }\nrun\nperl t/a.t\n",
    "sh t/test_c.sh & wait $! || exit 1\nperl t/a.t\n",
    "if sh t/test_c.sh; then echo ok; elif [ $? -eq 5 ]; then echo none; else exit 1; fi\nperl t/a.t\n",
    "set -e\ncase ${1:-all} in\n  all) sh t/test_c.sh ;;\nesac\nif [ -f t/a.t ]; then perl t/a.t; fi\n",
    "set -e\ntrap 'rm -f x' EXIT\nsh t/test_c.sh & pid=$!\nwait $pid\nperl t/a.t\n",
];

fn with_scripts(sample: &SampleProject) {
    for (path, text) in FILES {
        sample.write(path, text);
    }
    // A test that looks at the output of its program.
    sample.write("t/test_c.sh", "printf 'a\\n' | grep -q a\n./testprog | grep -q a || exit 1\n");
    program(sample, "testprog", "#!/bin/sh\necho a\n");
}

fn program(sample: &SampleProject, path: &str, text: &str) {
    sample.write(path, text);
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(sample.path().join(path), mode).unwrap();
}

#[test]
fn what_a_script_of_a_project_loses_is_not_verified() {
    for script in LOSE {
        let sample = sample!("perl");
        with_scripts(&sample);
        program(&sample, "bin/test", &format!("#!/bin/bash\n{script}"));
        let report = sample.try_run(&RunTests::new()).unwrap();
        is_not_verified(&report, "`sh ");
        assert_eq!((report.runner, report.passed), ("script", 1), "{script}");
        // The same as a command of a makefile, and one of a script of npm.
        let sample = sample!("make");
        with_scripts(&sample);
        sample.write("ci.sh", script).write("Makefile", "test:\n\tbash ci.sh\n");
        is_not_verified(&sample.try_run(&RunTests::new()).unwrap(), "`sh ");
    }
    let sample = sample!("node");
    with_scripts(&sample);
    sample.write("ci.sh", LOSE[0]);
    is_not_verified(&run_script(&sample, "bash ci.sh", &[]), "`sh t/test_b.sh`");
}

#[test]
fn a_script_of_a_project_that_passes_each_failure_on_is_verified() {
    for script in PASS_ON {
        let sample = sample!("perl");
        with_scripts(&sample);
        program(&sample, "bin/test", &format!("#!/bin/bash\n{script}"));
        is_ok(&sample.try_run(&RunTests::new()).unwrap(), script);
        let sample = sample!("make");
        with_scripts(&sample);
        sample.write("ci.sh", script).write("Makefile", "test:\n\tbash ci.sh\n");
        is_ok(&sample.try_run(&RunTests::new()).unwrap(), script);
    }
}

#[test]
fn a_script_that_is_not_understood_is_told() {
    let sample = sample!("perl");
    with_scripts(&sample);
    // Bash reads a script line by line, and does not come to the last one.
    program(&sample, "bin/test", "#!/bin/bash\nset -e\nsh t/test_c.sh\nperl t/a.t\nexit 0\nif (((\n");
    let report = sample.try_run(&RunTests::new()).unwrap();
    assert_eq!(report.passed, 1, "{}", report.to_text());
    let is_told = |note: &String| note.contains("`bin/test` was not understood");
    assert!(report.notes.iter().any(is_told), "{}", report.to_text());
}
