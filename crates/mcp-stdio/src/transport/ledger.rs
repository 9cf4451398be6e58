//! The open requests, and the memory that they and their answers take.

use rmcp::model::{
    ErrorData, JsonRpcMessage, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
};
use serde_json::Value;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The bytes that the requests which the server works on, and the answers that wait for the client to read, may cost
/// before the server gets another request.
const MAX_COST: usize = 8 << 20;

/// The cost of a request beside the bytes of its line: a task, its channels, an answer yet to come. With
/// [`MAX_COST`], 1024 small requests are worked on at a time.
const REQUEST_OVERHEAD: usize = 8 << 10;

/// The cancelled ids that are remembered.
const MAX_CANCELLED_IDS: usize = 4096;

/// The requests that have been accepted and not yet answered, the arrays that their answers belong to, and the bytes that
/// wait for the client to read.
#[derive(Debug, Default)]
pub(super) struct RequestLedger {
    state: Mutex<LedgerState>,
    /// Wakes whoever waits for room.
    freed: Notify,
}

#[derive(Debug, Default)]
struct LedgerState {
    open: HashMap<RequestId, LedgerEntry>,
    cancelled: CancelledIds,
    batches: Vec<RequestBatch>,
    /// The version in the answer to `initialize`. None in the other era.
    negotiated: Option<ProtocolVersion>,
    /// The cost of the requests that the server has not got yet.
    queued_cost: usize,
    /// The cost of the requests that it has, and of the lines that have not been written.
    active_cost: usize,
}

#[derive(Debug)]
struct LedgerEntry {
    cost: usize,
    /// True if the server has got it.
    delivered: bool,
}

/// The ids that were cancelled last. rmcp tells nobody when the handler of a cancelled request ends, and
/// takes its late answer for the answer to whatever has the same id by then.
#[derive(Debug, Default)]
struct CancelledIds {
    ids: HashSet<RequestId>,
    order: VecDeque<RequestId>,
}

impl CancelledIds {
    fn remember(&mut self, id: &RequestId) {
        if self.ids.insert(id.clone()) {
            self.order.push_back(id.clone());
        }
        // The oldest is forgotten: its handler has most likely ended by now.
        if self.order.len() > MAX_CANCELLED_IDS
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }
}

/// An array of requests, whose answers are one array.
#[derive(Debug)]
struct RequestBatch {
    open: HashSet<RequestId>,
    answers: Vec<Value>,
}

/// An id that a request cannot have: two answers with one id would answer neither.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RequestIdInUse {
    /// An open request has it.
    #[error("the id {0:?} is in use by another")]
    Open(String),
    /// A cancelled request had it, and its late answer would be taken for that of this one.
    #[error("its id was used before, by a request that was cancelled")]
    Cancelled,
}

impl RequestLedger {
    fn state(&self) -> MutexGuard<'_, LedgerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a request of so many bytes.
    pub(super) fn open(&self, id: &RequestId, bytes: usize) -> Result<(), RequestIdInUse> {
        let mut state = self.state();
        if state.open.contains_key(id) {
            return Err(RequestIdInUse::Open(id.to_string()));
        }
        if state.cancelled.ids.contains(id) {
            return Err(RequestIdInUse::Cancelled);
        }
        let cost = bytes + REQUEST_OVERHEAD;
        state.queued_cost += cost;
        state.open.insert(id.clone(), LedgerEntry { cost, delivered: false });
        Ok(())
    }

    /// Notes that the server gets a request.
    pub(super) fn deliver(&self, id: &RequestId) {
        let mut state = self.state();
        let Some(open) = state.open.get_mut(id) else { return };
        open.delivered = true;
        let cost = open.cost;
        state.queued_cost -= cost;
        state.active_cost += cost;
    }

    /// Closes a request that its client cancelled, which gets no answer. Returns the line of the array that is complete
    /// without it.
    pub(super) fn cancel(&self, id: &RequestId) -> Option<Vec<u8>> {
        let mut state = self.state();
        // Only what has no answer yet: the id of an answered request may be used again.
        if !state.open.contains_key(id) {
            return None;
        }
        state.cancelled.remember(id);
        drop(state);
        self.close(id, None)
    }

    /// Returns true if no request is open.
    pub(super) fn is_empty(&self) -> bool {
        self.state().open.is_empty()
    }

    /// Returns true if the server may get another request.
    pub(super) fn has_room(&self) -> bool {
        self.state().active_cost < MAX_COST
    }

    /// Returns true if another line may be read. As much as is worked on may be queued, so that a cancellation behind it is
    /// seen.
    pub(super) fn may_read(&self) -> bool {
        let state = self.state();
        state.active_cost + state.queued_cost < 2 * MAX_COST
    }

    /// Completes when something is answered, cancelled or written after this call.
    pub(super) fn freed(&self) -> Notified<'_> {
        self.freed.notified()
    }

    /// Waits until there is room.
    pub(super) async fn wait_for_room(&self) {
        loop {
            // Before the look, or what is freed between the two would not wake us.
            let freed = self.freed();
            if self.has_room() {
                return;
            }
            freed.await;
        }
    }

    /// Notes that so many more bytes wait for the client to read.
    pub(super) fn add_unwritten(&self, bytes: usize) {
        self.state().active_cost += bytes;
    }

    /// Notes that so many bytes have been written.
    pub(super) fn remove_written(&self, bytes: usize) {
        self.state().active_cost -= bytes;
        self.freed.notify_waiters();
    }

    /// Returns true if rmcp has chosen an era, if it asks for the next message now. Before that it asks for the next message only
    /// after it has answered the last: so an `initialize` that is answered, or another request that is not, has begun its
    /// service.
    pub(super) fn is_serving(&self) -> bool {
        let state = self.state();
        state.negotiated.is_some() || state.open.values().any(|open| open.delivered)
    }

    /// Returns true if the client may send arrays of messages, which exist in 2025-03-26 alone.
    pub(super) fn accepts_batches(&self) -> bool {
        self.state().negotiated.as_ref() == Some(&ProtocolVersion::V_2025_03_26)
    }

    /// Groups the open requests `ids`, whose answers go out as one array. `answers` are those that are there already.
    pub(super) fn open_batch(&self, ids: HashSet<RequestId>, answers: Vec<Value>) {
        self.state().batches.push(RequestBatch { open: ids, answers });
    }

    /// Returns the line to send for `message`: none if it waits for others of its array, or its request was cancelled.
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

    /// Closes a request, with its answer if it gets one.
    fn close(&self, id: &RequestId, message: Option<&ServerJsonRpcMessage>) -> Option<Vec<u8>> {
        let mut state = self.state();
        // A request that is not open was cancelled: its late answer ends here.
        let open = state.open.remove(id)?;
        if open.delivered {
            state.active_cost -= open.cost;
        } else {
            state.queued_cost -= open.cost;
        }
        self.freed.notify_waiters();
        // A search: batches exist in one version of the protocol, and few are open at a time.
        let Some(index) = state.batches.iter().position(|batch| batch.open.contains(id)) else {
            drop(state);
            return message.and_then(line);
        };
        let batch = &mut state.batches[index];
        batch.open.remove(id);
        batch.answers.extend(message.and_then(|message| serde_json::to_value(message).ok()));
        if !batch.open.is_empty() {
            return None;
        }
        let batch = state.batches.swap_remove(index);
        drop(state);
        array(&batch.answers)
    }

    /// Returns the line of an error that answers no request of the ledger.
    pub(super) fn error_line(&self, id: Option<&RequestId>, error: &ErrorData) -> Option<Vec<u8>> {
        line(&self.error_value(id, error))
    }

    /// Returns an error that answers no request of the ledger. If the id could not be read, or belongs to an open request,
    /// it is null, as in JSON-RPC 2.0 §5; on 2026-07-28 it is absent, as in that schema.
    pub(super) fn error_value(&self, id: Option<&RequestId>, error: &ErrorData) -> Value {
        let state = self.state();
        let id = id.filter(|id| !state.open.contains_key(id));
        let mut value = serde_json::json!({"jsonrpc": "2.0", "id": id, "error": error});
        if id.is_none() && state.negotiated.is_none() {
            value.as_object_mut().map(|object| object.shift_remove("id"));
        }
        value
    }
}

/// Returns the line of an array of answers; an empty one is not sent (JSON-RPC 2.0 §6).
pub(super) fn array(answers: &[Value]) -> Option<Vec<u8>> {
    if answers.is_empty() { None } else { line(&answers) }
}

/// Returns a message with its line end. The types allow no failure; one would leave the client waiting, so it is logged.
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

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::EmptyResult;

    fn id(number: i64) -> RequestId {
        RequestId::Number(number)
    }

    fn answer(number: i64) -> ServerJsonRpcMessage {
        ServerJsonRpcMessage::response(ServerResult::EmptyResult(EmptyResult {}), id(number))
    }

    #[test]
    fn a_cancelled_request_is_not_answered_and_its_id_is_spent() {
        let ledger = RequestLedger::default();
        ledger.open(&id(1), 0).unwrap();
        assert_eq!(ledger.cancel(&id(1)), None);
        assert_eq!(ledger.encode(&answer(1)), None);
        assert!(ledger.open(&id(1), 0) == Err(RequestIdInUse::Cancelled));
        for other in 2..=MAX_CANCELLED_IDS as i64 + 1 {
            ledger.open(&id(other), 0).unwrap();
            ledger.cancel(&id(other));
        }
        assert!(ledger.open(&id(1), 0).is_ok(), "the oldest is forgotten");
        assert!(ledger.open(&id(2), 0).is_err());
    }

    #[test]
    fn a_request_answered_before_its_cancellation_leaves_its_id_free() {
        let ledger = RequestLedger::default();
        ledger.open(&id(1), 0).unwrap();
        assert!(ledger.encode(&answer(1)).is_some());
        ledger.cancel(&id(1));
        assert!(ledger.open(&id(1), 0).is_ok());
    }

    #[test]
    fn a_refusal_never_takes_the_id_of_a_request_to_be_answered() {
        let ledger = RequestLedger::default();
        ledger.open(&id(1), 0).unwrap();
        let error = ErrorData::invalid_request("no", None);
        assert_eq!(ledger.error_value(Some(&id(1)), &error).get("id"), None);
        assert_eq!(ledger.error_value(Some(&id(2)), &error)["id"], 2);
    }

    #[test]
    fn there_is_room_for_1024_requests_and_as_many_may_wait() {
        let ledger = RequestLedger::default();
        for number in 0..1024 {
            assert!(ledger.has_room(), "{number}");
            ledger.open(&id(number), 0).unwrap();
            ledger.deliver(&id(number));
        }
        assert!(!ledger.has_room());
        for number in 1024..2048 {
            assert!(ledger.may_read(), "{number}");
            ledger.open(&id(number), 0).unwrap();
        }
        assert!(!ledger.may_read());
        for number in 0..1024 {
            let line = ledger.encode(&answer(number)).unwrap();
            ledger.add_unwritten(line.len());
            ledger.remove_written(line.len());
        }
        assert!(ledger.has_room() && ledger.may_read());
        for number in 1024..2048 {
            ledger.cancel(&id(number));
        }
        let state = ledger.state();
        assert_eq!((state.active_cost, state.queued_cost), (0, 0));
    }

    #[test]
    fn answers_that_nobody_reads_take_room() {
        let ledger = RequestLedger::default();
        ledger.add_unwritten(MAX_COST);
        assert!(!ledger.has_room() && ledger.may_read());
        ledger.add_unwritten(MAX_COST);
        assert!(!ledger.may_read());
        ledger.remove_written(2 * MAX_COST);
        assert!(ledger.has_room() && ledger.may_read());
    }
}
