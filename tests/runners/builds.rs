//! Builds and restores with the tools themselves.

use core_tools::ci::{BuildError, BuildGoal, BuildReport, BuildRequest, Commands, build};
use core_tools::redact::Redactor;
use core_tools::workspace::Workspace;
use integration_tests::{Project, require};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

fn installed(program: &str, version: &str) -> bool {
    let there = Command::new(program).arg(version).output().is_ok_and(|output| output.status.success());
    require(there.then_some(()), &format!("no {program}; `.ci/run tools` installs it")).is_some()
}

fn run(
    project: &Project,
    goal: BuildGoal,
    path: Option<&str>,
    ecosystem: Option<&str>,
) -> Result<BuildReport, BuildError> {
    let workspace = Arc::new(Workspace::new([project.path()]).unwrap());
    let commands =
        Commands::new(process_runner::Runner::new(), workspace, Redactor::new(Default::default()).unwrap());
    let mut request = BuildRequest::new();
    request.project_path = path.map(str::to_owned);
    request.ecosystem = ecosystem.map(str::to_owned);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(build(&commands, goal, &request, Duration::from_secs(600), &Default::default(), |_| {}))
}

fn diagnostics(report: &BuildReport) -> String {
    report.diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

const MANIFEST: &str = "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";

#[test]
fn errors_and_warnings_of_cargo_are_data() {
    let project = Project::with([("Cargo.toml", MANIFEST), ("src/lib.rs", "fn f() -> u8 {\n    \"\"\n}\n")]);
    let report = run(&project, BuildGoal::Build, Some("src/lib.rs"), None).unwrap();
    assert!(!report.success);
    assert_eq!((report.errors, report.folder.as_str()), (1, "."), "{}", report.to_text());
    insta::assert_snapshot!(diagnostics(&report), @"src/lib.rs:2:5: error[E0308]: mismatched types: expected `u8`, found `&str`");
    project.write("src/lib.rs", "fn unused() {}\n");
    let report = run(&project, BuildGoal::Build, None, None).unwrap();
    assert_eq!((report.success, report.errors, report.warnings), (true, 0, 1), "{}", report.to_text());
    assert!(run(&project, BuildGoal::Restore, None, None).unwrap().success);
}

#[test]
fn errors_of_gcc_beneath_make_and_of_go_are_data() {
    if !installed("gcc", "--version") || !installed("make", "--version") || !installed("go", "version") {
        return;
    }
    let project = Project::with([
        ("Makefile", "all:\n\tgcc -Wall -c main.c\n"),
        ("main.c", "int main(void) {\n  int x;\n  return y;\n}\n"),
        ("go/go.mod", "module example.org/sample\n\ngo 1.18\n"),
        ("go/main.go", "package main\n\nfunc main() {\n\tundefined()\n}\n"),
    ]);
    let report = run(&project, BuildGoal::Build, None, None).unwrap();
    assert_eq!((report.success, report.errors, report.warnings), (false, 1, 1), "{}", report.to_text());
    assert_eq!(
        (report.diagnostics[0].file.as_deref(), report.diagnostics[0].line),
        (Some("main.c"), Some(3))
    );
    let report = run(&project, BuildGoal::Build, Some("go"), None).unwrap();
    assert_eq!(report.errors, 1, "{}", report.to_text());
    insta::assert_snapshot!(diagnostics(&report), @"main.go:4:2: error: undefined: undefined");
}

#[test]
fn cmake_configures_and_then_compiles() {
    if !installed("cmake", "--version") {
        return;
    }
    let project = Project::with([
        (
            "CMakeLists.txt",
            "cmake_minimum_required(VERSION 3.10)\nproject(sample C)\nadd_executable(sample main.c)\n",
        ),
        ("main.c", "int main(void) { return 0; }\n"),
    ]);
    let report = run(&project, BuildGoal::Build, None, None).unwrap();
    assert!(report.success, "{}", report.to_text());
    assert_eq!(report.command, "cmake -S . -B build && cmake --build build");
    assert!(project.join("build/sample").exists());
    project.write("main.c", "int main(void) { return y; }\n");
    let report = run(&project, BuildGoal::Build, None, None).unwrap();
    assert_eq!((report.success, report.errors), (false, 1), "{}", report.to_text());
    assert_eq!(report.command, "cmake --build build");
    assert_eq!(
        (report.diagnostics[0].file.as_deref(), report.diagnostics[0].line),
        (Some("main.c"), Some(1))
    );
}

#[test]
fn typescript_is_compiled_by_the_script_build_or_by_its_compiler_whatever_form_its_messages_have() {
    let modules = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../.runners/node_modules");
    let there = modules.join("typescript").exists();
    if require(there.then_some(()), "no typescript; `.ci/run tools` installs it").is_none() {
        return;
    }
    let project = Project::with([
        ("package.json", "{\"dependencies\": {\"build\": \"1\"}}"),
        ("tsconfig.json", "{\"compilerOptions\": {\"strict\": true, \"types\": []}, \"include\": [\"src\"]}"),
        ("src/a.ts", "export const n: number = 1;\nexport const s: number = \"text\";\n"),
    ]);
    let error = run(&project, BuildGoal::Build, None, None).unwrap_err().to_string();
    assert!(error.contains("node_modules/typescript") && error.contains("npm install"), "{error}");
    std::os::unix::fs::symlink(modules.canonicalize().unwrap(), project.join("node_modules")).unwrap();
    let told = "src/a.ts:2:14: error[TS2322]: Type 'string' is not assignable to type 'number'.";
    let report = run(&project, BuildGoal::Build, None, None).unwrap();
    assert_eq!((report.success, diagnostics(&report).as_str()), (false, told), "{}", report.to_text());
    assert!(report.command.starts_with("node node_modules/typescript/bin/tsc"), "{}", report.command);
    let script = "{\"scripts\": {\"build\": \"node node_modules/typescript/bin/tsc --noEmit --pretty\"}}";
    project.write("package.json", script);
    let report = run(&project, BuildGoal::Build, None, None).unwrap();
    assert_eq!((report.success, diagnostics(&report).as_str()), (false, told), "{}", report.to_text());
    assert_eq!(report.command, "npm run build");
    project.write("src/a.ts", "export const n: number = 1;\n");
    assert!(run(&project, BuildGoal::Build, None, None).unwrap().success);
}

#[test]
fn python_builds_and_installs_with_its_own_environment() {
    let venv = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv");
    if require(venv.exists().then_some(()), "no .venv; `.ci/run tools` installs it").is_none() {
        return;
    }
    let project = Project::with([("requirements.txt", "# nothing yet\n")]);
    std::os::unix::fs::symlink(venv.canonicalize().unwrap(), project.join(".venv")).unwrap();
    let report = run(&project, BuildGoal::Restore, None, None).unwrap();
    assert!(report.success, "{}", report.to_text());
    assert_eq!(report.command, ".venv/bin/python -m pip install -r requirements.txt");
    let report = run(&project, BuildGoal::Build, None, None).unwrap();
    assert!(!report.success);
    assert!(report.output.as_deref().unwrap().contains("No module named build"), "{}", report.to_text());
}

#[test]
fn nothing_to_do_is_an_error_and_no_success() {
    let project = Project::with([("package.json", "{}"), ("make/Makefile", "all:\n\ttrue\n")]);
    let error = run(&project, BuildGoal::Build, None, None).unwrap_err().to_string();
    assert!(error.contains("nothing to build in `.`"), "{error}");
    let error = run(&project, BuildGoal::Restore, Some("make"), None).unwrap_err().to_string();
    assert!(error.contains("nothing to fetch in `make`"), "{error}");
}

#[test]
fn the_time_limit_is_told_and_counts_for_all_steps_together() {
    let project = Project::with([("Makefile", "all:\n\t@echo begun; sleep 60\n")]);
    let workspace = Arc::new(Workspace::new([project.path()]).unwrap());
    let commands =
        Commands::new(process_runner::Runner::new(), workspace, Redactor::new(Default::default()).unwrap());
    let said = std::sync::Mutex::new(Vec::new());
    let request = BuildRequest::new().timeout_ms(6_000);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let max = Duration::from_secs(600);
    let report = runtime
        .block_on(build(&commands, BuildGoal::Build, &request, max, &Default::default(), |line| {
            said.lock().unwrap().push(line.to_owned());
        }))
        .unwrap();
    // make may still exit by itself, with 2, when it is asked to end.
    assert!(!report.success && report.exit_code != Some(0), "{}", report.to_text());
    assert!(report.notes[0].contains("time limit of 6000 ms"), "{:?}", report.notes);
    assert_eq!(said.into_inner().unwrap().first().map(String::as_str), Some("begun"));
}

/// A program that writes down how it was called, at the front of a `PATH`.
fn recording(project: &Project, program: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = project.join(&format!("bin/{program}"));
    project.write(
        &format!("bin/{program}"),
        "#!/bin/sh\n{ pwd; for word; do echo \"$word\"; done; } > \"$(dirname \"$0\")/called\"\n",
    );
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn dotnet_runs_in_the_folder_and_a_project_file_gives_its_name() {
    let project = Project::with([("app/App.csproj", "<Project/>"), ("app/Program.cs", "")]);
    recording(&project, "dotnet");
    let folder = project.join("app").canonicalize().unwrap().display().to_string();
    let mut server = project.server();
    let path = format!("{}:{}", project.join("bin").display(), std::env::var("PATH").unwrap());
    server.env("PATH", path);
    let mut wire = integration_tests::Wire::connect(server, integration_tests::Era::Modern);
    for (tool, given, expected) in [
        ("build", "app", "build"),
        ("build", "app/App.csproj", "build\nApp.csproj"),
        ("restore", "app", "restore"),
        ("restore", "app/App.csproj", "restore\nApp.csproj"),
    ] {
        let result = wire.call(tool, serde_json::json!({"projectPath": given}));
        assert_eq!(result["isError"], false, "{result}");
        assert_eq!(project.read("bin/called").trim(), format!("{folder}\n{expected}"), "{tool} {given}");
    }
}

/// The commands that cannot be had everywhere: only the command line is looked at, with a program that writes it down.
#[test]
fn each_ecosystems_own_command_is_run_in_its_folder() {
    let project = Project::with([
        ("maven/pom.xml", "<project/>"),
        ("gradle/build.gradle.kts", ""),
        ("just/justfile", "build:\n"),
        ("uv/pyproject.toml", ""),
        ("uv/uv.lock", ""),
        ("poetry/pyproject.toml", ""),
        ("poetry/poetry.lock", ""),
        ("pnpm/package.json", "{\"scripts\": {\"build\": \"x\"}}"),
        ("pnpm/pnpm-lock.yaml", ""),
        ("yarn/package.json", "{\"packageManager\": \"yarn@4.1.0\", \"scripts\": {\"build\": \"x\"}}"),
        ("yarn/package-lock.json", ""),
        ("check/package.json", "{\"scripts\": {\"lint\": \"x\", \"check\": \"tsc -b\"}}"),
        ("check/pnpm-lock.yaml", ""),
        ("none/package.json", "{\"scripts\": {\"lint\": \"x\", \"check\": \"eslint .\"}}"),
        ("bun/package.json", "{}"),
        ("bun/bun.lock", ""),
    ]);
    for program in ["mvn", "gradle", "just", "uv", "poetry", "pnpm", "yarn", "bun"] {
        recording(&project, program);
    }
    let mut server = project.server();
    server.env("PATH", format!("{}:{}", project.join("bin").display(), std::env::var("PATH").unwrap()));
    let mut wire = integration_tests::Wire::connect(server, integration_tests::Era::Modern);
    for (tool, folder, expected) in [
        ("build", "maven", "--batch-mode --no-transfer-progress compile"),
        ("restore", "maven", "--batch-mode --no-transfer-progress dependency:resolve"),
        ("build", "gradle", "--console=plain assemble"),
        ("restore", "gradle", "--console=plain dependencies"),
        ("build", "just", "build"),
        ("restore", "uv", "sync"),
        ("restore", "poetry", "install"),
        ("build", "pnpm", "run build"),
        ("restore", "pnpm", "install"),
        ("build", "yarn", "run build"),
        ("build", "check", "run check"),
        ("restore", "bun", "install"),
    ] {
        let result = wire.call(tool, serde_json::json!({"project_path": folder}));
        assert_eq!(result["isError"], false, "{tool} {folder}: {result}");
        let path = project.join(folder).canonicalize().unwrap().display().to_string();
        let called = project.read("bin/called");
        let (place, words) = called.trim().split_once('\n').unwrap();
        assert_eq!((place, words.replace('\n', " ").as_str()), (path.as_str(), expected), "{tool} {folder}");
    }
    let error = wire.failure("build", serde_json::json!({"project_path": "none"}));
    assert!(
        error.ends_with("npm has no command for build there; its scripts are `lint`, `check`"),
        "{error}"
    );
}

#[test]
fn a_project_is_found_upwards_and_never_above_the_root() {
    let outer = Project::with([
        ("Cargo.toml", MANIFEST),
        ("inner/a/b/file.txt", ""),
        ("inner/Makefile", "all:\n\ttrue\n"),
    ]);
    let inner = Workspace::new([outer.join("inner/a")]).unwrap();
    let commands = Commands::new(
        process_runner::Runner::new(),
        Arc::new(inner),
        Redactor::new(Default::default()).unwrap(),
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let request = BuildRequest::new().project_path("b");
    let found = runtime.block_on(build(
        &commands,
        BuildGoal::Build,
        &request,
        Duration::from_secs(60),
        &Default::default(),
        |_| {},
    ));
    assert!(matches!(found, Err(BuildError::NoProject { .. })), "{found:?}");
    let report = run(&outer, BuildGoal::Build, Some("inner/a/b/file.txt"), None).unwrap();
    assert_eq!((report.folder.as_str(), report.command.as_str()), ("inner", "make"));
}

#[test]
fn several_projects_in_a_folder_are_listed_and_the_parameter_chooses() {
    let project =
        Project::with([("Cargo.toml", MANIFEST), ("src/lib.rs", ""), ("Makefile", "all:\n\ttrue\n")]);
    let report = run(&project, BuildGoal::Build, None, None).unwrap();
    assert!(
        report.command.starts_with("cargo build") && report.notes[0].contains("make"),
        "{}",
        report.to_text()
    );
    let report = run(&project, BuildGoal::Build, None, Some("make")).unwrap();
    assert_eq!((report.success, report.command.as_str(), report.notes.len()), (true, "make", 0));
    let error = run(&project, BuildGoal::Build, None, Some("go")).unwrap_err();
    assert!(matches!(error, BuildError::NotOfEcosystem { .. }), "{error}");
    let error = run(&project, BuildGoal::Build, None, Some("mkae")).unwrap_err();
    assert!(matches!(error, BuildError::UnknownEcosystem { .. }), "{error}");
}

#[test]
fn a_missing_toolchain_is_named_with_where_it_was_looked_for_and_how_it_is_installed() {
    let project = Project::with([("a.csproj", "<Project/>")]);
    if Command::new("dotnet").arg("--version").output().is_ok() {
        return;
    }
    let error = run(&project, BuildGoal::Build, None, None).unwrap_err().to_string();
    assert!(
        error.contains("`dotnet`") && error.contains("PATH") && error.contains("https://dot.net"),
        "{error}"
    );
}

#[test]
fn a_script_that_swallows_the_exit_code_is_told_and_so_is_a_manifest_that_is_too_large() {
    if !installed("make", "--version") || !installed("npm", "--version") {
        return;
    }
    let project = Project::with([("Makefile", "all:\n\t@echo 'a.c:3:1: error: no'; true\n")]);
    let report = run(&project, BuildGoal::Build, None, None).unwrap();
    assert_eq!((report.success, report.errors), (true, 1), "{}", report.to_text());
    assert!(report.notes.iter().any(|note| note.contains("exit code is 0")), "{}", report.to_text());
    let package = format!("{{\"name\": \"{}\", \"scripts\": {{\"build\": \"true\"}}}}", "x".repeat(2 << 20));
    let project = Project::with([("package.json", package.as_str())]);
    let error = run(&project, BuildGoal::Build, None, None).unwrap_err().to_string();
    assert!(error.contains("too large to read"), "{error}");
}
