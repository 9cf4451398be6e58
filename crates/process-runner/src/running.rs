//! The handle of a run.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::task::AbortHandle;

use crate::capture::OutputSnapshot;
use crate::driver::{DriverResult, RunState, StopRequest};
use crate::error::Error;
use crate::events::EventReceiver;
use crate::outcome::{Output, Stream};
use crate::reaper;

/// The handle of a run.
///
/// Dropping it ends the program and all it started. The drop does not wait: a background thread kills and reaps them.
/// The handle keeps its [`Runner`](crate::Runner) alive.
#[derive(Debug)]
#[must_use = "the program ends when this is dropped"]
pub struct Running {
    run: RunHandle,
    events: Option<EventReceiver>,
}

/// The run behind a handle.
#[derive(Debug)]
enum RunHandle {
    Started {
        shared: Arc<RunState>,
        task: AbortHandle,
    },
    /// The run was over before the program could start.
    NeverStarted(Arc<Output>),
}

impl Running {
    pub(crate) fn started(shared: Arc<RunState>, task: AbortHandle, events: Option<EventReceiver>) -> Self {
        Self { run: RunHandle::Started { shared, task }, events }
    }

    pub(crate) fn never_started(output: Output, events: Option<EventReceiver>) -> Self {
        Self { run: RunHandle::NeverStarted(Arc::new(output)), events }
    }

    /// Returns the program's process id, if it was started. No other process gets that id until the run is over.
    pub fn pid(&self) -> Option<u32> {
        match &self.run {
            RunHandle::Started { shared, .. } => Some(shared.leader.pid_number()),
            RunHandle::NeverStarted(_) => None,
        }
    }

    /// Returns the time since the program's start, from which its time limit counts. The time goes on after the end of
    /// the program, and is zero if the program never started.
    pub fn elapsed(&self) -> Duration {
        match &self.run {
            RunHandle::Started { shared, .. } => shared.started.elapsed(),
            RunHandle::NeverStarted(_) => Duration::ZERO,
        }
    }

    /// Returns true once the run is over.
    pub fn is_finished(&self) -> bool {
        match &self.run {
            RunHandle::Started { shared, .. } => shared.is_finished(),
            RunHandle::NeverStarted(_) => true,
        }
    }

    /// Takes the receiver of the events that [`Command::events`](crate::Command::events) asked for. Returns `None` if
    /// the command did not ask, or if the receiver was taken before.
    pub fn events(&mut self) -> Option<EventReceiver> {
        self.events.take()
    }

    /// Returns what one stream has printed from position `cursor` on, at most `max_bytes`. Begin with 0 and continue
    /// with the snapshot's `next_cursor`. The method also works after the end, so that no output of a short run is
    /// missed.
    pub fn snapshot(&self, stream: Stream, cursor: u64, max_bytes: usize) -> OutputSnapshot {
        match &self.run {
            RunHandle::Started { shared, .. } => shared.snapshot(stream, cursor, max_bytes),
            RunHandle::NeverStarted(_) => OutputSnapshot::default(),
        }
    }

    /// Writes to the standard input of a command with [`Stdin::Piped`](crate::Stdin::Piped), and waits while its pipe
    /// is full. If the future is dropped, part of `bytes` may have been written.
    ///
    /// # Errors
    /// `BrokenPipe` if the program has ended or closed its end, or if this end was closed before.
    pub async fn write_stdin(&self, bytes: &[u8]) -> io::Result<()> {
        let RunHandle::Started { shared, .. } = &self.run else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let write = async {
            let mut stdin = shared.stdin.lock().await;
            let pipe = stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            let mut rest = bytes;
            while !rest.is_empty() {
                // Counted after each write, so that the report is right if this future is dropped in between.
                let written = pipe.write(rest).await?;
                shared.stdin_written.fetch_add(written as u64, Ordering::Relaxed);
                rest = &rest[written..];
            }
            Ok(())
        };
        // The write first: if both are ready the bytes have gone into the pipe.
        tokio::select! {
            biased;
            written = write => written,
            // A leftover process may hold the other end, so that the pipe itself never breaks.
            () = shared.finished() => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Closes the standard input of a command with [`Stdin::Piped`](crate::Stdin::Piped), after a write in progress.
    /// Does nothing if the input is closed already.
    pub async fn close_stdin(&self) {
        if let RunHandle::Started { shared, .. } = &self.run {
            shared.stdin.lock().await.take();
        }
    }

    /// Sends a signal, such as `2` for `SIGINT`, to the program's process group.
    ///
    /// # Errors
    /// `InvalidInput` for a number that has no name on this system; `Unsupported` on Windows.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        match &self.run {
            RunHandle::Started { shared, .. } => shared.leader.signal(signal),
            RunHandle::NeverStarted(_) => Ok(()),
        }
    }

    /// Ends the run by `SIGTERM`, and by `SIGKILL` after the grace time of its limits. The run ends as `Cancelled`. The
    /// method does nothing if the run is already ending.
    pub fn terminate(&self) {
        self.request_stop(StopRequest::Terminate { grace: None });
    }

    /// Ends the run as [`terminate`](Self::terminate) does, with this grace time.
    pub fn terminate_within(&self, grace: Duration) {
        self.request_stop(StopRequest::Terminate { grace: Some(grace) });
    }

    /// Ends the run by `SIGKILL`, also during a grace time.
    pub fn kill(&self) {
        self.request_stop(StopRequest::Kill);
    }

    fn request_stop(&self, request: StopRequest) {
        if let RunHandle::Started { shared, .. } = &self.run {
            shared.request_stop(request);
        }
    }

    /// Returns the output if the run is over, without a copy and without waiting.
    pub fn output(&self) -> Option<Arc<Output>> {
        match &self.run {
            RunHandle::Started { shared, .. } => shared.result().map(|result| result.output),
            RunHandle::NeverStarted(output) => Some(Arc::clone(output)),
        }
    }

    /// Waits until the run is over, and leaves an open standard input open.
    pub async fn finished(&self) {
        if let RunHandle::Started { shared, .. } = &self.run {
            shared.finished().await;
        }
    }

    /// Waits for the end and returns a copy of the output. The future may be dropped and the method called again, also
    /// after the end. [`wait_with_output`](Self::wait_with_output) saves the copy.
    ///
    /// The method closes an open standard input first, because the program may be waiting for the end of its input.
    ///
    /// # Errors
    /// [`Error::Io`] if following the run failed.
    ///
    /// # Panics
    /// If a line callback panicked, with its panic; only once.
    pub async fn wait(&mut self) -> Result<Output, Error> {
        self.finish().await;
        match &self.run {
            RunHandle::NeverStarted(output) => Ok((**output).clone()),
            RunHandle::Started { shared, .. } => to_outcome(shared, shared.result()),
        }
    }

    /// Waits for the end and takes the output out of the handle, without a copy unless a value that
    /// [`output`](Self::output) returned is still held. Dropping the future ends the run.
    ///
    /// The method closes an open standard input first, because the program may be waiting for the end of its input.
    ///
    /// # Errors
    /// [`Error::Io`] if following the run failed.
    ///
    /// # Panics
    /// If a line callback panicked, with its panic.
    pub async fn wait_with_output(self) -> Result<Output, Error> {
        self.finish().await;
        match &self.run {
            // It holds no bytes, so the copy costs nothing.
            RunHandle::NeverStarted(output) => Ok((**output).clone()),
            RunHandle::Started { shared, .. } => to_outcome(shared, shared.take_result()),
        }
    }

    async fn finish(&self) {
        self.close_stdin().await;
        self.finished().await;
    }
}

/// Turns what the driver left into the answer of a wait, and resumes the panic of a line callback.
fn to_outcome(shared: &RunState, result: Option<DriverResult>) -> Result<Output, Error> {
    if let Some(panic) = shared.take_panic() {
        std::panic::resume_unwind(panic);
    }
    let Some(DriverResult { output, failure }) = result else {
        return Err(Error::ShutDown); // does not occur: the driver always leaves a result
    };
    let output = Arc::unwrap_or_clone(output);
    match failure {
        None => Ok(output),
        Some(failure) => Err(Error::Io {
            stage: failure.stage,
            partial: Box::new(output),
            // `io::Error` cannot be cloned, and a second wait needs it again: the shared one becomes the source.
            source: io::Error::new(failure.source.kind(), failure.source),
        }),
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let RunHandle::Started { shared, task } = &self.run
            && !shared.is_finished()
        {
            // The reaper ends the run here and now. The task could only do it when its runtime polls it again, which
            // may never happen.
            shared.abandoned.store(true, Ordering::Release);
            reaper::abandon(Arc::clone(&shared.leader));
            task.abort();
        }
    }
}
