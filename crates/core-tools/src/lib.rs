//! Tools for coding agents, usable without any protocol.

pub mod config;
#[cfg(feature = "filesystem")]
pub mod filesystem;
pub mod nearest;
pub mod redact;
pub mod workspace;
