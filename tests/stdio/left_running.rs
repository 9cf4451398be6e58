//! The processes that a command leaves running after its normal end are named, can be ended, and do not outlive the server.

use crate::connect;
use integration_tests::{
    Era, Escape, Project, Wire, alive, unique_seconds, wait_until_gone, wait_until_left,
};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;

/// For what should be soon, on a machine that has much else to do.
const SOON: Duration = Duration::from_secs(20);

/// Runs each escape that this machine has programs for in a server of its own. Returns what was answered.
fn each_escape(mut check: impl FnMut(Escape, &mut Wire, &str, Value)) {
    for escape in Escape::ALL {
        let seconds = unique_seconds();
        let Some(command) = escape.command(&seconds) else { continue };
        let (_project, mut wire) = connect(Era::Modern);
        let answer = wire.call("run_command", command);
        wait_until_left(&seconds);
        check(escape, &mut wire, &seconds, answer);
    }
}

fn outlives_no_end(end: impl Fn(&mut Wire)) {
    each_escape(|_, wire, seconds, _| {
        end(wire);
        wire.wait(SOON);
        wait_until_gone(seconds, SOON);
    });
}

#[test]
fn it_is_named_in_the_answer_and_in_the_list_and_can_be_stopped() {
    each_escape(|escape, wire, seconds, answer| {
        let sleep = |text: &str| text.contains("left running") && text.contains(seconds);
        let (report, text) =
            (answer["structuredContent"].to_string(), answer["content"][0]["text"].to_string());
        assert!(sleep(&report) && sleep(&text), "{escape:?}: {answer}");
        let pid = alive(seconds).into_iter().max().unwrap();
        assert!(text.contains(&format!("(pid {pid})")), "{escape:?}: {pid}: {text}");
        let (list, _) = wire.outcome("list_commands", json!({}));
        let listed = list["commands"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(listed["state"], "running", "{escape:?}: {list}");
        assert!(listed["command"].as_str().unwrap().contains(seconds), "{escape:?}: {list}");
        let said = wire.text("stop_command", json!({"id": listed["id"]}));
        assert!(said.contains("stopped"), "{escape:?}: {said}");
        assert!(alive(seconds).is_empty(), "{escape:?}");
        let (list, _) = wire.outcome("list_commands", json!({}));
        assert_eq!(list["commands"][0]["state"], "stopped", "{escape:?}: {list}");
    });
}

#[test]
fn it_ends_with_the_end_of_input() {
    outlives_no_end(Wire::close_input);
}

#[test]
fn it_ends_with_sigterm() {
    outlives_no_end(|wire| wire.signal(Signal::TERM));
}

#[test]
fn it_ends_with_sigint() {
    outlives_no_end(|wire| wire.signal(Signal::INT));
}

#[test]
fn it_ends_with_sigkill() {
    outlives_no_end(|wire| wire.signal(Signal::KILL));
}

#[test]
fn it_ends_with_a_crash() {
    outlives_no_end(|wire| wire.signal(Signal::ABORT));
}

#[test]
fn an_escape_from_a_command_that_runs_ends_with_it_and_with_the_server() {
    for kill_server in [false, true] {
        let seconds = unique_seconds();
        let script =
            format!("(env -i setsid sleep {seconds} < /dev/null > /dev/null 2>&1 &); sleep {seconds}");
        let (_project, mut wire) = connect(Era::Modern);
        let command = json!({"command": ["sh", "-c", script]});
        let started = wire.outcome("start_command", command).0;
        wait_until_left(&seconds);
        if kill_server {
            // It is found at the latest in the second look at a command that runs.
            std::thread::sleep(Duration::from_secs(1));
            wire.signal(Signal::KILL);
        } else {
            wire.text("stop_command", json!({"id": started["id"]}));
        }
        wait_until_gone(&seconds, SOON);
    }
}

#[test]
fn what_a_hook_of_git_leaves_running_is_named_and_ends_with_the_server() {
    use std::os::unix::fs::PermissionsExt;
    let (project, seconds) = (Project::with([("a.txt", "a\n")]), unique_seconds());
    project.git(&["init", "-q"]);
    project.git(&["config", "user.name", "Ada"]);
    project.git(&["config", "user.email", "ada@example.org"]);
    project.git(&["add", "."]);
    project.git(&["commit", "-q", "-m", "first"]);
    let hook = project.join(".git/hooks/post-commit");
    let script = format!("#!/bin/sh\nenv -i setsid sleep {seconds} < /dev/null > /dev/null 2>&1 &\nexit 0\n");
    std::fs::write(&hook, script).unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    project.write("a.txt", "b\n");
    let mut wire = Wire::connect(project.server(), Era::Modern);
    let answer = wire.call("git_commit", json!({"message": "m", "files": ["a.txt"]}));
    wait_until_left(&seconds);
    let text = answer["content"].to_string();
    assert!(text.contains("left running") && text.contains(&seconds), "{answer}");
    assert!(wire.outcome("list_commands", json!({})).0.to_string().contains(&seconds));
    wire.close_input();
    wire.wait(SOON);
    wait_until_gone(&seconds, SOON);
}

#[test]
fn a_process_of_others_is_spared() {
    let seconds = unique_seconds();
    let (_project, mut wire) = connect(Era::Modern);
    let mut stranger = std::process::Command::new("sleep").arg(&seconds).spawn().unwrap();
    wire.call("run_command", json!({"command": ["sh", "-c", "sleep 0.3 > /dev/null 2>&1 &"]}));
    wire.close_input();
    wire.wait(SOON);
    assert!(stranger.try_wait().unwrap().is_none());
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn beyond_the_limit_on_background_commands_it_is_ended_and_the_answer_says_so() {
    let (seconds, (_project, mut wire)) = (unique_seconds(), connect(Era::Modern));
    let leave = json!({"command": ["sh", "-c", format!("sleep {seconds} < /dev/null > /dev/null 2>&1 &")]});
    for _ in 0..32 {
        let text = wire.text("run_command", leave.clone());
        assert!(text.contains("left running"), "{text}");
    }
    for _ in 0..3 {
        let text = wire.text("run_command", leave.clone());
        assert!(text.contains("ended, and not left running: `sleep"), "{text}");
        assert!(text.contains("32 background commands are running"), "{text}");
        assert!(!text.contains("list_commands lists it"), "{text}");
    }
    integration_tests::wait_until(SOON, "what was too much has ended", || alive(&seconds).len() == 32);
    let refused = wire.call("start_command", json!({"command": ["sleep", seconds]}));
    assert_eq!(refused["isError"], true, "{refused}");
    // An ended one makes room.
    wire.text("stop_command", json!({"id": 1}));
    assert!(wire.text("run_command", leave).contains("left running"));
    wire.close_input();
    wire.wait(SOON);
    wait_until_gone(&seconds, SOON);
}
