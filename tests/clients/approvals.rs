//! Calls that a person must approve, with the official TypeScript client in both eras: the client shows the question to its
//! user and sends the answer.

use crate::home::ClientHome;
use integration_tests::{HttpServer, server};

const POLICY: &str = r#"version = 1
[roles.minimal]
allow = ["get_diagnostics"]
[roles.builder]
allow = ["*"]
[[roles.builder.require]]
id = "programs"
tools = ["run_command"]
commands = ["true"]
otherwise = "ask"
"#;

/// Runs `approvals.mjs`, which says on standard error what does not hold.
fn answers(client: &str, over_http: bool) {
    let Some(home) = ClientHome::with_package("@modelcontextprotocol/client") else { return };
    home.write("roles.toml", POLICY);
    let policy = home.path("roles.toml");
    let policy = policy.to_str().unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/approvals.mjs");
    let modules = home.modules();
    let mut arguments = vec![script, modules.to_str().unwrap(), client];
    let said = if over_http {
        let served = HttpServer::start(&home.project, &["--policy", policy]);
        let token = served.token("typescript", "builder", &[]);
        let url = format!("http://{}/mcp", served.address());
        arguments.extend(["http", &url, &token]);
        home.run("node", &arguments)
    } else {
        let root = home.project.path().to_str().unwrap();
        arguments.extend(["stdio", server().to_str().unwrap(), "--role", "builder", "--policy", policy]);
        arguments.extend(["--root", root]);
        home.run("node", &arguments)
    };
    assert!(said.contains("all of it holds"), "{said}");
}

#[test]
fn typescript_v1_answers_on_standard_input_and_output() {
    answers("v1", false);
}

#[test]
fn typescript_v1_answers_over_http() {
    answers("v1", true);
}

#[test]
fn typescript_v2_with_the_handshake_answers_on_standard_input_and_output() {
    answers("legacy", false);
}

#[test]
fn typescript_v2_of_2026_07_28_answers_on_standard_input_and_output() {
    answers("pinned", false);
}

#[test]
fn typescript_v2_of_2026_07_28_answers_over_http() {
    answers("pinned", true);
}
