//! Calls of clients of 2026-07-28 that wait for their client. The protocol has no requests of a server: what the client is
//! asked goes out as the answer to the call, and the client sends the call again with its answers. Meanwhile the call
//! itself is kept here, as far as it has come, so that no work is done twice.

use super::client_requests::{PendingRequest, Unanswered};
use super::running_call::RunningCall;
use rmcp::model::{InputRequests, InputRequiredResult, InputResponses};
use role_policy::Caller;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The most calls that are kept.
const MAX_PAUSED: usize = 128;

/// The most calls of one caller that are kept.
const MAX_PAUSED_BY_CALLER: usize = 32;

/// A request of a client that begins a call or goes on with one: `tools/call`, `prompts/get` or `resources/read`.
#[derive(Clone, Debug)]
pub(super) struct CallRequest {
    /// The method and the name, so that a call goes on only as what it began as.
    pub(super) target: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) state: Option<String>,
    pub(super) responses: InputResponses,
}

/// A call that waits for the next request of its client.
struct PausedCall {
    caller: Caller,
    target: String,
    arguments: Map<String, Value>,
    pending: Vec<PendingRequest>,
    running: RunningCall,
}

/// The calls of all clients that wait. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct PausedCalls {
    calls: Arc<Mutex<HashMap<String, PausedCall>>>,
    /// Tells a state that this server has given out from another.
    tags: RandomState,
}

impl fmt::Debug for PausedCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PausedCalls")
    }
}

/// The result of looking for the call that a request goes on with.
pub(super) enum Resumed {
    /// The request begins a call of its own.
    NewCall,
    /// The call goes on. What the client has left out waits further.
    Call { running: RunningCall, pending: Vec<PendingRequest> },
    /// The request names a call, and is another. That call is ended.
    OtherCall,
    /// The state is none that this server has given out.
    ForgedState,
}

impl PausedCalls {
    fn take(&self, id: &str) -> Option<PausedCall> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
    }

    /// Returns the state that a client gets for the call with this id.
    fn state(&self, id: &str) -> String {
        format!("{id}.{:016x}", self.tags.hash_one(id))
    }

    /// Returns the call that the request of `caller` goes on with. Each state is used once. One that was used, or has
    /// expired, begins a new call, which asks again.
    pub(super) fn resume(&self, caller: &Caller, request: &CallRequest) -> Resumed {
        let Some(state) = request.state.as_deref() else { return Resumed::NewCall };
        // The tag tells a forged state from one that was used or has expired: the first is an error, the second is not.
        let Some((id, _)) = state.split_once('.').filter(|(id, _)| self.state(id) == state) else {
            return Resumed::ForgedState;
        };
        let Some(paused) = self.take(id) else { return Resumed::NewCall };
        let PausedCall { caller: paused_caller, target, arguments, pending, running } = paused;
        // A stolen state is of no use to another caller, and answers must not be moved to a call with other arguments.
        if paused_caller != *caller || target != request.target || arguments != request.arguments {
            return Resumed::OtherCall;
        }
        let mut waiting = Vec::new();
        for pending in pending {
            match request.responses.get(&pending.key) {
                // The call may have ended meanwhile. It then says why.
                Some(answer) => drop(pending.answer_to.send(answer.clone())),
                None if pending.unanswered == Unanswered::AskAgain => waiting.push(pending),
                None => drop(pending),
            }
        }
        Resumed::Call { running, pending: waiting }
    }

    /// Keeps a call until its client sends it again, or for `limit`, after which its requests end without an answer.
    /// Returns the answer for the client, with the state that the client sends back.
    pub(super) fn pause(
        &self,
        caller: Caller,
        request: CallRequest,
        pending: Vec<PendingRequest>,
        running: RunningCall,
        limit: Duration,
    ) -> Option<InputRequiredResult> {
        // The id must not be guessable: whoever has it can go on with the call.
        let id = approvals::random_id().ok()?;
        let requests: InputRequests =
            pending.iter().map(|pending| (pending.key.clone(), pending.request.clone())).collect();
        let result = InputRequiredResult::new(Some(requests), Some(self.state(&id)));
        {
            let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            let of_caller =
                calls.values().filter(|paused| paused.caller.principal() == caller.principal()).count();
            if calls.len() >= MAX_PAUSED || of_caller >= MAX_PAUSED_BY_CALLER {
                return None;
            }
            let CallRequest { target, arguments, .. } = request;
            calls.insert(id.clone(), PausedCall { caller, target, arguments, pending, running });
        }
        let all = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(limit).await;
            if let Some(PausedCall { pending, running, .. }) = all.take(&id) {
                drop(pending);
                // To its end, so that it is recorded. What it asks now has no reader.
                let RunningCall { call, events, .. } = running;
                drop(events);
                let _ = call.await;
            }
        });
        Some(result)
    }
}
