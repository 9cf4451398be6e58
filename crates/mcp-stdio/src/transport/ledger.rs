//! Which requests have been taken and not yet answered.

use rmcp::model::{
    ErrorData, JsonRpcMessage, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Which requests have been taken and not yet answered; the arrays that their answers belong to.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    state: Mutex<State>,
    emptied: Notify,
}

#[derive(Debug, Default)]
struct State {
    open: HashSet<RequestId>,
    batches: Vec<Batch>,
    /// What `initialize` was answered with. None in the other era.
    negotiated: Option<ProtocolVersion>,
}

#[derive(Debug)]
struct Batch {
    waiting: HashSet<RequestId>,
    answers: Vec<Value>,
}

impl Ledger {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request. False where its id is in use: two answers with one id would answer neither.
    pub(super) fn open(&self, id: &RequestId) -> bool {
        self.state().open.insert(id.clone())
    }

    /// Notes that a request will get no answer, because its client cancelled it.
    pub(super) fn cancel(&self, id: &RequestId) -> Option<Vec<u8>> {
        self.close(id, None)
    }

    /// Waits until every request that was taken has been answered.
    pub(super) async fn empty(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.state().open.is_empty() {
                return;
            }
            emptied.await;
        }
    }

    /// JSON-RPC arrays exist in 2025-03-26 alone.
    pub(super) fn takes_batches(&self) -> bool {
        self.state().negotiated.as_ref() == Some(&ProtocolVersion::V_2025_03_26)
    }

    /// Announces an array of requests, whose answers go out as one array.
    pub(super) fn open_batch(&self, ids: HashSet<RequestId>, answers: Vec<Value>) {
        self.state().batches.push(Batch { waiting: ids, answers });
    }

    /// The bytes to send for `message`: none where it waits for others of its array.
    pub(super) fn encode(&self, message: &ServerJsonRpcMessage) -> Option<Vec<u8>> {
        let id = match message {
            JsonRpcMessage::Response(response) => {
                if let ServerResult::InitializeResult(result) = &response.result {
                    self.state().negotiated = Some(result.protocol_version.clone());
                }
                Some(&response.id)
            }
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        match id {
            Some(id) => self.close(id, Some(message)),
            None => line(message),
        }
    }

    fn close(&self, id: &RequestId, message: Option<&ServerJsonRpcMessage>) -> Option<Vec<u8>> {
        let mut state = self.state();
        state.open.remove(id);
        if state.open.is_empty() {
            self.emptied.notify_waiters();
        }
        let Some(place) = state.batches.iter().position(|batch| batch.waiting.contains(id)) else {
            drop(state);
            return message.and_then(line);
        };
        let batch = &mut state.batches[place];
        batch.waiting.remove(id);
        batch.answers.extend(message.and_then(|message| serde_json::to_value(message).ok()));
        if !batch.waiting.is_empty() {
            return None;
        }
        let batch = state.batches.swap_remove(place);
        drop(state);
        array(&batch.answers)
    }

    /// The bytes of an error that answers no request of the ledger. Where the id could not be read it is
    /// null, as JSON-RPC 2.0 §5 has it, and absent on 2026-07-28, as that schema has it.
    pub(super) fn refusal(&self, id: Option<&RequestId>, error: &ErrorData) -> Option<Vec<u8>> {
        line(&self.refusal_value(id, error))
    }

    pub(super) fn refusal_value(&self, id: Option<&RequestId>, error: &ErrorData) -> Value {
        let mut value = serde_json::json!({"jsonrpc": "2.0", "id": id, "error": error});
        if id.is_none() && self.state().negotiated.is_none() {
            value.as_object_mut().map(|object| object.shift_remove("id"));
        }
        value
    }
}

/// The bytes of an array of answers; an empty one is not sent (JSON-RPC 2.0 §6).
pub(super) fn array(answers: &[Value]) -> Option<Vec<u8>> {
    if answers.is_empty() { None } else { line(&answers) }
}

/// A message and its line end. A message that cannot be written would leave its client waiting, so the
/// failure is logged; the types allow none.
fn line(message: &impl serde::Serialize) -> Option<Vec<u8>> {
    match serde_json::to_vec(message) {
        Ok(mut bytes) => {
            bytes.push(b'\n');
            Some(bytes)
        }
        Err(error) => {
            tracing::error!(%error, "a message cannot be written as JSON");
            None
        }
    }
}
