//! The policy of the built server, against clients and files that want more than their role allows.
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

mod approvals;
mod audit;
mod command_line;
mod credentials;
mod disclosure;
mod effects;
mod environment;
mod every_pair;
mod inner_calls;
mod limits;
mod protection;
mod reach;
mod reload;
mod smuggling;
mod sources;

use integration_tests::{Era, Project, Wire};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The server of a project, where nothing around the test says who calls.
fn server<S: AsRef<std::ffi::OsStr>>(project: &Project, arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = project.server();
    command.env_remove("TMPDIR").args(arguments);
    command
}

/// The same, with what it logs going to `log`.
fn logged(command: &Command, log: &Path) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", r#"log=$1; shift; exec "$@" 2>"$log""#, "sh"]).arg(log);
    shell.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

/// Runs to the end, with nothing to read.
fn run(mut command: Command) -> Output {
    command.stdin(Stdio::null()).output().expect("the program can be run")
}

/// The names that are listed.
fn listed(wire: &mut Wire) -> BTreeSet<String> {
    let answer = wire.request("tools/list", json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("no list: {answer}"));
    tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

/// Returns the tools that a server lists that is started so.
fn lists(command: Command) -> BTreeSet<String> {
    listed(&mut Wire::connect(command, Era::Modern))
}

/// Writes a file with a mode.
fn put(path: &Path, content: impl AsRef<[u8]>, mode: u32) -> PathBuf {
    fs::write(path, content).expect("a file can be written");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode can be set");
    path.to_owned()
}

/// A policy with one role, `tester`, which has `lines`.
fn tester(lines: &str) -> String {
    format!("version = 1\nmissing_role = \"tester\"\n[roles.tester]\n{lines}\n")
}

/// A project with files, and a server that judges by a policy which lies outside of it.
struct PolicyFixture {
    project: Project,
    outside: Project,
}

impl PolicyFixture {
    fn by<'a>(policy: &str, files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let judged = Self { project: Project::with(files), outside: Project::empty() };
        judged.set_policy(policy);
        judged
    }

    fn policy(&self) -> PathBuf {
        self.outside.join("roles.toml")
    }

    fn set_policy(&self, policy: &str) {
        put(&self.policy(), policy, 0o600);
    }

    fn server(&self) -> Command {
        let mut command = server(&self.project, ["--policy"]);
        command.arg(self.policy());
        command
    }

    fn connect(&self, era: Era) -> Wire {
        Wire::connect(self.server(), era)
    }
}

/// The error of a call that is answered with one.
fn refused(wire: &mut Wire, tool: &str) -> Value {
    let answer = wire.request("tools/call", json!({"name": tool, "arguments": {}}));
    assert!(answer.get("error").is_some(), "{tool} was called: {answer}");
    answer["error"].clone()
}
