//! A server that is started as a child process, started again when it ends, and ended with the client.

use super::backoff::{Backoff, pause, until};
use super::line_reader::BoundedLineReader;
use super::output_queue::{MAX_QUEUE_BYTES, OutputQueue};
use super::reader_thread::ReaderThread;
use super::session::ProxySession;
use process_runner::{
    CancellationToken, Command, Error, LeftoverPolicy, Limits, Output, ResourceLimits, Runner, Running,
    Stdin, Termination,
};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time the server gets to exit after its input has ended. With [`TERM_GRACE`] it is less than the second within
/// which the proxy promises to end.
const EXIT_GRACE: Duration = Duration::from_millis(150);
/// The time it gets after `SIGTERM`, before `SIGKILL`.
const TERM_GRACE: Duration = Duration::from_millis(200);
/// The time after `SIGTERM` for a server that has closed its output and goes on running.
const CLOSED_OUTPUT_GRACE: Duration = Duration::from_secs(1);

/// A server that is started as a child process and speaks MCP on its standard input and output.
///
/// ```
/// let child = mcp_proxy::UpstreamCommand::new("npx").args(["-y", "some-mcp-server"]).env_remove("API_TOKEN");
/// # let _ = child;
/// ```
#[derive(Debug)]
pub struct UpstreamCommand {
    program: OsString,
    arguments: Vec<OsString>,
    current_dir: PathBuf,
    removed_variables: Vec<OsString>,
    stderr: Option<OwnedFd>,
    resource_limits: ResourceLimits,
}

impl UpstreamCommand {
    /// Names the program: a name on `PATH`, or a path.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            current_dir: PathBuf::from("."),
            removed_variables: Vec::new(),
            stderr: None,
            resource_limits: ResourceLimits::default(),
        }
    }

    /// Adds arguments. Each reaches the program as it stands: there is no shell.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets the folder that the server runs in. By default, the folder of this process.
    #[must_use]
    pub fn current_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.current_dir = folder.into();
        self
    }

    /// Removes a variable from the environment of the server. By default it has the environment of this process.
    #[must_use]
    pub fn env_remove(mut self, name: impl Into<OsString>) -> Self {
        self.removed_variables.push(name.into());
        self
    }

    /// Sends the server's standard error to `descriptor`, line by line; lines that are not read in time are dropped.
    /// By default it goes to the standard error of this process.
    #[must_use]
    pub fn stderr(mut self, descriptor: OwnedFd) -> Self {
        self.stderr = Some(descriptor);
        self
    }

    /// Limits what the server and everything that it starts use together. Nothing is limited by default.
    #[must_use]
    pub fn resource_limits(mut self, limits: ResourceLimits) -> Self {
        self.resource_limits = limits;
        self
    }

    fn stderr_queue(&self) -> io::Result<OutputQueue> {
        /// Enough for a burst of messages; a reader that is further behind misses some.
        const MAX_STDERR_BYTES: usize = 1 << 20;
        let descriptor = match &self.stderr {
            Some(descriptor) => descriptor.try_clone()?,
            None => io::stderr().as_fd().try_clone_to_owned()?,
        };
        OutputQueue::new(descriptor, MAX_STDERR_BYTES, "server-stderr")
    }
}

/// Keeps a server running until the client is gone or `end` is cancelled, and ends it.
pub(super) async fn supervise(
    session: &ProxySession,
    reader_thread: &ReaderThread,
    child: &UpstreamCommand,
    runner: &Runner,
    end: &CancellationToken,
) {
    let stderr = match child.stderr_queue() {
        Ok(stderr) => stderr,
        Err(error) => return tracing::error!(%error, "cannot begin"),
    };
    let mut backoff = Backoff::new();
    loop {
        let started_at = Instant::now();
        match start(session, reader_thread, child, runner, &stderr).await {
            Ok((mut running, generation)) => {
                if watch(session, &mut running, generation, end).await {
                    return shut_down(session, running, generation, runner).await;
                }
                let reason = match running.wait().await {
                    Ok(output) => describe(&output),
                    Err(error) => error.to_string(),
                };
                tracing::warn!("the server is gone: {reason}");
                session.server_is_gone(generation, &reason);
            }
            Err(error) => {
                tracing::error!("the server cannot be started: {error}");
                // Requests that wait for the server are answered with this reason when their time is over.
                session.server_cannot_start(&error.to_string());
            }
        }
        if pause(session, backoff.next_delay(started_at), end).await {
            return runner.shutdown(TERM_GRACE).await;
        }
    }
}

/// The reason why the server could not be started, or cannot be talked to.
#[derive(Debug, thiserror::Error)]
enum UpstreamStartError {
    #[error(transparent)]
    Runner(#[from] Error),
    /// There is no pipe or thread to be had for its input and output.
    #[error(transparent)]
    Channel(#[from] io::Error),
}

/// Starts the server on pipes of our own, which the reader thread reads.
async fn start(
    session: &ProxySession,
    reader_thread: &ReaderThread,
    child: &UpstreamCommand,
    runner: &Runner,
    stderr: &OutputQueue,
) -> Result<(Running, u64), UpstreamStartError> {
    let pipes = || -> io::Result<_> { Ok((io::pipe()?, io::pipe()?)) };
    let ((child_stdin, to_child), (from_child, child_stdout)) = pipes()?;
    for pipe in [to_child.as_fd(), from_child.as_fd()] {
        enlarge_pipe(pipe);
    }
    let file = |end: OwnedFd| File::from(end);
    let stderr = stderr.clone();
    let mut command = Command::new(&child.program, &child.current_dir)
        .args(child.arguments.iter().cloned())
        .stdin(Stdin::File(Arc::new(file(child_stdin.into()))))
        .stdout(file(child_stdout.into()))
        .resource_limits(child.resource_limits)
        .on_line(move |_, line| {
            let mut text = line.text().as_bytes().to_vec();
            text.push(b'\n');
            // Standard error is for people; what they do not read in time is gone.
            let _ = stderr.push(text);
            stderr.drain();
        })
        // Its output does not pass through the run, and of its errors, which are passed on by line, little need be
        // kept. What it has started must not outlive it.
        .limits(Limits::unlimited().capture(4096).leftovers(LeftoverPolicy::KillAll));
    for name in &child.removed_variables {
        command = command.env_remove(name);
    }
    let running = runner.start(command).await?;
    let queue = OutputQueue::new(to_child.into(), MAX_QUEUE_BYTES, "to-server")?;
    let lines = BoundedLineReader::new(from_child.into(), json_rpc::message::MAX_MESSAGE_BYTES);
    // Before its lines are read: the session drops lines of a generation that it does not know.
    let generation = session.server_is_up(queue);
    reader_thread.attach(generation, lines)?;
    Ok((running, generation))
}

/// Waits for the end of the server or of the client; returns true if it is the client's.
async fn watch(
    session: &ProxySession,
    running: &mut Running,
    generation: u64,
    end: &CancellationToken,
) -> bool {
    loop {
        let supervision = session.tick(Instant::now());
        if supervision.is_over {
            return true;
        }
        if supervision.condemned == Some(generation) {
            // A server that ends closes its output a moment before.
            if tokio::time::timeout(EXIT_GRACE, running.finished()).await.is_err() {
                running.terminate_within(CLOSED_OUTPUT_GRACE);
                running.finished().await;
            }
            return false;
        }
        tokio::select! {
            () = running.finished() => return false,
            () = end.cancelled() => return true,
            () = session.wait() => {}
            () = until(supervision.next_check) => {}
        }
    }
}

/// Ends the server as MCP requires: the end of its input, then `SIGTERM`, then `SIGKILL`.
async fn shut_down(session: &ProxySession, running: Running, generation: u64, runner: &Runner) {
    session.server_is_gone(generation, "the client has ended");
    // Most servers exit when their input ends.
    let _ = tokio::time::timeout(EXIT_GRACE, running.finished()).await;
    runner.shutdown(TERM_GRACE).await;
}

/// Makes the pipe hold a large message at once, if the system allows: each time that a pipe is full costs a context
/// switch of both sides.
fn enlarge_pipe(pipe: BorrowedFd<'_>) {
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, 256 * 1024);
    #[cfg(not(target_os = "linux"))]
    let _ = pipe;
}

fn describe(output: &Output) -> String {
    match &output.termination {
        Termination::Exited { code } => format!("it has ended with exit code {code}"),
        Termination::Cancelled { .. } => "it was ended after its output had".to_owned(),
        other => format!("it has ended: {other:?}"),
    }
}
