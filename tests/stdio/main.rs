//! A client on standard input and output, byte by byte.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod arguments;
mod authors;
mod batches;
mod cancellation;
mod client_files;
mod clients;
mod completions;
mod concurrency;
mod ending;
mod errors;
mod exec;
mod handshake;
mod hook;
mod hook_clients;
#[cfg(target_os = "linux")]
mod left_running;
mod malformed;
mod notices;
mod offers;
mod progress;
mod roots;
mod streams;
mod terminal;
mod transport;

use integration_tests::{Era, Project, Wire};

/// A server for an empty project.
fn connect(era: Era) -> (Project, Wire) {
    integration_tests::serve([], era)
}

/// A server for an empty project to which nothing has been said.
fn start() -> (Project, Wire) {
    let project = Project::empty();
    let wire = Wire::start(project.server());
    (project, wire)
}
