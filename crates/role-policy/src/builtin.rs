//! The roles that are there without a file.

/// The built-in policy, as the text of a policy file: to load, and to start one's own from.
pub const BUILTIN: &str = include_str!("builtin.toml");
