//! Commands that outlive the call that started them.

use crate::serve;
use integration_tests::{Era, Wire, alive, is_alive, unique_seconds, wait_until, wait_until_gone};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn start(wire: &mut Wire, command: Value) -> u64 {
    let result = wire.call("start_command", json!({"command": command}));
    assert_eq!(result["isError"], false, "{result}");
    result["structuredContent"]["id"].as_u64().unwrap()
}

/// The text of an answer: `command 1 (`sleep 60`): running, 0.002 s; next_cursor 6`, then output.
#[derive(Debug)]
struct CommandAnswer {
    summary: String,
    cursor: u64,
    output: String,
}

impl CommandAnswer {
    fn of(result: &Value) -> Self {
        assert_eq!(result["isError"], false, "{result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        let (summary, rest) = text.split_once("; next_cursor ").unwrap();
        let (cursor, output) = rest.split_once('\n').unwrap_or((rest, ""));
        Self { summary: summary.to_owned(), cursor: cursor.parse().unwrap(), output: output.to_owned() }
    }

    fn is(&self, state: &str) -> bool {
        self.summary.contains(&format!("): {state}"))
    }
}

fn read(wire: &mut Wire, arguments: Value) -> CommandAnswer {
    CommandAnswer::of(&wire.call("read_command_output", arguments))
}

#[test]
fn output_is_read_by_cursor_and_comes_once() {
    let (_project, mut wire) = serve([]);
    let id =
        start(&mut wire, json!(["sh", "-c", "for i in 1 2 3 4 5; do echo line $i; sleep 0.1; done; exit 4"]));
    let (mut cursor, mut lines) = (0, Vec::new());
    let last = loop {
        let answer = read(&mut wire, json!({"id": id, "cursor": cursor, "wait_ms": 10_000}));
        lines.extend(answer.output.lines().map(str::to_owned));
        cursor = answer.cursor;
        if !answer.is("running") {
            break answer;
        }
    };
    assert_eq!(lines, ["line 1", "line 2", "line 3", "line 4", "line 5"]);
    assert!(last.is("exited, exit code 4"), "{last:?}");
    let again = read(&mut wire, json!({"id": id}));
    assert_eq!(again.output.lines().collect::<Vec<_>>(), lines, "from the beginning it is still there");
}

#[test]
fn a_read_waits_for_output_and_no_longer_than_it_was_told() {
    let (_project, mut wire) = serve([]);
    let id = start(&mut wire, json!(["sh", "-c", "sleep 0.5; echo late; sleep 60"]));
    let started = Instant::now();
    let output = read(&mut wire, json!({"id": id, "wait_ms": 20_000}));
    assert_eq!(output.output, "late\n");
    assert!(started.elapsed() < Duration::from_secs(10));
    let started = Instant::now();
    let output = read(&mut wire, json!({"id": id, "cursor": output.cursor, "wait_ms": 300}));
    assert!(output.is("running") && output.output.is_empty(), "{output:?}");
    assert!(started.elapsed() >= Duration::from_millis(300) && started.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_wait_can_be_cancelled_and_does_not_end_the_command() {
    let (_project, mut wire) = serve([]);
    let id = start(&mut wire, json!(["sleep", "60"]));
    let call = wire.ask(
        "tools/call",
        json!({"name": "read_command_output", "arguments": {"id": id, "wait_ms": 30_000}}),
    );
    wire.notify("notifications/cancelled", json!({"requestId": call}));
    assert!(read(&mut wire, json!({"id": id})).is("running"));
    assert!(wire.others().is_empty());
}

#[test]
fn a_program_can_be_talked_to() {
    let (_project, mut wire) = serve([]);
    let id = start(
        &mut wire,
        json!(["sh", "-c", "printf 'name? '; read name; echo \"hello $name\"; cat; echo bye"]),
    );
    let output = read(&mut wire, json!({"id": id, "wait_ms": 10_000}));
    assert_eq!(output.output, "name? ", "a prompt has no line end");
    wire.text("write_command_input", json!({"id": id, "text": "Ada\n"}));
    let mut output = read(&mut wire, json!({"id": id, "cursor": output.cursor, "wait_ms": 10_000}));
    while output.output == "name? " {
        output = read(&mut wire, json!({"id": id, "cursor": output.cursor, "wait_ms": 10_000}));
    }
    // The terminal echoes nothing, so the line that began with the prompt goes on behind it.
    assert_eq!(output.output, "name? hello Ada\n");
    wire.text("write_command_input", json!({"id": id, "text": "the rest", "close": true}));
    wait_until(Duration::from_secs(10), "it ends", || read(&mut wire, json!({"id": id})).is("exited"));
    let output = read(&mut wire, json!({"id": id}));
    assert!(output.output.ends_with("the restbye\n"), "{output:?}");
    wire.failure("write_command_input", json!({"id": id, "text": "too late"}));
}

#[test]
fn stopping_ends_everything_that_was_started() {
    let (_project, mut wire) = serve([]);
    let seconds = unique_seconds();
    let script = format!("trap '' TERM; echo up; setsid sleep {seconds} & sleep {seconds}; wait");
    let id = start(&mut wire, json!(["sh", "-c", script]));
    wait_until(Duration::from_secs(10), "the tree grows", || alive(&seconds).len() >= 3);
    let answer = CommandAnswer::of(&wire.call("stop_command", json!({"id": id, "grace_ms": 200})));
    assert!(answer.is("stopped") && answer.output == "up\n", "{answer:?}");
    wait_until_gone(&seconds, Duration::from_secs(2));
    // Once more is no fault.
    assert_eq!(wire.call("stop_command", json!({"id": id}))["isError"], false);
}

#[test]
fn a_program_that_ends_by_itself_when_asked_has_its_exit_code() {
    let (_project, mut wire) = serve([]);
    let id = start(
        &mut wire,
        json!(["sh", "-c", "trap 'echo cleaning; exit 5' TERM; echo up; while :; do read line; done"]),
    );
    read(&mut wire, json!({"id": id, "wait_ms": 10_000}));
    let answer = CommandAnswer::of(&wire.call("stop_command", json!({"id": id, "grace_ms": 10_000})));
    assert!(answer.is("stopped, exit code 5") && answer.output == "up\ncleaning\n", "{answer:?}");
}

#[test]
fn the_list_tells_what_runs_and_how_the_others_ended() {
    let (_project, mut wire) = serve([]);
    let failed = start(&mut wire, json!(["sh", "-c", "exit 3"]));
    let running = start(&mut wire, json!(["sleep", "60"]));
    wait_until(Duration::from_secs(10), "it ends", || read(&mut wire, json!({"id": failed})).is("exited"));
    let list = wire.call("list_commands", json!({}))["structuredContent"]["commands"].clone();
    let state = |id: u64| list.as_array().unwrap().iter().find(|entry| entry["id"] == id).unwrap().clone();
    assert_eq!((&state(failed)["state"], &state(failed)["exit_code"]), (&json!("exited"), &json!(3)));
    assert_eq!(state(running)["state"], "running");
    assert!(state(running)["command"].as_str().unwrap().contains("sleep"));
}

#[test]
fn a_time_limit_ends_it() {
    let (_project, mut wire) = serve([]);
    let result = wire.call("start_command", json!({"command": ["sleep", "60"], "timeout_ms": 200}));
    let id = result["structuredContent"]["id"].clone();
    let pid = u32::try_from(result["structuredContent"]["pid"].as_u64().unwrap()).unwrap();
    wait_until(Duration::from_secs(10), "it ends", || !is_alive(pid));
    wait_until(Duration::from_secs(10), "that is known", || {
        read(&mut wire, json!({"id": id})).is("timed out")
    });
}

#[test]
fn more_than_may_run_are_refused_with_the_way_out() {
    let (_project, mut wire) = serve([]);
    let seconds = unique_seconds();
    for _ in 0..32 {
        start(&mut wire, json!(["sleep", seconds]));
    }
    let text = wire.failure("start_command", json!({"command": ["sleep", seconds]}));
    assert!(text.contains("32") && text.contains("stop"), "{text}");
    wire.call("stop_command", json!({"id": 1}));
    start(&mut wire, json!(["sleep", seconds]));
    wire.close_input();
    let (_, took) = wire.wait(Duration::from_secs(10));
    assert!(took < Duration::from_secs(8), "{took:?}");
    wait_until_gone(&seconds, Duration::from_secs(10));
}

#[test]
fn a_command_started_by_one_server_is_unknown_to_another() {
    let (project, mut wire) = serve([]);
    start(&mut wire, json!(["sleep", "60"]));
    let mut other = Wire::connect(project.server(), Era::Modern);
    let text = other.failure("read_command_output", json!({"id": 1}));
    assert!(text.contains("there are none"), "{text}");
}

#[test]
fn of_a_flood_in_the_background_the_end_is_kept_and_what_is_gone_is_told() {
    let (_project, mut wire) = serve([]);
    let id =
        start(&mut wire, json!(["sh", "-c", "echo first; yes line | head -c 20000000; echo; echo last"]));
    wait_until(Duration::from_secs(30), "it ends", || {
        !read(&mut wire, json!({"id": id, "cursor": 20_000_000, "wait_ms": 1000})).is("running")
    });
    let gone = read(&mut wire, json!({"id": id, "max_bytes": 1000}));
    assert!(
        gone.output.starts_with("[... ") && gone.output.contains(" bytes are no longer there"),
        "{gone:?}"
    );
    let tail = read(&mut wire, json!({"id": id, "cursor": 20_000_000}));
    assert!(tail.output.ends_with("line\n\nlast\n"), "{tail:?}");
}
