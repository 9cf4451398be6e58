//! The runners of Deno and Bun, which `.ci/run tools` installs into a folder that is not in `PATH`.

use integration_tests::{Era, Project, Wire, require};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Returns the folder of a program of npm's packages.
fn folder(program: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(program);
    let found = path.canonicalize().ok().and_then(|path| Some(path.parent()?.to_owned()));
    require(found, &format!("no {program}; `.ci/run tools` installs it"))
}

/// A server with the programs of `folder` before those in `PATH`.
fn connect(project: &Project, folder: &Path) -> Wire {
    let mut server = project.server();
    let path = std::env::var("PATH").unwrap_or_default();
    server.env("PATH", format!("{}:{path}", folder.display())).env("DENO_DIR", project.state());
    Wire::connect(server, Era::Modern)
}

/// Runs the tests of a project with the programs of `folder` before those in `PATH`.
fn run(project: &Project, folder: &Path, arguments: Value) -> (Value, bool) {
    connect(project, folder).outcome("run_tests", arguments)
}

/// Runs all tests of a project, one of which fails, and then that one alone.
#[track_caller]
fn check_failed_only(project: &Project, folder: &Path, runner: &str) {
    let mut wire = connect(project, folder);
    let (all, _) = wire.outcome("run_tests", json!({"runner": runner}));
    assert_eq!((&all["passed"], &all["failed"]), (&json!(2), &json!(1)), "{all}");
    let (again, _) = wire.outcome("run_tests", json!({"failed_only": true}));
    assert_eq!((&again["passed"], &again["failed"]), (&json!(0), &json!(1)), "{again}");
    assert_eq!(again["tests"][0]["name"], all["tests"][0]["name"], "{again}");
}

#[test]
fn the_failed_tests_of_deno_and_bun_are_run_alone() {
    let body = |test: &str| {
        format!(
            "{test}(\"passes\", () => {{}});\n{test}(\"fails (once) a+b\", () => {{ throw new Error(\"red\") }});\n{test}(\"fails\", () => {{}});\n"
        )
    };
    if let Some(folder) = folder(".nodes/node_modules/deno/deno") {
        let project = Project::with([("deno.json", "{}"), ("a_test.ts", body("Deno.test").as_str())]);
        check_failed_only(&project, &folder, "deno");
    }
    if let Some(folder) = folder(".runners/managers/node_modules/bun/bin/bun") {
        let programs = Project::empty();
        std::os::unix::fs::symlink(folder.join("bun"), programs.join("bun")).unwrap();
        let tests = format!("import {{ test }} from \"bun:test\";\n{}", body("test"));
        let project =
            Project::with([("package.json", "{}"), ("bun.lock", ""), ("a.test.js", tests.as_str())]);
        check_failed_only(&project, programs.path(), "bun");
    }
}

fn kind(report: &Value) -> &str {
    report["error"]["kind"].as_str().unwrap_or_default()
}

#[test]
fn deno_tells_files_and_names_and_type_errors_have_their_places() {
    let Some(folder) = folder(".nodes/node_modules/deno/deno") else { return };
    let tests =
        "Deno.test(\"passes\", () => {});\nDeno.test(\"fails\", () => {\n  throw new Error(\"red\");\n});\n";
    let project = Project::with([("deno.json", "{}"), ("sub/a_test.ts", tests)]);
    let (report, failed) = run(&project, &folder, json!({}));
    assert_eq!((&report["passed"], &report["failed"], failed), (&json!(1), &json!(1), true), "{report}");
    let test = &report["tests"][0];
    assert_eq!((&test["name"], &test["file"]), (&json!("fails"), &json!("sub/a_test.ts")), "{report}");
    assert!(!report.to_string().contains("\\u001b"), "{report}");
    let (part, _) = run(&project, &folder, json!({"filter": "/^pass/"}));
    assert_eq!((&part["passed"], &part["failed"]), (&json!(1), &json!(0)), "{part}");
    project
        .write("b_test.ts", "const x: number = \"a\";\nDeno.test(\"typed\", () => { console.log(x); });\n");
    let (report, failed) = run(&project, &folder, json!({}));
    assert_eq!((kind(&report), failed), ("compile_error", true), "{report}");
    let diagnostic = &report["diagnostics"][0];
    assert_eq!(
        (&diagnostic["file"], &diagnostic["line"], &diagnostic["code"]),
        (&json!("b_test.ts"), &json!(1), &json!("TS2322")),
        "{report}"
    );
}

#[test]
fn bun_that_a_test_ends_with_exit_code_0_is_no_success() {
    let Some(folder) = folder(".runners/managers/node_modules/bun/bin/bun") else { return };
    let programs = Project::empty();
    std::os::unix::fs::symlink(folder.join("bun"), programs.join("bun")).unwrap();
    let head = "import { test } from \"bun:test\";\n";
    let project =
        Project::with([("package.json", "{\"scripts\":{\"test\":\"bun test\"}}"), ("bun.lock", "")]);
    project.write("a.test.js", &format!("{head}test(\"passes\", () => {{}});\n"));
    let (report, failed) = run(&project, programs.path(), json!({"runner": "bun"}));
    assert_eq!((&report["passed"], failed), (&json!(1), false), "{report}");
    let exits =
        "test(\"exits\", () => process.exit(0));\ntest(\"fails\", () => { throw new Error(\"no\"); });\n";
    project.write("b.test.js", &format!("{head}{exits}"));
    let (report, failed) = run(&project, programs.path(), json!({"runner": "bun"}));
    assert_eq!((kind(&report), failed), ("crashed", true), "{report}");
}

#[test]
fn a_task_of_deno_without_permissions_runs_as_without_us_and_each_of_its_commands_counts() {
    let Some(folder) = folder(".nodes/node_modules/deno/deno") else { return };
    let passes = "Deno.test(\"a\", () => {});\n";
    let fails = "Deno.test(\"b\", () => { console.log(\"ok | 9 passed | 0 failed (1ms)\"); throw new Error(\"why\") });\n";
    let task = |command: &str| json!({"tasks": {"test": command}}).to_string();
    for (command, passed, failed, success) in [
        ("deno test --no-check a_test.ts", 1, 0, true),
        ("deno test --no-check a_test.ts && deno test --no-check c_test.ts", 2, 0, true),
        ("deno test --no-check b_test.ts || deno test --no-check a_test.ts", 1, 1, false),
        ("deno test --no-check a_test.ts && echo done", 1, 0, true),
    ] {
        let project = Project::with([
            ("deno.json", task(command).as_str()),
            ("a_test.ts", passes),
            ("b_test.ts", fails),
            ("c_test.ts", passes),
        ]);
        let (report, _) = run(&project, &folder, json!({}));
        let found = (&report["passed"], &report["failed"], &report["success"]);
        assert_eq!(found, (&json!(passed), &json!(failed), &json!(success)), "{command}: {report}");
        assert_eq!(report["runner"], "deno", "{command}: {report}");
    }
}

#[test]
fn each_command_of_bun_counts_and_only_is_told() {
    let Some(folder) = folder(".runners/managers/node_modules/bun/bin/bun") else { return };
    let programs = Project::empty();
    std::os::unix::fs::symlink(folder.join("bun"), programs.join("bun")).unwrap();
    let head = "import { test } from \"bun:test\";\n";
    let passes = format!("{head}test(\"a\", () => {{}});\n");
    let fails =
        format!("{head}test(\"b\", () => {{ console.log(\"(pass) forged\"); throw new Error(\"why\") }});\n");
    let exits = format!("{head}test(\"d\", () => {{ process.exit(0) }});\n");
    let only = format!("{head}test.only(\"a\", () => {{}});\ntest(\"b\", () => {{ throw 1 }});\n");
    let project = |script: &str| {
        let package = json!({"scripts": {"test": script}}).to_string();
        Project::with([
            ("package.json", package.as_str()),
            ("a.test.js", &passes),
            ("b.test.js", &fails),
            ("c.test.js", &passes),
            ("d.test.js", &exits),
            ("only.test.js", &only),
        ])
    };
    for (script, passed, failed, success) in [
        ("bun test a.test.js; bun test c.test.js", 2, 0, true),
        ("bun test b.test.js; bun test a.test.js", 1, 1, false),
        ("bun test a.test.js && bun test b.test.js", 1, 1, false),
        ("bun test d.test.js; bun test a.test.js", 1, 0, false),
    ] {
        let project = project(script);
        let (report, _) = run(&project, programs.path(), json!({}));
        let found = (&report["passed"], &report["failed"], &report["success"]);
        assert_eq!(found, (&json!(passed), &json!(failed), &json!(success)), "{script}: {report}");
    }
    let project = project("true");
    let request = json!({"runner": "bun", "test_path": "only.test.js", "env": {"CI": "false"}});
    let (report, _) = run(&project, programs.path(), request);
    assert_eq!((&report["passed"], &report["success"]), (&json!(1), &json!(true)), "{report}");
    let note = "only 1 tests ran because of `.only` (only.test.js:2); bun does not tell of the others";
    assert!(report["notes"].as_array().unwrap().contains(&json!(note)), "{report}");
}

#[test]
fn files_that_a_setting_of_deno_or_bun_leaves_out_are_told() {
    let left_out = |report: &Value, file: &str| {
        assert_eq!((&report["success"], &report["passed"]), (&json!(true), &json!(1)), "{report}");
        assert_eq!(report["not_run"][0]["what"], json!([file]), "{report}");
    };
    if let Some(folder) = folder(".nodes/node_modules/deno/deno") {
        let settings = r#"{"test":{"exclude":["old/"]},"tasks":{"test":"deno test"}}"#;
        let project = Project::with([("deno.json", settings), ("a_test.ts", "Deno.test('a', () => {});\n")]);
        project.write("old/b_test.ts", "Deno.test('b', () => { throw 1; });\n");
        left_out(&run(&project, &folder, json!({})).0, "old/b_test.ts");
    }
    if let Some(folder) = folder(".runners/managers/node_modules/bun/bin/bun") {
        let programs = Project::empty();
        std::os::unix::fs::symlink(folder.join("bun"), programs.join("bun")).unwrap();
        let project =
            Project::with([("package.json", r#"{"scripts":{"test":"bun test"}}"#), ("bun.lock", "")]);
        project.write("bunfig.toml", "[test]\nroot = \"src\"\n");
        project.write("src/a.test.ts", "import { test } from 'bun:test';\ntest('a', () => {});\n");
        project
            .write("tests/b.test.ts", "import { test } from 'bun:test';\ntest('b', () => { throw 1; });\n");
        left_out(&run(&project, programs.path(), json!({})).0, "tests/b.test.ts");
    }
}
