//! The start of a background command, and the wait until it is ready.

use super::port;
use super::process::{BackgroundCommand, CommandReadStart, record};
use super::registry::{BackgroundCommands, DEFAULT_GRACE};
use super::report::StartedCommand;
use super::request::StartCommand;
use super::wait::ReadinessWaitLimit;
use crate::ci::command::CommandRequest;
use crate::ci::confinement::CommandScope;
use crate::ci::error::CommandError;
use crate::ci::recorded_output::MaskedCommandOutput;
use crate::ci::terminal::terminal_size;
use process_runner::{EventGranularity, EventOptions, LagPolicy, Limits, Stdin};
use std::any::Any;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The bytes of output that the runner keeps of a command: the transcript keeps it, and the runner need not too.
const CAPTURE_BYTES: usize = 4096;
/// The longest wait for a command to be ready by default.
const DEFAULT_READY_WAIT: Duration = Duration::from_secs(30);
/// The number of bytes of output that the answer has.
const MAX_OUTPUT_BYTES: usize = 8_000;

/// The caller of a start, and what its commands may reach.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct BackgroundStartContext<'a> {
    /// The owner of the command, which alone can reach it.
    pub owner: &'a str,
    /// The part of the workspace that the command may reach.
    pub scope: CommandScope,
    /// A permit that is dropped when the command ends.
    pub permit: Option<Box<dyn Any + Send + Sync>>,
    /// Ends a wait, and with it the command, whose id nobody would know.
    pub cancel: CancellationToken,
}

impl<'a> BackgroundStartContext<'a> {
    /// Creates the context of `owner`, whose commands may reach everything.
    pub fn new(owner: &'a str) -> Self {
        Self { owner, ..Self::default() }
    }
}

impl BackgroundCommands {
    /// Starts a command. The command ends when it is stopped, at its time limit, or with the registry. If the request
    /// says so, waits until the command is ready.
    ///
    /// # Errors
    ///
    /// The command was refused or did not start, 32 commands of the owner are running, the port to wait for is in use
    /// already, or the wait was cancelled.
    pub async fn start(
        &self,
        input: &StartCommand,
        context: BackgroundStartContext<'_>,
    ) -> Result<StartedCommand, CommandError> {
        // Before the start: later nobody could tell the port of another program from that of this one.
        if let Some(port) = input.wait_for_port
            && port::is_listening(port).await
        {
            return Err(CommandError::PortInUse { port });
        }
        let cancel = context.cancel.clone();
        let process = self.launch(input, context).await?;
        let wait = process.wait_until_ready(input, &cancel).await;
        if cancel.is_cancelled() {
            process.stop(DEFAULT_GRACE).await;
            return Err(CommandError::StartCancelled { id: process.id });
        }
        Ok(process.started(wait))
    }

    async fn launch(
        &self,
        input: &StartCommand,
        context: BackgroundStartContext<'_>,
    ) -> Result<Arc<BackgroundCommand>, CommandError> {
        let BackgroundStartContext { owner, scope, permit, cancel: _ } = context;
        let log = scope.egress_log.clone();
        // Before the start, so that a command over the limit never runs.
        let quota_permit = self.quota.try_acquire(owner)?;
        let terminal = terminal_size(input.pty, input.columns, input.rows)?;
        let prepared = self.commands.narrowed(&scope).prepare(CommandRequest {
            text: &input.command,
            shell: input.shell == Some(true),
            working_directory: input.working_directory.as_deref(),
            env: input.env.as_ref(),
            network: input.network,
            terminal,
        })?;
        let mut limits = Limits::default().capture(CAPTURE_BYTES);
        limits.timeout = input.timeout_ms.map(Duration::from_millis);
        // `Block`: if the transcript falls behind, the program waits. A dropped chunk would be a hole in its lines.
        let options = EventOptions::default().granularity(EventGranularity::Chunk).lag(LagPolicy::Block);
        // One pipe for both streams keeps the order in which they were written.
        let command = prepared.command.limits(limits).merge_stderr().stdin(Stdin::Piped).events(options);
        let mut running = self.commands.runner.start(command).await?;
        let events = running.events();
        let running = Arc::new(running);
        let line = self.commands.display_line(&input.command);
        let output = MaskedCommandOutput::new(&self.commands.redactor, terminal);
        let process =
            self.add(|id| BackgroundCommand::new(id, owner, line, Arc::clone(&running), output, log));
        self.observer.changed(&process);
        let (permits, observer) = ((quota_permit, permit), self.observer.clone());
        let (weak, running) = (Arc::downgrade(&process), Arc::downgrade(&running));
        let on_end = move |process: &BackgroundCommand| observer.changed(process);
        tokio::spawn(record(weak, running, events, permits, terminal, on_end));
        Ok(process)
    }
}

/// The end of a wait for a command to be ready.
struct ReadinessWait {
    /// `None` if nothing but output was waited for.
    ready: Option<bool>,
    /// The findings, in words.
    finding: String,
}

impl BackgroundCommand {
    /// Waits as the request says. `None` if it does not ask for a wait.
    async fn wait_until_ready(
        &self,
        input: &StartCommand,
        cancel: &CancellationToken,
    ) -> Option<ReadinessWait> {
        let waits_for_nothing = input.wait_for_port.is_none() && input.wait_for_output.is_none();
        let wait = match input.wait_ms.map(Duration::from_millis) {
            None if waits_for_nothing => return None,
            Some(wait) if waits_for_nothing && wait.is_zero() => return None,
            wait => wait.unwrap_or(DEFAULT_READY_WAIT),
        };
        let limit = ReadinessWaitLimit::new(wait, cancel);
        if waits_for_nothing {
            self.wait_for_output(CommandReadStart::LastRead, limit).await;
            return Some(ReadinessWait { ready: None, finding: String::new() });
        }
        let mut finding = String::new();
        let mut ready = true;
        if let Some(port) = input.wait_for_port {
            ready = self.wait_for_port(port, limit).await;
            let found = if ready { "is listened on" } else { "is not listened on" };
            let _ = write!(finding, "; port {port} {found}");
        }
        if let Some(text) = input.wait_for_output.as_deref().filter(|_| ready) {
            ready = self.wait_for_text(text, limit).await;
            let found = if ready { "was printed" } else { "was not printed" };
            let _ = write!(finding, "; `{text}` {found}");
        }
        if !ready && !self.has_ended() {
            let _ = write!(finding, " within {} ms, and the command goes on", wait.as_millis());
        }
        // What a program prints as it becomes ready, or why it ended, may follow at once.
        self.settle(limit.or_at_least_a_moment()).await;
        Some(ReadinessWait { ready: Some(ready), finding })
    }

    /// Returns the answer of a start.
    fn started(&self, wait: Option<ReadinessWait>) -> StartedCommand {
        let read = wait.as_ref().map(|_| self.read(CommandReadStart::LastRead, MAX_OUTPUT_BYTES));
        let state = read.as_ref().map_or_else(|| self.state(), |read| read.state.clone());
        let mut text = format!("{}; pid {}", state.summary(), self.pid);
        if let Some(wait) = &wait {
            text.push_str(&wait.finding);
        }
        if let Some(read) = &read {
            read.write_output(&mut text);
        }
        StartedCommand {
            id: self.id,
            pid: self.pid,
            state: state.state,
            exit_code: state.exit_code,
            ready: wait.and_then(|wait| wait.ready),
            output: read.map(|read| match read.screen {
                Some(screen) => format!("{}{}", read.output, screen.text),
                None => read.output,
            }),
            text,
        }
    }
}
