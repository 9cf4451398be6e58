//! One client and one server, and what is open between them.
//!
//! All state is behind one lock, which is held for the microseconds that a message takes. Nothing in here
//! waits: what cannot go on yet is parked, with a time at which it is given up.

mod answer;
mod ask;
mod call;
mod client;
mod life;
mod list;
mod pass;
mod server;
mod state;

use super::Limits;
use super::json::Object;
use super::judge::Judge;
use super::message::{Invalid, Message};
use super::observe::Observer;
use super::outbox::Outbox;
use super::outline::Outline;
use super::pins::Pins;
use state::{Core, Server};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// JSON-RPC 2.0 §5.1.
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const INTERNAL_ERROR: i32 = -32603;
/// How long a server may take for what we ask it ourselves: one page, a handshake.
const OWN_PATIENCE: Duration = Duration::from_secs(60);
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The connection between one client and one server. A clone is the same.
#[derive(Clone, Debug)]
pub(super) struct Session {
    core: Arc<Mutex<Core>>,
    client: Outbox,
    wake: Arc<Notify>,
}

/// What the one who runs the server is to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Todo {
    /// The client is gone, and nothing is open any more that it might read.
    pub(super) end: bool,
    /// The server of this generation is of no use any more.
    pub(super) condemned: Option<u64>,
    /// When to look again.
    pub(super) next: Option<Instant>,
}

impl Session {
    /// A session whose server has not been started yet.
    pub(super) fn new(
        judge: Judge,
        limits: Limits,
        pins: Option<Pins>,
        observer: Option<Arc<dyn Observer>>,
        client: Outbox,
    ) -> Self {
        let wake = Arc::new(Notify::new());
        let core = Core {
            judge,
            limits,
            pins,
            observer,
            recent: VecDeque::new(),
            client: client.clone(),
            wake: Arc::clone(&wake),
            armed: None,
            server: Server::Down { why: "it has not been started yet".to_owned() },
            generation: 0,
            condemned: None,
            over: None,
            last_id: 0,
            handshake: None,
            meta: Object::default(),
            open: HashMap::new(),
            sent: HashMap::new(),
            asked: HashMap::new(),
            parked: VecDeque::new(),
            again: BTreeMap::new(),
            catalogue: None,
            is_stale: false,
            refresh: None,
            withheld: Vec::new(),
        };
        Self { core: Arc::new(Mutex::new(core)), client, wake }
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the state, and writes what came of it once the lock is free: a reader that is woken
    /// by the write must not find it taken.
    fn with<T>(&self, act: impl FnOnce(&mut Core) -> T) -> T {
        let mut core = self.core();
        let outcome = act(&mut core);
        let server = core.outbox().cloned();
        drop(core);
        if let Some(server) = server {
            server.drain();
        }
        self.client.drain();
        outcome
    }

    /// Where the client's lines go.
    pub(super) fn client(&self) -> &Outbox {
        &self.client
    }

    /// Resolves when there is something to do.
    pub(super) async fn wait(&self) {
        self.wake.notified().await;
    }

    /// One line from the client.
    pub(super) fn client_line(&self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        match Message::parse(line) {
            Ok(message) => self.with(|core| core.client_message(message)),
            Err(invalid) => self.with(|core| core.refuse_line(&invalid)),
        }
    }

    /// A line from the client that was too long to keep.
    pub(super) fn client_line_too_long(&self, outline: Outline) {
        self.with(|core| core.refuse_line(&too_long(outline)));
    }

    /// The client sends nothing more.
    pub(super) fn client_is_gone(&self) {
        let mut core = self.core();
        core.over.get_or_insert_with(Instant::now);
        core.wake.notify_one();
    }

    /// One line from the server of this generation.
    pub(super) fn server_line(&self, generation: u64, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let message = Message::parse(line);
        self.with_server(generation, |core| match message {
            Ok(message) => core.server_message(message),
            Err(invalid) => core.unreadable_answer(&invalid),
        });
    }

    /// A line from the server that was too long to keep.
    pub(super) fn server_line_too_long(&self, generation: u64, outline: Outline) {
        self.with_server(generation, |core| core.unreadable_answer(&too_long(outline)));
    }

    /// Does something for the server of this generation, and nothing for one that is gone.
    fn with_server(&self, generation: u64, act: impl FnOnce(&mut Core)) {
        self.with(|core| {
            if core.generation == generation {
                act(core);
            }
        });
    }

    /// The server will not answer the request that we sent under this id, if that is still open.
    #[cfg(feature = "url")]
    pub(super) fn server_gave_up(&self, generation: u64, id: &super::message::Id, problem: &str) {
        self.with_server(generation, |core| {
            if let Some(sent) = id.number().and_then(|number| core.sent.remove(&number)) {
                core.fail(sent, problem);
            }
        });
    }

    /// What client and server have agreed on, in the `initialize` era.
    #[cfg(feature = "url")]
    pub(super) fn protocol_version(&self) -> Option<String> {
        self.core().handshake.as_ref()?.version.clone()
    }

    /// A server was started; its lines go to `outbox`. The generation by which it is known.
    pub(super) fn server_is_up(&self, outbox: Outbox) -> u64 {
        self.with(|core| core.up(outbox))
    }

    /// The server of this generation is gone.
    pub(super) fn server_is_gone(&self, generation: u64, why: &str) {
        self.with_server(generation, |core| core.down(why));
    }

    /// No server could be started.
    pub(super) fn server_cannot_start(&self, why: &str) {
        let mut core = self.core();
        core.server = Server::Down { why: why.to_owned() };
    }

    /// Gives up what has waited too long, and says what is to be done.
    pub(super) fn tick(&self, now: Instant) -> Todo {
        self.with(|core| core.tick(now))
    }

    /// Another policy is in force: the client is told if it sees other tools.
    pub(super) fn policy_has_changed(&self) {
        self.with(Core::announce_if_changed);
    }
}

fn too_long(outline: Outline) -> Invalid {
    Invalid {
        is_answered: outline.is_answered(),
        id: outline.id,
        code: INVALID_REQUEST,
        problem: format!("a message of more than {} bytes", super::message::MAX_MESSAGE_BYTES),
    }
}
