//! `get_logs` with `follow`.

use crate::{line, messages, page, serve};
use integration_tests::{Era, Project, Wire};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

fn append(project: &Project, content: &str) {
    let mut file = File::options().append(true).create(true).open(project.join("app.log")).unwrap();
    file.write_all(content.as_bytes()).unwrap();
}

/// Asks to follow with a progress token.
fn follow(wire: &mut Wire, arguments: Value) -> i64 {
    wire.ask(
        "tools/call",
        json!({"name": "get_logs", "arguments": arguments, "_meta": {"progressToken": "t"}}),
    )
}

/// The messages of the entries in a progress notification; none for another message.
fn said(message: &Value) -> Vec<String> {
    if message["method"] != "notifications/progress" {
        return Vec::new();
    }
    let lines = message["params"]["message"].as_str().unwrap_or_default().lines();
    let entries = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    entries.map(|entry| entry["message"].as_str().unwrap().to_owned()).collect()
}

fn answered(result: &Value) -> Value {
    assert_eq!(result["result"]["isError"], false, "{result}");
    serde_json::from_str(result["result"]["content"][0]["text"].as_str().unwrap()).unwrap()
}

#[test]
fn new_entries_are_streamed_until_the_limit_and_through_rotation() {
    for era in Era::BOTH {
        let project = Project::with([("app.log", line(50, "old").as_str())]);
        let mut wire = Wire::connect(project.server(), era);
        // From where a first answer ended, so that it does not matter when following begins.
        let cursor = page(&mut wire, json!({"level": "error"}))["newer_cursor"].clone();
        let id = follow(&mut wire, json!({"level": "error", "limit": 6, "follow": true, "cursor": cursor}));
        append(&project, &[line(50, "1"), line(30, "no"), line(60, "2")].concat());
        let mut streamed = Vec::new();
        while streamed.len() < 2 {
            streamed.extend(said(&wire.receive()));
        }
        append(&project, &line(50, "3"));
        std::fs::rename(project.join("app.log"), project.join("app.log.1")).unwrap();
        append(&project, &line(50, "4"));
        while streamed.len() < 4 {
            streamed.extend(said(&wire.receive()));
        }
        std::fs::copy(project.join("app.log"), project.join("app.log.2")).unwrap();
        std::fs::rename(project.join("app.log.1"), project.join("app.log.3")).unwrap();
        std::fs::rename(project.join("app.log.2"), project.join("app.log.1")).unwrap();
        File::create(project.join("app.log")).unwrap();
        append(&project, &[line(50, "5"), line(50, "6")].concat());
        let result = wire.answer(id);
        for message in wire.others() {
            streamed.extend(said(&message));
        }
        let page = answered(&result);
        assert_eq!(messages(&page), ["1", "2", "3", "4", "5", "6"], "{era:?}: {page}");
        // What came with the answer need not be streamed before it.
        assert_eq!(streamed[..4], ["1", "2", "3", "4"]);
        assert!(streamed.len() <= 6);
    }
}

#[test]
fn without_a_token_the_first_batch_is_the_answer_and_its_cursor_goes_on() {
    let (project, mut wire) = serve([("app.log", line(50, "old").as_str())]);
    let cursor = page(&mut wire, json!({}))["newer_cursor"].clone();
    let arguments = json!({"follow": true, "cursor": cursor});
    let id = wire.ask("tools/call", json!({"name": "get_logs", "arguments": arguments}));
    append(&project, &line(50, "1"));
    let first = answered(&wire.answer(id));
    assert_eq!(messages(&first), ["1"]);
    assert_eq!(wire.others(), Vec::<Value>::new());
    append(&project, &line(50, "2"));
    let second = page(&mut wire, json!({"follow": true, "cursor": first["newer_cursor"]}));
    assert_eq!(messages(&second), ["2"]);
}

#[test]
fn following_ends_at_the_deadline_of_the_server_with_what_came_and_a_cursor() {
    let project = Project::with([("app.log", line(50, "old").as_str())]);
    let mut command = project.server();
    command.env("CORETOOLS_LIMITS_CALL_TIMEOUT_MS", "2500");
    let mut wire = Wire::connect(command, Era::Modern);
    let cursor = page(&mut wire, json!({}))["newer_cursor"].clone();
    let started = Instant::now();
    let id = follow(&mut wire, json!({"follow": true, "cursor": cursor}));
    append(&project, &line(50, "1"));
    let read = answered(&wire.answer(id));
    assert!(started.elapsed() >= Duration::from_secs(2));
    assert_eq!(messages(&read), ["1"]);
    assert!(read["newer_cursor"].is_string());
}

#[test]
fn a_follower_that_is_cancelled_is_gone() {
    let (_project, mut wire) = serve([("app.log", line(50, "old").as_str())]);
    let id = follow(&mut wire, json!({"follow": true}));
    std::thread::sleep(Duration::from_millis(100));
    wire.notify("notifications/cancelled", json!({"requestId": id}));
    assert!(wire.is_silent_for(Duration::from_secs(7)), "{:?}", wire.others());
    assert_eq!(messages(&page(&mut wire, json!({}))), ["old"]);
}

#[test]
fn a_cursor_outlives_the_server() {
    let (project, mut wire) = serve([("app.log", line(50, "old").as_str())]);
    let cursor = page(&mut wire, json!({}))["newer_cursor"].clone();
    drop(wire);
    append(&project, &line(50, "1"));
    std::fs::rename(project.join("app.log"), project.join("app.log.1")).unwrap();
    append(&project, &line(50, "2"));
    let mut wire = Wire::connect(project.server(), Era::Modern);
    assert_eq!(messages(&page(&mut wire, json!({"cursor": cursor}))), ["1", "2"]);
}
