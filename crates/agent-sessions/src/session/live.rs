//! A process that runs for a session.

use crate::diagnosis::ObservedSessionExit;
use crate::process_table::{self, ProcessIdentity};
use process_runner::{ExitStatus, PseudoTerminal, Running};
use std::time::Duration;

/// The interval at which a process is looked for that an earlier supervisor started.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// A process that runs for a session.
#[derive(Debug)]
pub(super) struct LiveSessionProcess {
    child: AgentProcess,
    /// The terminal of the process, if it has one.
    pub(super) terminal: Option<PseudoTerminal>,
}

#[derive(Debug)]
enum AgentProcess {
    /// This supervisor started the process, and sees how it exits.
    Started(Running),
    /// An earlier supervisor started it. It is not a child of this process, which sees only that it is gone.
    Adopted(ProcessIdentity),
}

impl LiveSessionProcess {
    pub(super) fn started(running: Running, terminal: Option<PseudoTerminal>) -> Self {
        Self { child: AgentProcess::Started(running), terminal }
    }

    pub(super) fn adopted(process: ProcessIdentity) -> Self {
        Self { child: AgentProcess::Adopted(process), terminal: None }
    }

    /// Waits until the process has ended, and ends what is left of its tree. Loses nothing if it is dropped.
    pub(super) async fn exited(&self, id: &str) -> ObservedSessionExit {
        match &self.child {
            AgentProcess::Started(running) => {
                running.finished().await;
                match running.output().and_then(|output| output.status) {
                    Some(ExitStatus::Exited { code }) => {
                        ObservedSessionExit { code: Some(code), signal: None }
                    }
                    Some(ExitStatus::Signaled { signal, .. }) => {
                        ObservedSessionExit { code: None, signal: Some(signal) }
                    }
                    _ => ObservedSessionExit::default(),
                }
            }
            AgentProcess::Adopted(process) => {
                while process_table::is_alive(*process) {
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
                // The leader is gone, so the rest is found by the session's id in its environment.
                process_table::end_tree(None, id, Duration::ZERO).await;
                ObservedSessionExit::default()
            }
        }
    }

    /// Begins to end the process: `SIGTERM`, the grace time, `SIGKILL`.
    pub(super) fn terminate(&self, id: &str, grace: Duration) {
        match &self.child {
            AgentProcess::Started(running) => running.terminate_within(grace),
            AgentProcess::Adopted(process) => {
                let (process, id) = (*process, id.to_owned());
                // A task of its own: the actor goes on to wait for the exit.
                tokio::spawn(async move { process_table::end_tree(Some(process), &id, grace).await });
            }
        }
    }
}
