//! Sessions end to end: the built server, its daemon, and agents that are scripts which print what agents print.
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

mod background;
mod callers;
mod chain;
mod command_line;
mod disk;
mod notices;
mod roles;
mod sharing;
mod survival;
mod words;

use integration_tests::{Era, Project, Wire, is_alive, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// How long anything may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A daemon. Dropping it ends it, and with it its sessions.
struct Daemon {
    child: Child,
}

impl Daemon {
    fn start(project: &Project) -> Self {
        Self::with(project, project.server())
    }

    fn with(project: &Project, mut command: Command) -> Self {
        command.args(["session", "daemon"]);
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let daemon = Self { child };
        wait_until(PATIENCE, "the daemon answers", || session(project, &["status"]).status.success());
        daemon
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    fn kill(mut self) {
        self.signal(rustix::process::Signal::KILL);
        self.child.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.child.try_wait().unwrap().is_none() {
            self.signal(rustix::process::Signal::TERM);
            self.child.wait().unwrap();
        }
    }
}

/// Runs `mcp-stdio session ARGUMENTS`.
fn session(project: &Project, arguments: &[&str]) -> Output {
    project.server().arg("session").args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// The same with `--json`, which must succeed.
fn ask(project: &Project, arguments: &[&str]) -> Value {
    let (verb, rest) = arguments.split_first().unwrap();
    let output = session(project, &[&[*verb, "--json"], rest].concat());
    let (text, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {error}");
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{arguments:?}: {text}"))
}

/// Returns what is known of a session.
fn known(project: &Project, id: &str) -> Value {
    let list = ask(project, &["list", "--all"]);
    let sessions = list["sessions"].as_array().unwrap();
    sessions
        .iter()
        .find(|session| session["session_id"] == id)
        .unwrap_or_else(|| panic!("no {id}: {list}"))
        .clone()
}

fn until_state(project: &Project, id: &str, state: &str) -> Value {
    wait_until(PATIENCE, &format!("{id} is {state}"), || known(project, id)["state"] == state);
    known(project, id)
}

/// Starts a session by the command line.
fn start(project: &Project, arguments: &[&str]) -> (String, u32, PathBuf) {
    let started = ask(project, &[&["new"], arguments].concat());
    let pid = u32::try_from(started["pid"].as_u64().unwrap()).unwrap();
    assert!(started["started_at"].is_string());
    (text(&started["session_id"]), pid, PathBuf::from(text(&started["log"])))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// A script in the project that is called like an agent.
fn agent(project: &Project, name: &str, script: &str) -> String {
    project.write(name, &format!("#!/bin/sh\n{script}\n"));
    let path = project.join(name);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn until_said(log: &PathBuf, words: &str) {
    wait_until(PATIENCE, &format!("{} says {words:?}", log.display()), || {
        fs::read_to_string(log).unwrap_or_default().contains(words)
    });
}
