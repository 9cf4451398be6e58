//! The callers that may profile, the targets that they may profile, and the words of refusals.

use crate::support::{ProfiledApp, TraceServer, command, source, told};
use integration_tests::{Era, HttpServer, Project, Wire};
use serde_json::json;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

fn sleeper() -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "echo ready 0; exec sleep 600"]).current_dir("/");
    command
}

#[test]
fn the_tool_is_listed_as_recorded_in_few_bytes() {
    let mut server = TraceServer::start();
    let tools = server.wire.request("tools/list", json!({}))["result"]["tools"].take();
    let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "capture_trace").unwrap().clone();
    insta::assert_json_snapshot!("tool", tool);
    assert!(tool.to_string().len() <= 2_200, "{} bytes", tool.to_string().len());
}

#[test]
fn roles_that_run_nothing_do_not_see_it() {
    for (role, sees) in
        [("readonly", false), ("security", false), ("architect", false), ("dev", true), ("qa", true)]
    {
        let project = Project::empty();
        let mut command = command(&project);
        command.args(["--role", role]);
        let mut wire = Wire::connect(command, Era::Modern);
        let tools = wire.request("tools/list", json!({}))["result"]["tools"].take();
        let seen = tools.as_array().unwrap().iter().any(|tool| tool["name"] == "capture_trace");
        assert_eq!(seen, sees, "{role}");
    }
}

#[test]
fn a_process_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let mut command = sleeper();
    command.uid(65_534);
    let (app, mut server) = (ProfiledApp::start(command), TraceServer::start());
    for kind in ["cpu", "heap", "network"] {
        let refusal = server.refusal(json!({"duration_ms": 100, "type": kind, "target": app.target()}));
        assert_eq!(refusal["kind"], "refused", "{refusal}");
        assert!(refusal["error"].as_str().unwrap().contains("another user"), "{refusal}");
    }
}

#[test]
fn a_role_whose_reach_is_confined_profiles_what_runs_there() {
    let policy = "version = 1\n[roles.near]\nallow = [\"capture_trace\"]\n[[roles.near.require]]\nid = \"docs\"\n\
                  tools = [\"*\"]\nread_within = [\"docs\"]\n";
    let project = Project::with([("docs/a.md", ""), ("roles.toml", policy)]);
    let mut command = command(&project);
    command.args(["--policy", "roles.toml", "--role", "near"]);
    let mut wire = Wire::connect(command, Era::Modern);
    let mut near = sleeper();
    near.current_dir(project.join("docs"));
    let (near, far) = (ProfiledApp::start(near), ProfiledApp::start(sleeper()));
    let mut call = |target: String| {
        let result =
            wire.call("capture_trace", json!({"duration_ms": 100, "type": "heap", "target": target}));
        told(&result)
    };
    assert_eq!(call(near.target())["pid"], near.pid());
    for target in [far.target(), "pid:1".to_owned()] {
        let refusal = call(target);
        assert_eq!(refusal["kind"], "refused", "{refusal}");
        let error = refusal["error"].as_str().unwrap();
        // Whoever runs the tests: the first process is theirs and elsewhere, or root's, or has more rights.
        assert!(
            ["outside", "another user", "does not let"].iter().any(|why| error.contains(why)),
            "{refusal}"
        );
    }
}

#[test]
fn the_server_itself_is_not_for_callers_with_restrictions() {
    let policy = "version = 1\n[roles.part]\nallow = [\"*\"]\n[[roles.part.require]]\nid = \"all\"\n\
                  tools = [\"*\"]\nread_within = [\".\"]\n";
    let project = Project::with([("roles.toml", policy)]);
    let mut command = command(&project);
    command.args(["--policy", "roles.toml", "--role", "part"]);
    let mut wire = Wire::connect(command, Era::Modern);
    for target in ["server".to_owned(), format!("pid:{}", wire.pid())] {
        for kind in ["cpu", "heap", "network"] {
            let ask = json!({"duration_ms": 100, "type": kind, "target": target});
            let refusal = told(&wire.call("capture_trace", ask));
            assert_eq!(refusal["kind"], "refused", "{refusal}");
            assert!(refusal["error"].as_str().unwrap().contains("is this server"), "{refusal}");
            assert!(refusal["remedy"].as_str().unwrap().contains("operator"), "{refusal}");
        }
        let ask = json!({"path": "process.env", "target": target});
        let said = wire.failure("inspect_state", ask);
        assert!(said.contains("is this server") || said.contains("names no target"), "{said}");
    }
}

#[test]
fn over_http_the_server_itself_is_for_nobody() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let token = server.token("chief", "orchestrator", &[]);
    let mut client = server.connect(&token, Era::Modern);
    for target in [
        "server".to_owned(),
        format!("pid:{}", server.pid()),
        format!("port:{}", server.address().port()),
        format!("http://127.0.0.1:{}/", server.address().port()),
    ] {
        let ask = json!({"duration_ms": 100, "type": "heap", "target": target});
        let refusal = told(&client.call("capture_trace", ask));
        assert_eq!(refusal["kind"], "refused", "{target}: {refusal}");
        assert!(refusal["error"].as_str().unwrap().contains("is this server"), "{target}: {refusal}");
        if target != "server" {
            let said = client.failure("inspect_state", json!({"path": "process.env", "target": target}));
            assert!(said.contains("is this server"), "{target}: {said}");
        }
    }
}

#[test]
fn what_does_not_fit_is_told_with_what_does() {
    let mut server = TraceServer::start();
    for (arguments, expected) in [
        (json!({"duration_ms": 50, "type": "cpu"}), "100"),
        (json!({"duration_ms": 30_001, "type": "cpu"}), "30000"),
        (json!({"duration_ms": 100, "type": "disk"}), "network"),
        (json!({"type": "cpu"}), "duration_ms"),
    ] {
        let said = server.wire.failure("capture_trace", arguments);
        assert!(said.contains(expected), "{said}");
    }
    for (target, kind) in [
        ("nonsense", "argument"),
        ("file:a.json", "argument"),
        ("pid:4194304", "gone"),
        ("port:1", "refused"),
        ("http://192.0.2.1/debug/pprof", "refused"),
        ("http://169.254.169.254/latest/meta-data/", "refused"),
        ("http://metadata.google.internal/", "refused"),
        ("http://[fe80::1]:9229/json/list", "refused"),
        ("http://0x7f.1/", "refused"),
        ("ws://me:secret@127.0.0.1/x", "argument"),
        ("file:/etc/passwd", "argument"),
        ("ws://example.org/x", "refused"),
    ] {
        let refusal = server.refusal(json!({"duration_ms": 100, "type": "cpu", "target": target}));
        assert_eq!(refusal["kind"], kind, "{target}: {refusal}");
    }
}

#[test]
fn a_small_profile_is_answered_itself_where_that_is_asked_for() {
    let mut python = Command::new("python3");
    python.arg(source("app.py"));
    let (app, mut server) = (ProfiledApp::start(python), TraceServer::start());
    let ask = json!({"duration_ms": 100, "type": "network", "target": app.target(), "data": true});
    let profile = server.profile(ask);
    assert_eq!(profile["encoding"], "base64");
    use base64::Engine as _;
    let data = base64::engine::general_purpose::STANDARD.decode(profile["data"].as_str().unwrap()).unwrap();
    assert_eq!(data, crate::support::file(&profile["path"]));
}
