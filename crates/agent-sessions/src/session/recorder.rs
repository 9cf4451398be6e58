//! The recorder: a task that reads what a process prints and writes it to the session's log.

use super::output::SessionOutput;
use crate::catalog::AgentDefinition;
use crate::directory::SessionDirectory;
use crate::line_buffer::SessionLineBuffer;
use crate::supervisor_context::{SupervisorComponent, SupervisorContext};
use process_runner::PseudoTerminal;
use redaction::LineRedactor;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The size of one read: that of a Linux pipe.
const READ_BYTES: usize = 64 * 1024;
/// The time for the last output, once everything that could print has been ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// The recording of one process's output. The default records nothing.
#[derive(Debug, Default)]
pub(super) struct SessionOutputRecording {
    task: Option<JoinHandle<()>>,
    /// The agent's own id of the session, once it has been printed.
    agent_session: Option<oneshot::Receiver<String>>,
}

impl SessionOutputRecording {
    /// Starts to record. `agent` is the agent whose own id of the session is not known yet; `credential` is masked.
    pub(super) fn start(
        context: &Arc<SupervisorContext>,
        output: &Arc<SessionOutput>,
        source: SessionOutputSource,
        agent: Option<AgentDefinition>,
        credential: Option<String>,
    ) -> Self {
        let (id_sender, agent_session) = oneshot::channel();
        let recorder = SessionRecordingTask {
            lines: SessionLineBuffer::default(),
            redactor: context.options.redactor.lines(),
            output: Arc::clone(output),
            agent: agent.map(|agent| (agent, id_sender)),
            credential,
        };
        let task = tokio::spawn(recorder.run(Arc::clone(context), source));
        Self { task: Some(task), agent_session: Some(agent_session) }
    }

    /// Waits for the agent's own id of the session. Never returns if it is not printed.
    pub(super) async fn agent_session(&mut self) -> String {
        if let Some(receiver) = &mut self.agent_session {
            let received = receiver.await;
            self.agent_session = None;
            if let Ok(id) = received {
                return id;
            }
        }
        std::future::pending().await
    }

    /// Waits until everything has been recorded. Returns the agent's own id of the session if it is among the last
    /// lines.
    pub(super) async fn finish(self) -> Option<String> {
        if let Some(mut task) = self.task {
            // A process that cannot be ended may hold the pipe for ever.
            if tokio::time::timeout(DRAIN_TIMEOUT, &mut task).await.is_err() {
                task.abort();
            }
        }
        self.agent_session?.try_recv().ok()
    }
}

/// The place from which the output of a process is read.
#[derive(Debug)]
pub(super) enum SessionOutputSource {
    Pipe(pipe::Receiver),
    Terminal(PseudoTerminal),
}

impl SessionOutputSource {
    /// Opens the reading end of a session's output pipe.
    pub(super) fn open_pipe(folder: &SessionDirectory) -> io::Result<Self> {
        Ok(Self::Pipe(pipe::Receiver::from_owned_fd(folder.open_pipe_reader("out")?)?))
    }

    pub(super) fn terminal(&self) -> Option<PseudoTerminal> {
        match self {
            Self::Pipe(_) => None,
            Self::Terminal(terminal) => Some(terminal.clone()),
        }
    }

    /// Waits for bytes. Returns 0 at the end, or if it cannot be read any more.
    async fn read(&self, bytes: &mut [u8]) -> usize {
        loop {
            let read = match self {
                Self::Pipe(receiver) => match receiver.try_read(bytes) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        match receiver.readable().await {
                            Ok(()) => continue,
                            Err(error) => Err(error),
                        }
                    }
                    read => read,
                },
                Self::Terminal(terminal) => terminal.read(bytes).await,
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read.unwrap_or(0),
            }
        }
    }
}

/// Writes what is printed into the log, in whole lines and masked.
struct SessionRecordingTask {
    lines: SessionLineBuffer,
    redactor: LineRedactor,
    output: Arc<SessionOutput>,
    /// The agent and the receiver of its own id of the session, until that is found.
    agent: Option<(AgentDefinition, oneshot::Sender<String>)>,
    /// The session's own credential, which no pattern of the redactor knows.
    credential: Option<String>,
}

impl SessionRecordingTask {
    async fn run(mut self, context: Arc<SupervisorContext>, source: SessionOutputSource) {
        loop {
            // A buffer for each read, since the blocking task takes it along.
            let mut bytes = vec![0; READ_BYTES];
            let read = source.read(&mut bytes).await;
            bytes.truncate(read);
            // The disk may be slow, and this thread serves others meanwhile.
            let recorded = tokio::task::spawn_blocking(move || {
                self.record(&bytes);
                self
            });
            let Ok(recorder) = recorded.await else { return };
            self = recorder;
            context.report(SupervisorComponent::SessionLogs, self.output.last_error());
            self.output.notify_readers();
            if read == 0 {
                return;
            }
        }
    }

    /// Records bytes; none means the end.
    fn record(&mut self, bytes: &[u8]) {
        let lines = match bytes {
            [] => self.lines.finish().into_iter().collect(),
            bytes => self.lines.push(bytes),
        };
        if lines.is_empty() {
            return;
        }
        let masked: Vec<String> = lines.iter().map(|line| self.mask(line)).collect();
        // In the printed lines: masking could replace a part of the id.
        let id = self
            .agent
            .as_ref()
            .and_then(|(agent, _)| lines.iter().find_map(|line| agent.session_id_in(line)));
        self.output.append(&masked, lines);
        if let Some(id) = id
            && let Some((_, id_sender)) = self.agent.take()
        {
            // The actor may have stopped listening: the process has ended and the last output came late.
            let _ = id_sender.send(id);
        }
    }

    fn mask(&mut self, line: &str) -> String {
        let masked = self.redactor.line(line);
        match self.credential.as_deref().filter(|credential| masked.contains(*credential)) {
            Some(credential) => masked.replace(credential, "[redacted:session-credential]"),
            None => masked,
        }
    }
}
