//! The server's environment is that of its user: the programs of a role that may not do everything get a part of it.

use crate::{PolicyFixture, run, server};
use integration_tests::{Era, Project, Wire, wait_until};
use serde_json::json;
use std::process::Command;
use std::time::Duration;

/// A value that no pattern recognises, under a name that says nothing.
const VALUE: &str = "plum-orchard-17";

/// A server with secrets in its environment, and settings that a build needs.
fn operated(project: &Project, arguments: &[&str]) -> Command {
    let mut command = server(project, arguments);
    command.env("SHOP_BACKEND", VALUE).env("DATABASE_PASSWORD", "fig-garden-2203");
    command.env("https_proxy", format!("http://user:{VALUE}@127.0.0.1:9"));
    command.env("GOPROXY", "https://mirror.example.org").env("GOFLAGS", "-mod=mod");
    command
}

/// The ways in which a program prints its environment so that no redaction sees the values.
const ENCODINGS: [&str; 4] =
    ["env | rev", "env | base64 -w0", "env | sed 's/./&./g'", "printf %s \"$SHOP_BACKEND\" | rev"];

/// Returns true if `text` has the value in one of these encodings.
fn shows_value(text: &str) -> bool {
    let reversed: String = VALUE.chars().rev().collect();
    let spaced: String = VALUE.chars().flat_map(|one| [one, '.']).collect();
    text.contains(VALUE)
        || text.contains(&reversed)
        || text.contains(&spaced)
        || (0..3).any(|skip| text.contains(&base64_inner(skip)))
}

/// Returns the middle of the value as base64 writes it at one of the three offsets.
fn base64_inner(skip: usize) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    VALUE.as_bytes()[skip..]
        .chunks_exact(3)
        .flat_map(|group| {
            let bits = group.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte));
            [18, 12, 6, 0].map(|shift| DIGITS[bits >> shift & 63] as char)
        })
        .collect()
}

#[test]
fn a_worker_prints_no_secret_of_the_server_in_any_encoding() {
    let project = Project::empty();
    let mut full = Wire::connect(operated(&project, &["--role", "orchestrator"]), Era::Modern);
    // The encodings work, and who may do everything has the whole environment.
    for script in ENCODINGS {
        let said = full.text("run_command", json!({"command": script, "shell": true}));
        assert!(shows_value(&said), "{script}: {said}");
    }
    let mut worker = Wire::connect(operated(&project, &["--role", "worker"]), Era::Modern);
    for script in ENCODINGS {
        let said = worker.text("run_command", json!({"command": script, "shell": true}));
        assert!(!shows_value(&said), "{script}: {said}");
    }
    worker.text("start_command", json!({"command": "env | rev > kept; mv kept out", "shell": true}));
    wait_until(Duration::from_secs(30), "it has printed", || project.join("out").exists());
    assert!(!shows_value(&project.read("out")));
    project.write("test.sh", "env | rev > tested\n");
    project.write("Makefile", "test:\n\tsh test.sh\n");
    worker.call("run_tests", json!({}));
    assert!(!shows_value(&project.read("tested")));
}

#[test]
fn what_a_build_needs_is_inherited_and_the_rest_is_named_without_its_value() {
    let project = Project::empty();
    let mut worker = Wire::connect(operated(&project, &["--role", "worker"]), Era::Modern);
    let said = worker.text("run_command", json!({"command": "env", "shell": true}));
    for line in ["GOPROXY=https://mirror.example.org", "GOFLAGS=-mod=mod", "PATH=", "HOME="] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let found = worker.call("get_diagnostics", json!({}));
    let environment = &found["structuredContent"]["environment"];
    assert_eq!(environment["mode"], "minimal", "{found}");
    let withheld: Vec<_> =
        environment["withheld"].as_array().unwrap().iter().filter_map(|name| name.as_str()).collect();
    for name in ["SHOP_BACKEND", "DATABASE_PASSWORD", "https_proxy"] {
        assert!(withheld.contains(&name), "{name}: {withheld:?}");
    }
    assert!(!withheld.contains(&"GOPROXY") && !found.to_string().contains(VALUE), "{found}");
    let doctor = run({
        let mut command = operated(&project, &["doctor"]);
        command.env("CORETOOLS_ROLE", "worker");
        command
    });
    let printed = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(
        printed.contains("minimal; commands do not get") && printed.contains("SHOP_BACKEND"),
        "{printed}"
    );
    assert!(!printed.contains(VALUE), "{printed}");
}

#[test]
fn the_operator_names_further_variables_or_passes_all_on() {
    let project = Project::empty();
    let mut named = operated(&project, &["--role", "worker"]);
    named.env("CORETOOLS_COMMANDS_VARIABLES", "SHOP_*,https_proxy");
    let mut wire = Wire::connect(named, Era::Modern);
    let said = wire.text("run_command", json!({"command": "env | rev", "shell": true}));
    assert!(shows_value(&said), "{said}");
    let said = wire.text("run_command", json!({"command": "env | cut -d= -f1", "shell": true}));
    assert!(said.contains("SHOP_BACKEND") && said.contains("https_proxy"), "{said}");
    assert!(!said.contains("DATABASE_PASSWORD"), "{said}");
    let mut all = operated(&project, &["--role", "worker"]);
    all.env("CORETOOLS_COMMANDS_ENVIRONMENT", "inherit");
    let said =
        Wire::connect(all, Era::Modern).text("run_command", json!({"command": "env | rev", "shell": true}));
    assert!(shows_value(&said), "{said}");
}

#[test]
fn a_hook_of_git_and_a_session_get_no_more_than_a_command() {
    let judged = PolicyFixture::by(
        &crate::tester(
            "allow = [\"run_command\", \"git_add\", \"git_commit\", \"git_push\", \"new_session\"]",
        ),
        [("a.txt", "a\n")],
    );
    let project = &judged.project;
    project.git(&["init", "-q"]);
    let there = project.join("bare.git");
    project.git(&["init", "-q", "--bare", there.to_str().unwrap()]);
    project.git(&["remote", "add", "origin", there.to_str().unwrap()]);
    for (hook, out) in [("pre-commit", "committed"), ("pre-push", "pushed")] {
        let script = format!("#!/bin/sh\nenv | rev > '{}'\n", project.join(out).display());
        crate::put(&project.join(".git/hooks").join(hook), script, 0o755);
    }
    let policy = judged.policy();
    let mut wire = Wire::connect(operated(project, &["--policy", policy.to_str().unwrap()]), Era::Modern);
    wire.text("git_add", json!({"paths": ["a.txt"]}));
    let committed = wire.text("git_commit", json!({"message": "a"}));
    assert!(project.join("committed").exists(), "{committed}");
    assert!(!shows_value(&project.read("committed")), "{}", project.read("committed"));
    let pushed = wire.call("git_push", json!({"remote": "origin"}));
    assert!(project.join("pushed").exists(), "{pushed}");
    assert!(!shows_value(&project.read("pushed")), "{}", project.read("pushed"));
    wire.text("new_session", json!({"command": ["sh", "-c", "env | rev > kept; mv kept session"]}));
    wait_until(Duration::from_secs(30), "the session has printed", || project.join("session").exists());
    assert!(!shows_value(&project.read("session")), "{}", project.read("session"));
}
