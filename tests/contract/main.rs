//! The contract with clients; a changed line in a snapshot here is a changed contract.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod calls;
mod command_line;
mod configuration;
mod docs;
mod doctor;
mod list;
mod refusals;
mod scores;
mod words;

use integration_tests::{Era, Project, Wire};
use serde_json::{Value, json};

/// The tools that a server started with `arguments` lists.
fn listed(arguments: &[&str], era: Era) -> Vec<Value> {
    let project = Project::empty();
    let mut command = project.server();
    command.args(arguments);
    let mut wire = Wire::connect(command, era);
    match wire.request("tools/list", json!({}))["result"]["tools"].take() {
        Value::Array(tools) => tools,
        other => panic!("no tools: {other}"),
    }
}

/// The presets, of which the first is the default.
const PRESETS: [&str; 5] = ["standard", "full", "edit", "introspect", "minimal"];

/// All tools.
fn all() -> Vec<Value> {
    listed(&[], Era::Initialize("2025-11-25"))
}

fn name(tool: &Value) -> &str {
    tool["name"].as_str().expect("a tool has a name")
}
