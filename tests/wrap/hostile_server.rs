//! A server that misbehaves reaches the client with nothing that was not read and judged.

use crate::{LEGACY, call, names, problem, setup};
use integration_tests::{Era, Wire, peak_memory_kib, wait_until};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Frames that are an answer to the call, as far as can be seen, and no message.
const ANSWERS: [&str; 9] =
    ["duplicate", "escaped", "twin", "both", "bom", "utf8", "surrogate", "deep", "long"];
/// Frames that are no answer to anything.
const OTHERS: [&str; 7] = ["batch", "garbage", "unasked", "string", "zeros", "notification", "request"];

fn nothing_leaked(wire: &mut Wire) {
    for message in wire.others() {
        assert!(!message.to_string().contains("LEAK"), "{message}");
    }
}

#[test]
fn an_answer_that_cannot_be_read_strictly_becomes_an_error_that_says_so() {
    let setup = setup(&[]);
    let mut wire = setup.connect(LEGACY);
    for kind in ANSWERS {
        let answer = wire.request("tools/call", json!({"name": "misbehave", "arguments": {"kind": kind}}));
        assert_eq!(answer["error"]["code"], -32603, "{kind}: {answer}");
        assert!(problem(&answer).starts_with("the server's answer was refused"), "{kind}: {answer}");
        assert!(problem(&answer).ends_with("the request may have run"), "{kind}: {answer}");
    }
    assert_eq!(wire.text("echo", json!({"still": "here"})), r#"{"still": "here"}"#);
    nothing_leaked(&mut wire);
}

#[test]
fn a_frame_that_answers_nothing_is_dropped() {
    for era in Era::BOTH {
        let setup = setup(&[]);
        let mut wire = setup.connect(era);
        for kind in OTHERS {
            assert_eq!(wire.text("misbehave", json!({"kind": kind})), "and then the answer", "{kind}");
        }
        nothing_leaked(&mut wire);
    }
}

#[test]
fn a_request_that_is_in_no_table_is_refused_to_the_server_and_never_seen_by_the_client() {
    let setup = setup(&[]);
    let mut wire = setup.connect(LEGACY);
    let answer = wire.text("ask", json!({"method": "tasks/anything"}));
    assert!(answer.contains("-32601"), "{answer}");
    nothing_leaked(&mut wire);
}

#[test]
fn tools_that_look_like_others_are_neither_listed_nor_called() {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let mut hidden = tool("plain");
    hidden["description"] = "Reads.\u{e0041}\u{e0042}".into();
    let mut backwards = tool("other");
    backwards["inputSchema"]["properties"] = json!({"p": {"description": "\u{202e}txt"}});
    let offered = json!([
        tool("echo"),
        tool("dup"),
        tool("dup"),
        tool("Echo2"),
        tool("echo2"),
        tool("re\u{430}d"),
        tool("a b"),
        tool(""),
        hidden,
        backwards,
        5
    ]);
    let setup = setup(&[]).offering(&offered);
    let mut wire = setup.connect(LEGACY);
    assert_eq!(names(&mut wire), ["echo"]);
    for name in ["dup", "Echo2", "echo2", "re\u{430}d", "a b", "", "plain", "other"] {
        let answer = wire.request("tools/call", json!({"name": name}));
        assert_eq!(answer["error"]["code"], -32601, "{name:?}: {answer}");
        assert_eq!(setup.calls(name), 0, "{name:?}");
    }
}

#[test]
fn a_list_that_does_not_end_or_is_ambiguous_is_an_error_and_no_list() {
    for behaviour in ["endless", "twin-list"] {
        let setup = setup(&[]).behaving(&[behaviour]);
        let mut wire = setup.connect(LEGACY);
        let answer = wire.request("tools/list", json!({}));
        assert!(problem(&answer).starts_with("not sent: the server"), "{behaviour}: {answer}");
        let answer = wire.request("tools/call", json!({"name": "echo"}));
        assert!(problem(&answer).starts_with("not sent: the server"), "{behaviour}: {answer}");
        assert_eq!(setup.calls("echo"), 0);
    }
}

#[test]
fn a_flood_that_the_client_does_not_read_stops_the_server_and_costs_bounded_memory() {
    let setup = setup(&[]);
    let mut wire = setup.connect(LEGACY);
    // The support's client reads all the time; one that does not is a pipe that nobody empties.
    drop(wire.text("echo", json!({})));
    let mut command = setup.command();
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let flood = json!({"name": "flood", "arguments": {"megabytes": 400}});
    for (id, method, params) in [(1, "initialize", hello), (2, "tools/call", flood)] {
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        std::io::Write::write_all(&mut input, format!("{line}\n").as_bytes()).unwrap();
    }
    // It takes as much as it may, which is less than 120 MiB and then no longer grows.
    let mut last = 0;
    let mut since = Instant::now();
    wait_until(Duration::from_secs(30), "it takes no more", || {
        let peak = peak_memory_kib(child.id());
        assert!(peak < 120 * 1024, "{peak} KiB");
        if peak > last {
            (last, since) = (peak, Instant::now());
        }
        peak > 30 * 1024 && since.elapsed() > Duration::from_secs(1)
    });
    // And it still ends with its client.
    drop(input);
    wait_until(Duration::from_secs(10), "it ends", || child.try_wait().unwrap().is_some());
}

#[test]
fn a_server_that_does_not_read_costs_bounded_memory_and_calls_say_so() {
    let setup = setup(&["--time-limit", "30"]).behaving(&["deaf"]);
    let mut wire = Wire::start(setup.command());
    // The server is there, and reads nothing.
    assert_eq!(wire.receive()["method"], "notifications/message");
    let big = "x".repeat(4 << 20);
    let asked: Vec<i64> =
        (0..18).map(|_| wire.ask("logging/setLevel", json!({"level": "info", "big": big}))).collect();
    let refused = wire.answer(*asked.last().unwrap());
    assert_eq!(problem(&refused), "not sent: the server does not read what it is sent");
    assert!(peak_memory_kib(wire.pid()) < 160 * 1024, "{} KiB", peak_memory_kib(wire.pid()));
    wire.close_input();
    wire.wait(Duration::from_secs(5));
}

#[test]
fn progress_for_a_request_that_is_not_open_is_dropped() {
    let setup = setup(&[]);
    let mut wire = setup.connect(LEGACY);
    let params = json!({"name": "sleep", "arguments": {"seconds": 0.01}, "_meta": {"progressToken": "mine"}});
    let answer = wire.request("tools/call", params);
    assert_eq!(answer["result"]["content"][0]["text"], "slept");
    let tokens: Vec<Value> =
        wire.others().into_iter().map(|other| other["params"]["progressToken"].clone()).collect();
    assert_eq!(tokens, ["mine"]);
}

#[test]
fn an_answer_that_comes_after_the_client_gave_up_is_dropped() {
    let setup = setup(&["--tool-time-limit", "sleep=0.2"]);
    let mut wire = setup.connect(LEGACY);
    let id = call(&mut wire, "sleep", json!({"seconds": 0.6}));
    let answer = wire.answer(id);
    assert_eq!(problem(&answer), "no answer within 0.2 s: the request may have run");
    assert_eq!(wire.text("echo", json!({})), "{}");
    assert!(wire.others().is_empty());
}

#[test]
fn a_list_whose_pages_come_slowly_has_the_time_of_one_request() {
    let setup = setup(&["--time-limit", "1"]).behaving(&["endless", "slow-list"]);
    let mut wire = setup.connect(LEGACY);
    let started = Instant::now();
    let answer = wire.request("tools/list", json!({}));
    assert!(answer["error"].is_object(), "{answer}");
    // A hundred pages would take twenty seconds.
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}
