//! Requests beside each other.

use crate::connect;
use integration_tests::{Era, Wire, unique_seconds, wait_until_gone};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};

fn ask_command(wire: &mut Wire, command: &Value) -> i64 {
    wire.ask("tools/call", json!({"name": "run_command", "arguments": {"command": command}}))
}

#[test]
fn a_second_request_is_answered_while_a_command_runs() {
    for era in Era::BOTH {
        let (project, mut wire) = connect(era);
        project.write("a.txt", "hello\n");
        // The command ends after the second request was answered, and only then.
        let slow = ask_command(&mut wire, &json!(["sh", "-c", "until [ -e go ]; do sleep 0.02; done"]));
        assert_eq!(wire.text("read_file", json!({"path": "a.txt"})), "hello\n");
        project.write("go", "");
        assert_eq!(wire.answer(slow)["result"]["isError"], false);
    }
}

#[test]
fn pings_stay_fast_while_commands_flood_their_output() {
    let (_project, mut wire) = connect(Era::Initialize("2025-11-25"));
    let floods = [
        ask_command(&mut wire, &json!(["cat", "/dev/zero"])),
        ask_command(&mut wire, &json!(["yes", "a line"])),
    ];
    let mut times: Vec<_> = (0..50)
        .map(|_| {
            let started = Instant::now();
            wire.request("ping", json!({}));
            std::thread::sleep(Duration::from_millis(10));
            started.elapsed() - Duration::from_millis(10)
        })
        .collect();
    times.sort();
    // Milliseconds on an idle machine; a server that does its reading on the protocol's thread takes seconds for each. Some
    // may be slow because the machine is busy.
    assert!(times[40] < Duration::from_millis(500), "{times:?}");
    for flood in floods {
        wire.notify("notifications/cancelled", json!({"requestId": flood}));
    }
}

#[test]
fn several_hundred_calls_at_once_are_each_answered_once() {
    for era in Era::BOTH {
        let (project, mut wire) = connect(era);
        for number in 0..20 {
            project.write(&format!("{number}.txt"), &format!("file {number}\n"));
        }
        let mut expected = HashMap::new();
        for number in 0..500 {
            let (params, text) = match number % 5 {
                0 => {
                    let arguments = json!({"command": ["echo", number.to_string()]});
                    (json!({"name": "run_command", "arguments": arguments}), format!("{number}"))
                }
                1 => (json!({"name": "no_such_tool"}), String::new()),
                _ => {
                    let path = format!("{}.txt", number % 20);
                    (
                        json!({"name": "read_file", "arguments": {"path": path}}),
                        format!("file {}\n", number % 20),
                    )
                }
            };
            expected.insert(wire.ask("tools/call", params), text);
        }
        for _ in 0..500 {
            let answer = wire.receive();
            let text = expected.remove(&answer["id"].as_i64().unwrap()).expect("an answer nobody has had");
            let given = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
            assert!(given.contains(&text), "{answer} has not {text:?}");
        }
        assert!(wire.is_silent_for(Duration::from_millis(100)));
    }
}

#[test]
fn more_commands_than_may_run_at_once_wait_their_turn_and_can_be_cancelled_there() {
    let (_project, mut wire) = connect(Era::Initialize("2025-11-25"));
    let seconds = unique_seconds();
    let waiting: Vec<_> = (0..150).map(|_| ask_command(&mut wire, &json!(["sleep", seconds]))).collect();
    assert_eq!(wire.request("ping", json!({}))["result"], json!({}));
    for id in waiting {
        wire.notify("notifications/cancelled", json!({"requestId": id}));
    }
    wait_until_gone(&seconds, Duration::from_secs(10));
    // Every place is free again.
    assert_eq!(wire.call("run_command", json!({"command": ["echo", "x"]}))["isError"], false);
    assert_eq!(wire.others(), Vec::<Value>::new());
}

#[test]
fn requests_sent_in_one_go_are_all_answered_to_a_client_that_reads_late() {
    let (project, mut wire) = connect(Era::Modern);
    // Together more than any pipe or queue between the two holds.
    project.write("a.txt", &"0123456789\n".repeat(3_000));
    let ids: Vec<_> = (0..200)
        .map(|_| wire.ask("tools/call", json!({"name": "read_file", "arguments": {"path": "a.txt"}})))
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    for id in ids {
        assert_eq!(wire.answer(id)["result"]["isError"], false);
    }
}
