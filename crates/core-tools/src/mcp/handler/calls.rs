//! The calls behind `tools/call`, `prompts/get` and `resources/read`: how one begins, goes on after its client was asked,
//! and ends.
#![allow(
    deprecated,
    reason = "SEP-2577 takes sampling and roots out of the protocol one day, and today's clients have them"
)]

use super::request::{RmcpContext, client_name, has_tasks, is_modern};
use crate::mcp::answer::{Answer, AnswerFormat};
use crate::mcp::approval::{ClientApprover, supports_forms};
use crate::mcp::call_context::CallContext;
use crate::mcp::client_log::ClientLog;
use crate::mcp::client_requests::{ClientRequests, PendingRequest};
use crate::mcp::connection::{Connection, RequestContext};
use crate::mcp::errors;
use crate::mcp::host::{Host, NoSuchTool, OfferKind};
use crate::mcp::log_level::LogLevel;
use crate::mcp::message_queue::MessageQueue;
use crate::mcp::paused_calls::{CallRequest, Resumed};
use crate::mcp::progress::ProgressReporter;
use crate::mcp::progress_notifications::{CallMessages, with_messages};
use crate::mcp::running_call::{CallStep, MAX_EVENTS, RunningCall};
use crate::mcp::task_use::{TaskStart, TaskUse};
use crate::mcp::tool_error::ToolError;
use futures_util::FutureExt;
use rmcp::ErrorData;
use rmcp::model::{InputRequiredResult, Task};
use role_policy::Caller;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A request for a call, and what the host runs for it.
pub(super) struct OfferCall {
    pub(super) kind: OfferKind,
    /// The name by which the host runs it.
    pub(super) name: String,
    pub(super) request: CallRequest,
    pub(super) task: TaskUse,
    pub(super) format: AnswerFormat,
}

/// The result of a request for a call.
pub(super) enum CallOutcome {
    Ended(Result<Answer, NoSuchTool>),
    /// The client must be asked first.
    InputRequired(InputRequiredResult),
    /// The call goes on as a task.
    Task(Task),
}

impl Connection {
    /// Begins a call, or goes on with one, until it ends or wants something of its client.
    pub(super) async fn advance_call(
        &self,
        mut context: RequestContext,
        offer: OfferCall,
        request: &RmcpContext,
    ) -> Result<CallOutcome, ErrorData> {
        let OfferCall { kind, name, request: call_request, task, format } = offer;
        let (host, caller, cancel) = (context.host.clone(), context.caller.clone(), context.cancel.clone());
        let has_tasks = task.start != TaskStart::Never && has_tasks(request);
        let (mut running, mut pending) = match host.paused_calls().resume(&caller, &call_request) {
            Resumed::Call { running, pending } => {
                // The call acquires its own permits again: with those of this request it would hold two of each.
                if let Some(permit) = context.call_permit.take() {
                    permit.release();
                }
                if let Some(release) = context.permit_release.take().filter(|_| running.released_by_approval)
                {
                    release.release();
                }
                (running, pending)
            }
            Resumed::OtherCall => return Ok(ended(&other_call())),
            Resumed::ForgedState => return Err(errors::forged_state()),
            Resumed::NewCall => {
                (self.start_call(context, kind, &name, &call_request, has_tasks, request), Vec::new())
            }
        };
        if has_tasks && let TaskStart::After(after) = task.start {
            running.becomes_task_after(after);
        }
        // At once means before it begins: a call that asks its client does so as a task.
        let mut begins_as_task = task.start == TaskStart::After(Duration::ZERO) && pending.is_empty();
        let call_cancel = running.cancel.clone();
        loop {
            let (progress, messages) = (running.progress.clone(), running.messages.clone());
            let step = async {
                match pending.is_empty() {
                    true if std::mem::take(&mut begins_as_task) => Some(CallStep::BecomesTask),
                    true => Some(running.next_step().await),
                    // The client has left something out: only what needs no answer goes on.
                    false => running.next_step().now_or_never(),
                }
            };
            let step = cancel_with(step, &request.ct, &cancel, &call_cancel);
            let token = request.meta.get_progress_token();
            // Few calls have a client that wants messages, and the others wait for nothing else.
            let step = match token.is_some() || self.log_level(&host, request).is_some() {
                true => {
                    let redactor = host.redactor();
                    with_messages(step, CallMessages { progress, messages, token, request, redactor }).await
                }
                false => step.await,
            };
            let requests = match step {
                Some(CallStep::Ended(answer)) => return Ok(CallOutcome::Ended(answer)),
                Some(CallStep::BecomesTask) => {
                    running.task_at = None;
                    // A task has no place for what the client was asked already.
                    if !has_tasks || !pending.is_empty() || !host.tasks().has_room(&caller) {
                        continue;
                    }
                    let longest = host.limits().call_timeout.max(host.limits().max_timeout);
                    let task =
                        host.tasks().spawn(caller, name, running, host.redactor().clone(), format, longest);
                    return Ok(CallOutcome::Task(task));
                }
                Some(CallStep::Requests(requests)) => requests,
                None => Vec::new(),
            };
            pending.extend(requests);
            return Ok(pause(&host, caller, call_request, pending, running));
        }
    }

    /// Makes the call of a request.
    fn start_call(
        &self,
        request_context: RequestContext,
        kind: OfferKind,
        name: &str,
        call_request: &CallRequest,
        has_tasks: bool,
        request: &RmcpContext,
    ) -> RunningCall {
        let RequestContext {
            host,
            caller,
            limits,
            call_permit,
            call_admission,
            permit_release,
            process_permits,
            observer,
            cancel: _,
        } = request_context;
        let capabilities = request.client_capabilities().unwrap_or_default();
        let can_be_asked =
            supports_forms(&capabilities) || capabilities.sampling.is_some() || capabilities.roots.is_some();
        let asks_user = host.approvals().asks_client() && supports_forms(&capabilities);
        let (redactor, permits) = (host.redactor().clone(), host.call_permits().clone());
        let (client, events) = match (can_be_asked || has_tasks, is_modern(request)) {
            (false, _) => (ClientRequests::default(), None),
            (true, false) => {
                let peer = request.peer.clone();
                (ClientRequests::of_peer(peer, capabilities, redactor, permits), None)
            }
            (true, true) => {
                let (sender, events) = mpsc::channel(MAX_EVENTS);
                let given = call_request.responses.clone();
                (ClientRequests::of_request(sender, capabilities, given, redactor, permits), Some(events))
            }
        };
        // A call that may be paused outlives the request that began it.
        let cancel = match events {
            Some(_) => CancellationToken::new(),
            None => request.ct.child_token(),
        };
        let messages = MessageQueue::default();
        let mut context = CallContext::new(caller, cancel.clone());
        (context.limits, context.observer) = (limits, observer);
        context.found = self.found.clone();
        (context.call_permit, context.process_permits) = (call_permit, process_permits);
        (context.call_admission, context.permit_release) = (call_admission, permit_release.clone());
        context.client_approver =
            asks_user.then(|| ClientApprover::new(client.clone(), client_name(request)));
        context.client = client;
        if request.meta.get_progress_token().is_some() {
            context.progress = ProgressReporter::requested(messages.clone());
        }
        if let Some(level) = self.log_level(&host, request) {
            context.log = ClientLog::new(level, messages.clone());
        }
        let progress = context.progress.clone();
        let (name, arguments) = (name.to_owned(), call_request.arguments.clone());
        // Boxed: inline, each of the futures around it would hold it once more, and be moved with it.
        let call = Box::pin(async move { host.call_offer(kind, &name, arguments, context).await });
        RunningCall {
            call,
            events,
            progress,
            messages,
            cancel,
            permit_release,
            released_by_approval: false,
            task_at: None,
        }
    }

    /// Returns the level from which on the client of a request wants log messages.
    fn log_level(&self, host: &Host, request: &RmcpContext) -> Option<LogLevel> {
        if !host.has_client_log() {
            return None;
        }
        match is_modern(request) {
            true => request.meta.log_level().map(LogLevel::from_protocol),
            false => self.log_level.get(),
        }
    }
}

/// Keeps a call until its client answers.
fn pause(
    host: &Host,
    caller: Caller,
    request: CallRequest,
    pending: Vec<PendingRequest>,
    mut running: RunningCall,
) -> CallOutcome {
    running.released_by_approval = pending.iter().any(PendingRequest::is_approval);
    // A call that waits for an approval has given them back. Any other goes on with those of the request that answers.
    if let Some(release) = running.permit_release.take().filter(|_| !running.released_by_approval) {
        release.release();
    }
    let limit = host.approvals().timeout;
    match host.paused_calls().pause(caller, request, pending, running, limit) {
        Some(question) => CallOutcome::InputRequired(question),
        None => ended(&too_many_questions()),
    }
}

fn ended(error: &ToolError) -> CallOutcome {
    CallOutcome::Ended(Ok(Answer::error(error)))
}

fn other_call() -> ToolError {
    ToolError::new(
        "not run: this answer of the user is for another call; an approval holds for the call with exactly the arguments \
         that were shown. Call again without `requestState`",
    )
}

fn too_many_questions() -> ToolError {
    ToolError::new(
        "not run: too many calls wait for the answers of users already; try again when some were answered",
    )
}

/// Waits for `call`, and cancels it once the request or its transport is cancelled.
async fn cancel_with<T>(
    call: impl Future<Output = T>,
    request: &CancellationToken,
    transport: &CancellationToken,
    call_cancel: &CancellationToken,
) -> T {
    let mut call = std::pin::pin!(call);
    tokio::select! {
        // The answer first: a call that has ended is not cancelled any more.
        biased;
        answer = &mut call => return answer,
        () = request.cancelled() => call_cancel.cancel(),
        () = transport.cancelled() => call_cancel.cancel(),
    }
    call.await
}
