//! `mcp-stdio new` and `mcp-stdio index`: what they write and what they refuse. That what is written compiles and answers is
//! the target `scaffold_builds`.
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

mod command_line;
mod errors;
mod index;

use command_line::{printed, run, text};
