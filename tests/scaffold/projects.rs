//! What is written compiles without a warning, and its tests pass: from a checkout, from the packages, in a project of
//! another language.

use crate::printed;
use integration_tests::Project;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The checkout.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the workspace is there")
}

/// The folder that this test was built into.
fn target() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own file");
    // target/PROFILE/deps/TEST
    test.ancestors().nth(3).expect("three folders").to_owned()
}

/// An empty folder, always the same, so that what is built for it is built once.
fn folder(name: &str) -> Project {
    let folder = target().join("scaffold").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("folders can be made");
    Project::at(&folder)
}

/// Cargo in a project that was written (all with the same toolsets, so that third-party crates are built once for them), with nothing from the network, and with the workspace's lock and profile. What
/// it says.
fn cargo(project: &Path, arguments: &[&str]) -> String {
    std::fs::copy(workspace().join("Cargo.lock"), project.join("Cargo.lock")).expect("a lock");
    let profile = target().join("scaffold").join(format!("profile-{}.toml", std::process::id()));
    std::fs::write(&profile, profile_of_the_workspace()).expect("a file can be written");
    let output = integration_tests::cargo()
        .args(arguments)
        .arg("--offline")
        .arg("--config")
        .arg(&profile)
        .current_dir(project)
        .env("CARGO_TARGET_DIR", target())
        .output()
        .expect("cargo can be run");
    let _ = std::fs::remove_file(&profile);
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "cargo {arguments:?}: {said}");
    // Cargo wants to know of every package of ours; one that the project does not link it then calls unused.
    let warned = |line: &str| line.starts_with("warning") && !line.contains("patch `context-compiler ");
    assert!(!said.lines().any(warned), "{said}");
    said
}

/// The tables of the workspace's profile that say how third-party crates are built.
fn profile_of_the_workspace() -> String {
    let manifest = std::fs::read_to_string(workspace().join("Cargo.toml")).expect("a manifest");
    let wanted = ["dev", "dev.package.\"*\"", "dev.package.memchr", "dev.package.regex-automata"];
    let tables = manifest.split("\n[profile.").skip(1);
    let tables = tables.filter(|table| wanted.iter().any(|name| table.starts_with(&format!("{name}]"))));
    tables.map(|table| format!("[profile.{table}\n")).collect()
}

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

#[test]
fn a_project_from_a_checkout_compiles_without_warnings_and_its_tests_pass_over_stdio_and_http() {
    let project = folder("by-path");
    let checkout = workspace().display().to_string();
    printed(&project, &["new", "scaffolded", "--toolsets", "filesystem", "--http", "--path", &checkout]);
    // Ours lies above it here, and is not its own.
    project.write("scaffolded/rustfmt.toml", "");
    let formatted =
        integration_tests::cargo().args(["fmt", "--check"]).current_dir(project.join("scaffolded")).output();
    let formatted = formatted.expect("rustfmt is there");
    assert!(formatted.status.success(), "{}", String::from_utf8_lossy(&formatted.stdout));
    let said = cargo(&project.join("scaffolded"), &["test"]);
    assert!(said.contains("test its_own_tool_answers ... ok"), "{said}");
    assert!(said.contains("test its_own_tool_answers_over_http ... ok"), "{said}");

    // An own tool with the name of one of the library takes its place, in lists, for old names, and before the policy.
    let tools = project.read("scaffolded/src/tools.rs");
    let tools = tools.replace("\"find_notes\"", "\"read_file\"").replace("\"Find notes\"", "\"Read notes\"");
    project.write("scaffolded/src/tools.rs", &tools);
    let roles = project.read("scaffolded/roles.toml").replace("\"find_notes\"", "\"read_file\"");
    project.write("scaffolded/roles.toml", &roles);
    cargo(&project.join("scaffolded"), &["build"]);
    let program = target().join("debug/scaffolded");
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
    let project = folder("node-project");
    project.write("package.json", "{\"name\": \"shop\"}\n");
    project.write("shop.js", "// TODO sell something\n");
    let checkout = workspace().display().to_string();
    let said =
        printed(&project, &["new", "mcp-server", "--toolsets", "filesystem", "--http", "--path", &checkout]);
    assert!(said.contains("serves /project\n"), "{said}");
    let own = project.join("mcp-server");
    let said = cargo(&own, &["test"]);
    assert!(said.contains("test the_index_is_up_to_date ... ok"), "{said}");
    // Started in its own folder or in the project's, and anywhere else it serves that.
    let program = target().join("debug/mcp-server");
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
    const CRATES: [&str; 7] = [
        "process-runner",
        "role-policy",
        "context-compiler",
        "core-tools",
        "server-setup",
        "coretools-mcp",
        "mcp-http",
    ];
    let packages = target().join("scaffold/packages");
    let mut package = integration_tests::cargo();
    package
        .args(["package", "--offline", "--no-verify", "--allow-dirty", "--quiet", "--target-dir"])
        .arg(&packages);
    for name in CRATES {
        package.args(["--package", name]);
    }
    let output = package.current_dir(workspace()).output().expect("cargo can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let project = folder("from-packages");
    let mut patches = vec!["test".to_owned()];
    for name in CRATES {
        let version = env!("CARGO_PKG_VERSION");
        let file = packages.join(format!("package/{name}-{version}.crate"));
        // As new: cargo writes every package with the same old time, and would take what it built of another for it.
        let unpacked = Command::new("tar").arg("xmzf").arg(&file).current_dir(project.path()).status();
        assert!(unpacked.expect("tar is there").success(), "{}", file.display());
        let folder = project.join(&format!("{name}-{version}"));
        patches.push("--config".to_owned());
        patches.push(format!("patch.crates-io.{name}.path={:?}", folder.display().to_string()));
    }
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
    let arguments: Vec<&str> = patches.iter().map(String::as_str).collect();
    let said = cargo(&project.join("alone/packaged"), &arguments);
    assert!(said.contains("test its_own_tool_answers ... ok"), "{said}");
    assert!(said.contains("test its_own_tool_answers_over_http ... ok"), "{said}");
}
