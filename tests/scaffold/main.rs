//! `mcp-stdio new` and `mcp-stdio index`: from an empty folder to a server that answers.
//!
//! What is written is built for real. It stands at fixed places in the target folder, is built into that folder with the
//! workspace's lock and its profile, and so compiles little but itself: third-party crates are there already.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]
#![allow(
    clippy::needless_pass_by_value,
    reason = "calls read better with a `json!` than with a reference to one"
)]

mod errors;
mod index;
mod projects;

use integration_tests::{Project, server};
use std::process::{Command, Output, Stdio};

/// The command line, in `project`.
fn command(project: &Project, arguments: &[&str]) -> Command {
    let mut command = project.server_as(server());
    command.args(arguments).env("COLUMNS", "100").env_remove("CORETOOLS_TOOLSETS").stdin(Stdio::null());
    command
}

fn run(project: &Project, arguments: &[&str]) -> Output {
    command(project, arguments).output().expect("the server runs")
}

/// What it prints, which must succeed.
fn printed(project: &Project, arguments: &[&str]) -> String {
    let output = run(project, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    text(project, &output.stdout)
}

/// What is printed, without the paths of this run.
fn text(project: &Project, bytes: &[u8]) -> String {
    let folder = project.path().canonicalize().expect("it is there");
    String::from_utf8_lossy(bytes)
        .replace(&folder.display().to_string(), "/project")
        .lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join("\n")
}
