//! Tools for coding agents, usable without any protocol.

#[cfg(feature = "filesystem")]
pub mod filesystem;
pub mod redact;
pub mod workspace;
