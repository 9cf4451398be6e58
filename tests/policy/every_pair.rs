//! Every role × every tool × list and call × both eras. Generated from what is registered.

use crate::{listed, run, server};
use integration_tests::{Era, Project, Wire};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The built-in decisions, role by role.
fn matrix(project: &Project) -> Map<String, Value> {
    let output = run(server(project, ["policy", "matrix", "--json"]));
    assert!(output.status.success(), "{output:?}");
    match serde_json::from_slice(&output.stdout) {
        Ok(Value::Object(roles)) => roles,
        other => panic!("no matrix: {other:?}"),
    }
}

fn registered(project: &Project) -> BTreeSet<String> {
    listed(&mut Wire::connect(server(project, ["--role", "orchestrator"]), Era::Modern))
}

#[test]
fn what_is_listed_can_be_called_and_what_is_hidden_is_answered_as_what_does_not_exist() {
    let project = Project::with([("README.md", "# readme\n")]);
    let tools = registered(&project);
    assert!(tools.len() > 20, "{tools:?}");
    let mut hidden_pairs = 0;
    for (role, decisions) in matrix(&project) {
        let visible: BTreeSet<String> =
            tools.iter().filter(|tool| decisions[*tool] != "hidden").cloned().collect();
        let hidden: Vec<&String> = tools.difference(&visible).collect();
        hidden_pairs += hidden.len();
        for era in Era::BOTH {
            let mut wire = Wire::connect(server(&project, ["--role", &role]), era);
            assert_eq!(listed(&mut wire), visible, "{role}, {era:?}");
            for tool in &visible {
                let answer = wire.request("tools/call", json!({"name": tool, "arguments": {}}));
                assert!(answer["result"]["content"].is_array(), "{role}, {tool}: {answer}");
            }
            // A server in which what is hidden was never built in.
            let chosen: Vec<&str> = visible.iter().map(String::as_str).collect();
            let lesser = ["--role", &role, "--toolsets", &chosen.join(",")];
            let mut lesser = Wire::connect(server(&project, lesser), era);
            for tool in &hidden {
                for arguments in [json!({}), json!({"path": "README.md", "command": ["true"], "x": [1]})] {
                    let call = json!({"name": tool, "arguments": arguments});
                    let (answer, truth) =
                        (wire.ask("tools/call", call.clone()), lesser.ask("tools/call", call));
                    let (mut answer, mut truth) = (wire.answer(answer), lesser.answer(truth));
                    assert!(answer["error"].is_object(), "{role} called {tool}: {answer}");
                    // The two connections count for themselves.
                    answer["id"].take();
                    truth["id"].take();
                    assert_eq!(answer.to_string(), truth.to_string(), "{role}, {tool}, {era:?}");
                }
            }
        }
    }
    assert!(hidden_pairs > 40, "only {hidden_pairs} pairs were hidden, so nothing was shown");
}

/// A new tool changes this: whoever adds it decides who may have it.
#[test]
fn every_tool_has_a_decision_in_every_role_that_somebody_accepted() {
    let project = Project::empty();
    let output = run(server(&project, ["policy", "matrix"]));
    assert!(output.status.success(), "{output:?}");
    insta::assert_snapshot!("matrix", String::from_utf8(output.stdout).unwrap());
    let decided = matrix(&project);
    for (role, decisions) in &decided {
        for tool in registered(&project) {
            assert!(decisions[&tool].is_string(), "{role} has no decision for {tool}");
        }
    }
}

/// Old names, and names from elsewhere, are names: what they lead to is hidden under each of them.
#[test]
fn the_same_holds_on_the_command_line() {
    let project = Project::with([("a.txt", "text")]);
    let call = |role: &str, tool: &str| {
        let output = run(server(&project, ["--role", role, "call", tool, r#"{"path":"a.txt"}"#]));
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(call("readonly", "read_file").0, Some(0));
    let (hidden, unknown) = (call("readonly", "write_file"), call("readonly", "wrzzz_fzzz"));
    assert_eq!(hidden.0, Some(2), "{hidden:?}");
    assert_eq!(hidden.1.replace("write_file", "NAME"), unknown.1.replace("wrzzz_fzzz", "NAME"));
}
