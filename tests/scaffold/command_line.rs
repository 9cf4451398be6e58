//! The command line of the built server.

use integration_tests::{Project, server};
use std::process::{Command, Output, Stdio};

/// The command line, in `project`.
pub(crate) fn command(project: &Project, arguments: &[&str]) -> Command {
    let mut command = project.server_as(server());
    command.args(arguments).env("COLUMNS", "100").env_remove("CORETOOLS_TOOLSETS").stdin(Stdio::null());
    command
}

pub(crate) fn run(project: &Project, arguments: &[&str]) -> Output {
    command(project, arguments).output().expect("the server runs")
}

/// Returns what it prints; it must succeed.
pub(crate) fn printed(project: &Project, arguments: &[&str]) -> String {
    let output = run(project, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    text(project, &output.stdout)
}

/// Returns printed text without the paths of this run.
pub(crate) fn text(project: &Project, bytes: &[u8]) -> String {
    let folder = project.path().canonicalize().expect("it is there");
    String::from_utf8_lossy(bytes)
        .replace(&folder.display().to_string(), "/project")
        .lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join("\n")
}
