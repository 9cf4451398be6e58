//! Real servers behind the proxy, driven by the official Python client.

use integration_tests::{Project, filesystem_server, python_with, server};
use std::path::Path;
use std::process::Command;

/// Runs `tests/python/wrap.py`, which says on standard error what does not hold.
fn drive(which: &str, mode: &str, restricted: bool, backend: &[&Path]) {
    let Some(python) = python_with("mcp") else { return };
    let project = Project::with([("a.txt", "hello\n")]);
    let output = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/python/wrap.py"))
        .arg(server())
        .args([which, mode, if restricted { "restricted" } else { "everything" }])
        .args(backend)
        .current_dir(project.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "all of it holds", "{said}");
}

fn filesystem(mode: &str, restricted: bool) {
    let Some(entry) = filesystem_server() else { return };
    drive("filesystem", mode, restricted, &["node".as_ref(), &entry]);
}

fn git(mode: &str, restricted: bool) {
    let Some(python) = python_with("mcp_server_git") else { return };
    drive("git", mode, restricted, &[&python, "-m".as_ref(), "mcp_server_git".as_ref()]);
}

#[test]
fn the_filesystem_server_for_one_who_may_everything() {
    filesystem("legacy", false);
    filesystem("auto", false);
}

#[test]
fn the_filesystem_server_for_one_who_may_not_write() {
    filesystem("legacy", true);
    filesystem("auto", true);
}

#[test]
fn the_git_server_for_one_who_may_everything() {
    git("legacy", false);
    git("auto", false);
}

#[test]
fn the_git_server_for_one_who_may_not_commit() {
    git("legacy", true);
    git("auto", true);
}
