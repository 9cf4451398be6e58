//! The tools that look into the running application, through the protocol.
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

mod follow;
mod groups;
mod loggers;
mod logs;

use integration_tests::{Era, Project, Wire};
use serde_json::{Value, json};

/// A server for a project with these files.
fn serve<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> (Project, Wire) {
    integration_tests::serve(files, Era::Modern)
}

/// The page that `get_logs` answers.
fn page(wire: &mut Wire, arguments: Value) -> Value {
    let text = wire.text("get_logs", arguments);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("no JSON ({error}): {text}"))
}

fn messages(page: &Value) -> Vec<&str> {
    page["entries"].as_array().unwrap().iter().map(|entry| entry["message"].as_str().unwrap()).collect()
}

/// A line as pino writes it.
fn line(level: u32, message: &str) -> String {
    format!("{}\n", json!({"level": level, "time": 1_795_168_800_000_u64, "msg": message}))
}
