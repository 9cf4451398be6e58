//! Calls that a person must approve, over standard input and output.

use crate::{PolicyFixture, tester};
use integration_tests::{Era, Wire, python_with_mcp, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

const ASKS: &str = "allow = [\"*\"]\nask = [\"write_file\"]\n[[roles.tester.require]]\nid = \"programs\"\n\
                    tools = [\"run_command\"]\ncommands = [\"true\"]\notherwise = \"ask\"";

fn fixture() -> PolicyFixture {
    PolicyFixture::by(&tester(ASKS), [("a.txt", "a")])
}

fn asking(judged: &PolicyFixture, era: Era) -> Wire {
    Wire::connect_as(judged.server(), era, json!({ "elicitation": {} }))
}

fn write(path: &str) -> Value {
    json!({"name": "write_file", "arguments": {"path": path, "content": "text"}})
}

/// A call that waits for its client's user.
struct AskedCall {
    params: Value,
    id: i64,
    /// The parameters of the question.
    question: Value,
    /// The id of the server's request, or the state of the answer.
    handle: Value,
}

fn begin(wire: &mut Wire, era: Era, params: Value) -> AskedCall {
    let id = wire.ask("tools/call", params.clone());
    match era {
        Era::Initialize(_) => {
            let request = wire.receive();
            assert_eq!(request["method"], "elicitation/create", "{request}");
            AskedCall { params, id, question: request["params"].clone(), handle: request["id"].clone() }
        }
        Era::Modern => {
            let result = wire.answer(id)["result"].clone();
            assert_eq!(result["resultType"], "input_required", "{result}");
            let question = result["inputRequests"]["approval"]["params"].clone();
            AskedCall { params, id, question, handle: result["requestState"].clone() }
        }
    }
}

/// Sends the answer of the user, and returns the result of the call.
fn finish(wire: &mut Wire, era: Era, asked: &AskedCall, answer: Value) -> Value {
    match era {
        Era::Initialize(_) => {
            wire.send(&json!({"jsonrpc": "2.0", "id": asked.handle, "result": answer}));
            wire.answer(asked.id)["result"].clone()
        }
        Era::Modern => {
            let mut params = asked.params.clone();
            params["inputResponses"] = json!({ "approval": answer });
            params["requestState"] = asked.handle.clone();
            wire.request("tools/call", params)["result"].clone()
        }
    }
}

fn accept(decision: &str) -> Value {
    json!({"action": "accept", "content": {"decision": decision}})
}

fn approvals(judged: &PolicyFixture, arguments: &[&str]) -> Command {
    let mut command = judged.project.server();
    command.arg("approvals").args(arguments).stdin(Stdio::null());
    command
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The calls that wait in a terminal.
fn waiting(judged: &PolicyFixture) -> Vec<Value> {
    let output = approvals(judged, &["list", "--json"]).output().unwrap();
    let list: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
    list["approvals"].as_array().unwrap().clone()
}

fn wait_for_question(judged: &PolicyFixture) -> Value {
    let mut found = Vec::new();
    wait_until(SOON, "a call waits", || {
        found = waiting(judged);
        !found.is_empty()
    });
    found.remove(0)
}

#[test]
fn the_client_asks_its_user_and_only_a_decision_lets_the_call_run() {
    for era in Era::BOTH {
        let judged = fixture();
        let mut wire = asking(&judged, era);
        for (answer, runs) in [
            (json!({"action": "accept"}), false),
            (json!({"action": "accept", "content": {}}), false),
            (accept("Allow"), false),
            (accept("deny"), false),
            (json!({"action": "decline"}), false),
            (json!({"action": "cancel"}), false),
            (json!("yes"), false),
            (accept("allow once"), true),
        ] {
            let asked = begin(&mut wire, era, write("b.txt"));
            assert!(!judged.project.join("b.txt").exists());
            let result = finish(&mut wire, era, &asked, answer.clone());
            assert_eq!(result["isError"], !runs, "{era:?} {answer}: {result}");
            assert_eq!(judged.project.join("b.txt").exists(), runs, "{era:?} {answer}");
        }
        // Once is once.
        begin(&mut wire, era, write("b.txt"));
    }
}

#[test]
fn an_approval_runs_no_other_call_and_none_twice() {
    let judged = fixture();
    let mut wire = asking(&judged, Era::Modern);
    // Other arguments, and another tool.
    for other in
        [write("c.txt"), json!({"name": "write_file", "arguments": {"path": "b.txt", "content": "other"}})]
    {
        let mut asked = begin(&mut wire, Era::Modern, write("b.txt"));
        asked.params = other;
        let result = finish(&mut wire, Era::Modern, &asked, accept("allow once"));
        assert!(result["content"][0]["text"].as_str().unwrap().contains("another call"), "{result}");
    }
    assert!(!judged.project.join("b.txt").exists() && !judged.project.join("c.txt").exists());
    let asked = begin(&mut wire, Era::Modern, write("b.txt"));
    assert_eq!(finish(&mut wire, Era::Modern, &asked, accept("allow once"))["isError"], false);
    // A replay asks again. A state that never was is an error.
    fs::remove_file(judged.project.join("b.txt")).unwrap();
    let replay = finish(&mut wire, Era::Modern, &asked, accept("allow once"));
    assert_eq!(replay["resultType"], "input_required", "{replay}");
    let invented = AskedCall { handle: json!("0".repeat(32)), ..asked };
    let mut params = invented.params.clone();
    params["inputResponses"] = json!({ "approval": accept("allow once") });
    params["requestState"] = invented.handle.clone();
    let forged = wire.request("tools/call", params);
    assert_eq!(forged["error"]["code"], -32602, "{forged}");
    assert!(!judged.project.join("b.txt").exists());
}

#[test]
fn the_question_is_the_servers_and_what_an_agent_writes_stays_in_its_line() {
    for era in Era::BOTH {
        let judged = fixture();
        let mut wire = asking(&judged, era);
        let command = "echo \u{202e}x\n\nAllowed by the operator.\nArguments: none\u{1b}[2J token=ghp_0123456789abcdefghijABCDEFGHIJ012345";
        let params =
            json!({"name": "run_command", "arguments": {"command": ["echo", command, "y".repeat(9_000)]}});
        let asked = begin(&mut wire, era, params);
        let text = asked.question["message"].as_str().unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert_eq!(lines[0], "An agent in the role tester asks to call run_command.");
        assert!(lines[1].starts_with("Asked because: `command`: this role may run only `true`"), "{text}");
        assert!(lines[3].starts_with("    command: [\"echo\",\"echo \\u{202e}x\\n\\nAllowed"), "{text}");
        assert!(lines[3].contains("characters are left out here") && text.len() < 3_000, "{text}");
        assert!(!text.contains("ghp_0123456789") && !text.contains('\u{1b}'), "{text}");
        assert_eq!(asked.question["requestedSchema"]["required"], json!(["decision"]));
    }
}

#[test]
fn a_policy_that_changed_while_a_person_thought_decides() {
    for era in Era::BOTH {
        let judged = fixture();
        let mut wire = asking(&judged, era);
        let asked = begin(&mut wire, era, write("b.txt"));
        judged.set_policy(&tester("allow = [\"*\"]\ndeny = [\"write_file\", \"read_file\"]"));
        wait_until(SOON, "the policy is read again", || {
            let answer = wire.request("tools/list", json!({}));
            !answer["result"]["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "read_file")
        });
        let result = finish(&mut wire, era, &asked, accept("allow once"));
        assert_eq!(result["isError"], true, "{result}");
        assert!(!judged.project.join("b.txt").exists());
    }
}

#[test]
fn without_anybody_to_ask_or_an_answer_the_call_does_not_run_and_says_why() {
    let judged = fixture();
    let connect = |approvers: &str, era| {
        let mut command = judged.server();
        command
            .env("CORETOOLS_POLICY_APPROVERS", approvers)
            .env("CORETOOLS_POLICY_APPROVAL_TIMEOUT_MS", "300");
        Wire::connect(command, era)
    };
    for era in Era::BOTH {
        let text = connect("client", era).failure("write_file", write("b.txt")["arguments"].clone());
        assert!(text.contains("nobody can be asked: the client shows no questions"), "{text}");
        let text = connect("operator", era).failure("write_file", write("b.txt")["arguments"].clone());
        assert!(text.contains("nobody answered within 0 s. No answer is no"), "{text}");
    }
    assert!(!judged.project.join("b.txt").exists() && waiting(&judged).is_empty());
}

#[test]
fn a_person_answers_in_a_terminal_and_the_first_answer_counts() {
    for era in Era::BOTH {
        let judged = fixture();
        let log = judged.outside.join("audit.jsonl");
        let mut command = judged.server();
        command.env("CORETOOLS_POLICY_AUDIT", &log);
        let mut wire = Wire::connect(command, era);
        let id = wire.ask("tools/call", write("b.txt"));
        let question = wait_for_question(&judged);
        assert_eq!(
            (&question["question"]["tool"], &question["question"]["role"]),
            (&json!("write_file"), &json!("tester"))
        );
        let key = &question["id"].as_str().unwrap()[..8];
        let shown = said(&approvals(&judged, &["show", key]).output().unwrap());
        assert!(shown.contains("    path: \"b.txt\""), "{shown}");
        // Meanwhile another call runs: the one that waits holds nothing.
        assert_eq!(wire.text("read_file", json!({"path": "a.txt"})), "a");
        let answers: Vec<_> = (0..4)
            .map(|_| {
                approvals(&judged, &["allow", key])
                    .stderr(Stdio::null())
                    .stdout(Stdio::null())
                    .spawn()
                    .unwrap()
            })
            .collect();
        let done = answers
            .into_iter()
            .map(|mut answer| answer.wait().unwrap())
            .filter(std::process::ExitStatus::success);
        assert_eq!(done.count(), 1);
        assert_eq!(wire.answer(id)["result"]["isError"], false);
        assert!(judged.project.join("b.txt").exists());
        let late = approvals(&judged, &["deny", key]).output().unwrap();
        assert_eq!(late.status.code(), Some(1), "{}", said(&late));
        // Denied, with a reason; and once more, allowed for the session.
        let id = wire.ask("tools/call", write("c.txt"));
        let question = wait_for_question(&judged);
        let key = question["id"].as_str().unwrap();
        assert!(approvals(&judged, &["deny", key, "--reason", "not today"]).status().unwrap().success());
        let text = wire.answer(id)["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(text.contains("denied this call, because: not today"), "{text}");
        let id = wire.ask("tools/call", write("d.txt"));
        let question = wait_for_question(&judged);
        let key = question["id"].as_str().unwrap();
        assert!(approvals(&judged, &["allow", key, "--session"]).status().unwrap().success());
        assert_eq!(wire.answer(id)["result"]["isError"], false);
        wire.text("write_file", write("d.txt")["arguments"].clone());
        // Who, and when.
        let lines: Vec<Value> = fs::read_to_string(&log)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let answers: Vec<&str> = lines
            .iter()
            .filter(|line| line["event"] == "call" && line["tool"] == "write_file")
            .map(|line| {
                let approval = &line["approval"];
                assert!(approval["by"].as_str().unwrap().ends_with(" at a terminal"), "{line}");
                assert!(approval["at"].as_str().unwrap().ends_with('Z'), "{line}");
                approval["answer"].as_str().unwrap()
            })
            .collect();
        assert_eq!(answers, ["allowed once", "denied", "allowed for the session", "allowed for the session"]);
    }
}

#[test]
fn a_call_that_is_cancelled_or_whose_client_goes_away_takes_its_question_back() {
    let judged = fixture();
    let mut wire = judged.connect(Era::Initialize("2025-11-25"));
    let id = wire.ask("tools/call", write("b.txt"));
    let question = wait_for_question(&judged);
    wire.notify("notifications/cancelled", json!({"requestId": id}));
    wait_until(SOON, "the question is taken back", || waiting(&judged).is_empty());
    let late = approvals(&judged, &["allow", question["id"].as_str().unwrap()]).output().unwrap();
    assert_eq!(late.status.code(), Some(1), "{}", said(&late));
    wire.ask("tools/call", write("b.txt"));
    wait_for_question(&judged);
    wire.close_input();
    wait_until(SOON, "the question is taken back", || waiting(&judged).is_empty());
    assert!(!judged.project.join("b.txt").exists());
}

#[test]
fn tools_cannot_answer_where_the_folder_lies_in_a_root() {
    let judged = fixture();
    let mut command = judged.server();
    command.env("XDG_STATE_HOME", judged.project.join("state"));
    let text = Wire::connect(command, Era::Modern).failure("write_file", write("b.txt")["arguments"].clone());
    assert!(text.contains("nobody can be asked"), "{text}");
}

/// Runs `tests/python/approvals.py`, which says on standard error what does not hold.
fn python(mode: &str) {
    let Some(python) = python_with_mcp() else { return };
    let judged =
        PolicyFixture::by(&tester(&ASKS.replace("tester", "builder")).replace("tester", "builder"), []);
    let output = judged
        .project
        .server_as(&python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/python/approvals.py"))
        .args([mode, "stdio"])
        .arg(integration_tests::server())
        .args(["--role", "builder", "--root"])
        .arg(judged.project.path())
        .arg("--policy")
        .arg(judged.policy())
        .output()
        .unwrap();
    assert!(output.status.success() && said(&output).contains("all of it holds"), "{}", said(&output));
}

#[test]
fn the_official_python_client_answers_with_the_handshake() {
    python("legacy");
}

#[test]
fn the_official_python_client_answers_without_it() {
    python("2026-07-28");
}
