//! `mcp-stdio wrap` between a server and a client, byte by byte: a server written to
//! misbehave, a client that does, and real ones.
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

mod approvals;
mod argument_names;
mod audit;
mod changes;
mod clients;
mod ending;
mod hostile_client;
mod hostile_server;
mod narrowing;
mod passing;
mod reload;
mod remote;
mod roles;
mod survival;

use integration_tests::{Era, Project, Wire};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;

/// The server of these tests behind the proxy: flags of the proxy, behaviours of the server.
struct WrapSetup {
    project: Project,
    flags: Vec<String>,
    behaviours: Vec<&'static str>,
}

fn setup(flags: &[&str]) -> WrapSetup {
    let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
    WrapSetup { project: Project::empty(), flags, behaviours: Vec::new() }
}

impl WrapSetup {
    fn behaving(mut self, behaviours: &[&'static str]) -> Self {
        self.behaviours = behaviours.to_vec();
        self
    }

    /// Takes the list of tools from a file, which the tool `change` overwrites.
    fn offering(self, tools: &Value) -> Self {
        self.project.write("tools.json", &tools.to_string());
        self
    }

    fn command(&self) -> Command {
        let mut command = self.project.server();
        command.arg("wrap").args(&self.flags).args(["--", "python3"]);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/wrap/server.py")).args(&self.behaviours);
        command.env("COUNT", self.project.join("count")).env("HOLD", self.hold());
        if self.project.join("tools.json").exists() {
            command.env("TOOLS", self.project.join("tools.json"));
        }
        command
    }

    fn connect(&self, era: Era) -> Wire {
        Wire::connect(self.command(), era)
    }

    /// Returns what the server was asked, in order: methods, and for calls the tool.
    fn asked(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.project.join("count")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The file that keeps a server from being ready while it is there.
    fn hold(&self) -> PathBuf {
        self.project.join("hold")
    }

    /// How often the server was asked to call `tool`.
    fn calls(&self, tool: &str) -> usize {
        let call = format!("tools/call {tool}");
        self.asked().iter().filter(|asked| **asked == call).count()
    }
}

const LEGACY: Era = Era::Initialize("2025-11-25");

fn call(wire: &mut Wire, tool: &str, arguments: Value) -> i64 {
    wire.ask("tools/call", json!({"name": tool, "arguments": arguments}))
}

fn names(wire: &mut Wire) -> Vec<String> {
    let answer = wire.request("tools/list", json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("no list: {answer}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn problem(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("no error: {answer}"))
}
