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
