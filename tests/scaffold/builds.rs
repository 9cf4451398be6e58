//! A project of `mcp-stdio new` is built for real, which takes minutes.
//!
//! It stands at fixed places in the target folder, is built into that folder with the workspace's lock and its profile, and so
//! compiles little but itself and what it chooses other features of.
//!
//! ```sh
//! cargo test --workspace --features integration-tests/stress --test scaffold_builds
//! ```
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
#![allow(dead_code, reason = "of the command line's helpers the other target uses more")]

mod command_line;
mod projects;

use command_line::printed;
