//! `notifications/cancelled` ends the work and everything below it.

use crate::connect;
use integration_tests::{Era, Wire, alive, unique_seconds, wait_until, wait_until_gone};
use serde_json::{Value, json};
use std::time::Duration;

/// Starts a command that runs `sleep` in its own process group, in another session, and deaf to SIGTERM.
fn start_tree(wire: &mut Wire, seconds: &str) -> i64 {
    let script = format!("trap '' TERM; sleep {seconds} & setsid sleep {seconds} & sleep {seconds}; wait");
    let id = wire
        .ask("tools/call", json!({"name": "run_command", "arguments": {"command": ["sh", "-c", script]}}));
    // The shell's own command line has the mark too.
    wait_until(Duration::from_secs(10), "the tree grows", || alive(seconds).len() >= 4);
    id
}

#[test]
fn cancelling_ends_the_whole_tree_and_sends_no_answer() {
    for era in Era::BOTH {
        let (_project, mut wire) = connect(era);
        let seconds = unique_seconds();
        let id = start_tree(&mut wire, &seconds);
        let mut params = json!({"requestId": id, "reason": "the user pressed escape"});
        era.fill(&mut params);
        wire.notify("notifications/cancelled", params);
        wait_until_gone(&seconds, Duration::from_secs(5));
        assert!(wire.is_silent_for(Duration::from_millis(400)), "{:?}", wire.others());
        assert_eq!(wire.call("list_directory", json!({}))["isError"], false);
    }
}

#[test]
fn cancelling_one_call_leaves_the_others_alone() {
    let (_project, mut wire) = connect(Era::Modern);
    let seconds = unique_seconds();
    let cancelled = start_tree(&mut wire, &seconds);
    let other =
        wire.ask("tools/call", json!({"name": "run_command", "arguments": {"command": ["sleep", "1"]}}));
    wire.notify("notifications/cancelled", json!({"requestId": cancelled}));
    assert_eq!(wire.answer(other)["result"]["structuredContent"]["exit_code"], 0);
    wait_until_gone(&seconds, Duration::from_secs(5));
}

#[test]
fn cancelling_what_is_not_there_does_nothing() {
    let (_project, mut wire) = connect(Era::Initialize("2025-11-25"));
    let answered = wire.ask("ping", json!({}));
    wire.answer(answered);
    for params in [
        json!({"requestId": answered}),
        json!({"requestId": 4711}),
        json!({"requestId": "4711"}),
        json!({"requestId": null}),
        json!({}),
    ] {
        wire.notify("notifications/cancelled", params);
    }
    assert!(wire.is_silent_for(Duration::from_millis(150)), "{:?}", wire.others());
    assert_eq!(wire.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn an_id_is_compared_with_its_type() {
    let (_project, mut wire) = connect(Era::Initialize("2025-11-25"));
    let id =
        wire.ask("tools/call", json!({"name": "run_command", "arguments": {"command": ["sleep", "0.5"]}}));
    wire.notify("notifications/cancelled", json!({"requestId": id.to_string()}));
    assert_eq!(wire.answer(id)["result"]["isError"], false);
}

#[test]
fn a_storm_of_calls_and_cancellations_leaves_nothing_behind() {
    let (_project, mut wire) = connect(Era::Modern);
    let seconds = unique_seconds();
    for _ in 0..100 {
        let command = json!(["sh", "-c", format!("sleep {seconds} & wait")]);
        let id = wire.ask("tools/call", json!({"name": "run_command", "arguments": {"command": command}}));
        wire.notify("notifications/cancelled", json!({"requestId": id}));
    }
    assert_eq!(wire.call("list_directory", json!({}))["isError"], false);
    wait_until_gone(&seconds, Duration::from_secs(10));
    assert_eq!(wire.others(), Vec::<Value>::new());
}
