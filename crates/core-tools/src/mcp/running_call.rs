//! A call that runs: its next step, and the messages that its client gets meanwhile.

use super::answer::Answer;
use super::client_requests::{CallEvent, PendingRequest};
use super::host::NoSuchTool;
use super::message_queue::MessageQueue;
use super::permits::PermitRelease;
use super::progress::ProgressReporter;
use futures_util::future::BoxFuture;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The most requests to a client that wait to be read.
pub(super) const MAX_EVENTS: usize = 16;

/// A call, as far as it has come.
pub(super) struct RunningCall {
    pub(super) call: BoxFuture<'static, Result<Answer, NoSuchTool>>,
    /// The wishes of the call. None if its client can be asked for nothing in this way.
    pub(super) events: Option<mpsc::Receiver<CallEvent>>,
    pub(super) progress: ProgressReporter,
    pub(super) messages: MessageQueue,
    pub(super) cancel: CancellationToken,
    /// Gives back what the transport holds for the call.
    pub(super) permit_release: Option<PermitRelease>,
    /// True if the call waits for an approval, after which it acquires its permits itself.
    pub(super) released_by_approval: bool,
    /// The moment at which the call becomes a task, if its client has tasks.
    pub(super) task_at: Option<Instant>,
}

/// The next step of a call.
pub(super) enum CallStep {
    /// The call has ended.
    Ended(Result<Answer, NoSuchTool>),
    /// The client must be asked first.
    Requests(Vec<PendingRequest>),
    /// The call goes on as a task.
    BecomesTask,
}

impl RunningCall {
    /// Waits for the answer of the call, or for what it wants of its client.
    pub(super) async fn next_step(&mut self) -> CallStep {
        let event = tokio::select! {
            // The answer first: a call that has ended wants nothing any more.
            biased;
            answer = &mut self.call => return CallStep::Ended(answer),
            Some(event) = next_event(&mut self.events) => event,
            () = sleep_until(self.task_at) => return CallStep::BecomesTask,
        };
        let mut requests = match event {
            CallEvent::BeginTask => return CallStep::BecomesTask,
            CallEvent::Request(request) => vec![*request],
        };
        // A tool may ask several things at once: the client gets all that wait in one answer.
        if let Some(events) = &mut self.events {
            while let Ok(event) = events.try_recv() {
                match event {
                    CallEvent::Request(request) => requests.push(*request),
                    // The requests first: a task has others of its own.
                    CallEvent::BeginTask => self.task_at = Some(Instant::now()),
                }
            }
        }
        CallStep::Requests(requests)
    }

    /// Lets the call become a task once it has run for `after`.
    pub(super) fn becomes_task_after(&mut self, after: Duration) {
        self.task_at = Some(Instant::now() + after);
    }
}

/// Waits for the next wish of a call.
pub(super) async fn next_event(events: &mut Option<mpsc::Receiver<CallEvent>>) -> Option<CallEvent> {
    match events {
        Some(events) => match events.recv().await {
            Some(event) => Some(event),
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

async fn sleep_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
