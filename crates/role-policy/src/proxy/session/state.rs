//! What there is to know of the two: what is open, what waits, what the server offers.

use crate::Caller;
use crate::proxy::Limits;
use crate::proxy::catalogue::{Tool, Withheld};
use crate::proxy::json::{Json, Object};
use crate::proxy::judge::Judge;
use crate::proxy::message::{Id, Message};
use crate::proxy::observe::{Observed, Observer};
use crate::proxy::outbox::Outbox;
use crate::proxy::pins::Pins;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

pub(super) struct Core {
    pub(super) judge: Judge,
    pub(super) limits: Limits,
    pub(super) pins: Option<Pins>,
    pub(super) observer: Option<Arc<dyn Observer>>,
    /// When the last calls were sent, where the role may make so many in a minute.
    pub(super) recent: VecDeque<Instant>,
    pub(super) client: Outbox,
    pub(super) wake: Arc<Notify>,
    /// When the other side looks at the clock next, unless it is woken before.
    pub(super) armed: Option<Instant>,

    pub(super) server: Server,
    pub(super) generation: u64,
    pub(super) condemned: Option<u64>,
    /// Since when the client is gone.
    pub(super) over: Option<Instant>,
    pub(super) last_id: u64,
    pub(super) handshake: Option<Handshake>,
    /// What a modern client says of itself in each request, for requests of our own.
    pub(super) meta: Object<'static>,
    /// The client's requests that have no answer yet.
    pub(super) open: HashMap<Id, Open>,
    /// What the server has not answered yet, by our id.
    pub(super) sent: HashMap<u64, Sent>,
    /// What the client has not answered yet: our id, and the server's.
    pub(super) asked: HashMap<u64, Id>,
    pub(super) parked: VecDeque<Parked>,
    /// What a server that was started again is told again, by what it is about.
    pub(super) again: BTreeMap<String, Message<'static>>,

    pub(super) catalogue: Option<Catalogue>,
    /// The server has said that its list has changed, or is another process than the one that gave it.
    pub(super) is_stale: bool,
    pub(super) refresh: Option<Refresh>,
    /// What was withheld last, so that it is logged once.
    pub(super) withheld: Vec<Withheld>,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("judge", &self.judge)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(super) enum Server {
    Down {
        why: String,
    },
    /// It hears again what the client said in its handshake.
    Greeted(Outbox),
    Ready(Outbox),
}

#[derive(Debug)]
pub(super) struct Handshake {
    pub(super) params: Object<'static>,
    /// What the server has chosen, once it has.
    pub(super) version: Option<String>,
    /// The client has ended it.
    pub(super) is_complete: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    Sent(u64),
    Parked,
}

#[derive(Debug)]
pub(super) struct Sent {
    /// Under which id the client waits; nobody does for what we ask ourselves.
    pub(super) client: Option<Id>,
    pub(super) what: What,
    pub(super) deadline: Option<(Instant, Duration)>,
    pub(super) progress: Option<Json<'static>>,
    pub(super) call: Option<Call>,
}

/// A call of a tool that was allowed, until it ends.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) rule: Arc<str>,
    pub(super) shape: (String, usize),
    pub(super) began: Instant,
    /// What the role's limits leave of the time.
    pub(super) limit: Duration,
}

/// What was sent, and so what its answer means.
#[derive(Debug)]
pub(super) enum What {
    Initialize,
    Discover,
    /// Passed back as it is.
    Passed,
    /// A stream, opened again at a server that was started again.
    Listen {
        request: Box<Message<'static>>,
        is_acknowledged: bool,
    },
    /// Our own: the handshake said again.
    Greeting,
    /// Our own: a setting said again.
    Again,
    /// Our own: one page of the list of tools.
    Page,
}

#[derive(Debug)]
pub(super) struct Parked {
    pub(super) id: Id,
    pub(super) message: Message<'static>,
    pub(super) why: Wants,
    pub(super) deadline: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    /// The list of tools.
    List,
    /// The list, to be judged by.
    Call,
    /// A server that is ready.
    Server(Passing),
}

/// The same as [`What`], of those that a client may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passing {
    Initialize,
    Discover,
    Plain,
    /// The stream was opened before.
    Listen {
        is_acknowledged: bool,
    },
}

#[derive(Debug)]
pub(super) struct Catalogue {
    pub(super) tools: Vec<Tool>,
    /// Where each is in `tools`.
    pub(super) names: HashMap<String, usize>,
    /// What else is in the list's result.
    pub(super) rest: Object<'static>,
    /// The names and definitions that the client was told of last, or would have been.
    pub(super) announced: Option<Vec<u8>>,
}

#[derive(Debug, Default)]
pub(super) struct Refresh {
    pub(super) entries: Vec<Json<'static>>,
    pub(super) rest: Option<Object<'static>>,
    pub(super) pages: usize,
    /// The list has changed while it was read.
    pub(super) is_stale: bool,
}

impl Call {
    pub(super) fn observed<'a>(&'a self, caller: &'a Caller) -> Observed<'a> {
        let (shape, bytes) = &self.shape;
        Observed::new(caller, &self.tool, ("allowed", &self.rule), (shape, *bytes))
    }
}

impl Sent {
    /// The id of a stream that was opened to hear of changed tools.
    pub(super) fn wants_tools(&self) -> Option<&Id> {
        let What::Listen { request, .. } = &self.what else { return None };
        let wanted = request.params()?.get("notifications")?.as_object()?.get("toolsListChanged")?;
        (*wanted == Json::Bool(true)).then_some(self.client.as_ref()?)
    }
}
