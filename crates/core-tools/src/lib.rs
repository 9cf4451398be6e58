//! Tools for coding agents, usable without any protocol.

#[cfg(feature = "ci")]
pub mod ci;
pub mod config;
#[cfg(feature = "filesystem")]
pub mod filesystem;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod nearest;
pub mod redact;
pub mod workspace;
