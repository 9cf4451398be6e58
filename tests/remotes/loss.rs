//! A far end behind a link with a round trip of 300 ms that loses one packet of a hundred, and that is cut.

use crate::fixtures::ssh;
use integration_tests::{alive, unique_seconds, wait_until, wait_until_gone};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn calls_in_flight_share_the_round_trip_and_a_cancelled_one_ends_there() {
    let Some((far_end, _cut)) = ssh::behind_a_slow_link() else { return };
    let mut wire = far_end.connect();
    let name = wire.text("run_command", json!({"command": "uname -n"}));
    assert!(name.contains("far-box"), "{name}");
    // One after the other, these would take five minutes.
    let started = Instant::now();
    let read = json!({"name": "read_file", "arguments": {"path": "notes.txt"}});
    let asked: Vec<i64> = (0..1000).map(|_| wire.ask("tools/call", read.clone())).collect();
    for id in asked {
        let answer = wire.answer(id);
        assert_eq!(answer["result"]["content"][0]["text"], "first\nsecond\nthird\n", "{answer}");
    }
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    let mark = unique_seconds();
    let id =
        wire.ask("tools/call", json!({"name": "run_command", "arguments": {"command": ["sleep", mark]}}));
    wait_until(Duration::from_secs(20), "it runs", || !alive(&mark).is_empty());
    wire.notify("notifications/cancelled", json!({"requestId": id}));
    wait_until_gone(&mark, Duration::from_secs(20));
    assert_eq!(wire.text("read_file", json!({"path": "notes.txt"})), "first\nsecond\nthird\n");
}

#[test]
fn a_link_that_is_cut_fails_the_call_once_and_the_next_one_connects_again() {
    let Some((far_end, cut)) = ssh::behind_a_slow_link() else { return };
    let mut wire = far_end.connect();
    let mark = unique_seconds();
    let script = format!("echo x >> started; exec sleep {mark}");
    let call = json!({"name": "run_command", "arguments": {"command": ["sh", "-c", script]}});
    let id = wire.ask("tools/call", call);
    wait_until(Duration::from_secs(20), "it runs", || !alive(&mark).is_empty());
    std::fs::write(&cut, "").unwrap();
    let answer = wire.answer(id).to_string();
    assert!(answer.contains("may have run, and is not sent again"), "{answer}");
    std::fs::remove_file(&cut).unwrap();
    let name = wire.text("run_command", json!({"command": "uname -n"}));
    assert!(name.contains("far-box"), "{name}");
    assert_eq!(far_end.project.read("started"), "x\n");
}
