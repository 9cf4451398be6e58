//! A client that breaks the rules, or stops reading, harms nobody but itself.

use crate::{connect, start};
use integration_tests::{
    Era, Project, Wire, alive, peak_memory_kib, unique_seconds, wait_until, wait_until_gone,
};
use rustix::fs::{OFlags, fcntl_setfl};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

const ERA: Era = Era::Initialize("2025-11-25");

fn initialize(id: &str) -> Value {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params})
}

fn answers_ping(wire: &mut Wire) -> bool {
    wire.request("ping", json!({}))["result"] == json!({})
}

/// A server past its handshake whose output nobody reads, and its input.
fn unread(project: &Project) -> (Child, ChildStdin) {
    let mut child =
        project.server().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", initialize("first")).unwrap();
    fcntl_setfl(&input, OFlags::NONBLOCK).unwrap();
    (child, input)
}

/// Sends `line` again and again, until it is no longer taken. How many were.
fn flood(input: &mut ChildStdin, line: impl Fn(usize) -> String) -> usize {
    let mut sent = 0;
    let mut bytes = Vec::new();
    let mut stalled: Option<Instant> = None;
    loop {
        if bytes.is_empty() {
            bytes = line(sent).into_bytes();
            sent += 1;
        }
        match input.write(&bytes) {
            Ok(written) => {
                bytes.drain(..written);
                stalled = None;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if stalled.get_or_insert_with(Instant::now).elapsed() > Duration::from_secs(2) {
                    return sent;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn ends_soon(child: &mut Child) {
    let started = Instant::now();
    wait_until(Duration::from_secs(20), "the server ends", || child.try_wait().unwrap().is_some());
    // A second is the promise; the rest is for a loaded machine.
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[test]
fn a_notification_after_a_refused_first_request_does_not_end_it() {
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    for method in ["tools/list", "no/such"] {
        for notice in [
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            cancelled.clone(),
            json!({"jsonrpc": "2.0", "id": 9, "result": {}}),
        ] {
            let (_project, mut wire) = start();
            wire.send(&json!({"jsonrpc": "2.0", "id": 1, "method": method}));
            assert!(wire.answer(1)["error"].is_object());
            wire.send(&notice);
            wire.send(&initialize("late"));
            assert_eq!(wire.answer("late")["result"]["protocolVersion"], "2025-11-25", "{method}, {notice}");
        }
    }
}

#[test]
fn the_first_request_of_the_modern_era_can_be_cancelled() {
    let (_project, mut wire) = connect(Era::Modern);
    let seconds = unique_seconds();
    let id =
        wire.ask("tools/call", json!({"name": "run_command", "arguments": {"command": ["sleep", seconds]}}));
    wait_until(Duration::from_secs(10), "it runs", || !alive(&seconds).is_empty());
    wire.notify("notifications/cancelled", json!({"requestId": id}));
    wait_until_gone(&seconds, Duration::from_secs(5));
}

#[test]
fn initialize_comes_once_and_first() {
    let (_project, mut wire) = connect(ERA);
    wire.send(&initialize("again"));
    assert_eq!(wire.answer("again")["error"]["code"], -32600);
    assert!(answers_ping(&mut wire));

    let (_project, mut wire) = connect(Era::Modern);
    wire.request("tools/list", json!({}));
    wire.send(&initialize("late"));
    assert_eq!(wire.answer("late")["error"]["code"], -32600);
}

#[test]
fn a_cancellation_inside_an_array_leaves_the_others_their_answers() {
    let (_project, mut wire) = connect(Era::Initialize("2025-03-26"));
    let arguments = json!({"command": ["sleep", "30"]});
    wire.send(&json!([
        {"jsonrpc": "2.0", "id": "quick", "method": "ping"},
        {"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": {"name": "run_command", "arguments": arguments}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}},
    ]));
    assert_eq!(wire.receive(), json!([{"jsonrpc": "2.0", "id": "quick", "result": {}}]));
}

#[test]
fn what_is_almost_json_is_answered_under_its_id() {
    let (_project, mut wire) = connect(ERA);
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for value in [&b"\"\\ud83d\""[..], b"\"\xff\"", b"1E400", deep.as_bytes()] {
        let head = br#"{"jsonrpc":"2.0","id":"mine","method":"tools/call","params":{"name":"x","arguments":{"path":"#;
        wire.send_bytes(&[head, value, b"}}}\n"].concat());
        let answer = wire.receive();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("mine"), &json!(-32700)), "{answer}");
    }
    assert!(answers_ping(&mut wire));
}

#[test]
fn notifications_and_responses_that_cannot_be_read_are_ignored() {
    let (_project, mut wire) = connect(ERA);
    let long = "x".repeat(17 << 20);
    for line in [
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"id":1,"a":"{long}"}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":3,"result":{{"a":"{long}"}}}}"#),
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"a":"\ud83d"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":3,"result":{"a":1E400}}"#.to_owned(),
    ] {
        wire.send_bytes(format!("{line}\n").as_bytes());
    }
    assert!(answers_ping(&mut wire));
    assert_eq!(wire.others(), Vec::<Value>::new());
}

#[test]
fn no_broken_line_is_answered_under_the_id_of_a_running_request() {
    let (project, mut wire) = connect(ERA);
    let command = ["sh", "-c", "until [ -e go ]; do sleep 0.02; done"];
    let slow = wire.ask("tools/call", json!({"name": "run_command", "arguments": {"command": command}}));
    for line in [
        format!(r#"{{"jsonrpc":"2.0","id":{slow},"method":5}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":{slow},"method":"ping","params":{{"a":"\ud83d"}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":{slow},"method":"ping","params":"{}"}}"#, "x".repeat(17 << 20)),
    ] {
        wire.send_bytes(format!("{line}\n").as_bytes());
    }
    assert!(answers_ping(&mut wire));
    let others = wire.others();
    assert_eq!(others.len(), 3, "{others:?}");
    assert!(others.iter().all(|answer| answer.get("id") == Some(&Value::Null)), "{others:?}");
    project.write("go", "");
    assert_eq!(wire.answer(slow)["result"]["isError"], false);
}

#[test]
fn the_id_of_a_cancelled_call_is_spent() {
    let (_project, mut wire) = connect(ERA);
    let id = wire.ask("tools/call", json!({"name": "run_command", "arguments": {"command": "sleep 30"}}));
    wire.notify("notifications/cancelled", json!({"requestId": id}));
    let arguments = json!({"command": ["echo", "second"]});
    let params = json!({"name": "run_command", "arguments": arguments});
    wire.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    let answer = wire.receive();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32600)), "{answer}");
    assert!(wire.is_silent_for(Duration::from_millis(400)));
}

#[test]
fn a_line_of_millions_of_values_is_refused_in_bounded_memory() {
    let (_project, mut wire) = connect(ERA);
    let values = "[],".repeat(5_400_000);
    wire.send_bytes(
        format!(r#"{{"jsonrpc":"2.0","id":"many","method":"tools/call","params":{{"a":[{values}0]}}}}"#)
            .as_bytes(),
    );
    wire.send_bytes(b"\n");
    let answer = wire.receive();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("many"), &json!(-32600)), "{answer}");
    let memory = peak_memory_kib(wire.pid());
    assert!(memory < 100 * 1024, "{memory} KiB");
}

#[test]
fn the_end_of_input_is_seen_while_nobody_reads_the_errors() {
    let project = Project::empty();
    let (mut child, mut input) = unread(&project);
    fcntl_setfl(&input, OFlags::empty()).unwrap();
    for _ in 0..5_000 {
        input.write_all(b"{nonsense\n").unwrap();
    }
    drop(input);
    ends_soon(&mut child);
}

#[test]
fn a_client_that_asks_and_never_reads_is_held_up_in_bounded_memory_until_it_ends() {
    let project = Project::with([("big.txt", format!("{}\n", "x".repeat(99)).repeat(390).as_str())]);
    let (mut child, mut input) = unread(&project);
    let sent = flood(&mut input, |number| {
        let params = json!({"name": "read_file", "arguments": {"path": "big.txt"}});
        let request = json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params});
        format!("{request}\n")
    });
    assert!(sent > 1_000, "{sent}");
    let memory = peak_memory_kib(child.id());
    assert!(memory < 160 * 1024, "{memory} KiB after {sent}");
    drop(input);
    ends_soon(&mut child);
}

#[test]
fn a_cancellation_overtakes_the_requests_that_wait_for_room() {
    let (_project, mut wire) = connect(ERA);
    let seconds = unique_seconds();
    let mut ask = || {
        wire.ask("tools/call", json!({"name": "run_command", "arguments": {"command": ["sleep", seconds]}}))
    };
    let ids: Vec<i64> = (0..1_500).map(|_| ask()).collect();
    wait_until(Duration::from_secs(20), "the first run", || !alive(&seconds).is_empty());
    for id in ids {
        wire.notify("notifications/cancelled", json!({"requestId": id}));
    }
    assert!(answers_ping(&mut wire));
    wait_until_gone(&seconds, Duration::from_secs(20));
    assert_eq!(wire.others(), Vec::<Value>::new());
}

#[test]
fn a_log_that_nobody_reads_stops_nothing() {
    let project = Project::empty();
    let mut command = project.server();
    command.args(["--log", "trace"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (sender, answers) = channel();
    std::thread::spawn(move || output.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
    writeln!(input, "{}", initialize("first")).unwrap();
    for id in 0..1_000 {
        writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": id, "method": "ping"})).unwrap();
        answers.recv_timeout(Duration::from_secs(20)).unwrap();
    }
    drop(input);
    ends_soon(&mut child);
    let mut log = Vec::new();
    child.stderr.take().unwrap().read_to_end(&mut log).unwrap();
    // A full pipe on Linux, but for the ends of its pages.
    assert!(log.len() > 48 * 1024, "{} bytes", log.len());
}
