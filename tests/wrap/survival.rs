//! The server may die; the session goes on.

use crate::{LEGACY, call, names, problem, setup};
use integration_tests::{Era, Wire, alive, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::time::{Duration, Instant};

/// The server behind the proxy of this setup.
fn backend(setup: &crate::WrapSetup) -> u32 {
    let mark = setup.project.path().file_name().unwrap().to_str().unwrap().to_owned();
    let mut found = Vec::new();
    wait_until(Duration::from_secs(20), "the server runs", || {
        found = alive("wrap/server.py")
            .into_iter()
            .filter(|pid| {
                std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.ends_with(&mark))
            })
            .filter(|pid| !integration_tests::command_line(*pid).contains("mcp-stdio"))
            .collect();
        !found.is_empty()
    });
    found[0]
}

fn kill(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

#[test]
fn a_call_that_is_open_when_the_server_dies_is_answered_at_once_and_never_sent_again() {
    for era in Era::BOTH {
        let setup = setup(&[]);
        let mut wire = setup.connect(era);
        wire.text("echo", json!({}));
        let sleeping = call(&mut wire, "sleep", json!({"seconds": 600}));
        wait_until(Duration::from_secs(20), "the call has arrived", || setup.calls("sleep") == 1);
        kill(backend(&setup), Signal::KILL);
        let started = Instant::now();
        let answer = wire.answer(sleeping);
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
        assert_eq!(answer["error"]["code"], -32603);
        assert!(problem(&answer).contains("it may have run, and is not sent again"), "{answer}");
        // And the client goes on as if nothing had happened.
        assert_eq!(wire.text("echo", json!({"n": 2})), r#"{"n": 2}"#);
        assert_eq!(setup.calls("sleep"), 1, "{:?}", setup.asked());
    }
}

#[test]
fn the_handshake_and_the_settings_are_said_again_to_a_server_that_was_started_again() {
    let setup = setup(&[]);
    let mut wire = setup.connect(LEGACY);
    wire.request("logging/setLevel", json!({"level": "error"}));
    wire.request("resources/subscribe", json!({"uri": "x://a"}));
    wire.request("resources/subscribe", json!({"uri": "x://b"}));
    wire.request("resources/unsubscribe", json!({"uri": "x://a"}));
    names(&mut wire);
    let before = setup.asked().len();
    for died in 1..=3 {
        let answer = wire.request("tools/call", json!({"name": "die"}));
        assert!(problem(&answer).contains("may have run"), "{answer}");
        assert_eq!(wire.text("echo", json!({"died": died})), format!(r#"{{"died": {died}}}"#));
    }
    let asked: Vec<String> =
        setup.asked()[before..].iter().filter(|asked| *asked != "tools/list").cloned().collect();
    let again = ["initialize", "notifications/initialized", "logging/setLevel", "resources/subscribe"];
    let round = || ["tools/call die"].into_iter().chain(again).chain(["tools/call echo"]);
    assert_eq!(asked, round().chain(round()).chain(round()).collect::<Vec<_>>());
    // Nothing of it is seen by the client.
    assert_eq!(wire.others(), Vec::<serde_json::Value>::new());
}

#[test]
fn while_the_server_is_down_the_last_list_is_given_and_calls_fail_after_a_bounded_wait() {
    let setup = setup(&["--hide", "secret", "--reconnect-limit", "0.5"]);
    let mut wire = setup.connect(LEGACY);
    let known = names(&mut wire);
    assert!(!known.contains(&"secret".to_owned()));
    setup.project.write("hold", "");
    wire.request("tools/call", json!({"name": "die"}));
    // The server is away for as long as this needs.
    assert_eq!(names(&mut wire), known);
    assert_eq!(wire.request("tools/call", json!({"name": "secret"}))["error"]["code"], -32601);
    let answer = wire.request("tools/call", json!({"name": "echo"}));
    assert!(problem(&answer).starts_with("not sent: the server is not"), "{answer}");
    assert_eq!(setup.calls("echo"), 0);
    std::fs::remove_file(setup.hold()).unwrap();
    wait_until(Duration::from_secs(30), "the server is back", || {
        let answer = wire.request("tools/call", json!({"name": "echo", "arguments": {}}));
        answer.get("result").is_some()
    });
}

#[test]
fn a_server_that_cannot_be_started_is_told_to_the_client_and_tried_again() {
    let setup = setup(&[]);
    let mut command = setup.project.server();
    command.args(["wrap", "--reconnect-limit", "0.3", "--", "./not-yet-there"]);
    let mut wire = Wire::start(command);
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let answer = wire.request("initialize", hello.clone());
    assert!(problem(&answer).contains("not sent: the server is not running"), "{answer}");
    assert!(problem(&answer).contains("not-yet-there"), "{answer}");
    let script = concat!("#!/bin/sh\nexec python3 ", env!("CARGO_MANIFEST_DIR"), "/wrap/server.py\n");
    setup.project.write("not-yet-there", script);
    let path = setup.project.join("not-yet-there");
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    wait_until(Duration::from_secs(30), "it is started", || {
        wire.request("initialize", hello.clone()).get("result").is_some()
    });
    assert_eq!(wire.text("echo", json!({})), "{}");
}

#[test]
fn a_server_that_dies_at_once_is_not_started_in_a_loop() {
    let setup = setup(&[]);
    let mut command = setup.project.server();
    command.args(["wrap", "--", "sh", "-c", "echo started >> starts; exit 1"]);
    let began = Instant::now();
    let mut wire = Wire::start(command);
    let starts = setup.project.join("starts");
    wait_until(Duration::from_secs(30), "it is started again and again", || {
        std::fs::read_to_string(&starts).is_ok_and(|starts| starts.lines().count() >= 5)
    });
    // The pauses double, from 50 ms on: 0.05, 0.1, 0.2 and 0.4 s.
    assert!(began.elapsed() >= Duration::from_millis(700), "{:?}", began.elapsed());
    wire.close_input();
    wire.wait(Duration::from_secs(5));
}

#[test]
fn a_stream_of_notifications_is_opened_again_and_the_client_does_not_notice() {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let setup = setup(&[]).offering(&json!([tool("die"), tool("change"), tool("echo")]));
    let mut wire = setup.connect(Era::Modern);
    let stream = wire.ask("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let acknowledged = wire.receive();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], stream);
    names(&mut wire);
    wire.request("tools/call", json!({"name": "die"}));
    wire.text("echo", json!({}));
    assert!(wire.others().is_empty());
    wire.text("change", json!({"tools": [tool("change"), tool("fresh")]}));
    let changed = match wire.others() {
        others if others.is_empty() => wire.receive(),
        mut others => others.remove(0),
    };
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_eq!(changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], stream);
    assert_eq!(names(&mut wire), ["change", "fresh"]);
}

#[test]
fn the_server_gets_so_much_memory_as_the_role_may_use_also_when_it_is_started_again() {
    let policy = "version = 1\n[roles.minimal]\nallow = [\"get_diagnostics\"]\n\
                  [roles.small]\nallow = [\"*\"]\nlimits = { max_memory_mib = 200, max_processes = 400 }\n";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("roles.toml");
    std::fs::write(&file, policy).unwrap();
    let setup = setup(&["--role", "small", "--policy", file.to_str().unwrap()]);
    let mut wire = setup.connect(LEGACY);
    assert_eq!(wire.text("echo", json!({})), "{}");
    let first = backend(&setup);
    assert_eq!(integration_tests::memory_limit(first), Some(200 << 20));
    kill(first, Signal::KILL);
    wait_until(Duration::from_secs(20), "another server runs", || backend(&setup) != first);
    assert_eq!(integration_tests::memory_limit(backend(&setup)), Some(200 << 20));
    assert_eq!(wire.text("echo", json!({"n": 1})), r#"{"n": 1}"#);
    // The proxy itself is not limited by it.
    assert_ne!(integration_tests::memory_limit(std::process::id()), Some(200 << 20));
}
