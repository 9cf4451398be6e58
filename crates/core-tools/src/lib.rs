//! Tools for coding agents, usable without any protocol.

pub mod redact;
