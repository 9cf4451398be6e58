//! One client and one server, and what is open between them.
//!
//! All state is behind one lock, which is held for the microseconds that a message takes. Nothing in here
//! blocks: a request that cannot go on yet is parked, with a deadline.

mod approvals;
mod client_answers;
mod client_approvals;
mod client_messages;
mod forward;
mod lifecycle;
mod own_requests;
mod server_messages;
mod state;
mod tool_calls;
mod tool_list;

use super::authorizer::Authorizer;
use super::limits::McpProxyLimits;
use super::observer::ProxyObserver;
use super::output_queue::OutputQueue;
use super::pinned_tools::PinnedTools;
use super::proxy_approvals::ProxyApprovals;
use json_rpc::json::JsonObject;
use json_rpc::message::{InvalidMessage, Message};
use json_rpc::message_outline::MessageOutline;
use state::{ProxySessionState, SupervisorWork, UpstreamState};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;

/// The connection between one client and one server. A clone is the same.
#[derive(Clone, Debug)]
pub(super) struct ProxySession {
    state: Arc<Mutex<ProxySessionState>>,
    client: OutputQueue,
    wake: Arc<Notify>,
}

impl ProxySession {
    /// Creates a session whose server has not been started yet.
    pub(super) fn new(
        authorizer: Authorizer,
        limits: McpProxyLimits,
        pinned_tools: Option<PinnedTools>,
        observer: Option<Arc<dyn ProxyObserver>>,
        approvals: Option<ProxyApprovals>,
        client: OutputQueue,
    ) -> Self {
        let wake = Arc::new(Notify::new());
        let state = ProxySessionState {
            authorizer,
            limits,
            pinned_tools,
            observer,
            approvals,
            waiting_approvals: HashMap::new(),
            client_questions: HashMap::new(),
            paused_calls: HashMap::new(),
            client_shows_forms: false,
            calls_per_minute: None,
            client: client.clone(),
            wake: Arc::clone(&wake),
            next_wake: None,
            server: UpstreamState::Down { reason: "it has not been started yet".to_owned() },
            generation: 0,
            condemned: None,
            client_gone_at: None,
            last_id: 0,
            handshake: None,
            meta: JsonObject::default(),
            client_requests: HashMap::new(),
            pending_requests: HashMap::new(),
            server_requests: HashMap::new(),
            parked_requests: VecDeque::new(),
            replayed_settings: BTreeMap::new(),
            tool_list: None,
            is_stale: false,
            refresh: None,
            withheld: Vec::new(),
            has_told_of_no_tools: false,
        };
        Self { state: Arc::new(Mutex::new(state)), client, wake }
    }

    fn state(&self) -> MutexGuard<'_, ProxySessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and writes the resulting lines once the lock is free: a reader that is woken by the write
    /// must not find the lock taken.
    fn with<T>(&self, act: impl FnOnce(&mut ProxySessionState) -> T) -> T {
        let mut state = self.state();
        let outcome = act(&mut state);
        let server = state.server_queue().cloned();
        drop(state);
        if let Some(server) = server {
            server.drain();
        }
        self.client.drain();
        outcome
    }

    /// Returns the queue of lines to the client.
    pub(super) fn client(&self) -> &OutputQueue {
        &self.client
    }

    /// Resolves when there is something to do.
    pub(super) async fn wait(&self) {
        self.wake.notified().await;
    }

    /// Handles one line from the client.
    pub(super) fn client_line(&self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        // Parsed before the lock is taken, so that a large message does not hold up the other side.
        match Message::parse(line) {
            Ok(message) => self.with(|state| state.client_message(message)),
            Err(invalid) => self.with(|state| state.refuse_line(&invalid)),
        }
    }

    /// Refuses a line from the client that was too long to keep.
    pub(super) fn client_line_too_long(&self, outline: MessageOutline) {
        self.with(|state| state.refuse_line(&InvalidMessage::too_large(outline)));
    }

    /// Notes that the client sends nothing more.
    pub(super) fn client_is_gone(&self) {
        let mut state = self.state();
        state.client_gone_at.get_or_insert_with(Instant::now);
        state.wake.notify_one();
    }

    /// Handles one line from the server of this generation.
    pub(super) fn server_line(&self, generation: u64, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let message = Message::parse(line);
        self.with_server(generation, |state| match message {
            Ok(message) => state.server_message(message),
            Err(invalid) => state.unreadable_answer(&invalid),
        });
    }

    /// Refuses a line from the server that was too long to keep.
    pub(super) fn server_line_too_long(&self, generation: u64, outline: MessageOutline) {
        self.with_server(generation, |state| state.unreadable_answer(&InvalidMessage::too_large(outline)));
    }

    /// Changes the state for the server of this generation; does nothing for an earlier one.
    fn with_server(&self, generation: u64, act: impl FnOnce(&mut ProxySessionState)) {
        self.with(|state| {
            // A line of a former server can still come after its successor was started.
            if state.generation == generation {
                act(state);
            }
        });
    }

    /// Fails the request that was sent under this id, if it is still open.
    #[cfg(feature = "url")]
    pub(super) fn server_gave_up(&self, generation: u64, id: &json_rpc::message::Id, problem: &str) {
        self.with_server(generation, |state| {
            if let Some(pending) = id.as_u64().and_then(|number| state.pending_requests.remove(&number)) {
                state.fail(pending, problem);
            }
        });
    }

    /// Returns the protocol version of the handshake, if there was one.
    #[cfg(feature = "url")]
    pub(super) fn protocol_version(&self) -> Option<String> {
        self.state().handshake.as_ref()?.version.clone()
    }

    /// Notes that a server was started, whose lines go to `queue`. Returns its generation.
    pub(super) fn server_is_up(&self, queue: OutputQueue) -> u64 {
        self.with(|state| state.server_up(queue))
    }

    /// Notes that the server of this generation is gone.
    pub(super) fn server_is_gone(&self, generation: u64, reason: &str) {
        self.with_server(generation, |state| state.server_down(reason));
    }

    /// Notes that no server could be started.
    pub(super) fn server_cannot_start(&self, reason: &str) {
        let mut state = self.state();
        state.server = UpstreamState::Down { reason: reason.to_owned() };
    }

    /// Fails what has waited too long, and returns the work for the supervising task.
    pub(super) fn tick(&self, now: Instant) -> SupervisorWork {
        self.with(|state| state.tick(now))
    }

    /// Notes that another policy is in force: the client is told if it sees other tools now.
    pub(super) fn policy_has_changed(&self) {
        self.with(ProxySessionState::announce_if_changed);
    }
}
