//! Roles, limits and the audit: in front for every call, and again there for paths and programs.

use crate::Machines;
use integration_tests::{Era, Wire};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

const ROLES: &str = r#"
version = 1
[roles.dev]
allow = ["read_file", "write_file", "list_directory", "run_command", "delete_file"]
ask = ["delete_file"]
[[roles.dev.require]]
id = "SRC"
tools = ["read_file", "write_file", "list_directory"]
read_within = ["src"]
write_within = ["src"]
[[roles.dev.require]]
id = "LS"
tools = ["run_command"]
commands = ["ls"]
"#;

fn client(machines: &Machines, arguments: &[&str]) -> Wire {
    machines.front.write("roles.toml", ROLES);
    let mut command = machines.command();
    command.arg("--policy").arg(machines.front.join("roles.toml")).args(["--role", "dev"]).args(arguments);
    Wire::connect(command, Era::Modern)
}

#[test]
fn a_path_is_judged_there_where_its_links_lead() {
    let machines = Machines::with([("src/a.txt", "in\n"), ("secret.txt", "out\n")]);
    std::os::unix::fs::symlink("../secret.txt", machines.there.join("src/link.txt")).unwrap();
    let mut client = client(&machines, &[]);
    assert!(client.text("read_file", json!({"path": "src/a.txt"})).contains("in"));
    let absolute = machines.there.join("src/a.txt");
    assert!(client.text("read_file", json!({"path": absolute})).contains("in"));
    // The text of the path tells it here, and the link is found there.
    for path in ["secret.txt", "src/../secret.txt", "src/link.txt", "/etc/passwd"] {
        let error = client.failure("read_file", json!({"path": path}));
        assert!(!error.contains("out\n") && error.contains("refused by policy: `path`"), "{path}: {error}");
    }
    let (listed, failed) = client.outcome("run_command", json!({"command": "ls"}));
    assert!(!failed, "{listed}");
    client.failure("run_command", json!({"command": "cat secret.txt"}));
}

#[test]
fn a_hidden_tool_does_not_exist_and_every_call_is_in_the_audit_of_the_front() {
    let machines = Machines::with([("src/a.txt", "in\n")]);
    let audit = machines.front.join("audit.jsonl");
    let mut client = client(&machines, &["--audit", audit.to_str().unwrap()]);
    let hidden = client.request("tools/call", json!({"name": "git_status", "arguments": {}}));
    assert!(hidden["error"].is_object(), "{hidden}");
    client.text("read_file", json!({"path": "src/a.txt"}));
    client.failure("read_file", json!({"path": "b.txt"}));
    client.failure("read_file", json!({"path": "src/none.txt"}));
    client.close_input();
    client.wait(std::time::Duration::from_secs(5));
    let records: Vec<Value> = std::fs::read_to_string(audit)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ends: Vec<String> = records
        .iter()
        .filter(|record| record["outcome"].is_string())
        .map(|record| format!("{} {} {}", record["tool"], record["decision"], record["outcome"]))
        .collect();
    let expected = [
        r#""git_status" "hidden" "not_run""#,
        r#""read_file" "allowed" "ok""#,
        r#""read_file" "refused" "not_run""#,
        r#""read_file" "allowed" "failed""#,
    ];
    for end in expected {
        assert!(ends.iter().any(|found| found == end), "{end} is not in {ends:?}");
    }
}

#[test]
fn a_call_that_a_person_approves_in_front_is_not_asked_about_there() {
    let machines = Machines::with([("src/a.txt", "in\n")]);
    machines.front.write("roles.toml", ROLES);
    let mut command = machines.command();
    command.arg("--policy").arg(machines.front.join("roles.toml")).args(["--role", "dev"]);
    let mut client = Wire::connect_as(command, Era::Initialize("2025-11-25"), json!({"elicitation": {}}));
    let id = client.ask("tools/call", json!({"name": "delete_file", "arguments": {"path": "src/a.txt"}}));
    let question = loop {
        let message = client.receive();
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    assert!(machines.there.join("src/a.txt").exists());
    let property = question["params"]["requestedSchema"]["properties"].as_object().unwrap();
    let content: serde_json::Map<String, Value> = property
        .iter()
        .map(|(name, schema)| {
            let allow = schema["enum"]
                .as_array()
                .into_iter()
                .flatten()
                .find(|value| value.to_string().contains("allow"));
            (name.clone(), allow.cloned().unwrap_or(json!("")))
        })
        .filter(|(_, value)| value != "")
        .collect();
    client.send(
        &json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": content}}),
    );
    let answer = client.answer(id);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert!(!machines.there.join("src/a.txt").exists());
}

#[test]
fn the_operator_there_can_limit_what_the_server_in_front_demands() {
    let machines = Machines::with([("a.txt", "there\n"), ("src/b.txt", "b\n")]);
    let program = integration_tests::server().display().to_string();
    let there = machines.there.path().display().to_string();
    let limited = |root: &str, role: &str, wanted: &str| {
        let line = format!("exec {program} remote-server --root {root} --role {role}");
        Wire::connect(machines.command_by(&format!("sh:{line}:{wanted}")), Era::Modern)
    };
    let mut client = limited(&there, "readonly", &there);
    assert!(client.text("read_file", json!({"path": "a.txt"})).contains("there"));
    // In front the caller may write; the role there takes it away.
    let error = client.failure("write_file", json!({"path": "a.txt", "content": "x"}));
    assert!(error.contains("write_file"), "{error}");
    assert_eq!(machines.there.read("a.txt"), "there\n");
    let mut client = limited(&format!("{there}/src"), "orchestrator", &there);
    let error = client.failure("read_file", json!({"path": "a.txt"}));
    assert!(error.contains("not one that this far end may serve"), "{error}");
}

#[test]
fn a_role_of_the_operator_there_is_judged_by_the_policy_there() {
    let machines = Machines::with([("a.txt", "there\n"), ("src/b.txt", "b\n")]);
    let program = integration_tests::server().display().to_string();
    let there = machines.there.path().display().to_string();
    // Each role may do everything that the name says nothing of.
    let everything = "version = 1\n[roles.dev]\nallow = [\"*\"]\n[roles.readonly]\nallow = [\"*\"]\n";
    machines.front.write("wide.toml", everything);
    let limited = |flags: &str, role: &str| {
        let line = format!("exec {program} remote-server {flags}");
        let mut command = machines.command_by(&format!("sh:{line}:{there}"));
        command.arg("--policy").arg(machines.front.join("wide.toml")).args(["--role", role]);
        Wire::connect(command, Era::Modern)
    };
    for role in ["dev", "readonly"] {
        let mut client = limited("--role readonly", role);
        assert!(client.text("read_file", json!({"path": "a.txt"})).contains("there"));
        client.failure("write_file", json!({"path": "a.txt", "content": "x"}));
        assert_eq!(machines.there.read("a.txt"), "there\n");
    }
    // A policy file there, whose paths are judged too, and whose questions nobody can answer.
    let strict = "version = 1\n[roles.some]\nallow = [\"read_file\", \"delete_file\"]\nask = [\"delete_file\"]\n\
                  [[roles.some.require]]\nid = \"SRC\"\ntools = [\"read_file\"]\nread_within = [\"src\"]\n";
    let file = machines.front.join("strict.toml");
    machines.front.write("strict.toml", strict);
    let mut client = limited(&format!("--policy {} --role some", file.display()), "dev");
    assert!(client.text("read_file", json!({"path": "src/b.txt"})).contains('b'));
    client.failure("read_file", json!({"path": "a.txt"}));
    let error = client.failure("delete_file", json!({"path": "src/b.txt"}));
    assert!(error.contains("does not know that question"), "{error}");
    assert!(machines.there.join("src/b.txt").exists());
    let error = limited("--role none-such", "dev").failure("read_file", json!({"path": "a.txt"}));
    assert!(error.contains("no role `none-such`"), "{error}");
}

#[test]
fn a_flag_that_would_do_nothing_there_is_refused() {
    const NOTHING: &str = "does nothing for `remote-server`";
    for (flags, problem) in [
        (&["--audit", "/tmp/x"][..], NOTHING),
        (&["--toolsets", "files"], NOTHING),
        (&["--text-only"], NOTHING),
        (&["--remote", "sh:x"], "works on this machine alone"),
    ] {
        let mut there = Command::new(integration_tests::server());
        let output = there.arg("remote-server").args(flags).stdin(Stdio::null()).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(problem), "{error}");
    }
}

#[test]
fn a_first_message_that_is_none_gets_a_refusal_and_nothing_else() {
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_command","arguments":{"command":"id"}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"coretools/open","params":{"version":"0.0.0"}}"#,
        "hello",
    ] {
        let mut there = Command::new(integration_tests::server())
            .arg("remote-server")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        writeln!(there.stdin.take().unwrap(), "{line}").unwrap();
        let output = there.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(answer["error"]["message"].is_string(), "{answer}");
    }
}
