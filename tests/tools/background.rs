//! Commands that outlive the call that started them.

use crate::{has_program, serve};
use integration_tests::{
    Era, Wire, alive, is_alive, unique_seconds, unused_port, wait_until, wait_until_gone,
};
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
        let cursor = cursor.split(';').next().unwrap();
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
    let new = read(&mut wire, json!({"id": id}));
    assert!(new.output.is_empty() && new.cursor == last.cursor, "{new:?}");
    let again = read(&mut wire, json!({"id": id, "cursor": 0}));
    assert_eq!(again.output.lines().collect::<Vec<_>>(), lines, "from the beginning it is still there");
}

#[test]
fn a_read_waits_for_output_and_no_longer_than_it_was_told() {
    let (_project, mut wire) = serve([]);
    let id = start(&mut wire, json!(["sh", "-c", "sleep 0.5; echo late; sleep 60"]));
    let started = Instant::now();
    let output = read(&mut wire, json!({"id": id, "wait_ms": 60_000}));
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
fn each_read_has_what_is_new_and_a_prompt_comes_once() {
    let (_project, mut wire) = serve([]);
    let id = start(
        &mut wire,
        json!(["sh", "-c", "echo one; printf 'name? '; read name; echo \"hello $name\"; cat"]),
    );
    let mut seen = String::new();
    while !seen.ends_with("name? ") {
        seen += &read(&mut wire, json!({"id": id, "wait_ms": 10_000})).output;
    }
    assert_eq!(seen, "one\nname? ", "a prompt has no line end");
    assert_eq!(read(&mut wire, json!({"id": id, "wait_ms": 0})).output, "", "it was read");
    // Output of others is none: a second command has a place of its own.
    let other = start(&mut wire, json!(["echo", "other"]));
    wait_until(Duration::from_secs(10), "it ends", || {
        read(&mut wire, json!({"id": other, "cursor": 0})).is("exited")
    });
    wire.text("write_command_input", json!({"id": id, "text": "Ada\n"}));
    // The pipe echoes nothing, so the line that began with the prompt goes on behind it.
    assert_eq!(read(&mut wire, json!({"id": id, "wait_ms": 10_000})).output, "name? hello Ada\n");
    let answer = wire.text("write_command_input", json!({"id": id, "text": "more\n", "wait_ms": 10_000}));
    assert!(answer.starts_with("wrote 5 bytes; command") && answer.ends_with("\nmore\n"), "{answer}");
    wire.text("write_command_input", json!({"id": id, "text": "the rest", "close": true}));
    let output = read(&mut wire, json!({"id": id, "wait_for_exit": true, "wait_ms": 10_000}));
    assert!(output.is("exited") && output.output == "the rest", "{output:?}");
    wire.failure("write_command_input", json!({"id": id, "text": "too late"}));
}

#[test]
fn a_read_that_waits_for_the_end_has_all_of_it() {
    let (_project, mut wire) = serve([]);
    let id = start(&mut wire, json!(["sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.3; done; exit 2"]));
    let output = read(&mut wire, json!({"id": id, "wait_for_exit": true, "wait_ms": 30_000}));
    assert!(output.is("exited, exit code 2") && output.output == "1\n2\n3\n", "{output:?}");
}

#[test]
fn a_read_says_that_there_is_more_and_the_next_one_has_it() {
    let (_project, mut wire) = serve([]);
    let id = start(&mut wire, json!(["seq", "1", "1000"]));
    wait_until(Duration::from_secs(10), "it ends", || !alive_command(&mut wire, id));
    let result = wire.call("read_command_output", json!({"id": id, "max_bytes": 1000}));
    assert!(result["content"][0]["text"].as_str().unwrap().contains("2893 more bytes are there"), "{result}");
    let first = CommandAnswer::of(&result).output;
    let rest = read(&mut wire, json!({"id": id})).output;
    assert_eq!(format!("{first}{rest}"), (1..=1000).map(|n| format!("{n}\n")).collect::<String>());
}

fn alive_command(wire: &mut Wire, id: u64) -> bool {
    let list = wire.call("list_commands", json!({}))["structuredContent"]["commands"].clone();
    list.as_array().unwrap().iter().any(|entry| entry["id"] == id && entry["state"] == "running")
}

fn listener(port: u16) -> Value {
    let script = format!(
        "import socket, time; time.sleep(0.3); s = socket.create_server(('127.0.0.1', {port})); \
         print('ready to serve', flush=True); time.sleep(60)"
    );
    json!(["python3", "-c", script])
}

#[test]
fn a_start_waits_until_the_port_is_listened_on() {
    if !has_program("python3") {
        return;
    }
    let (_project, mut wire) = serve([]);
    let port = unused_port();
    let result = wire.call("start_command", json!({"command": listener(port), "wait_for_port": port}));
    assert_eq!(
        (&result["isError"], &result["structuredContent"]["ready"]),
        (&json!(false), &json!(true)),
        "{result}"
    );
    assert!(result.to_string().contains(&format!("port {port} is listened on")), "{result}");
    std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    // A second program cannot have it, and one must not take the first for the second.
    let text = wire.failure("start_command", json!({"command": listener(port), "wait_for_port": port}));
    assert!(text.contains("in use already") && text.contains("nothing was started"), "{text}");
    assert_eq!(
        wire.call("list_commands", json!({}))["structuredContent"]["commands"].as_array().unwrap().len(),
        1
    );
}

#[test]
fn a_start_waits_for_a_text_and_has_the_output_until_then() {
    let (_project, mut wire) = serve([]);
    let script = "echo booting; sleep 0.3; printf 'ready on 80'; sleep 60";
    let result = wire.call(
        "start_command",
        json!({"command": ["sh", "-c", script], "wait_for_output": "ready on", "wait_ms": 20_000}),
    );
    let started = &result["structuredContent"];
    assert_eq!((&started["ready"], &started["state"]), (&json!(true), &json!("running")), "{result}");
    assert_eq!(started["output"], "booting\nready on 80", "{result}");
    let id = started["id"].clone();
    assert_eq!(read(&mut wire, json!({"id": id, "wait_ms": 0})).output, "", "it was read");
}

#[test]
fn a_program_that_ends_before_it_is_ready_is_an_error_with_its_last_words() {
    let (_project, mut wire) = serve([]);
    let port = unused_port();
    for wait in [json!({"wait_for_port": port}), json!({"wait_for_output": "ready"})] {
        let mut arguments = json!({"command": ["sh", "-c", "echo no config >&2; exit 3"]});
        arguments.as_object_mut().unwrap().extend(wait.as_object().unwrap().clone());
        let result = wire.call("start_command", arguments);
        assert_eq!(result["isError"], true, "{result}");
        let started = &result["structuredContent"];
        assert_eq!((&started["state"], &started["exit_code"]), (&json!("exited"), &json!(3)), "{result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("no config") && text.contains("exit code 3"), "{text}");
    }
}

#[test]
fn a_program_that_is_not_ready_in_time_goes_on_and_the_answer_says_so() {
    let (_project, mut wire) = serve([]);
    let command = json!(["sh", "-c", "echo still booting; sleep 60"]);
    let result =
        wire.call("start_command", json!({"command": command, "wait_for_output": "ready", "wait_ms": 300}));
    assert_eq!((&result["isError"], &result["structuredContent"]["ready"]), (&json!(false), &json!(false)));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("was not printed within 300 ms, and the command goes on"), "{text}");
    assert!(text.contains("still booting"), "{text}");
}

#[test]
fn a_start_that_is_cancelled_while_it_waits_leaves_nothing_running() {
    let (_project, mut wire) = serve([]);
    let seconds = unique_seconds();
    let arguments = json!({"command": ["sleep", seconds], "wait_for_output": "never", "wait_ms": 60_000});
    let call = wire.ask("tools/call", json!({"name": "start_command", "arguments": arguments}));
    wait_until(Duration::from_secs(10), "it runs", || !alive(&seconds).is_empty());
    wire.notify("notifications/cancelled", json!({"requestId": call}));
    wait_until_gone(&seconds, Duration::from_secs(10));
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
    let id = start(&mut wire, json!(["sh", "-c", "echo first; yes line | head -c 3000000; echo; echo last"]));
    wait_until(Duration::from_secs(30), "it ends", || {
        !read(&mut wire, json!({"id": id, "cursor": 3_000_000, "wait_ms": 1000})).is("running")
    });
    let gone = read(&mut wire, json!({"id": id, "cursor": 0, "max_bytes": 1000}));
    assert!(
        gone.output.starts_with("[... ") && gone.output.contains(" bytes are no longer there"),
        "{gone:?}"
    );
    let tail = read(&mut wire, json!({"id": id, "cursor": 3_000_000}));
    assert!(tail.output.ends_with("line\n\nlast\n"), "{tail:?}");
}
