//! Every role × every tool × list and call × both eras. Generated from what is registered.

use crate::{listed, run, server};
use integration_tests::{Era, Project, Wire, check_every_pair};
use serde_json::{Map, Value};
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
    check_every_pair(&matrix(&project), &registered(&project), |role, toolsets, era| {
        let toolsets = toolsets.map(|chosen| chosen.join(","));
        let toolsets = toolsets.iter().flat_map(|chosen| ["--toolsets", chosen]);
        Wire::connect(server(&project, ["--role", role].into_iter().chain(toolsets)), era)
    });
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
