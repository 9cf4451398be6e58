//! Clients that were not written for this server.

use integration_tests::{HttpServer, Project, python_with_mcp, unique_seconds, wait_until_gone};
use std::process::Command;
use std::time::Duration;

/// Runs `tests/python/http_client.py`, which says on standard error what does not hold.
fn python(mode: &str) {
    let Some(python) = python_with_mcp() else { return };
    let project = Project::with([("a.txt", "hello\n")]);
    let server = HttpServer::start(&project, &[]);
    let token = server.token("python", "dev", &[]);
    let seconds = unique_seconds();
    let output = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/python/http_client.py"))
        .args([&format!("http://{}/mcp", server.address()), &token, mode, &seconds])
        .current_dir(project.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{}", server.log());
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "all of it holds", "{said}");
    wait_until_gone(&seconds, Duration::from_secs(10));
}

#[test]
fn the_official_python_client_works_with_the_handshake() {
    python("legacy");
}

#[test]
fn the_official_python_client_works_as_it_is() {
    python("auto");
}

#[test]
fn the_official_python_client_works_without_asking_first() {
    python("2026-07-28");
}
