//! Scaffolded projects compile without a warning, and their tests pass: from a checkout, from the packages, in a
//! project of another language.

use crate::printed;
use integration_tests::Project;
use integration_tests::outside::{cargo_outside, checkout, empty_folder, patch_arguments, target_folder};
use serde_json::{Value, json};
use std::path::Path;

/// A tool's answer, by the command line of a server that was built.
fn call(program: &Path, folder: &Path, arguments: &[&str], tool: &str, input: Value) -> Value {
    let output = Project::at(folder)
        .server_as(program)
        .args(arguments)
        .args(["call", "--json", tool, &input.to_string()])
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Checks that nothing that the server prints names the program that it is made of, or a tool that it does not have.
fn has_its_own_name_everywhere(folder: &Path) {
    let program = target_folder().join("debug/scaffolded");
    for arguments in [
        &["--help"][..],
        &["call", "--help"],
        &["policy", "--help"],
        &["print-config", "--help"],
        &["print-config", "gemini"],
        &["doctor"],
        &["policy", "lint", "--policy", "nowhere.toml"],
        &["index", "--check", "--out", "nowhere.md"],
    ] {
        let output = Project::at(folder).server_as(&program).args(arguments).output().expect("it runs");
        let said =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(!said.contains("mcp-stdio") && !said.contains("run_command"), "{arguments:?}: {said}");
        assert!(said.contains("scaffolded"), "{arguments:?}: {said}");
    }
}

/// Runs what the README says, but for the port, which may be taken.
fn the_readmes_commands_for_http_work(folder: &Path) {
    let readme = std::fs::read_to_string(folder.join("README.md")).expect("a README");
    let program = target_folder().join("debug/scaffolded-http");
    let run = "cargo run --bin scaffolded-http --";
    let lines = readme.lines().filter(|line| line.starts_with("tokens=") || line.starts_with(run));
    let lines: Vec<String> =
        lines.map(|line| line.replace(run, &format!("exec '{}'", program.display()))).collect();
    let [tokens, new, serve] = &lines[..] else { panic!("{lines:?}") };
    let serve = serve.split_once("    #").expect("a comment").0;
    let home = tempfile::tempdir().expect("a folder");
    let shell = |line: &str| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &format!("{tokens}\n{line}")]).current_dir(folder).env("HOME", home.path());
        command.env("XDG_STATE_HOME", home.path());
        command
    };
    let made = shell(new).output().expect("sh is there");
    assert!(made.status.success() && made.stdout.starts_with(b"ctk_"), "{made:?}");
    let mut served = shell(&format!("{serve} --listen 127.0.0.1:0"));
    let mut child = served.stderr(std::process::Stdio::piped()).spawn().expect("sh is there");
    let mut said = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().expect("a pipe")));
    let first = said.next().and_then(Result::ok).unwrap_or_default();
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert!(first.starts_with("scaffolded: serving http://127.0.0.1:"), "{first}");
}

#[test]
fn a_project_from_a_checkout_compiles_without_warnings_and_its_tests_pass_over_stdio_and_http() {
    let project = empty_folder("by-path");
    let checkout = checkout().display().to_string();
    printed(&project, &["new", "scaffolded", "--toolsets", "filesystem", "--http", "--path", &checkout]);
    let said = cargo_outside(&project.join("scaffolded"), &["test"]);
    assert!(said.contains("test its_own_tool_answers ... ok"), "{said}");
    assert!(said.contains("test its_own_tool_answers_over_http ... ok"), "{said}");

    has_its_own_name_everywhere(&project.join("scaffolded"));
    the_readmes_commands_for_http_work(&project.join("scaffolded"));

    // An own tool with the name of one of the library takes its place, in lists, for old names, and before the policy.
    let tools = project.read("scaffolded/src/tools.rs");
    let tools = tools.replace("\"find_notes\"", "\"read_file\"").replace("\"Find notes\"", "\"Read notes\"");
    project.write("scaffolded/src/tools.rs", &tools);
    let roles = project.read("scaffolded/roles.toml").replace("\"find_notes\"", "\"read_file\"");
    project.write("scaffolded/roles.toml", &roles);
    cargo_outside(&project.join("scaffolded"), &["build"]);
    let program = target_folder().join("debug/scaffolded");
    let own = project.join("scaffolded");
    let answer = call(&program, &own, &[], "read_file", json!({"path": "src/tools.rs", "limit": 1}));
    assert_eq!(answer["structuredContent"]["notes"].as_array().map(Vec::len), Some(1), "{answer}");
    let refused = call(&program, &own, &["--role", "reviewer"], "read_file", json!({"path": "Cargo.toml"}));
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("refused by policy"), "{refused}");
    let listed =
        Project::at(&own).server_as(&program).args(["index", "--out", "-"]).output().expect("it runs");
    let listed = String::from_utf8_lossy(&listed.stdout);
    let rows: Vec<_> = listed.lines().filter(|line| line.starts_with("| `read_file` |")).collect();
    assert_eq!(rows.len(), 2, "one in each table: {listed}");
    assert!(rows[1].contains("Read notes | filesystem | read-only, idempotent, project"), "{rows:?}");
}

#[test]
fn a_server_in_a_project_of_another_language_serves_that_project() {
    let project = empty_folder("node-project");
    project.write("package.json", "{\"name\": \"shop\"}\n");
    project.write("shop.js", "// TODO sell something\n");
    let checkout = checkout().display().to_string();
    let said =
        printed(&project, &["new", "mcp-server", "--toolsets", "filesystem", "--http", "--path", &checkout]);
    assert!(said.contains("serves /project\n"), "{said}");
    let own = project.join("mcp-server");
    let said = cargo_outside(&own, &["test"]);
    assert!(said.contains("test the_index_is_up_to_date ... ok"), "{said}");
    // Started in its own folder or in the project's, and anywhere else it serves that.
    let program = target_folder().join("debug/mcp-server");
    for folder in [own.as_path(), project.path()] {
        let notes = call(&program, folder, &[], "find_notes", json!({"path": "shop.js"}));
        assert_eq!(notes["structuredContent"]["total"], 1, "{notes}");
    }
    let elsewhere = Project::with([("a.txt", "FIXME: here\n")]);
    let notes = call(&program, elsewhere.path(), &[], "find_notes", json!({"path": "a.txt"}));
    assert_eq!(notes["structuredContent"]["total"], 1, "{notes}");
    // The project itself is as it was.
    let mut files: Vec<_> =
        std::fs::read_dir(project.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["mcp-server", "package.json", "shop.js"]);
}

#[test]
fn a_project_from_the_packages_compiles_without_warnings_and_its_tests_pass() {
    let project = empty_folder("from-packages");
    // As a user of crates.io writes it, in a folder that has nothing else.
    std::fs::create_dir(project.join("alone")).expect("a folder");
    printed(&project, &["new", "alone/packaged", "--toolsets", "filesystem", "--http", "--published"]);
    let manifest = project.read("alone/packaged/Cargo.toml");
    assert!(
        manifest.contains(concat!(
            "mcp-stdio = { package = \"coretools-mcp\", version = \"",
            env!("CARGO_PKG_VERSION"),
            "\""
        )),
        "{manifest}"
    );
    let patches = patch_arguments();
    let arguments: Vec<&str> = ["test"].into_iter().chain(patches.iter().map(String::as_str)).collect();
    let said = cargo_outside(&project.join("alone/packaged"), &arguments);
    assert!(said.contains("test its_own_tool_answers ... ok"), "{said}");
    assert!(said.contains("test its_own_tool_answers_over_http ... ok"), "{said}");
}
