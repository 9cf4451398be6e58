//! Calls that go on as tasks: the client has a handle, and asks for the state when it likes.

use super::answer::{Answer, AnswerFormat};
use super::client_requests::{CallEvent, PendingRequest};
use super::errors;
use super::host::NoSuchTool;
use super::running_call::{RunningCall, next_event};
use super::tool_error::FailureCause;
use crate::redact::Redactor;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::FuturesUnordered;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, DetailedTask, InputResponses, Task};
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use role_policy::Caller;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// The time for which the answer of a task is kept after the longest that the task may run.
const KEPT_FOR: Duration = Duration::from_secs(300);

/// The time between two requests for the state that a client is advised to keep.
const POLL_INTERVAL_MS: u64 = 500;

/// The time between two looks at the progress of a task.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// The most tasks that are kept, with those that have ended.
const MAX_TASKS: usize = 1024;

/// The most tasks of one principal that are kept, with those that have ended.
const MAX_TASKS_BY_PRINCIPAL: usize = 128;

/// The calls of a host that go on as tasks. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct CallTasks {
    manager: TaskManager,
    owners: Arc<Mutex<HashMap<String, TaskOwner>>>,
}

/// The caller of a task, who alone may ask for it.
#[derive(Debug)]
struct TaskOwner {
    caller: Caller,
    tool: String,
}

impl fmt::Debug for CallTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallTasks")
    }
}

impl CallTasks {
    /// Returns true if a call of `caller` may become a task now.
    pub(super) fn has_room(&self, caller: &Caller) -> bool {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if has_room_beside(&owners, caller) {
            return true;
        }
        // Those that the manager has forgotten have no state to ask for. It copies the answer of each task that it is asked
        // about, so that it is asked only where there is no room otherwise.
        owners.retain(|id, _| self.manager.get_task(id).is_ok());
        has_room_beside(&owners, caller)
    }

    /// Lets a call go on as a task. It may run for `longest`.
    pub(super) fn spawn(
        &self,
        caller: Caller,
        tool: String,
        running: RunningCall,
        redactor: Redactor,
        format: AnswerFormat,
        longest: Duration,
    ) -> Task {
        let ttl = longest.saturating_add(KEPT_FOR);
        let options = TaskOptions::default()
            .with_ttl_ms(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))
            .with_poll_interval_ms(POLL_INTERVAL_MS);
        // The owner is noted before anybody can ask: the client has no handle before this returns.
        let task =
            self.manager.spawn(options, move |context| Box::pin(run(context, running, redactor, format)));
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.insert(task.task_id.clone(), TaskOwner { caller, tool });
        task
    }

    /// Returns the state of a task of `caller`, who `sees` the tools of this name.
    pub(super) fn get(
        &self,
        caller: &Caller,
        id: &str,
        sees: impl Fn(&str) -> bool,
    ) -> Result<DetailedTask, ErrorData> {
        self.check_owner(caller, id, sees)?;
        self.manager.get_task(id).map_err(|_| errors::no_such_task())
    }

    /// Hands answers of the client to a task of `caller`.
    pub(super) fn update(
        &self,
        caller: &Caller,
        id: &str,
        responses: InputResponses,
        sees: impl Fn(&str) -> bool,
    ) -> Result<(), ErrorData> {
        self.check_owner(caller, id, sees)?;
        self.manager.update_task(id, responses).map_err(|_| errors::no_such_task())
    }

    /// Cancels a task of `caller`.
    pub(super) fn cancel(
        &self,
        caller: &Caller,
        id: &str,
        sees: impl Fn(&str) -> bool,
    ) -> Result<(), ErrorData> {
        self.check_owner(caller, id, sees)?;
        self.manager.cancel_task(id).map_err(|_| errors::no_such_task())
    }

    /// Cancels all tasks of `principal`, who may make no further call.
    pub(super) fn release_caller(&self, principal: &str) {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, owner) in owners.iter() {
            if owner.caller.principal().unwrap_or_default() == principal {
                // One that the manager has forgotten does not run.
                let _ = self.manager.cancel_task(id);
            }
        }
    }

    /// Checks that a task is one of `caller`, who still sees its tool. Any other answer is that of a task which never was.
    fn check_owner(&self, caller: &Caller, id: &str, sees: impl Fn(&str) -> bool) -> Result<(), ErrorData> {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = owners.get(id).ok_or_else(errors::no_such_task)?;
        let is_owner = owner.caller.principal() == caller.principal() && sees(&owner.tool);
        if is_owner { Ok(()) } else { Err(errors::no_such_task()) }
    }
}

/// Returns true if `caller` may have another task beside these.
fn has_room_beside(owners: &HashMap<String, TaskOwner>, caller: &Caller) -> bool {
    let of_principal = owners.values().filter(|owner| owner.caller.principal() == caller.principal());
    owners.len() < MAX_TASKS && of_principal.count() < MAX_TASKS_BY_PRINCIPAL
}

/// Runs a call as a task: to its end, with what it asks of the client in the state of the task.
async fn run(
    task: TaskContext,
    mut running: RunningCall,
    redactor: Redactor,
    format: AnswerFormat,
) -> Result<CallToolResult, TaskExit> {
    let mut questions: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
    let mut keys = HashSet::new();
    let mut status = tokio::time::interval(STATUS_INTERVAL);
    status.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let answer = loop {
        tokio::select! {
            biased;
            answer = &mut running.call => break answer,
            Some(event) = next_event(&mut running.events) => {
                if let CallEvent::Request(request) = event {
                    questions.push(ask(task.clone(), *request, &mut keys));
                }
            }
            Some(()) = questions.next() => {}
            () = task.cancelled(), if !running.cancel.is_cancelled() => running.cancel.cancel(),
            _ = status.tick() => {
                if let Some(message) = running.progress.take() {
                    task.set_status_message(redactor.redact(&message));
                }
            }
        }
    };
    finished(answer, task.is_cancel_requested(), format)
}

/// Puts a request into the state of a task, and hands its answer on.
fn ask(task: TaskContext, request: PendingRequest, keys: &mut HashSet<String>) -> BoxFuture<'static, ()> {
    let PendingRequest { key, request, answer_to, .. } = request;
    // A task may use each key once.
    let mut unique = key.clone();
    let mut number: u64 = 1;
    while !keys.insert(unique.clone()) {
        number += 1;
        unique = format!("{key}-{number}");
    }
    async move {
        if let Ok(answer) = task.request_input(unique, request).await {
            // The call may have ended meanwhile.
            let _ = answer_to.send(answer);
        }
    }
    .boxed()
}

/// Returns the end of a task, by the answer of its call.
fn finished(
    answer: Result<Answer, NoSuchTool>,
    was_cancelled: bool,
    format: AnswerFormat,
) -> Result<CallToolResult, TaskExit> {
    let answer = answer.map_err(|error| TaskExit::Error(errors::no_such_tool(&error, None)))?;
    match answer.cause() {
        _ if was_cancelled && answer.is_failed() => Err(TaskExit::Cancelled),
        FailureCause::Defect => Err(TaskExit::Error(ErrorData::internal_error(answer.to_text(), None))),
        _ => Ok(answer.into_result(format)),
    }
}
