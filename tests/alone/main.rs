//! Links each library alone, as a user of crates.io does: a project outside the workspace takes the library from its
//! package, and runs the first program of the library's README. `scaffold_builds` does the same with whole servers.
//!
//! ```sh
//! cargo test --workspace --features integration-tests/stress --test alone
//! ```
#![allow(clippy::expect_used, clippy::panic, reason = "a test stops at the first surprise")]

mod manifest;
mod readme;

use integration_tests::outside::{
    cargo_outside, empty_folder, patch_arguments, target_folder, unpacked_packages, workspace_packages,
};
use readme::first_example;
use std::path::Path;
use std::process::{Command, Stdio};

/// Makes one test for each library, so that one alone can be chosen: its name is that of the crate.
macro_rules! libraries {
    ($($library:ident,)*) => {
        const LIBRARIES: &[&str] = &[$(stringify!($library)),*];

        $(
            #[test]
            fn $library() {
                check_library(&stringify!($library).replace('_', "-"));
            }
        )*
    };
}

libraries! {
    did_you_mean,
    egress_proxy,
    json_rpc,
    redaction,
    trusted_file,
    approvals,
    audit_log,
    workspace,
    process_runner,
    role_policy,
    context_compiler,
    introspection,
    agent_hooks,
    codex_executor,
    agent_sessions,
    mcp_proxy,
    remotes,
}

/// Builds the first program of the README of `library`, and runs it unless the README says `no_run`.
fn check_library(library: &str) {
    let package = unpacked_packages().iter().find(|package| package.name == library);
    let package = package.unwrap_or_else(|| panic!("{library} is no published crate of the workspace"));
    // The README that was packaged, which is what crates.io shows.
    let readme = read(&package.folder.join("README.md"));
    let example =
        first_example(&readme).unwrap_or_else(|| panic!("the README of {library} has no ```rust block"));

    let name = format!("alone-{library}");
    let project = empty_folder(&name);
    project.write("Cargo.toml", &manifest::of_project(&name, library, &readme, &example.program));
    project.write("src/main.rs", &example.program);
    let patches = patch_arguments();
    let arguments: Vec<&str> = ["build"].into_iter().chain(patches.iter().map(String::as_str)).collect();
    cargo_outside(project.path(), &arguments);
    if example.runs {
        // In the folder of the package, as rustdoc runs it.
        run(&target_folder().join("debug").join(&name), &package.folder);
    }
}

fn run(program: &Path, folder: &Path) {
    let output = Command::new("timeout")
        .arg("60")
        .arg(program)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("timeout is there");
    assert!(output.status.success(), "{}: {output:?}", program.display());
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_library_with_a_program_in_its_readme_is_in_the_list() {
    let has_program = |package: &&serde_json::Value| {
        let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
        let readme = manifest.with_file_name("README.md");
        package["publish"].is_null() && first_example(&read(&readme)).is_some()
    };
    for package in workspace_packages().iter().filter(has_program) {
        let name = package["name"].as_str().expect("a name");
        assert!(
            LIBRARIES.contains(&name.replace('-', "_").as_str()),
            "{name} has a program and no test here"
        );
    }
}
