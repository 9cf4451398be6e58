//! The tools, called through the protocol.
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
mod call_tools;
mod commands;
#[cfg(target_os = "linux")]
mod confined_builds;
mod confinement;
mod files;
mod git;
mod git_attacks;
mod git_branches;
mod git_commits;
mod git_remote_attacks;
mod git_remotes;
mod git_settings;
mod search;
mod secrets;
mod shell;
mod terminal;

use integration_tests::{Era, Project, Wire};

/// A server for a project with these files.
fn serve<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> (Project, Wire) {
    integration_tests::serve(files, Era::Modern)
}

/// Returns true if a program is in `PATH`. Without it a test is skipped.
fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    integration_tests::require(found, &format!("no {name} in PATH")).is_some()
}
