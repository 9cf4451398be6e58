//! One command, run to its end.

use super::command::{CommandText, Commands, PreparedCommand};
use super::error::CommandError;
use super::report::{CommandReport, capture_bytes};
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
    /// Program and arguments, or one line (no shell)
    pub command: CommandText,
    /// Default: the first root
    pub working_directory: Option<String>,
    /// Time limit; default 120000
    #[schemars(range(min = 1, max = 86_400_000))]
    pub timeout_ms: Option<u64>,
    /// Standard input
    pub stdin: Option<String>,
    /// Variables to set
    pub env: Option<BTreeMap<String, String>>,
    /// Kept of each stream; default 20000
    #[schemars(range(min = 1_000, max = 1_000_000))]
    pub max_output_bytes: Option<usize>,
}

impl RunCommand {
    /// Creates a request to run `line` in the first root, with the default limits.
    pub fn new(line: impl Into<String>) -> Self {
        Self {
            command: CommandText::Line(line.into()),
            working_directory: None,
            timeout_ms: None,
            stdin: None,
            env: None,
            max_output_bytes: None,
        }
    }
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
const DEFAULT_OUTPUT_BYTES: usize = 20_000;

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
        let PreparedCommand { command, literal_syntax } =
            self.prepare(&input.command, input.working_directory.as_deref(), input.env.as_ref())?;
        let timeout = effective_timeout(input.timeout_ms, DEFAULT_TIMEOUT, max_timeout)?;
        let max_bytes = input.max_output_bytes.unwrap_or(DEFAULT_OUTPUT_BYTES);
        let limits = Limits::default().timeout(timeout).capture(capture_bytes(max_bytes));
        let mut command = command.limits(limits).cancel(cancel.clone());
        if let Some(text) = &input.stdin {
            command = command.stdin(Stdin::bytes(text.as_bytes()));
        }
        let running = self.runner.start(command).await?;
        let output = self.wait_with_progress(running, on_progress).await?;
        Ok(CommandReport::new(&output, literal_syntax.as_ref(), &self.redactor, max_bytes))
    }
}
