//! The wheel.

use crate::{VERSION, is_the_server, package, package_of, small, succeed};
use integration_tests::{Project, require};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A fresh environment with the wheel in it; its folder of programs.
fn installed(folder: &Path, wheel: &[PathBuf]) -> Option<PathBuf> {
    let environment = folder.join("environment");
    let made =
        Command::new("python3").args(["-m", "venv"]).arg(&environment).output().expect("python3 is needed");
    require(made.status.success().then_some(()), "no venv of python3; install it: apt install python3-venv")?;
    let programs = environment.join("bin");
    let mut pip = Command::new(programs.join("pip"));
    succeed(pip.args(["install", "--no-index", "--disable-pip-version-check"]).args(wheel));
    Some(programs)
}

#[test]
fn what_pip_installs_is_the_server_by_each_of_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let Some(programs) = installed(folder.path(), &package("wheel", folder.path(), &[])) else { return };
    // As `uv tool install` and pipx leave it: a link in another folder.
    let link = folder.path().join("coretools-mcp");
    std::os::unix::fs::symlink(programs.join("coretools-mcp"), &link).unwrap();
    for program in [programs.join("mcp-stdio"), programs.join("coretools-mcp"), link] {
        is_the_server(&|project: &Project| project.server_as(&program));
    }
    is_the_server(&|project: &Project| {
        let mut command = project.server_as(&programs.join("python"));
        command.args(["-m", "coretools_mcp"]);
        command
    });
}

#[test]
fn pip_knows_its_version_and_removes_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let Some(programs) = installed(out, &package_of(&small(out), "wheel", out, &[])) else { return };
    let pip = |arguments: &[&str]| {
        let output = succeed(Command::new(programs.join("pip")).args(arguments));
        String::from_utf8(output.stdout).unwrap()
    };
    let shown = pip(&["show", "coretools-mcp"]);
    assert!(shown.contains(&format!("\nVersion: {VERSION}\n")), "{shown}");
    // pip compares each file with what RECORD says of it.
    pip(&["check"]);
    pip(&["uninstall", "--yes", "coretools-mcp"]);
    for name in ["mcp-stdio", "coretools-mcp"] {
        assert!(!programs.join(name).exists(), "{name} is left");
    }
}
