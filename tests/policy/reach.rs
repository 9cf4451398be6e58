//! What a policy does not reach by itself, and is reached nevertheless.

use crate::{Judged, listed, tester};
use integration_tests::{Era, Wire, wait_until};
use serde_json::{Value, json};
use std::time::Duration;

const LIMITED: &str = "allow = [\"*\"]\n[[roles.tester.require]]\nid = \"rule\"\ntools = [\"*\"]\nread_within = [\"docs\"]\nwrite_within = [\"docs\"]";

fn command(wire: &mut Wire, words: &[&str]) -> Value {
    wire.call("run_command", json!({"command": words, "working_directory": "docs"}))
}

#[test]
fn a_program_reaches_no_more_than_the_call_that_started_it() {
    let judged = Judged::by(&tester(LIMITED), [("docs/a.txt", "a"), ("src/secret.txt", "needle")]);
    let mut wire = judged.connect(Era::Modern);
    assert_eq!(wire.call("read_file", json!({"path": "src/secret.txt"}))["isError"], true);
    let read = command(&mut wire, &["cat", "../src/secret.txt"]).to_string();
    assert!(!read.contains("needle"), "{read}");
    command(&mut wire, &["touch", "../src/new.txt"]);
    assert!(!judged.project.join("src/new.txt").exists());
}

#[test]
fn a_key_of_markers_that_tools_could_read_keeps_the_server_from_starting() {
    let judged = Judged::by(&tester("allow = [\"*\"]"), []);
    crate::put(&judged.project.join("marker.key"), "0123456789abcdef0123456789abcdef", 0o600);
    let config = format!("[policy]\nmarker_key = {:?}\n", judged.project.join("marker.key"));
    let config = crate::put(&judged.outside.join("coretools.toml"), config, 0o600);
    let mut command = crate::server(&judged.project, ["tools", "--config"]);
    command.arg(config);
    let output = crate::run(command);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("lies in a root"), "{output:?}");
}

/// A client that says `initialized` often is still one listener.
#[test]
fn a_change_is_told_once_however_often_a_client_says_that_it_is_ready() {
    let judged = Judged::by(&tester("allow = [\"*\"]"), []);
    let mut wire = judged.connect(Era::BOTH[0]);
    for _ in 0..5 {
        wire.notify("notifications/initialized", json!({}));
    }
    wire.request("tools/list", json!({}));
    judged.set_policy(&tester("allow = [\"*\"]\ndeny = [\"write_file\"]"));
    wait_until(Duration::from_secs(20), "the new policy holds", || !listed(&mut wire).contains("write_file"));
    wire.is_silent_for(Duration::from_millis(500));
    wire.is_silent_for(Duration::from_millis(500));
    let told = wire
        .others()
        .iter()
        .filter(|message| message["method"] == "notifications/tools/list_changed")
        .count();
    assert_eq!(told, 1);
}

#[test]
fn an_audit_that_was_removed_is_made_again() {
    let judged = Judged::by(&tester("allow = [\"*\"]"), []);
    let audit = judged.outside.join("audit.jsonl");
    let mut command = judged.server();
    command.arg("--audit").arg(&audit);
    let mut wire = Wire::connect(command, Era::Modern);
    wire.call("list_commands", json!({}));
    std::fs::remove_file(&audit).unwrap();
    wire.call("list_commands", json!({}));
    assert!(audit.exists());
}

/// A line that is JSON is a list where a list may stand, and is judged as what it becomes.
#[test]
fn a_command_that_is_a_list_in_a_string_is_judged_as_it_runs() {
    let lines = "allow = [\"*\"]\n[[roles.tester.require]]\nid = \"rule\"\ntools = [\"run_command\"]\ncommands = [\"echo hello\"]";
    let judged = Judged::by(&tester(lines), []);
    let mut wire = judged.connect(Era::Modern);
    for command in
        [r#"["touch","ran"]"#, r#"["sh","-c","touch ran"]"#, r#" ["touch","ran"]"#, r#"["echo hello","x"]"#]
    {
        let result = wire.call("run_command", json!({"command": command}));
        assert_eq!(result["isError"], true, "{command}: {result}");
        assert!(!judged.project.join("ran").exists(), "{command}");
    }
    // Whether it is taken or refused, it is never another command.
    let result = wire.call("run_command", json!({"command": r#"["echo","hello"]"#})).to_string();
    assert!(result.contains("hello") || result.contains("refused by policy"), "{result}");
}
