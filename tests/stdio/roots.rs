//! The roots that a client offers, and folders that are too much to change.

use integration_tests::{Era, Project, Wire};
use serde_json::{Value, json};
use std::path::Path;

fn uri(path: &Path) -> String {
    format!("file://{}", path.canonicalize().unwrap().display()).replace(' ', "%20")
}

/// Answers the server's question for roots.
fn answer_roots(wire: &mut Wire, folders: &[&Path]) {
    let question = loop {
        let message = wire.receive();
        if message["method"] == "roots/list" {
            break message;
        }
    };
    let roots: Vec<Value> = folders.iter().map(|folder| json!({"uri": uri(folder)})).collect();
    wire.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": roots}}));
}

/// Connects as a client that has these roots, with the server's own in `arguments`.
fn connect(project: &Project, arguments: &[&str], folders: &[&Path]) -> Wire {
    let mut command = project.server();
    command.args(arguments);
    let mut wire = Wire::start(command);
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {"roots": {"listChanged": true}},
        "clientInfo": {"name": "test", "version": "1"}
    });
    wire.request("initialize", params);
    wire.notify("notifications/initialized", json!({}));
    answer_roots(&mut wire, folders);
    wire
}

fn project() -> Project {
    let project = Project::with([("top.txt", "top\n"), ("my sub/in.txt", "in\n"), ("other/o.txt", "o\n")]);
    std::fs::create_dir(project.join("empty")).unwrap();
    project
}

#[test]
fn the_clients_roots_narrow_the_servers() {
    let project = project();
    let mut wire = connect(&project, &[], &[&project.join("my sub")]);
    // Relative paths begin in what is left.
    assert_eq!(wire.text("read_file", json!({"path": "in.txt"})), "in\n");
    for path in ["top.txt", "../top.txt"] {
        wire.failure("read_file", json!({"path": path}));
    }
    wire.failure("read_file", json!({"path": project.join("top.txt").display().to_string()}));
    let result = wire.call("run_command", json!({"command": ["pwd"]}));
    assert!(
        result["structuredContent"]["stdout"].as_str().unwrap().trim_end().ends_with("my sub"),
        "{result}"
    );
    wire.failure("run_command", json!({"command": ["pwd"], "working_directory": ".."}));
}

#[test]
fn the_clients_roots_never_widen_the_servers() {
    let project = project();
    let sub = project.join("my sub").display().to_string();
    for offered in [project.path(), Path::new("/")] {
        let mut wire = connect(&project, &["--root", &sub], &[offered]);
        assert_eq!(wire.text("read_file", json!({"path": "in.txt"})), "in\n");
        wire.failure("read_file", json!({"path": "../top.txt"}));
        wire.failure("read_file", json!({"path": project.join("top.txt").display().to_string()}));
    }
    // Roots that share nothing with ours leave ours as they are.
    let mut wire = connect(&project, &["--root", &sub], &[&project.join("other")]);
    assert_eq!(wire.text("read_file", json!({"path": "in.txt"})), "in\n");
    wire.failure("read_file", json!({"path": project.join("other/o.txt").display().to_string()}));
}

#[test]
fn changed_roots_hold_from_the_next_call_on() {
    let project = project();
    let mut wire = connect(&project, &[], &[&project.join("my sub")]);
    wire.failure("read_file", json!({"path": "top.txt"}));
    wire.notify("notifications/roots/list_changed", json!({}));
    answer_roots(&mut wire, &[&project.join("other")]);
    assert_eq!(wire.text("read_file", json!({"path": "o.txt"})), "o\n");
    wire.failure("read_file", json!({"path": "in.txt"}));
    // A client without roots narrows nothing.
    wire.notify("notifications/roots/list_changed", json!({}));
    answer_roots(&mut wire, &[]);
    assert_eq!(wire.text("read_file", json!({"path": "top.txt"})), "top\n");
}

#[test]
fn a_client_of_2026_07_28_is_asked_with_its_first_call() {
    let project = project();
    let mut wire = Wire::connect(project.server(), Era::Modern);
    let call = |wire: &mut Wire, path: &str, responses: Option<Value>| {
        let mut params = json!({"name": "read_file", "arguments": {"path": path}});
        Era::Modern.fill(&mut params);
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"roots": {}});
        if let Some(responses) = responses {
            params["inputResponses"] = responses;
        }
        let id = format!("call {path}");
        wire.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
        wire.answer(id)["result"].clone()
    };
    let asked = call(&mut wire, "in.txt", None);
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert_eq!(asked["inputRequests"]["roots"]["method"], "roots/list", "{asked}");
    let roots = json!({"roots": {"roots": [{"uri": uri(&project.join("my sub"))}]}});
    let answered = call(&mut wire, "in.txt", Some(roots));
    assert_eq!(answered["content"][0]["text"], "in\n", "{answered}");
    // Asked once: the roots of a connection are known from then on.
    assert_eq!(call(&mut wire, "../top.txt", None)["isError"], true);
}

#[test]
fn a_start_in_the_home_folder_is_read_only_until_a_root_is_named() {
    let home = Project::with([("a.txt", "one\n")]);
    let start = |arguments: &[&str]| {
        let mut command = home.server();
        command.env("HOME", home.path()).args(arguments);
        Wire::start(command)
    };
    let initialize = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}
    });
    let mut wire = start(&[]);
    let instructions = wire.request("initialize", initialize.clone())["result"]["instructions"].take();
    assert!(instructions.as_str().unwrap().contains("read-only"), "{instructions}");
    assert_eq!(wire.text("read_file", json!({"path": "a.txt"})), "one\n");
    let (diagnostics, _) = wire.outcome("get_diagnostics", json!({}));
    assert!(diagnostics["notice"].as_str().unwrap().contains("read-only"), "{diagnostics}");
    for tool in ["write_file", "run_command"] {
        let error = wire.request("tools/call", json!({"name": tool, "arguments": {}}))["error"].clone();
        assert!(error["message"].as_str().unwrap().contains("--root"), "{error}");
    }
    let root = home.path().display().to_string();
    let mut wire = start(&["--root", &root]);
    let instructions = wire.request("initialize", initialize)["result"]["instructions"].take();
    assert!(!instructions.as_str().unwrap().contains("read-only"), "{instructions}");
    wire.text("write_file", json!({"path": "b.txt", "content": "b"}));
}
