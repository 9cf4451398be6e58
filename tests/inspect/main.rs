//! `inspect_state`, through the protocol, into real programs.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]
#![allow(
    clippy::needless_pass_by_value,
    reason = "calls read better with a `json!` than with a reference to one"
)]

mod app;
mod deno;
mod fake;
mod found;
mod go;
mod hostile;
mod java;
mod node;
mod processes;
mod published;
mod python;
mod roles;

use integration_tests::{Era, Project, Wire};
use serde_json::{Value, json};

/// A server for the project, with these variables.
fn serve(project: &Project, variables: &[(&str, &str)]) -> Wire {
    let mut command = project.server();
    command.envs(variables.iter().copied());
    Wire::connect(command, Era::Modern)
}

/// Returns the answer of `inspect_state`, and true if it is a failure.
fn inspect(wire: &mut Wire, arguments: Value) -> (Value, bool) {
    wire.outcome("inspect_state", arguments)
}

/// The answer of a call that finds something.
fn answer(wire: &mut Wire, arguments: Value) -> Value {
    let (answer, failed) = inspect(wire, arguments.clone());
    assert!(!failed, "{arguments}: {answer}");
    answer
}

/// The value at a path.
fn value(wire: &mut Wire, path: &str) -> Value {
    answer(wire, json!({"path": path}))["value"].clone()
}

/// The answer of a call that finds nothing.
fn failure(wire: &mut Wire, arguments: Value) -> Value {
    let (answer, failed) = inspect(wire, arguments.clone());
    assert!(failed, "{arguments}: {answer}");
    answer
}

/// The whole of what a failed call says.
fn said(wire: &mut Wire, arguments: Value) -> String {
    failure(wire, arguments).to_string()
}
