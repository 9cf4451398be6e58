//! The inputs of the tools for background commands.

#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use crate::ci::CommandNetwork;
use crate::ci::command_words::CommandText;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A command to start in the background.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StartCommand {
    /// The program and its arguments: an array such as ["npm", "run", "dev"], whose words are taken literally, or one
    /// line, which is split at blanks and quotes. Pipes, `&&`, `>`, `$VAR`, `*` and `cd` need `shell`.
    pub command: CommandText,
    /// Runs `command`, one line of shell, with `bash -c`, or `sh -c` where there is no bash. Default: false.
    pub shell: Option<bool>,
    /// The folder to run in. Default: the first root.
    pub working_directory: Option<String>,
    /// The time in milliseconds after which the program is ended. Default: none.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub timeout_ms: Option<u64>,
    /// Environment variables to add, such as {"PORT": "3000"}.
    pub env: Option<BTreeMap<String, String>>,
    /// `none` starts the program without a network. Default: the network of your role.
    #[schemars(extend("unlisted" = true))]
    pub network: Option<CommandNetwork>,
    /// Answers only when a process listens on this TCP port. A port that is in use already is an error.
    #[schemars(range(min = 1, max = 65_535))]
    pub wait_for_port: Option<u16>,
    /// Answers only when the program has printed this text, such as "Listening on".
    #[schemars(length(min = 1, max = 1_000))]
    pub wait_for_output: Option<String>,
    /// The longest wait in milliseconds. Default: 30000 with `wait_for_port` or `wait_for_output`, otherwise 0; then a wait
    /// ends with the first output.
    #[schemars(range(min = 0, max = 60_000))]
    pub wait_ms: Option<u64>,
    /// Gives the program a terminal, which REPLs and menus need. Default: false.
    pub pty: Option<bool>,
    /// The columns of the terminal. Default: 80.
    #[schemars(range(min = 20, max = 500), extend("unlisted" = true))]
    pub columns: Option<u16>,
    /// The rows of the terminal. Default: 24.
    #[schemars(range(min = 5, max = 200), extend("unlisted" = true))]
    pub rows: Option<u16>,
}

impl StartCommand {
    /// Creates a request to start `line` in the first root, which answers as soon as it runs.
    pub fn new(line: impl Into<String>) -> Self {
        Self {
            command: CommandText::Line(line.into()),
            shell: None,
            working_directory: None,
            timeout_ms: None,
            env: None,
            network: None,
            wait_for_port: None,
            wait_for_output: None,
            wait_ms: None,
            pty: None,
            columns: None,
            rows: None,
        }
    }
}

/// Output to read from a background command.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ReadCommandOutput {
    /// The `id` of the background command.
    pub id: u32,
    /// Reads from this position on, in place of what is new: a `next_cursor` of an answer, or 0 for the beginning.
    pub cursor: Option<u64>,
    /// The longest wait in milliseconds for something new. Default: 1000.
    #[schemars(range(min = 0, max = 60_000))]
    pub wait_ms: Option<u64>,
    /// Waits until the command has ended, and not only until it prints. Default: false.
    pub wait_for_exit: Option<bool>,
    /// The most output to return, in bytes. Default: 20000.
    #[schemars(range(min = 1_000, max = 1_000_000), extend("unlisted" = true))]
    pub max_bytes: Option<usize>,
}

/// Text for the standard input of a background command.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct WriteCommandInput {
    /// The `id` of the background command.
    pub id: u32,
    /// The text to write, such as "print(1)\n". In a terminal "\n" is the Enter key, "\u0003" Ctrl-C and "\u001b[A" the up key.
    pub text: Option<String>,
    /// Ends the input after the text; in a terminal this types Ctrl-D. Default: false.
    pub close: Option<bool>,
    /// Waits so many milliseconds for what the program prints in reply, and returns it. Default: 0.
    #[schemars(range(min = 0, max = 60_000))]
    pub wait_ms: Option<u64>,
}

/// A request to end a background command.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StopCommand {
    /// The `id` of the background command.
    pub id: u32,
    /// The time in milliseconds from the request to end to the kill. Default: 2000.
    #[schemars(range(min = 0, max = 30_000))]
    pub grace_ms: Option<u64>,
}

/// The empty input of `list_commands`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListCommands {}
