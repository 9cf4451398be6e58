//! Every role × every tool × list and call × both eras, as over standard input and output.

use integration_tests::{Ask, Era, Http, HttpServer, Project, check_every_pair};
use serde_json::Value;
use std::collections::HashMap;

#[test]
fn what_is_listed_can_be_called_and_what_is_hidden_is_answered_as_what_does_not_exist() {
    let project = Project::with([("README.md", "# readme\n")]);
    let output = project.server().env_remove("TMPDIR").args(["policy", "matrix", "--json"]).output().unwrap();
    let Ok(Value::Object(matrix)) = serde_json::from_slice(&output.stdout) else { panic!("{output:?}") };
    let server = HttpServer::start(&project, &[]);
    let tools = server.connect(&server.token("all", "orchestrator", &[]), Era::Modern).listed();
    let mut tokens = HashMap::new();
    let mut lesser: Option<(String, HttpServer, String)> = None;
    check_every_pair(&matrix, &tools, |role, toolsets, era| match toolsets {
        None => {
            let token = tokens.entry(role.to_owned()).or_insert_with(|| server.token(role, role, &[]));
            server.connect(token, era)
        }
        Some(chosen) => {
            let chosen = chosen.join(",");
            if lesser.as_ref().is_none_or(|(of, ..)| of != role) {
                let server = HttpServer::start(&project, &["--toolsets", &chosen]);
                let token = server.token("t", role, &[]);
                lesser = Some((role.to_owned(), server, token));
            }
            let (_, server, token) = lesser.as_ref().unwrap();
            Http::connect(server.address(), Some(token), era)
        }
    });
}
