//! The npm package: a launcher, and the program for the platform.

use crate::{VERSION, is_the_server, json_of, package, package_of, small, succeed};
use integration_tests::{Project, require};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Installs packages with npm into a folder of their own.
fn install(folder: &Path, packages: &[PathBuf]) -> PathBuf {
    let installed = folder.join("installed");
    fs::create_dir(&installed).unwrap();
    fs::write(installed.join("package.json"), "{}").unwrap();
    let mut npm = Command::new("npm");
    // The packages for other platforms are in no registry that it could ask, as they would be left out anyway.
    npm.args(["install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts"]).args(packages);
    succeed(npm.current_dir(&installed).env("npm_config_cache", folder.join("cache")));
    installed.join("node_modules")
}

/// This machine's, as npm calls it.
fn processor() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" }
}

/// The packages of platforms, and the one that names them.
fn with_main(folder: &Path, mut platforms: Vec<PathBuf>) -> Vec<PathBuf> {
    let names: Vec<_> = platforms.iter().map(|path| path.to_str().unwrap()).collect();
    let main = package("npm-main", folder, &names);
    platforms.extend(main);
    platforms
}

#[test]
fn what_npm_installs_is_the_server_with_any_node() {
    let folder = tempfile::tempdir().unwrap();
    let modules = install(folder.path(), &with_main(folder.path(), package("npm", folder.path(), &[])));
    let mut npx = Command::new("npx");
    npx.args(["--offline", "coretools-mcp", "--version"]).current_dir(modules.parent().unwrap());
    let output = succeed(npx.env("npm_config_cache", folder.path().join("cache")));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("mcp-stdio {VERSION}\n"));
    let newer = crate::repository(".nodes/node_modules/node24/bin/node");
    let newer =
        require(newer.exists().then_some(newer), "no Node.js 24 in .nodes; `.ci/run tools` installs it");
    // Node 24 hands its process over; an older one starts the program and waits for it.
    for node in [Some(PathBuf::from("node")), newer].into_iter().flatten() {
        for name in ["coretools-mcp", "mcp-stdio"] {
            is_the_server(&|project: &Project| {
                let mut command = project.server_as(&node);
                command.arg(modules.join(".bin").join(name));
                command
            });
        }
    }
}

#[test]
fn without_the_platforms_package_it_says_what_to_do() {
    for (platform, remedy) in [
        (format!("linux-{}", processor()), "without --omit=optional"),
        ("sunos-x64".to_owned(), "There is: coretools-mcp-sunos-x64"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let packed = format!("coretools-mcp-{platform}-{VERSION}.tgz");
        let modules = install(folder.path(), &package("npm-main", folder.path(), &[&packed]));
        let output = Command::new("node").arg(modules.join(".bin/coretools-mcp")).output().unwrap();
        assert_eq!(output.status.code(), Some(127));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(remedy), "{said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn the_two_packages_agree_and_run_nothing_when_they_are_installed() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let modules = install(out, &with_main(out, package_of(&small(out), "npm", out, &[])));
    let main = json_of(&modules.join("coretools-mcp/package.json"));
    let platforms = main["optionalDependencies"].as_object().unwrap();
    let name = format!("coretools-mcp-linux-{}", processor());
    assert_eq!(serde_json::to_value(platforms).unwrap(), json!({&name: VERSION}));
    let platform = json_of(&modules.join(name).join("package.json"));
    assert_eq!((&platform["os"], &platform["cpu"]), (&json!(["linux"]), &json!([processor()])));
    for package in [&main, &platform] {
        assert_eq!(package["version"], VERSION);
        assert_eq!(package["scripts"], Value::Null);
        assert_eq!(package["license"], "MIT OR Apache-2.0");
        assert_eq!(package["repository"]["url"], "git+https://github.com/owner/name.git");
    }
}
