//! `capture_trace`, on real programs of each runtime.
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
#![cfg(target_os = "linux")]

mod go;
mod jvm;
mod native;
mod node;
mod policy;
mod python;
mod rights;
mod sockets;
mod support;
