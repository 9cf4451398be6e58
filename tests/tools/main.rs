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
mod commands;
mod confinement;
mod files;
mod git;
mod git_attacks;
mod git_settings;
mod search;
mod secrets;

use integration_tests::{Era, Project, Wire};

/// A server for a project with these files.
fn serve<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> (Project, Wire) {
    integration_tests::serve(files, Era::Modern)
}
