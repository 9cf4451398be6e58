//! Programs that need a terminal: they get one, and its screen comes back as text.

use crate::{has_program, serve};
use integration_tests::{Wire, alive, unique_seconds, wait_until, wait_until_gone};
use serde_json::{Value, json};
use std::time::Duration;

fn run(arguments: Value) -> Value {
    let (_project, mut wire) = serve([]);
    wire.call("run_command", arguments)
}

/// Starts a program in a terminal and returns its id.
fn start(wire: &mut Wire, arguments: Value) -> Value {
    let result = wire.call("start_command", arguments);
    assert_eq!(result["isError"], false, "{result}");
    result["structuredContent"]["id"].clone()
}

#[test]
fn a_program_sees_a_terminal_of_the_size_that_was_asked_for() {
    let line = "test -t 0 && test -t 1 && test -t 2 && stty size && echo $TERM";
    let result = run(json!({"command": line, "shell": true, "pty": true}));
    assert_eq!(result["structuredContent"]["stdout"], "24 80\nxterm-256color", "{result}");
    let result = run(json!({"command": ["stty", "size"], "pty": true, "columns": 132, "rows": 50}));
    assert_eq!(result["structuredContent"]["stdout"], "50 132", "{result}");
    let result = run(json!({"command": "test -t 0 || echo none", "shell": true}));
    assert_eq!(result["structuredContent"]["stdout"], "none\n", "without `pty` there is none: {result}");
}

#[test]
fn a_size_without_a_terminal_is_refused_with_what_to_add() {
    let (project, mut wire) = serve([]);
    for tool in ["run_command", "start_command"] {
        let said = wire.failure(tool, json!({"command": "touch ran", "columns": 100, "rows": 30}));
        assert!(said.contains(r#""pty":true beside "columns":100,"rows":30"#), "{said}");
        assert_eq!(wire.call("list_commands", json!({}))["structuredContent"]["commands"], json!([]));
    }
    assert!(!project.join("ran").exists());
}

#[test]
fn what_leaves_the_screen_is_in_the_answer_and_the_screen_below_it() {
    let result = run(
        json!({"command": "seq 1 500; printf '\\033[2A\\033[31mred\\033[0m'; exit 3", "shell": true, "pty": true}),
    );
    let report = &result["structuredContent"];
    assert_eq!(report["exit_code"], 3, "{result}");
    let expected: Vec<_> =
        (1..=498).map(|n| n.to_string()).chain(["red".to_owned(), "500".to_owned()]).collect();
    assert_eq!(report["stdout"].as_str().unwrap().lines().collect::<Vec<_>>(), expected);
    let result = run(json!({"command": ["seq", "1", "50000"], "pty": true}));
    assert_eq!(result["structuredContent"]["truncated"], true);
    let text = result["structuredContent"]["stdout"].as_str().unwrap();
    assert!(text.starts_with("1\n2\n") && text.ends_with("\n50000") && text.len() < 21_000, "{text}");
}

#[test]
fn the_time_limit_ends_the_tree_of_a_terminal_and_keeps_what_it_drew() {
    let seconds = unique_seconds();
    let line = format!("trap '' HUP TERM INT; echo drawn; sleep {seconds} & setsid sleep {seconds} & wait");
    let result = run(json!({"command": line, "shell": true, "pty": true, "timeout_ms": 500}));
    let report = &result["structuredContent"];
    assert_eq!((&report["outcome"], &report["stdout"]), (&json!("timed_out"), &json!("drawn")), "{result}");
    wait_until_gone(&seconds, Duration::from_secs(2));
}

#[test]
fn what_is_given_as_input_is_typed() {
    let line = "read -r name; echo \"hello $name\"; read -r -s hidden; echo \"${#hidden}\"";
    let result = run(
        json!({"command": line, "shell": true, "pty": true, "stdin": "Ada\nsecret\n", "timeout_ms": 20_000}),
    );
    let text = result["structuredContent"]["stdout"].as_str().unwrap().to_owned();
    assert!(text.contains("hello Ada") && text.ends_with('6'), "{result}");
}

#[test]
fn a_full_screen_program_is_its_screen() {
    if !has_program("top") {
        return;
    }
    let (_project, mut wire) = serve([]);
    let id = start(&mut wire, json!({"command": ["top", "-d", "1"], "pty": true, "wait_for_output": "PID"}));
    let text = wire.text("read_command_output", json!({"id": id, "wait_ms": 20_000}));
    assert!(text.contains("--- screen 80x24, cursor at row ") && text.contains("PID"), "{text}");
    assert!(!text.contains('\u{1b}') && text.lines().count() < 30, "{text:?}");
    let answer = wire.text("write_command_input", json!({"id": id, "text": "q", "wait_ms": 10_000}));
    assert!(answer.starts_with("wrote 1 bytes"), "{answer}");
    let ended = wire.text("read_command_output", json!({"id": id, "wait_for_exit": true, "wait_ms": 10_000}));
    assert!(ended.contains("exited, exit code 0"), "{ended}");
}

#[test]
fn a_python_session_answers_line_by_line() {
    if !has_program("python3") {
        return;
    }
    let (_project, mut wire) = serve([]);
    let id = start(&mut wire, json!({"command": ["python3", "-q"], "pty": true, "wait_for_output": ">>>"}));
    let answer =
        wire.text("write_command_input", json!({"id": id, "text": "x = 6 * 7\n", "wait_ms": 10_000}));
    assert!(answer.contains("x = 6 * 7"), "{answer}");
    let mut answer =
        wire.text("write_command_input", json!({"id": id, "text": "print('is', x)\n", "wait_ms": 10_000}));
    for _ in 0..50 {
        if answer.contains("\nis 42\n>>>") {
            break;
        }
        answer = wire.text("read_command_output", json!({"id": id, "wait_ms": 10_000}));
    }
    assert!(answer.contains("\nis 42\n>>>"), "{answer}");
    wire.text("write_command_input", json!({"id": id, "text": "while True: pass\n\n"}));
    wire.text("write_command_input", json!({"id": id, "text": "\u{3}"}));
    wait_until(Duration::from_secs(20), "it is interrupted", || {
        wire.text("read_command_output", json!({"id": id, "wait_ms": 1000})).contains("KeyboardInterrupt")
    });
    // Python that ends after an interrupt ends by the signal, unless something ran in between.
    wire.text("write_command_input", json!({"id": id, "text": "print('go', 'on')\n"}));
    wait_until(Duration::from_secs(20), "it goes on", || {
        wire.text("read_command_output", json!({"id": id, "wait_ms": 1000})).contains("\ngo on\n>>>")
    });
    wire.text("write_command_input", json!({"id": id, "close": true}));
    let ended = wire.text("read_command_output", json!({"id": id, "wait_for_exit": true, "wait_ms": 20_000}));
    assert!(ended.contains("exited, exit code 0"), "{ended}");
}

#[test]
fn a_dialogue_that_needs_a_terminal_is_gone_through() {
    if !has_program("npm") {
        return;
    }
    let (project, mut wire) = serve([]);
    let id = start(
        &mut wire,
        json!({"command": ["npm", "init"], "pty": true, "wait_for_output": "package name:"}),
    );
    wire.text("write_command_input", json!({"id": id, "text": "from-a-terminal\n", "wait_ms": 10_000}));
    let mut screen = String::new();
    for _ in 0..30 {
        screen = wire.text("write_command_input", json!({"id": id, "text": "\n", "wait_ms": 5_000}));
        if screen.contains("exited") || project.join("package.json").exists() {
            break;
        }
    }
    let ended = wire.text("read_command_output", json!({"id": id, "wait_for_exit": true, "wait_ms": 20_000}));
    assert!(ended.contains("exited, exit code 0"), "{screen}\n{ended}");
    let package = std::fs::read_to_string(project.join("package.json")).unwrap();
    assert!(package.contains("\"name\": \"from-a-terminal\""), "{package}");
}

#[test]
fn a_program_that_asks_where_its_cursor_is_gets_an_answer() {
    let line = "stty raw -echo; printf 'ab\\033[6n'; head -c 6 | od -An -c | tr -d ' \\n'; stty sane";
    let result = run(json!({"command": line, "shell": true, "pty": true, "timeout_ms": 10_000}));
    let text = result["structuredContent"]["stdout"].as_str().unwrap();
    assert!(text.contains("033[1;3R"), "{result}");
}

#[test]
fn a_secret_on_the_screen_is_masked_also_where_it_goes_over_two_rows() {
    let token = format!("ghp_{}", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5");
    let line = format!("printf 'the key is %s\\n' {token}; sleep 60");
    let (_project, mut wire) = serve([]);
    let id = start(
        &mut wire,
        json!({"command": line, "shell": true, "pty": true, "columns": 20, "wait_for_output": "the key is"}),
    );
    let text = wire.text("read_command_output", json!({"id": id, "cursor": 0}));
    assert!(text.contains("[redacted") && !text.contains(&token[..12]), "{text}");
    wire.call("stop_command", json!({"id": id, "grace_ms": 0}));
    let result = run(json!({"command": ["printf", "the key is %s", token], "pty": true, "columns": 30}));
    assert!(
        !result.to_string().contains(&token[4..20]) && result.to_string().contains("redacted"),
        "{result}"
    );
}

#[test]
fn a_terminal_in_the_background_ends_with_its_command_and_hangs_up() {
    let (_project, mut wire) = serve([]);
    let seconds = unique_seconds();
    let line = format!("echo up; sleep {seconds} & sleep {seconds}");
    let id = start(&mut wire, json!({"command": line, "shell": true, "pty": true, "wait_for_output": "up"}));
    let stopped = wire.text("stop_command", json!({"id": id, "grace_ms": 200}));
    assert!(stopped.contains("stopped") && stopped.contains("up"), "{stopped}");
    wait_until_gone(&seconds, Duration::from_secs(2));
    assert!(alive(&seconds).is_empty());
}
