//! Which requests have been taken and not yet answered, and how much memory all of it takes.

use rmcp::model::{
    ErrorData, JsonRpcMessage, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
};
use serde_json::Value;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// No request is given to the server while those it has, and the answers that wait for the client to read,
/// weigh more, in bytes.
const ROOM: usize = 8 << 20;

/// What a request weighs beside the bytes of its line: a task, its channels, an answer yet to come. With
/// [`ROOM`], 1024 small requests are worked on at a time.
const REQUEST_WEIGHT: usize = 8 << 10;

/// Cancelled ids that are remembered.
const REMEMBERED: usize = 4096;

/// Which requests have been taken and not yet answered; the arrays that their answers belong to; what waits
/// for the client to read.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    state: Mutex<State>,
    lighter: Notify,
}

#[derive(Debug, Default)]
struct State {
    open: HashMap<RequestId, Open>,
    cancelled: Cancelled,
    batches: Vec<Batch>,
    /// What `initialize` was answered with. None in the other era.
    negotiated: Option<ProtocolVersion>,
    /// What requests weigh that have not been given to the server.
    parked: usize,
    /// What requests weigh that have, and lines that have not been written.
    held: usize,
}

#[derive(Debug)]
struct Open {
    weight: usize,
    given: bool,
}

/// The ids that were cancelled last. rmcp says nothing when the handler of a cancelled request ends, and
/// takes its late answer for the answer to whatever has the same id by then.
#[derive(Debug, Default)]
struct Cancelled {
    ids: HashSet<RequestId>,
    order: VecDeque<RequestId>,
}

impl Cancelled {
    fn remember(&mut self, id: &RequestId) {
        if self.ids.insert(id.clone()) {
            self.order.push_back(id.clone());
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }
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

    /// Notes a request of so many bytes, or says why its id cannot be used: two answers with one id would
    /// answer neither.
    pub(super) fn open(&self, id: &RequestId, bytes: usize) -> Result<(), String> {
        let mut state = self.state();
        if state.open.contains_key(id) {
            return Err(format!("the id {id:?} is in use by another", id = id.to_string()));
        }
        if state.cancelled.ids.contains(id) {
            return Err("its id was used before, by a request that was cancelled".to_owned());
        }
        let weight = bytes + REQUEST_WEIGHT;
        state.parked += weight;
        state.open.insert(id.clone(), Open { weight, given: false });
        Ok(())
    }

    /// Notes that the server has a request now.
    pub(super) fn give(&self, id: &RequestId) {
        let mut state = self.state();
        let Some(open) = state.open.get_mut(id) else { return };
        open.given = true;
        let weight = open.weight;
        state.parked -= weight;
        state.held += weight;
    }

    /// Notes that a request will get no answer, because its client cancelled it.
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

    /// Whether every request that was taken has been answered.
    pub(super) fn is_empty(&self) -> bool {
        self.state().open.is_empty()
    }

    /// Whether the server may be given another request.
    pub(super) fn has_room(&self) -> bool {
        self.state().held < ROOM
    }

    /// Whether another line may be read. As much as is worked on may wait for its turn, so that what is no
    /// request (a cancellation above all) is seen behind it.
    pub(super) fn may_read(&self) -> bool {
        let state = self.state();
        state.held + state.parked < 2 * ROOM
    }

    /// Completes when something has been answered, cancelled or written after this call.
    pub(super) fn lighter(&self) -> Notified<'_> {
        self.lighter.notified()
    }

    /// Waits until there is room.
    pub(super) async fn room(&self) {
        loop {
            let lighter = self.lighter();
            if self.has_room() {
                return;
            }
            lighter.await;
        }
    }

    /// Notes that so many bytes wait for the client to read.
    pub(super) fn hold(&self, bytes: usize) {
        self.state().held += bytes;
    }

    /// Notes that so many bytes have been written.
    pub(super) fn release(&self, bytes: usize) {
        self.state().held -= bytes;
        self.lighter.notify_waiters();
    }

    /// Whether rmcp has chosen an era, if it asks for the next message now. Before that it answers each
    /// request first; so one that it has not answered, or an `initialize` that it has, is the first of its
    /// service.
    pub(super) fn is_serving(&self) -> bool {
        let state = self.state();
        state.negotiated.is_some() || state.open.values().any(|open| open.given)
    }

    /// JSON-RPC arrays exist in 2025-03-26 alone.
    pub(super) fn takes_batches(&self) -> bool {
        self.state().negotiated.as_ref() == Some(&ProtocolVersion::V_2025_03_26)
    }

    /// Announces an array of requests, whose answers go out as one array.
    pub(super) fn open_batch(&self, ids: HashSet<RequestId>, answers: Vec<Value>) {
        self.state().batches.push(Batch { waiting: ids, answers });
    }

    /// The bytes to send for `message`: none where it waits for others of its array, or was cancelled.
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
        let open = state.open.remove(id)?;
        if open.given {
            state.held -= open.weight;
        } else {
            state.parked -= open.weight;
        }
        self.lighter.notify_waiters();
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

    /// The bytes of an error that answers no request of the ledger.
    pub(super) fn refusal(&self, id: Option<&RequestId>, error: &ErrorData) -> Option<Vec<u8>> {
        line(&self.refusal_value(id, error))
    }

    /// An error that answers no request of the ledger. Where the id could not be read, or belongs to a
    /// request whose answer is still to come, it is null, as JSON-RPC 2.0 §5 has it, and absent on
    /// 2026-07-28, as that schema has it.
    pub(super) fn refusal_value(&self, id: Option<&RequestId>, error: &ErrorData) -> Value {
        let state = self.state();
        let id = id.filter(|id| !state.open.contains_key(id));
        let mut value = serde_json::json!({"jsonrpc": "2.0", "id": id, "error": error});
        if id.is_none() && state.negotiated.is_none() {
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
        let ledger = Ledger::default();
        ledger.open(&id(1), 0).unwrap();
        assert_eq!(ledger.cancel(&id(1)), None);
        assert_eq!(ledger.encode(&answer(1)), None);
        assert!(ledger.open(&id(1), 0).unwrap_err().contains("used before"));
        for other in 2..=REMEMBERED as i64 + 1 {
            ledger.open(&id(other), 0).unwrap();
            ledger.cancel(&id(other));
        }
        assert!(ledger.open(&id(1), 0).is_ok(), "the oldest is forgotten");
        assert!(ledger.open(&id(2), 0).is_err());
    }

    #[test]
    fn a_request_answered_before_its_cancellation_leaves_its_id_free() {
        let ledger = Ledger::default();
        ledger.open(&id(1), 0).unwrap();
        assert!(ledger.encode(&answer(1)).is_some());
        ledger.cancel(&id(1));
        assert!(ledger.open(&id(1), 0).is_ok());
    }

    #[test]
    fn a_refusal_never_takes_the_id_of_a_request_to_be_answered() {
        let ledger = Ledger::default();
        ledger.open(&id(1), 0).unwrap();
        let error = ErrorData::invalid_request("no", None);
        assert_eq!(ledger.refusal_value(Some(&id(1)), &error).get("id"), None);
        assert_eq!(ledger.refusal_value(Some(&id(2)), &error)["id"], 2);
    }

    #[test]
    fn there_is_room_for_1024_requests_and_as_many_may_wait() {
        let ledger = Ledger::default();
        for number in 0..1024 {
            assert!(ledger.has_room(), "{number}");
            ledger.open(&id(number), 0).unwrap();
            ledger.give(&id(number));
        }
        assert!(!ledger.has_room());
        for number in 1024..2048 {
            assert!(ledger.may_read(), "{number}");
            ledger.open(&id(number), 0).unwrap();
        }
        assert!(!ledger.may_read());
        for number in 0..1024 {
            let line = ledger.encode(&answer(number)).unwrap();
            ledger.hold(line.len());
            ledger.release(line.len());
        }
        assert!(ledger.has_room() && ledger.may_read());
        for number in 1024..2048 {
            ledger.cancel(&id(number));
        }
        let state = ledger.state();
        assert_eq!((state.held, state.parked), (0, 0));
    }

    #[test]
    fn answers_that_nobody_reads_take_room() {
        let ledger = Ledger::default();
        ledger.hold(ROOM);
        assert!(!ledger.has_room() && ledger.may_read());
        ledger.hold(ROOM);
        assert!(!ledger.may_read());
        ledger.release(2 * ROOM);
        assert!(ledger.has_room() && ledger.may_read());
    }
}
