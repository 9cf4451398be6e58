//! One command, run to its end.

#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::command::{CommandNetwork, CommandRequest, Commands, PreparedCommand};
use super::command_words::CommandText;
use super::error::CommandError;
use super::report::{CommandReport, capture_bytes};
use super::terminal::terminal_size;
use super::timeout::effective_timeout;
use process_runner::{Limits, Stdin};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A command to run to its end.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RunCommand {
    /// The program and its arguments: an array such as ["git", "log", "-n", "3"], whose words are taken literally, or one
    /// line, which is split at blanks and quotes. Pipes, `&&`, `>`, `$VAR`, `*` and `cd` need `shell`.
    pub command: CommandText,
    /// Runs `command`, one line of shell, with `bash -c`, or `sh -c` where there is no bash. Default: false.
    pub shell: Option<bool>,
    /// The folder to run in. Default: the first root.
    pub working_directory: Option<String>,
    /// The time limit in milliseconds. Default: 120000.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub timeout_ms: Option<u64>,
    /// Text for standard input. Default: empty.
    pub stdin: Option<String>,
    /// Environment variables to add, such as {"RUST_LOG": "debug"}.
    pub env: Option<BTreeMap<String, String>>,
    /// `none` starts the program without a network. Default: the network of your role.
    #[schemars(extend("unlisted" = true))]
    pub network: Option<CommandNetwork>,
    /// The most bytes of each stream in the answer. Default: 20000.
    #[schemars(range(min = 1_000, max = 1_000_000))]
    pub max_output_bytes: Option<usize>,
    /// Gives the program a terminal, for one that needs it: `stdin` is typed, and the answer is what it drew, as text.
    /// Default: false.
    #[schemars(extend("unlisted" = true))]
    pub pty: Option<bool>,
    /// The columns of the terminal. Default: 80.
    #[schemars(range(min = 20, max = 500), extend("unlisted" = true))]
    pub columns: Option<u16>,
    /// The rows of the terminal. Default: 24.
    #[schemars(range(min = 5, max = 200), extend("unlisted" = true))]
    pub rows: Option<u16>,
}

impl RunCommand {
    /// Creates a request to run `line` in the first root, with the default limits.
    pub fn new(line: impl Into<String>) -> Self {
        Self {
            command: CommandText::Line(line.into()),
            shell: None,
            working_directory: None,
            timeout_ms: None,
            stdin: None,
            env: None,
            network: None,
            max_output_bytes: None,
            pty: None,
            columns: None,
            rows: None,
        }
    }
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
const DEFAULT_OUTPUT_BYTES: usize = 20_000;
/// The bytes of each stream that are kept beyond what is shown, for a caller that wants to see the rest.
const KEPT_OUTPUT_BYTES: usize = 1 << 20;

impl Commands {
    /// Runs a command to its end, and everything it starts with it. `max_timeout` is the longest time limit the
    /// caller may request. `on_progress` gets the latest line from time to time, masked.
    ///
    /// A command that ran is a report, however it ended: see [`CommandReport::is_success`].
    ///
    /// # Errors
    ///
    /// The command was refused, did not start, or its run was lost.
    pub async fn run(
        &self,
        input: &RunCommand,
        max_timeout: Duration,
        cancel: &CancellationToken,
        on_progress: impl Fn(&str),
    ) -> Result<CommandReport, CommandError> {
        let terminal = terminal_size(input.pty, input.columns, input.rows)?;
        let PreparedCommand { command, shell, literal_glob } = self.prepare(CommandRequest {
            text: &input.command,
            shell: input.shell == Some(true),
            working_directory: input.working_directory.as_deref(),
            env: input.env.as_ref(),
            network: input.network,
            terminal,
        })?;
        let timeout = effective_timeout(input.timeout_ms, DEFAULT_TIMEOUT, max_timeout)?;
        let max_bytes = input.max_output_bytes.unwrap_or(DEFAULT_OUTPUT_BYTES);
        // More is captured than is shown, so that the caller can read the rest later.
        let captured = capture_bytes(max_bytes).max(KEPT_OUTPUT_BYTES);
        let limits = Limits::default().timeout(timeout).capture(captured);
        let command = command.limits(limits).cancel(cancel.clone());
        let report = if let Some(size) = terminal {
            let (output, text) =
                self.run_in_terminal(command, size, input.stdin.as_deref(), on_progress).await?;
            CommandReport::of_terminal(&output, &self.redactor, text, max_bytes)
        } else {
            let command = match &input.stdin {
                Some(text) => command.stdin(Stdin::bytes(text.as_bytes())),
                None => command,
            };
            let running = self.runner.start(command).await?;
            let output = self.wait_with_progress(running, on_progress).await?;
            CommandReport::new(&output, &self.redactor, max_bytes)
        };
        Ok(report.with_words(shell, literal_glob.as_ref()))
    }
}
