//! Real servers behind the proxy, driven by the official Python client.

use integration_tests::{Project, filesystem_server, python_with, server};
use std::path::Path;
use std::process::Command;

/// Runs `tests/python/wrap.py`, which says on standard error what does not hold.
fn drive(which: &str, mode: &str, who: &str, backend: &[&Path]) {
    let Some(python) = python_with("mcp") else { return };
    let (project, elsewhere) = (Project::with([("a.txt", "hello\n")]), Project::empty());
    let output = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/python/wrap.py"))
        .arg(server())
        .args([which, mode, who])
        .args(backend)
        .current_dir(project.path())
        .env("POLICY_FOLDER", elsewhere.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "all of it holds", "{said}");
}

fn filesystem(mode: &str, who: &str) {
    let Some(entry) = filesystem_server() else { return };
    drive("filesystem", mode, who, &["node".as_ref(), &entry]);
}

fn git(mode: &str, who: &str) {
    let Some(python) = python_with("mcp_server_git") else { return };
    drive("git", mode, who, &[&python, "-m".as_ref(), "mcp_server_git".as_ref()]);
}

#[test]
fn the_filesystem_server_for_who_may_everything() {
    filesystem("legacy", "everything");
    filesystem("auto", "everything");
}

#[test]
fn the_filesystem_server_for_who_has_a_list_of_what_it_may_not() {
    filesystem("legacy", "restricted");
    filesystem("auto", "restricted");
}

#[test]
fn the_filesystem_server_for_an_orchestrator() {
    filesystem("legacy", "orchestrator");
    filesystem("auto", "orchestrator");
}

#[test]
fn the_filesystem_server_for_a_worker_who_may_not_write() {
    filesystem("legacy", "worker");
    filesystem("auto", "worker");
}

#[test]
fn the_git_server_for_who_may_everything() {
    git("legacy", "everything");
    git("auto", "everything");
}

#[test]
fn the_git_server_for_who_has_a_list_of_what_it_may_not() {
    git("legacy", "restricted");
    git("auto", "restricted");
}

#[test]
fn the_git_server_for_an_orchestrator() {
    git("legacy", "orchestrator");
    git("auto", "orchestrator");
}

#[test]
fn the_git_server_for_a_worker_who_may_not_write() {
    git("legacy", "worker");
    git("auto", "worker");
}
