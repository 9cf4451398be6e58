//! The limits of a role on the server.

use crate::{PolicyFixture, tester};
use integration_tests::{Era, unique_seconds, wait_until_gone};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn limited(limits: &str) -> PolicyFixture {
    PolicyFixture::by(&tester(&format!("allow = [\"*\"]\nlimits = {{ {limits} }}")), [("a.txt", "a")])
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[test]
fn so_many_calls_in_a_minute_and_no_more() {
    for era in Era::BOTH {
        let judged = limited("calls_per_minute = 3");
        let mut wire = judged.connect(era);
        // Neither a list nor a call that is not run counts.
        wire.request("tools/list", json!({}));
        wire.request("tools/call", json!({"name": "no_such_tool", "arguments": {}}));
        wire.failure("read_file", json!({"pth": "a.txt"}));
        for _ in 0..3 {
            wire.text("read_file", json!({"path": "a.txt"}));
        }
        let said = wire.failure("read_file", json!({"path": "a.txt"}));
        assert!(said.contains("3 calls in a minute") && said.contains("try again in"), "{said}");
        let said = wire.failure("list_directory", json!({}));
        assert!(said.contains("3 calls in a minute"), "all tools together: {said}");
    }
}

#[test]
fn so_many_calls_at_once_and_no_more() {
    let judged = limited("concurrent_calls = 2");
    let mut wire = judged.connect(Era::BOTH[0]);
    let seconds = unique_seconds();
    let sleep = json!({"name": "run_command", "arguments": {"command": ["sleep", seconds]}});
    let running = [wire.ask("tools/call", sleep.clone()), wire.ask("tools/call", sleep)];
    assert!(wire.is_silent_for(Duration::from_millis(500)));
    let said = wire.failure("read_file", json!({"path": "a.txt"}));
    assert!(said.contains("2 calls at once"), "{said}");
    for id in running {
        wire.notify("notifications/cancelled", json!({"requestId": id}));
    }
    wait_until_gone(&seconds, Duration::from_secs(20));
    // A place is free when the call has ended, in whatever way.
    integration_tests::wait_until(Duration::from_secs(20), "there is a place again", || {
        wire.call("read_file", json!({"path": "a.txt"}))["isError"] == false
    });
}

#[test]
fn arguments_of_so_many_bytes_and_no_more() {
    let judged = limited("max_argument_bytes = 1000");
    let mut wire = judged.connect(Era::Modern);
    wire.text("write_file", json!({"path": "b.txt", "content": "x".repeat(800)}));
    let said = wire.failure("write_file", json!({"path": "b.txt", "content": "x".repeat(1001)}));
    assert!(said.contains("this role may send 1000"), "{said}");
    assert_eq!(judged.project.read("b.txt").len(), 800);
    // In whatever they are: names, many small ones, nothing inside nothing.
    for arguments in [
        json!({"paths": vec!["aaaaaaaaaaaaaaaa"; 80]}),
        json!({"paths": ["a.txt"], "x".repeat(1001): 1}),
        json!({"paths": vec![json!([]); 2000]}),
        json!({"paths": vec![json!({}); 2000]}),
        json!({"paths": vec![""; 2000]}),
    ] {
        let said = wire.failure("read_multiple_files", arguments);
        assert!(said.contains("this role may send 1000"), "{}", said.chars().take(300).collect::<String>());
    }
}

#[test]
fn a_call_runs_for_so_many_seconds_and_no_longer() {
    let judged = limited("max_seconds = 1");
    let mut wire = judged.connect(Era::Modern);
    for arguments in [json!({}), json!({"timeout_ms": 60_000})] {
        let seconds = unique_seconds();
        let mut call = arguments;
        call["command"] = json!(["sleep", seconds]);
        let started = Instant::now();
        let result = wire.call("run_command", call);
        assert_eq!(result["isError"], true, "{result}");
        assert!(started.elapsed() < Duration::from_secs(25), "{:?}: {}", started.elapsed(), text(&result));
        wait_until_gone(&seconds, Duration::from_secs(20));
    }
}

/// A background command outlives its call, and with a limit in seconds it does not outlive that.
#[test]
fn nor_does_what_a_call_leaves_in_the_background() {
    let judged = limited("max_seconds = 1");
    let mut wire = judged.connect(Era::Modern);
    let seconds = unique_seconds();
    wire.call("start_command", json!({"command": ["sleep", seconds]}));
    wait_until_gone(&seconds, Duration::from_secs(20));
}

#[test]
fn of_two_roles_the_narrower_limit_holds() {
    let judged = PolicyFixture::by(
        "version = 1\n[roles.a]\nallow = [\"*\"]\nlimits = { calls_per_minute = 100 }\n\
         [roles.b]\nallow = [\"*\"]\nlimits = { calls_per_minute = 1 }\n",
        [("a.txt", "a")],
    );
    for (first, second) in [("a", "b"), ("b", "a")] {
        let mut command = judged.server();
        command.args(["--role", first]).env("CORETOOLS_ROLE", second);
        let mut wire = integration_tests::Wire::connect(command, Era::Modern);
        wire.text("read_file", json!({"path": "a.txt"}));
        assert!(wire.failure("read_file", json!({"path": "a.txt"})).contains("1 calls in a minute"));
    }
}

#[test]
fn programs_get_so_much_memory_and_the_means_is_named() {
    let judged = limited("max_memory_mib = 100, max_processes = 400, cpu_weight = 50");
    let mut wire = judged.connect(Era::Modern);
    let perl = |script: &str| json!({"command": ["perl", "-e", script]});
    assert!(wire.text("run_command", perl("my $text = 'x' x (20 << 20); print 7")).contains('7'));
    let (report, is_error) = wire.outcome("run_command", perl("my $text = 'x' x (512 << 20); print 7"));
    assert!(is_error && report["stdout"] != "7", "{report}");
    let means = wire.outcome("get_diagnostics", json!({})).0["resource_limits"].to_string();
    assert!(means.contains("memory") && !means.contains("not limited: memory"), "{means}");
    // One that the kernel would not take is an error of the policy.
    let judged = limited("cpu_weight = 10001");
    let output = crate::run(judged.server());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("`cpu_weight` is above 10000"), "{said}");
}
