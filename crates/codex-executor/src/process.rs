//! [`ExecutorProcess`]: one process of Codex, its output and its end.

use crate::masking::OutputMask;
use crate::protocol::{ExecOutputStream, OutputChunk, WriteStatus, method};
use crate::rpc_error::RpcError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use process_runner::{EventReceiver, RunEvent, Running, Stream, Termination};
use redaction::Redactor;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// The bytes of output that are kept of a process for `process/read`.
const MAX_KEPT_BYTES: usize = 1 << 20;
/// The time without output after which the beginning of a line is passed on.
const QUIET: Duration = Duration::from_millis(100);
/// The exit code of a process that its time limit has ended, as of timeout(1).
const TIMED_OUT: i32 = 124;
/// The exit code of a process that a signal ended is this and the number of the signal, as in shells.
const SIGNALED: i32 = 128;

/// One process.
#[derive(Debug)]
pub(crate) struct ExecutorProcess {
    id: String,
    running: Arc<Running>,
    has_terminal: bool,
    /// The queue of input, if the process has an open input.
    input: Option<mpsc::Sender<Vec<u8>>>,
    state: Mutex<ProcessState>,
    /// Changes with each event.
    last_seq: watch::Sender<u64>,
}

/// The output that is kept of a process, and its end.
#[derive(Debug, Default)]
struct ProcessState {
    seq: u64,
    chunks: VecDeque<(OutputChunk, usize)>,
    kept_bytes: usize,
    exit_code: Option<i32>,
    closed: bool,
}

impl ExecutorProcess {
    /// Creates the process of a run that has started. `input` is the queue that [`write_input`] reads.
    pub(crate) fn new(
        id: String,
        running: Running,
        has_terminal: bool,
        input: Option<mpsc::Sender<Vec<u8>>>,
    ) -> Self {
        let (last_seq, _) = watch::channel(0);
        let running = Arc::new(running);
        Self { id, running, has_terminal, input, state: Mutex::default(), last_seq }
    }

    fn state(&self) -> MutexGuard<'_, ProcessState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn running(&self) -> &Running {
        &self.running
    }

    /// Returns true if nothing more will come from it.
    pub(crate) fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Queues bytes for its input.
    pub(crate) fn write(&self, bytes: Vec<u8>) -> Result<WriteStatus, RpcError> {
        let Some(input) = self.input.as_ref().filter(|_| !self.running.is_finished()) else {
            return Ok(WriteStatus::StdinClosed);
        };
        match input.try_send(bytes) {
            Ok(()) => Ok(WriteStatus::Accepted),
            Err(mpsc::error::TrySendError::Closed(_)) => Ok(WriteStatus::StdinClosed),
            Err(mpsc::error::TrySendError::Full(_)) => {
                Err(RpcError::failed("the process does not read its input; wait until it does, or end it"))
            }
        }
    }

    /// Returns the answer to `process/read`: the output after `after`, up to `max_bytes`.
    pub(crate) fn read(&self, after: Option<u64>, max_bytes: Option<usize>) -> Value {
        let state = self.state();
        let after = after.unwrap_or(0);
        let budget = max_bytes.unwrap_or(usize::MAX);
        let mut bytes = 0;
        let mut chunks = Vec::new();
        let mut next_seq = state.seq + 1;
        for (chunk, size) in state.chunks.iter().filter(|(chunk, _)| chunk.seq > after) {
            // At least one, or a reader with a small budget would never get on.
            if bytes + size > budget && !chunks.is_empty() {
                next_seq = chunk.seq;
                break;
            }
            bytes += size;
            chunks.push(chunk.clone());
        }
        json!({
            "chunks": chunks,
            "nextSeq": next_seq,
            "exited": state.exit_code.is_some(),
            "exitCode": state.exit_code,
            "closed": state.closed,
            "failure": null,
            "sandboxDenied": false,
        })
    }

    /// Waits until there is an event after `after`, or there will be none.
    pub(crate) async fn wait_for_event(&self, after: u64) {
        let mut last = self.last_seq.subscribe();
        if !self.is_closed() {
            let _ = last.wait_for(|seq| *seq > after).await;
        }
    }

    /// Counts an event and passes its notification on.
    async fn notify(
        &self,
        sender: &mpsc::Sender<Value>,
        method: &str,
        change: impl FnOnce(&mut ProcessState, u64) -> Value,
    ) {
        let notification = {
            let mut state = self.state();
            state.seq += 1;
            let seq = state.seq;
            let mut params = change(&mut state, seq);
            params["processId"] = json!(self.id);
            params["seq"] = json!(seq);
            json!({"method": method, "params": params})
        };
        let seq = notification["params"]["seq"].as_u64().unwrap_or_default();
        self.last_seq.send_replace(seq);
        // A client that is gone reads nothing.
        let _ = sender.send(notification).await;
    }

    async fn notify_output(&self, sender: &mpsc::Sender<Value>, stream: Stream, bytes: Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let stream = match (self.has_terminal, stream) {
            (true, _) => ExecOutputStream::Pty,
            (false, Stream::Stdout) => ExecOutputStream::Stdout,
            (false, Stream::Stderr) => ExecOutputStream::Stderr,
        };
        self.notify(sender, method::OUTPUT, |state, seq| {
            let chunk = OutputChunk { seq, stream, chunk: STANDARD.encode(&bytes) };
            let params = json!({"stream": chunk.stream, "chunk": chunk.chunk});
            state.kept_bytes += bytes.len();
            state.chunks.push_back((chunk, bytes.len()));
            while state.kept_bytes > MAX_KEPT_BYTES
                && let Some((_, size)) = state.chunks.pop_front()
            {
                state.kept_bytes -= size;
            }
            params
        })
        .await;
    }

    /// Passes the events of the process on until its end. `on_end` is told if it succeeded, and returns what the agent
    /// should know.
    pub(crate) async fn follow<F>(
        self: Arc<Self>,
        mut events: EventReceiver,
        sender: mpsc::Sender<Value>,
        redactor: Redactor,
        on_end: impl FnOnce(bool) -> F,
    ) where
        F: Future<Output = Vec<String>>,
    {
        let mut masks = [OutputMask::new(&redactor), OutputMask::new(&redactor)];
        const STREAMS: [Stream; 2] = [Stream::Stdout, Stream::Stderr];
        loop {
            let waits = masks.iter().any(OutputMask::has_partial);
            let event = tokio::select! {
                event = events.recv() => event,
                () = tokio::time::sleep(QUIET), if waits => {
                    for (mask, stream) in masks.iter_mut().zip(STREAMS) {
                        self.notify_output(&sender, stream, mask.flush()).await;
                    }
                    continue;
                }
            };
            match event {
                Some(RunEvent::Chunk { stream, bytes, .. }) => {
                    let mask = &mut masks[usize::from(stream == Stream::Stderr)];
                    self.notify_output(&sender, stream, mask.push(&bytes)).await;
                }
                Some(RunEvent::Lagged { stream, bytes }) => {
                    let notice = format!("[{bytes} bytes of output are left out]\n");
                    self.notify_output(&sender, stream, notice.into_bytes()).await;
                }
                Some(_) => {}
                None => break,
            }
        }
        for (mask, stream) in masks.iter_mut().zip(STREAMS) {
            self.notify_output(&sender, stream, mask.flush()).await;
        }
        self.running.finished().await;
        let termination = self.running.output().map(|output| output.termination.clone());
        let (code, reason) = exit_of(termination.as_ref());
        let mut notices: Vec<String> = reason.into_iter().collect();
        notices.extend(on_end(code == 0).await);
        for notice in notices {
            self.notify_output(&sender, Stream::Stderr, format!("{notice}\n").into_bytes()).await;
        }
        self.notify(&sender, method::EXITED, |state, _| {
            state.exit_code = Some(code);
            json!({"exitCode": code, "sandboxDenied": false})
        })
        .await;
        self.notify(&sender, method::CLOSED, |state, _| {
            state.closed = true;
            json!({})
        })
        .await;
    }
}

/// Writes what is queued for a process to its input, until the process has ended or closed it.
pub(crate) async fn write_input(process: Arc<ExecutorProcess>, mut queue: mpsc::Receiver<Vec<u8>>) {
    while let Some(bytes) = queue.recv().await {
        if process.running.write_stdin(&bytes).await.is_err() {
            break;
        }
    }
}

/// Returns the exit code of a run, and what the agent should know of its end.
fn exit_of(termination: Option<&Termination>) -> (i32, Option<String>) {
    let ended = |why: String| Some(format!("[{why}, with everything that it had started]"));
    match termination {
        Some(Termination::Exited { code }) => (i32::try_from(*code).unwrap_or(i32::MAX), None),
        Some(Termination::Signaled { signal, .. }) => (SIGNALED + signal, None),
        Some(Termination::TimedOut { after, .. }) => {
            (TIMED_OUT, ended(format!("ended after {after:?}, its time limit")))
        }
        Some(Termination::IdleTimedOut { after, .. }) => {
            (TIMED_OUT, ended(format!("ended, because nothing happened for {after:?}")))
        }
        // SIGTERM, or SIGKILL after it.
        Some(Termination::Cancelled { escalated }) => (SIGNALED + if *escalated { 9 } else { 15 }, None),
        Some(Termination::Unkillable { pids }) => {
            (1, Some(format!("[these processes could not be ended: {pids:?}]")))
        }
        _ => (1, Some("[the end of the process is not known]".to_owned())),
    }
}
