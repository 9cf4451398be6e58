//! The inputs of the tools for background commands.

#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use crate::ci::command::CommandText;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A command to start in the background.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StartCommand {
    /// Program and arguments, or one line (no shell)
    pub command: CommandText,
    /// Default: the first root
    pub working_directory: Option<String>,
    /// Time limit; default: none
    #[schemars(range(min = 1, max = 86_400_000))]
    pub timeout_ms: Option<u64>,
    /// Variables to set
    pub env: Option<BTreeMap<String, String>>,
}

/// Output to read from a background command.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ReadCommandOutput {
    /// Background command
    pub id: u32,
    /// next_cursor of the last read; default 0
    pub cursor: Option<u64>,
    /// Wait for more; default 0
    #[schemars(range(min = 0, max = 30_000))]
    pub wait_ms: Option<u64>,
    /// Default 20000
    #[schemars(range(min = 1_000, max = 1_000_000))]
    pub max_bytes: Option<usize>,
}

/// Text for the standard input of a background command.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct WriteCommandInput {
    /// Background command
    pub id: u32,
    /// Text to write
    pub text: Option<String>,
    /// Close it afterwards
    pub close: Option<bool>,
}

/// A request to end a background command.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StopCommand {
    /// Background command
    pub id: u32,
    /// Before it is killed; default 2000
    #[schemars(range(min = 0, max = 30_000))]
    pub grace_ms: Option<u64>,
}

/// The empty input of `list_commands`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListCommands {}
