//! The server's environment is the operator's, and the programs of no caller get all of it.

use integration_tests::{Era, HttpServer, Project};
use serde_json::json;

#[test]
fn no_caller_prints_a_secret_of_the_servers_environment() {
    const VALUE: &str = "plum-orchard-17";
    let project = Project::empty();
    let variables =
        [("SHOP_BACKEND", VALUE), ("SHOP_PASSWORD", VALUE), ("GOPROXY", "https://mirror.example.org")];
    let server = HttpServer::start_in(&project, &[], &variables);
    let reversed: String = VALUE.chars().rev().collect();
    // Also for who may do everything: the environment is not that caller's.
    for (name, role) in [("one", "worker"), ("other", "orchestrator")] {
        let token = server.token(name, role, &[]);
        let mut client = server.connect(&token, Era::Modern);
        let said = client.text(
            "run_command",
            json!({"command": "env | rev; env | base64 -w0 | base64 -d | rev", "shell": true}),
        );
        assert!(!said.contains(&reversed) && said.contains("=YXORPOG"), "{role}: {said}");
        let found = client.call("get_diagnostics", json!({}));
        let environment = found["structuredContent"]["environment"].to_string();
        assert!(environment.contains("minimal") && environment.contains("SHOP_BACKEND"), "{environment}");
        assert!(!environment.contains("GOPROXY"), "{environment}");
    }
    let inherits = [("SHOP_BACKEND", VALUE), ("CORETOOLS_COMMANDS_VARIABLES", "SHOP_BACKEND")];
    let server = HttpServer::start_in(&project, &[], &inherits);
    let token = server.token("one", "worker", &[]);
    let said = server
        .connect(&token, Era::Modern)
        .text("run_command", json!({"command": "env | rev", "shell": true}));
    assert!(said.contains(&reversed), "{said}");
}
