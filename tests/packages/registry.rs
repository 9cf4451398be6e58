//! The entry of the MCP registry, and what registries ask of the packages that it names.

use crate::{VERSION, json_of, package, packager, repository, succeed};
use integration_tests::outside::workspace_packages;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

fn entry(folder: &Path, bundles: &[&str]) -> Value {
    json_of(&package("server-json", folder, bundles)[0])
}

#[test]
fn the_entry_fits_the_schema_that_it_names() {
    // The schema as published, which this package brings along: `uv`, `pip` and npm do not.
    let Some(schema) = packager("python/skillsaw/schemas/mcp_registry/v2025_12_11/server.schema.json") else {
        return;
    };
    let schema = json_of(&schema);
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("coretools.mcpb");
    fs::write(&bundle, "a bundle").unwrap();
    let entry = entry(folder.path(), &[bundle.to_str().unwrap()]);
    assert_eq!(entry["$schema"], schema["$id"]);
    let validator = jsonschema::validator_for(&schema).unwrap();
    let wrong: Vec<_> = validator.iter_errors(&entry).map(|error| error.to_string()).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    // The schema tells something: a word it has no place for, and a missing one.
    let mut broken = entry;
    broken["packages"][0]["version"] = "latest".into();
    broken["description"] = "x".repeat(101).into();
    assert!(validator.iter_errors(&broken).count() >= 2);
}

#[test]
fn the_packages_that_it_names_carry_its_name_and_every_version_is_that_of_the_crates() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("coretools.mcpb");
    fs::write(&bundle, "").unwrap();
    let entry = entry(folder.path(), &[bundle.to_str().unwrap()]);
    let name = entry["name"].as_str().unwrap();
    assert_eq!(name, "io.github.owner/coretools");
    assert_eq!(entry["version"], VERSION);
    let [npm, pypi, mcpb] = &entry["packages"].as_array().unwrap()[..] else { panic!("{entry}") };
    assert_eq!((&npm["version"], &pypi["version"]), (&VERSION.into(), &VERSION.into()));
    let released = format!("https://github.com/owner/name/releases/download/v{VERSION}/coretools.mcpb");
    assert_eq!(mcpb["identifier"], released);
    // Of nothing, by SHA-256.
    assert_eq!(mcpb["fileSha256"], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    // By these the registry knows that whoever publishes the entry publishes the packages too.
    let manifest = json_of(&repository("packaging/npm/package.json"));
    assert_eq!(manifest["name"], npm["identifier"]);
    assert_eq!(manifest["mcpName"].as_str().unwrap().replace("OWNER", "owner"), name);
    let readme = fs::read_to_string(repository("packaging/pypi/README.md")).unwrap();
    assert!(readme.contains("<!-- mcp-name: io.github.OWNER/coretools -->"));
    assert_eq!(pypi["identifier"], "coretools-mcp");
}

#[test]
fn the_version_stands_in_no_template() {
    for template in [
        "npm/package.json",
        "mcpb/manifest.json",
        "server.json",
        "gemini-extension/gemini-extension.json",
        "claude-plugin/.claude-plugin/plugin.json",
        "devcontainer/devcontainer-feature.json",
    ] {
        let text = fs::read_to_string(repository("packaging").join(template)).unwrap();
        assert!(!text.contains("\n  \"version\""), "{template} would have to be changed for each release");
    }
    let cargo = fs::read_to_string(repository("Cargo.toml")).unwrap();
    let own = cargo.lines().filter(|line| line.contains("path = \"crates/"));
    for line in own {
        assert!(line.contains(&format!("version = \"{VERSION}\"")), "{line}");
    }
}

#[test]
fn one_command_changes_the_version_in_every_place() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    succeed(Command::new("git").args(["clone", "--quiet", "--shared"]).arg(repository("")).arg(&copy));
    // It works on the checkout that it lies in.
    fs::copy(repository("packaging/set-version"), copy.join("packaging/set-version")).unwrap();
    let set = |version: &str| Command::new(copy.join("packaging/set-version")).arg(version).output().unwrap();
    let output = set("7.8.9");
    assert!(output.status.success(), "{output:?}");
    let read = |path: &str| fs::read_to_string(copy.join(path)).unwrap();
    // That of the workspace, and that of each of its crates where others name it.
    let own = read("Cargo.toml").lines().filter(|line| line.contains("path = \"crates/")).count();
    assert_eq!(read("Cargo.toml").matches("version = \"7.8.9\"").count(), own + 1);
    let locked = read("Cargo.lock");
    let published = |package: &&Value| package["publish"].is_null();
    for package in workspace_packages().iter().filter(published) {
        let crate_name = package["name"].as_str().unwrap();
        assert!(locked.contains(&format!("name = \"{crate_name}\"\nversion = \"7.8.9\"")), "{crate_name}");
    }
    assert!(read("CHANGELOG.md").contains("## Unreleased\n\n## 7.8.9 ("));
    assert_eq!(set("seven").status.code(), Some(2));
}
