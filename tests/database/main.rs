//! `db_bridge`, through the protocol, against real databases.
#![cfg(unix)]
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

mod attack;
mod mysql;
mod postgres;
mod postgres_attacks;
mod servers;
mod sqlite;
mod sqlite_attacks;
mod tls;

use integration_tests::{Era, Project, Wire};
use serde_json::{Value, json};

const DDL: &str = "DDL not permitted via db_bridge query/seed actions";

/// A server for the project, with these variables.
fn serve(project: &Project, variables: &[(&str, &str)]) -> Wire {
    let mut command = project.server();
    command.envs(variables.iter().copied());
    Wire::connect(command, Era::Modern)
}

/// Returns the answer of `db_bridge` as an object, and true if it is a failure.
fn bridge(wire: &mut Wire, arguments: Value) -> (Value, bool) {
    wire.outcome("db_bridge", arguments)
}

/// The answer of a call that succeeds.
fn answer(wire: &mut Wire, arguments: Value) -> Value {
    let (answer, failed) = bridge(wire, arguments.clone());
    assert!(!failed, "{arguments}: {answer}");
    answer
}

/// The error of a call that fails.
fn error(wire: &mut Wire, arguments: Value) -> String {
    let (answer, failed) = bridge(wire, arguments.clone());
    assert!(failed, "{arguments}: {answer}");
    answer["error"].as_str().unwrap_or_else(|| panic!("{arguments}: {answer}")).to_owned()
}

/// The rows of a query.
fn rows(wire: &mut Wire, sql: &str, params: Value) -> Value {
    answer(wire, json!({"action": "query", "payload": sql, "params": params}))["rows"].clone()
}
