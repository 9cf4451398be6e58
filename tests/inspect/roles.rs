//! The state that a role may see.

use crate::app::{InspectedApp, plain, program, state};
use crate::{answer, failure, said, serve, value};
use integration_tests::{Era, Project, Wire};
use serde_json::json;

fn serve_as(project: &Project, role: &str, variables: &[(&str, &str)]) -> Wire {
    let mut all = vec![("CORETOOLS_ROLE", role)];
    all.extend_from_slice(variables);
    serve(project, &all)
}

#[test]
fn a_restricted_role_never_sees_what_is_masked() {
    let Some(node) = program("node") else { return };
    let project = Project::empty();
    let _app = state(&project, &node, &[]);
    let mut all = serve(&project, &[]);
    assert_eq!(value(&mut all, "state.password"), "hunter2-hunter2");
    for role in ["readonly", "architect", "security"] {
        let mut wire = serve_as(&project, role, &[("SHORT_TOKEN", "abc")]);
        for path in
            ["state.password", "state.password.length", "state.nested.apiKey", "state.nested.credentials.pin"]
        {
            let (found, _) = crate::inspect(&mut wire, json!({"path": path}));
            assert!(found["value"] == "[masked]" || found["value"].is_null(), "{role} {path}: {found}");
        }
        let found = answer(&mut wire, json!({"path": "state.nested.credentials"}));
        assert_eq!(found["value"], json!({"user": "[masked]", "pin": "[masked]"}), "{role}");
        assert!(found["notes"].to_string().contains("your role may not"), "{found}");
        assert_eq!(value(&mut wire, "state.count"), 42);
    }
}

#[test]
fn a_restricted_role_gets_no_secret_of_the_servers_environment() {
    let project = Project::empty();
    let mut wire = serve_as(&project, "readonly", &[("SHORT_TOKEN", "abc"), ("NODE_ENV", "staging")]);
    assert_eq!(value(&mut wire, "process.env.NODE_ENV"), "staging");
    assert_eq!(value(&mut wire, "process.env.SHORT_TOKEN"), "[masked]");
}

#[test]
fn the_minimal_role_does_not_know_of_the_tool() {
    let project = Project::empty();
    let mut wire = serve_as(&project, "minimal", &[]);
    let answered = wire.request("tools/call", json!({"name": "inspect_state", "arguments": {"path": "x"}}));
    assert!(answered.get("error").is_some(), "{answered}");
}

#[test]
fn a_restricted_role_looks_only_into_processes_under_its_roots() {
    let Some(node) = program("node") else { return };
    let (project, elsewhere) = (Project::empty(), Project::empty());
    let app = plain(
        &elsewhere,
        &node,
        &[
            "--inspect=127.0.0.1:0",
            "-e",
            "console.log('listening ' + new URL(require('inspector').url()).port); globalThis.n = 1; setInterval(() => {}, 1000)",
        ],
    );
    let port = app.port();
    let targets = [
        format!("pid:{}", app.pid()),
        format!("port:{port}"),
        format!("ws://127.0.0.1:{port}/"),
        format!("http://127.0.0.1:{port}/json/list"),
    ];
    let mut free = serve(&project, &[]);
    assert_eq!(answer(&mut free, json!({"path": "n", "target": &targets[0]}))["value"], 1);
    assert_eq!(answer(&mut free, json!({"path": "n", "target": &targets[1]}))["value"], 1);
    let mut confined = serve_as(&project, "readonly", &[]);
    for target in &targets {
        let said = said(&mut confined, json!({"path": "n", "target": target}));
        assert!(said.contains("outside the folders that you may read"), "{target}: {said}");
    }
    // Whoever runs the tests: it is theirs and elsewhere, or root's, or has more rights.
    for path in ["process.env", "process.argv", "state"] {
        let said = said(&mut confined, json!({"path": path, "target": "pid:1"}));
        assert!(
            ["outside", "another user", "does not let"].iter().any(|why| said.contains(why)),
            "{path}: {said}"
        );
    }
    let own = format!("pid:{}", confined.pid());
    let said = said(&mut confined, json!({"path": "process.env", "target": own}));
    assert!(said.contains("is this server"), "{said}");
    // What the operator names is for everybody.
    let mut named = serve_as(&project, "readonly", &[("INSPECT_TARGET", &targets[1])]);
    assert_eq!(value(&mut named, "n"), 1);
}

#[test]
fn a_role_that_may_read_a_part_looks_into_what_runs_there() {
    let Some(node) = program("node") else { return };
    let project = Project::with([
        (
            "roles.toml",
            "version = 1\n[roles.minimal]\nallow = [\"get_diagnostics\"]\n[roles.part]\nallow = [\"*\"]\n\
            [[roles.part.require]]\nid = \"docs\"\ntools = [\"*\"]\nread_within = [\"docs\"]\n",
        ),
        ("docs/x.md", ""),
        (".app-state.json", "{\"a\": 1}"),
        ("docs/state.json", "{\"b\": 2}"),
    ]);
    let policy = project.join("roles.toml");
    let mut command = std::process::Command::new(&node);
    command.args([
        "--inspect=127.0.0.1:0",
        "-e",
        "globalThis.n = 1; console.log('ready'); setInterval(() => {}, 1000)",
    ]);
    command.current_dir(project.join("docs"));
    let inside = InspectedApp::start(&project, command);
    assert_eq!(inside.line(), "ready");
    let outside = plain(
        &project,
        &node,
        &[
            "--inspect=127.0.0.1:0",
            "-e",
            "globalThis.n = 2; console.log('ready'); setInterval(() => {}, 1000)",
        ],
    );
    assert_eq!(outside.line(), "ready");
    let mut server = project.server();
    server.args(["--policy"]).arg(policy).args(["--role", "part"]);
    for name in ["STATE_PATH", "STATE_URL", "NODE_INSPECT_PORT", "INSPECT_TARGET"] {
        server.env_remove(name);
    }
    let mut wire = Wire::connect(server, Era::Modern);
    assert_eq!(value(&mut wire, "n"), 1);
    let target = format!("pid:{}", outside.pid());
    assert!(said(&mut wire, json!({"path": "n", "target": target})).contains("outside the folders"));
    assert_eq!(answer(&mut wire, json!({"path": "b", "target": "file:docs/state.json"}))["value"], 2);
    let failed = failure(&mut wire, json!({"path": "a", "target": "file:.app-state.json"}));
    assert!(failed["error"].as_str().unwrap().contains(".app-state.json"), "{failed}");
    // Nobody's name for a role helps it.
    assert!(said(&mut wire, json!({"path": "process.env.HOME", "target": target})).contains("outside"));
}
