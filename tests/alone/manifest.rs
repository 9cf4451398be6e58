//! The manifest of a project that links one library.

use crate::readme;
use integration_tests::outside::workspace_packages;
use serde_json::Value;
use std::collections::BTreeMap;

/// Returns the manifest of the project `name`, which runs `program` of `readme`, the README of `library`.
///
/// Where the README lists the dependencies of its program, these are all. Elsewhere it links `library` and the crates
/// that the program names.
pub(crate) fn of_project(name: &str, library: &str, readme: &str, program: &str) -> String {
    let dependencies = readme::dependencies(readme).unwrap_or_else(|| named_dependencies(library, program));
    // An empty table `workspace`, because the folder lies beneath that of the workspace and is no member of it.
    format!(
        "[package]\nname = {name:?}\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n{dependencies}\n[workspace]\n"
    )
}

/// Returns the table of `library` and of every crate that `program` names and the workspace knows, each with its
/// default features.
fn named_dependencies(library: &str, program: &str) -> String {
    let mut table = String::from("[dependencies]\n");
    for (name, requirement) in known_crates() {
        if name == library || program.contains(&format!("{}::", name.replace('-', "_"))) {
            let features = if name == "tokio" { r#", features = ["macros", "rt-multi-thread"]"# } else { "" };
            table += &format!("{name} = {{ version = {requirement:?}{features} }}\n");
        }
    }
    table
}

/// Returns the crates of the workspace and the crates that these depend on, with the versions that they ask for.
fn known_crates() -> BTreeMap<&'static str, &'static str> {
    let text = |value: &'static Value| value.as_str().expect("text");
    let mut known = BTreeMap::new();
    for package in workspace_packages() {
        for dependency in package["dependencies"].as_array().expect("a list") {
            known.insert(text(&dependency["name"]), text(&dependency["req"]));
        }
    }
    // After the others: a crate that is a development dependency of itself has no version there.
    for package in workspace_packages() {
        known.insert(text(&package["name"]), text(&package["version"]));
    }
    known
}
