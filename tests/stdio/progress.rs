//! The messages that a client gets while it waits.

use crate::connect;
use integration_tests::{Era, Wire};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn ask(wire: &mut Wire, token: &Value, command: &Value) -> i64 {
    let arguments = json!({"command": command});
    wire.ask(
        "tools/call",
        json!({"name": "run_command", "arguments": arguments, "_meta": {"progressToken": token}}),
    )
}

fn is_progress(message: &Value) -> bool {
    message["method"] == "notifications/progress"
}

#[test]
fn a_silent_command_is_heard_of_within_ten_seconds() {
    for era in Era::BOTH {
        let (_project, mut wire) = connect(era);
        let started = Instant::now();
        let id = ask(&mut wire, &json!("token"), &json!(["sleep", "30"]));
        let message = wire.receive();
        assert!(is_progress(&message), "{message}");
        assert_eq!(message["params"]["progressToken"], "token");
        assert!(started.elapsed() < Duration::from_secs(10), "after {:?}", started.elapsed());
        wire.notify("notifications/cancelled", json!({"requestId": id}));
    }
}

#[test]
fn progress_grows_tells_what_the_command_says_and_ends_with_the_answer() {
    let script = "for i in 1 2 3 4 5 6; do echo step $i; sleep 0.5; done";
    for (era, token) in [(Era::BOTH[0], json!(17)), (Era::BOTH[1], json!("token"))] {
        let (_project, mut wire) = connect(era);
        let id = ask(&mut wire, &token, &json!(["sh", "-c", script]));
        let mut last = -1.0;
        let mut messages = Vec::new();
        loop {
            let message = wire.receive();
            if message["id"] == id {
                assert_eq!(message["result"]["isError"], false);
                break;
            }
            assert!(is_progress(&message), "{message}");
            assert_eq!(message["params"]["progressToken"], token);
            let progress = message["params"]["progress"].as_f64().unwrap();
            assert!(progress > last, "{progress} after {last}");
            last = progress;
            messages.push(message["params"]["message"].as_str().unwrap_or_default().to_owned());
        }
        // Three seconds of work, at most one word a second.
        assert!((1..=3).contains(&messages.len()), "{messages:?}");
        assert!(messages.iter().all(|message| message.starts_with("step ")), "{messages:?}");
        assert!(wire.is_silent_for(Duration::from_millis(1500)), "progress after the answer");
    }
}

#[test]
fn nothing_is_sent_to_a_client_that_gave_no_token() {
    let (_project, mut wire) = connect(Era::Initialize("2025-11-25"));
    let command = json!(["sh", "-c", "for i in 1 2 3; do echo step $i; sleep 0.7; done"]);
    let id = wire.ask("tools/call", json!({"name": "run_command", "arguments": {"command": command}}));
    assert_eq!(wire.receive()["id"], id);
    assert_eq!(wire.others(), Vec::<Value>::new());
}

#[test]
fn nothing_is_sent_of_a_call_that_was_cancelled() {
    let (_project, mut wire) = connect(Era::Initialize("2025-11-25"));
    let command = json!(["sh", "-c", "trap '' TERM; while :; do echo step; sleep 0.2; done"]);
    let id = ask(&mut wire, &json!(1), &command);
    assert!(is_progress(&wire.receive()));
    wire.notify("notifications/cancelled", json!({"requestId": id}));
    wire.request("ping", json!({}));
    wire.others();
    assert!(wire.is_silent_for(Duration::from_millis(2500)), "{:?}", wire.others());
}

#[test]
fn secrets_are_masked_in_progress_too() {
    let (_project, mut wire) = connect(Era::Modern);
    let script = "while :; do echo token ghp_0123456789abcdefghijABCDEFGHIJ012345 end; sleep 0.2; done";
    let id = ask(&mut wire, &json!(1), &json!(["sh", "-c", script]));
    let message = wire.receive();
    assert!(is_progress(&message));
    let text = message["params"]["message"].as_str().unwrap();
    assert!(text.contains("token [redacted:") && !text.contains("ghp_"), "{text}");
    wire.notify("notifications/cancelled", json!({"requestId": id}));
}
