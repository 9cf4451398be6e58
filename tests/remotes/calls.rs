//! The same tools there as here: files, git, commands, progress, cancellation, background.

use crate::Machines;
use integration_tests::{Era, Wire, alive, sleeping, unique_seconds, wait_until, wait_until_gone};
use serde_json::json;
use std::time::Duration;

#[test]
fn files_commands_and_git_are_those_of_the_folder_there() {
    let machines = Machines::with([("a.txt", "there\n")]);
    machines.front.write("a.txt", "here\n");
    machines.there.git(&["init", "-q", "-b", "main"]);
    for era in Era::BOTH {
        let mut client = Wire::connect(machines.command(), era);
        assert!(client.text("read_file", json!({"path": "a.txt"})).contains("there"));
        let (report, failed) = client.outcome("run_command", json!({"command": "pwd"}));
        assert!(
            !failed && report["stdout"].as_str().unwrap().trim() == machines.there.path().to_str().unwrap(),
            "{report}"
        );
        let (status, failed) = client.outcome("git_status", json!({}));
        assert!(!failed && status.to_string().contains("main"), "{status}");
        client.text("write_file", json!({"path": "b/c.txt", "content": "new"}));
        assert_eq!(machines.there.read("b/c.txt"), "new");
        let edit = json!({"path": "b/c.txt", "edits": [{"old_string": "new", "new_string": "newer"}]});
        client.call("edit_file", edit);
        assert_eq!(machines.there.read("b/c.txt"), "newer");
        let (missing, failed) = client.outcome("run_command", json!({"command": "exit 3", "shell": true}));
        assert!(failed && missing["exit_code"] == 3, "{missing}");
        assert!(client.failure("read_file", json!({"path": "no.txt"})).contains("no.txt"));
    }
    assert_eq!(machines.front.read("a.txt"), "here\n");
}

#[test]
fn what_is_wrong_with_a_call_is_said_in_front_and_the_list_is_that_of_a_local_server() {
    let machines = Machines::with([]);
    let list = |mut client: Wire| client.request("tools/list", json!({}))["result"]["tools"].clone();
    let local = list(Wire::connect(machines.front.server(), Era::Modern));
    // Nothing is connected for a list, or for a call that does not fit.
    let mut client = Wire::connect(machines.command_by("sh:exit 9"), Era::Modern);
    assert_eq!(client.request("tools/list", json!({}))["result"]["tools"], local);
    assert!(client.failure("read_file", json!({"pth": "a"})).contains("path"));
    assert!(client.failure("read_file", json!({"path": "a"})).contains("exited with code 9"));
    let unknown = client.request("tools/call", json!({"name": "no_such_tool", "arguments": {}}));
    assert!(unknown["error"]["message"].as_str().unwrap().contains("no_such_tool"), "{unknown}");
    let calls = json!({"calls": [{"tool": "read_file", "arguments": {"path": "a"}}]});
    assert!(client.call("call_tools", calls).to_string().contains("exited with code 9"));
}

#[test]
fn a_call_that_is_cancelled_ends_there_with_everything_that_it_started() {
    let machines = Machines::with([]);
    let mut client = machines.connect();
    let seconds = unique_seconds();
    let id = client.ask(
        "tools/call",
        json!({"name": "run_command", "arguments": {"command": format!("sleep {seconds}")}}),
    );
    wait_until(Duration::from_secs(20), "the command runs", || !sleeping(&seconds).is_empty());
    client.notify("notifications/cancelled", json!({"requestId": id}));
    wait_until_gone(&format!("sleep {seconds}"), Duration::from_secs(10));
    // The channel goes on.
    assert!(client.text("list_directory", json!({"path": "."})).len() < 1000);
}

#[test]
fn background_commands_go_on_between_calls_and_end_with_the_client() {
    let machines = Machines::with([]);
    let mut client = machines.connect();
    let seconds = unique_seconds();
    let command = format!("echo ready; exec sleep {seconds}");
    let (started, failed) = client.outcome("start_command", json!({"command": command, "shell": true}));
    assert!(!failed, "{started}");
    let id = started["id"].as_u64().unwrap();
    let output = client.call("read_command_output", json!({"id": id, "wait_ms": 5000})).to_string();
    assert!(output.contains("ready"), "{output}");
    assert_eq!(alive(&format!("sleep {seconds}")).len(), 1);
    client.close_input();
    client.wait(Duration::from_secs(5));
    wait_until_gone(&format!("sleep {seconds}"), Duration::from_secs(5));
}

#[test]
fn a_client_that_asks_for_progress_gets_that_of_the_command_there() {
    let machines = Machines::with([]);
    let mut client = machines.connect();
    let command = "for i in 1 2 3; do echo step $i; sleep 1; done";
    let id = client.ask(
        "tools/call",
        json!({"name": "run_command", "arguments": {"command": command, "shell": true}, "_meta": {"progressToken": "p"}}),
    );
    let answer = client.answer(id);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let messages: Vec<String> = client
        .others()
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .map(|message| message["params"]["message"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert!(messages.iter().any(|message| message.contains("step")), "{messages:?}");
}

#[test]
fn more_output_than_fits_is_bounded_there() {
    let machines = Machines::with([]);
    let mut client = machines.connect();
    let command = "head -c 300000000 /dev/zero";
    let (report, failed) = client.outcome("run_command", json!({"command": command}));
    assert!(!failed && report["stdout"].as_str().unwrap().len() < 1 << 20, "{}", report["exit_code"]);
    assert!(integration_tests::peak_memory_kib(client.pid()) < 200 << 10);
}

#[test]
fn a_thousand_calls_in_flight_are_answered_each_with_its_own_answer() {
    let machines = Machines::with([]);
    for number in 0..50 {
        machines.there.write(&format!("{number}.txt"), &format!("content {number}."));
    }
    let mut client = machines.connect();
    let ids: Vec<(i64, usize)> = (0..1000)
        .map(|call| {
            let arguments = json!({"path": format!("{}.txt", call % 50)});
            (client.ask("tools/call", json!({"name": "read_file", "arguments": arguments})), call % 50)
        })
        .collect();
    for (id, number) in ids {
        let answer = client.answer(id);
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        assert!(text.contains(&format!("content {number}.")), "{number}: {answer}");
    }
}
