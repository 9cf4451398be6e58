//! Calls of clients of 2026-07-28 that wait for the client's user. The protocol has no requests of a server: the question
//! goes out as the answer to the call, and the client sends the call again with the answer of its user. Meanwhile the
//! call itself is kept here, as far as it has come, so that no work is done twice.

use super::client::ClientQuestion;
use super::client_answer::ClientAnswer;
use super::elicitation::{form, verdict};
use crate::mcp::answer::Answer;
use crate::mcp::host::NoSuchTool;
use crate::mcp::progress::ProgressReporter;
use futures_util::future::BoxFuture;
use rmcp::model::{CallToolRequestParams, ElicitRequest, InputRequest, InputRequests, InputRequiredResult};
use role_policy::Caller;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// The key of the question in the answer to a call.
const KEY: &str = "approval";

/// The most calls that are kept.
const MAX_PAUSED: usize = 128;

/// A call, as far as it has come.
pub(in crate::mcp) struct RunningCall {
    pub(in crate::mcp) call: BoxFuture<'static, Result<Answer, NoSuchTool>>,
    /// The questions of the call. None if its client cannot be asked in this way.
    pub(in crate::mcp) questions: Option<mpsc::Receiver<ClientQuestion>>,
    pub(in crate::mcp) progress: ProgressReporter,
    pub(in crate::mcp) cancel: CancellationToken,
}

impl RunningCall {
    /// Waits for the next question of the call.
    pub(in crate::mcp) async fn question(
        questions: &mut Option<mpsc::Receiver<ClientQuestion>>,
    ) -> ClientQuestion {
        if let Some(receiver) = questions
            && let Some(question) = receiver.recv().await
        {
            return question;
        }
        std::future::pending().await
    }
}

/// A call that waits for the next request of its client.
struct PausedCall {
    caller: Caller,
    tool: String,
    arguments: Map<String, Value>,
    answer_to: oneshot::Sender<ClientAnswer>,
    running: RunningCall,
}

/// The calls of all clients that wait. Cheap to clone.
#[derive(Clone, Default)]
pub(in crate::mcp) struct PausedCalls(Arc<Mutex<HashMap<String, PausedCall>>>);

impl fmt::Debug for PausedCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PausedCalls")
    }
}

/// The result of looking for the call that a request goes on with.
pub(in crate::mcp) enum Resumed {
    /// The request begins a call of its own.
    NewCall,
    /// The call goes on.
    Call(RunningCall),
    /// The request names a call, and is another. That call is ended.
    OtherCall,
}

impl PausedCalls {
    fn take(&self, state: &str) -> Option<PausedCall> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(state)
    }

    /// Returns the call that the request of `caller` goes on with. Each state is used once.
    pub(in crate::mcp) fn resume(&self, caller: &Caller, params: &CallToolRequestParams) -> Resumed {
        let Some(paused) = params.request_state.as_deref().and_then(|state| self.take(state)) else {
            return Resumed::NewCall;
        };
        let same_arguments = match &params.arguments {
            None => paused.arguments.is_empty(),
            Some(arguments) => *arguments == paused.arguments,
        };
        if paused.caller != *caller || paused.tool != params.name || !same_arguments {
            return Resumed::OtherCall;
        }
        let response = params.input_responses.as_ref().and_then(|responses| responses.get(KEY));
        let answer = match response.map(|response| serde_json::from_value(response.clone())) {
            Some(Ok(result)) => verdict(&result),
            _ => ClientAnswer::None("the client sent no answer of its user"),
        };
        // The call may have ended meanwhile. It then says why.
        let _ = paused.answer_to.send(answer);
        Resumed::Call(paused.running)
    }

    /// Keeps a call until its client sends it again, or for `limit`, after which it ends without an answer. Returns the
    /// state that the client sends with it.
    pub(in crate::mcp) fn pause(
        &self,
        caller: Caller,
        tool: String,
        arguments: Map<String, Value>,
        question: ClientQuestion,
        running: RunningCall,
        limit: Duration,
    ) -> Option<InputRequiredResult> {
        let state = approvals::random_id().ok()?;
        let result = input_required(&question, state.clone())?;
        let answer_to = question.answer_to;
        {
            let mut paused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if paused.len() >= MAX_PAUSED {
                return None;
            }
            paused.insert(state.clone(), PausedCall { caller, tool, arguments, answer_to, running });
        }
        let all = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(limit).await;
            if let Some(PausedCall { answer_to, running, .. }) = all.take(&state) {
                drop(answer_to);
                // To its end, so that it is recorded.
                let _ = running.call.await;
            }
        });
        Some(result)
    }
}

/// Returns the answer to a call that asks its client's user.
fn input_required(question: &ClientQuestion, state: String) -> Option<InputRequiredResult> {
    let request = InputRequest::Elicitation(ElicitRequest::new(form(&question.question)?));
    Some(InputRequiredResult::new(Some(InputRequests::from([(KEY.to_owned(), request)])), Some(state)))
}
