//! The coding agents that people use, as they are installed from npm: each connects with the configuration that
//! `mcp-stdio print-config --write` writes for it, in an empty home, without an account, and with
//! nothing but loopback to be reached. And the official TypeScript client, in both eras.
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
mod attempts;
mod claude;
mod codex;
#[cfg(target_os = "linux")]
mod codex_environment;
mod editors;
#[cfg(target_os = "linux")]
mod forbidden_hosts;
mod gemini;
#[cfg(target_os = "linux")]
mod governed;
mod home;
mod hooks;
mod hooks_of_claude;
mod model;
mod opencode;
mod sessions;
mod typescript;
