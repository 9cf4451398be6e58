//! One client and one server, and what is open between them.
//!
//! All state is behind one lock, which is held for the microseconds that a message takes. Nothing in here
//! waits: what cannot go on yet is parked, with a time at which it is given up.

use super::Limits;
use super::catalogue::{self, Tool, Withheld};
use super::json::{Json, Object};
use super::judge::{Judge, NotPermitted, Permit, call_parts};
use super::message::{Id, Invalid, Kind, Message};
use super::methods::{
    Area, ClientNotification, ClientRequest, ServerNotification, ServerRequest, client_notification,
    client_request, server_notification, server_request,
};
use super::observe::{self, Ended, Observed, Observer, Outcome};
use super::outbox::{NotTaken, Outbox};
use super::outline::Outline;
use super::pins::Pins;
use crate::{Caller, RoleLimits};
use std::borrow::Cow;
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

/// Pages and tools that one list may have.
const MAX_PAGES: usize = 100;
const MAX_TOOLS: usize = 10_000;
/// How long a server may take for what we ask it ourselves: one page, a handshake.
const OWN_PATIENCE: Duration = Duration::from_secs(60);
/// Requests of the server that may wait for the client.
const MAX_ASKED: usize = 256;

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
    pub(super) fn server_gave_up(&self, generation: u64, id: &Id, problem: &str) {
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

struct Core {
    judge: Judge,
    limits: Limits,
    pins: Option<Pins>,
    observer: Option<Arc<dyn Observer>>,
    /// When the last calls were sent, where the role may make so many in a minute.
    recent: VecDeque<Instant>,
    client: Outbox,
    wake: Arc<Notify>,
    /// When the other side looks at the clock next, unless it is woken before.
    armed: Option<Instant>,

    server: Server,
    generation: u64,
    condemned: Option<u64>,
    /// Since when the client is gone.
    over: Option<Instant>,
    last_id: u64,
    handshake: Option<Handshake>,
    /// What a modern client says of itself in each request, for requests of our own.
    meta: Object<'static>,
    /// The client's requests that have no answer yet.
    open: HashMap<Id, Open>,
    /// What the server has not answered yet, by our id.
    sent: HashMap<u64, Sent>,
    /// What the client has not answered yet: our id, and the server's.
    asked: HashMap<u64, Id>,
    parked: VecDeque<Parked>,
    /// What a server that was started again is told again, by what it is about.
    again: BTreeMap<String, Message<'static>>,

    catalogue: Option<Catalogue>,
    /// The server has said that its list has changed, or is another process than the one that gave it.
    is_stale: bool,
    refresh: Option<Refresh>,
    /// What was withheld last, so that it is logged once.
    withheld: Vec<Withheld>,
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
enum Server {
    Down {
        why: String,
    },
    /// It hears again what the client said in its handshake.
    Greeted(Outbox),
    Ready(Outbox),
}

#[derive(Debug)]
struct Handshake {
    params: Object<'static>,
    /// What the server has chosen, once it has.
    version: Option<String>,
    /// The client has ended it.
    is_complete: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Sent(u64),
    Parked,
}

#[derive(Debug)]
struct Sent {
    /// Under which id the client waits; nobody does for what we ask ourselves.
    client: Option<Id>,
    what: What,
    deadline: Option<(Instant, Duration)>,
    progress: Option<Json<'static>>,
    call: Option<Call>,
}

/// A call of a tool that was allowed, until it ends.
#[derive(Debug)]
struct Call {
    tool: String,
    rule: Arc<str>,
    shape: (String, usize),
    began: Instant,
    /// What the role's limits leave of the time.
    limit: Duration,
}

/// What was sent, and so what its answer means.
#[derive(Debug)]
enum What {
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
struct Parked {
    id: Id,
    message: Message<'static>,
    why: Wants,
    deadline: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wants {
    /// The list of tools.
    List,
    /// The list, to be judged by.
    Call,
    /// A server that is ready.
    Server(Passing),
}

/// The same as [`What`], of those that a client may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passing {
    Initialize,
    Discover,
    Plain,
    /// The stream was opened before.
    Listen {
        is_acknowledged: bool,
    },
}

#[derive(Debug)]
struct Catalogue {
    tools: Vec<Tool>,
    /// Where each is in `tools`.
    names: HashMap<String, usize>,
    /// What else is in the list's result.
    rest: Object<'static>,
    /// The names and definitions that the client was told of last, or would have been.
    announced: Option<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Refresh {
    entries: Vec<Json<'static>>,
    rest: Option<Object<'static>>,
    pages: usize,
    /// The list has changed while it was read.
    is_stale: bool,
}

impl Core {
    // ---- from the client

    fn refuse_line(&mut self, invalid: &Invalid) {
        tracing::warn!(problem = %invalid.problem, "refused a line of the client");
        if invalid.is_answered {
            let kind = if invalid.code == PARSE_ERROR { "parse error" } else { "invalid request" };
            // Not under the id of something else that is open.
            let id = invalid.id.as_ref().filter(|id| !self.open.contains_key(id));
            self.answer(&Message::error(id, invalid.code, &format!("{kind}: {}", invalid.problem)));
        }
    }

    fn client_message(&mut self, message: Message<'_>) {
        match message.kind.clone() {
            Kind::Request { id, method } => self.client_request(id, &method, message),
            Kind::Notification { method } => self.client_notification(&method, message),
            Kind::Response { id, .. } => self.client_response(&id, message),
        }
    }

    fn client_request(&mut self, id: Id, method: &str, message: Message<'_>) {
        if self.open.contains_key(&id) {
            self.not_sent(&message, "invalid", "its id is open already");
            let problem = format!("invalid request: the id {id} belongs to a request that is still open");
            return self.answer(&Message::error(None, INVALID_REQUEST, &problem));
        }
        if self.open.len() >= self.limits.in_flight {
            let problem = format!("not sent: {} requests are open already", self.open.len());
            self.not_sent(&message, "refused", "too many requests are open");
            return self.refuse(&id, INTERNAL_ERROR, &problem);
        }
        if message.is_modern() {
            self.remember_meta(&message);
        }
        let Some(class) = client_request(method) else { return self.no_such_method(&id, method) };
        match class {
            ClientRequest::Ping if message.is_modern() => self.no_such_method(&id, method),
            ClientRequest::Ping => self.answer(&Message::result(&id, Object::default())),
            ClientRequest::Initialize => self.initialize(id, message),
            ClientRequest::Discover => self.pass(id, message, Passing::Discover, None),
            ClientRequest::ListTools => self.list_tools(id, message, None),
            ClientRequest::CallTool => self.call_tool(id, message, None),
            ClientRequest::SetLevel => {
                self.again.insert(method.to_owned(), message.clone().into_owned());
                self.pass(id, message, Passing::Plain, None);
            }
            ClientRequest::Listen => self.listen(id, message),
            ClientRequest::Of(area) => {
                if !self.judge.grants(area) {
                    return self.no_such_method(&id, method);
                }
                self.remember_subscription(method, &message);
                self.pass(id, message, Passing::Plain, None);
            }
        }
    }

    /// What a modern client says of itself.
    fn remember_meta(&mut self, message: &Message<'_>) {
        let Some(meta) = message.meta() else { return };
        const OWN: &str = "io.modelcontextprotocol/";
        let own = || meta.members().filter(|(name, _)| name.starts_with(OWN) && *name != SUBSCRIPTION);
        if self
            .meta
            .members()
            .map(|(name, value)| (name, value.clone()))
            .eq(own().map(|(n, v)| (n, v.clone())))
        {
            return;
        }
        let mut kept = Object::default();
        for (name, value) in own() {
            kept.set(name.to_owned(), value.clone().into_owned());
        }
        self.meta = kept;
    }

    fn remember_subscription(&mut self, method: &str, message: &Message<'_>) {
        /// A client that subscribes to more hears of them until the server is started again.
        const MOST: usize = 1024;
        let Some(uri) = message.params().and_then(|params| params.get("uri")).and_then(Json::as_str) else {
            return;
        };
        let key = format!("resources/subscribe {uri}");
        match method {
            "resources/subscribe" if self.again.len() < MOST => {
                self.again.insert(key, message.clone().into_owned());
            }
            "resources/unsubscribe" => drop(self.again.remove(&key)),
            _ => {}
        }
    }

    fn initialize(&mut self, id: Id, message: Message<'_>) {
        if self.handshake.is_some() {
            return self.refuse(&id, INVALID_REQUEST, "invalid request: the handshake has been made already");
        }
        let params = message.params().cloned().unwrap_or_default().into_owned();
        self.handshake = Some(Handshake { params, version: None, is_complete: false });
        self.pass(id, message, Passing::Initialize, None);
    }

    fn list_tools(&mut self, id: Id, message: Message<'_>, deadline: Option<Instant>) {
        if let Some(cursor) = message.params().and_then(|params| params.get("cursor")) {
            let short: String = cursor.to_string().chars().take(64).collect();
            let problem = format!("no such cursor: {short}; this list has one page");
            return self.refuse(&id, INVALID_PARAMS, &problem);
        }
        if !matches!(self.server, Server::Ready(_)) && self.catalogue.is_some() {
            return self.answer_list(&id, message.is_modern());
        }
        self.park(id, message, Wants::List, deadline);
        self.start_refresh();
    }

    fn call_tool(&mut self, id: Id, message: Message<'_>, deadline: Option<Instant>) {
        let Some((name, arguments)) = message.params().and_then(call_parts) else {
            self.not_sent(&message, "invalid", "the parameters do not fit");
            let problem =
                "the parameters of tools/call do not fit: expected {\"name\": string, \"arguments\": object}";
            return self.refuse(&id, INVALID_PARAMS, problem);
        };
        let is_ready = matches!(self.server, Server::Ready(_));
        let Some(catalogue) = self.catalogue.as_ref().filter(|_| !is_ready || !self.is_stale) else {
            // Also for a name that the policy hides, so that the time says nothing about it.
            self.park(id, message, Wants::Call, deadline);
            return self.start_refresh();
        };
        let verdict = self.judge.call(name, arguments);
        let exists = catalogue.names.contains_key(name);
        match verdict {
            Ok(permit) if exists => self.send_call(id, message, &permit, deadline),
            Err(NotPermitted::Arguments { rule, words }) if exists => {
                self.not_sent(&message, "refused", &rule);
                self.refuse_call(&id, words);
            }
            verdict => {
                // The specification's code of each era, and one text.
                let code = if message.is_modern() { INVALID_PARAMS } else { METHOD_NOT_FOUND };
                let short: String = name.chars().take(64).collect();
                let text = format!("no tool is called `{short}`; tools/list names those there are");
                match verdict {
                    Err(NotPermitted::Hidden(rule)) if exists => self.not_sent(&message, "hidden", &rule),
                    _ => self.not_sent(&message, "unknown", ""),
                }
                self.refuse(&id, code, &text);
            }
        }
    }

    /// A refusal that the model reads: the tool is there, and this call of it may not be.
    fn refuse_call(&mut self, id: &Id, words: String) {
        let text = [("type", Json::string("text")), ("text", Json::string(words))];
        let content = Json::Array(vec![Json::Object(text.into_iter().collect())]);
        let result = [("content", content), ("isError", Json::Bool(true))];
        self.answer(&Message::result(id, result.into_iter().collect()));
    }

    /// The only way of a `tools/call` to the server.
    fn send_call(&mut self, id: Id, message: Message<'_>, permit: &Permit, deadline: Option<Instant>) {
        let Some((name, arguments)) = message.params().and_then(call_parts) else { return };
        // One that waits is judged again, by the policy and the list of that moment.
        if !matches!(self.server, Server::Ready(_)) {
            return self.park(id, message, Wants::Call, deadline);
        }
        let limits = self.judge.limits();
        if let Err(words) = self.within(limits, arguments) {
            self.not_sent(&message, "refused", "limits");
            return self.refuse_call(&id, words);
        }
        let most = limits.max_seconds.map_or(Duration::MAX, Duration::from_secs);
        let call = Call {
            tool: name.to_owned(),
            rule: permit.rule(),
            shape: self.shape(name, arguments),
            began: Instant::now(),
            limit: self.limits.of(name).min(most),
        };
        if let Some(observer) = &self.observer
            && let Err(error) = observer.starts(&call.observed(self.judge.caller()))
        {
            tracing::error!(%error, "the audit cannot be written, so no call is sent");
            self.not_sent(&message, "refused", "audit");
            let words = "not sent: calls are recorded here, and the record cannot be written now; the \
                         operator must make room";
            return self.refuse_call(&id, words.to_owned());
        }
        if limits.calls_per_minute.is_some() {
            self.recent.push_back(call.began);
        }
        self.send(id, message, Passing::Plain, Some(call), deadline);
    }

    /// Whether the role's limits leave room for one call more.
    fn within(&mut self, limits: RoleLimits, arguments: Option<&Object<'_>>) -> Result<(), String> {
        const MINUTE: Duration = Duration::from_secs(60);
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        if let Some(most) = limits.max_argument_bytes {
            let bytes = arguments.map_or(0, observe::bytes);
            if count(bytes) > most {
                return Err(format!("the arguments have {bytes} bytes; this role may send {most}"));
            }
        }
        if let Some(most) = limits.concurrent_calls {
            let running = self.sent.values().filter(|sent| sent.call.is_some()).count();
            if count(running) >= most {
                return Err(format!(
                    "not run: this role may run {most} calls at once, and so many are running"
                ));
            }
        }
        if let Some(most) = limits.calls_per_minute {
            let now = Instant::now();
            while self.recent.front().is_some_and(|sent| now.duration_since(*sent) >= MINUTE) {
                self.recent.pop_front();
            }
            if count(self.recent.len()) >= most {
                let first = self.recent.front().map_or(MINUTE, |sent| MINUTE - now.duration_since(*sent));
                return Err(format!(
                    "not run: this role may make {most} calls in a minute; try again in {} ms",
                    first.as_millis() + 1
                ));
            }
        }
        Ok(())
    }

    // ---- for the record

    fn shape(&self, name: &str, arguments: Option<&Object<'_>>) -> (String, usize) {
        // What nobody asks for costs nothing.
        if self.observer.is_none() {
            return (String::new(), 0);
        }
        let tool = self.catalogue.as_ref().and_then(|list| list.tools.get(*list.names.get(name)?));
        observe::shape(arguments, tool.map(|tool| &tool.definition))
    }

    /// Records a call that is not sent; of another request nothing is recorded.
    fn not_sent(&self, message: &Message<'_>, decision: &'static str, rule: &str) {
        let Some(observer) = &self.observer else { return };
        if !is_call(message) {
            return;
        }
        let params = message.params();
        let name = params.and_then(|params| params.get("name")).and_then(Json::as_str).unwrap_or_default();
        let arguments = params.and_then(|params| params.get("arguments")).and_then(Json::as_object);
        let (shape, bytes) = self.shape(name, arguments);
        let call = Observed::new(self.judge.caller(), name, (decision, rule), (&shape, bytes));
        observer.ended(&call, &Ended::NOT_RUN);
    }

    /// Records the end of a call that was sent.
    fn ended(&self, call: Option<&Call>, outcome: Outcome, bytes_out: usize) {
        if let (Some(observer), Some(call)) = (&self.observer, call) {
            let end = Ended::after(call.began.elapsed(), outcome, bytes_out);
            observer.ended(&call.observed(self.judge.caller()), &end);
        }
    }

    fn listen(&mut self, id: Id, mut message: Message<'_>) {
        let resources = self.judge.grants(Area::Resources);
        let prompts = self.judge.grants(Area::Prompts);
        if let Some(Json::Object(wanted)) = message.params_mut().get_mut("notifications") {
            wanted.retain(|name| match name {
                "toolsListChanged" => true,
                "promptsListChanged" => prompts,
                _ => resources,
            });
        }
        self.pass(id, message, Passing::Listen { is_acknowledged: false }, None);
    }

    /// Sends a request on, or parks it until there is a server.
    fn pass(&mut self, id: Id, message: Message<'_>, how: Passing, deadline: Option<Instant>) {
        self.send(id, message, how, None, deadline);
    }

    /// The same; `call` is what was judged, where it is a call.
    fn send(
        &mut self,
        id: Id,
        mut message: Message<'_>,
        how: Passing,
        call: Option<Call>,
        deadline: Option<Instant>,
    ) {
        let Server::Ready(outbox) = &self.server else {
            return self.park(id, message, Wants::Server(how), deadline);
        };
        let outbox = outbox.clone();
        let limit = match (&how, &call) {
            (Passing::Listen { .. }, _) => None,
            (_, Some(call)) => Some(call.limit),
            _ => Some(self.limits.call),
        };
        let what = match how {
            Passing::Initialize => What::Initialize,
            Passing::Discover => What::Discover,
            Passing::Plain => What::Passed,
            Passing::Listen { is_acknowledged } => {
                What::Listen { request: Box::new(message.clone().into_owned()), is_acknowledged }
            }
        };
        let progress =
            message.meta().and_then(|meta| meta.get("progressToken")).map(|token| token.clone().into_owned());
        let ours = self.next_id();
        message.set_id(&ours);
        match outbox.put(message.to_line()) {
            Ok(()) => {
                let number = self.last_id;
                let deadline = limit.map(|limit| (Instant::now() + limit, limit));
                self.arm(deadline.map(|(at, _)| at));
                self.open.insert(id.clone(), Open::Sent(number));
                self.sent.insert(number, Sent { client: Some(id), what, deadline, progress, call });
            }
            Err(NotTaken::Full) => {
                self.open.remove(&id);
                self.ended(call.as_ref(), Outcome::NotRun, 0);
                self.refuse(&id, INTERNAL_ERROR, "not sent: the server does not read what it is sent");
            }
            // Its end is about to be noticed, and it gets no more.
            Err(NotTaken::Closed) => {
                self.condemn();
                self.ended(call.as_ref(), Outcome::NotRun, 0);
                let why = if call.is_some() { Wants::Call } else { Wants::Server(how) };
                self.park(id, message, why, deadline);
            }
        }
    }

    fn park(&mut self, id: Id, message: Message<'_>, why: Wants, deadline: Option<Instant>) {
        // The catalogue of a server that runs takes as long as the server does; a server that is down has a
        // bounded time to come back.
        let wait = match self.server {
            Server::Down { .. } => self.limits.reconnect,
            _ => OWN_PATIENCE,
        };
        let is_stream = matches!(why, Wants::Server(Passing::Listen { .. }));
        let deadline = (!is_stream).then(|| deadline.unwrap_or_else(|| Instant::now() + wait));
        self.arm(deadline);
        self.open.insert(id.clone(), Open::Parked);
        let mut message = message.into_owned();
        message.set_id(&id);
        self.parked.push_back(Parked { id, message, why, deadline });
    }

    /// Tries again what was parked; what still cannot go on is parked again, no longer than before.
    fn unpark(&mut self) {
        for parked in std::mem::take(&mut self.parked) {
            self.open.remove(&parked.id);
            match parked.why {
                Wants::List => self.list_tools(parked.id, parked.message, parked.deadline),
                Wants::Call => self.call_tool(parked.id, parked.message, parked.deadline),
                Wants::Server(how) => match parked.message.kind.clone() {
                    // Another policy may hold by now.
                    Kind::Request { method, .. } if !self.still_grants(&method) => {
                        self.no_such_method(&parked.id, &method);
                    }
                    _ => self.pass(parked.id, parked.message, how, parked.deadline),
                },
            }
        }
    }

    fn still_grants(&self, method: &str) -> bool {
        match client_request(method) {
            Some(ClientRequest::Of(area)) => self.judge.grants(area),
            _ => true,
        }
    }

    fn client_notification(&mut self, method: &str, mut message: Message<'_>) {
        match client_notification(method) {
            None => tracing::debug!(method, "dropped a notification of the client"),
            Some(ClientNotification::Initialized) => {
                let Some(handshake) = &mut self.handshake else { return };
                handshake.is_complete = true;
                self.tell(&message);
            }
            Some(ClientNotification::Passed) => self.tell(&message),
            Some(ClientNotification::Cancelled) => {
                let id = message.params().and_then(|params| params.get("requestId")).and_then(Id::of);
                let Some(id) = id else { return };
                match self.open.get(&id) {
                    // MCP: the handshake is not cancelled.
                    Some(Open::Sent(number))
                        if matches!(self.sent.get(number).map(|sent| &sent.what), Some(What::Initialize)) => {
                    }
                    Some(Open::Sent(number)) => {
                        let number = *number;
                        self.open.remove(&id);
                        let sent = self.sent.remove(&number);
                        self.ended(sent.and_then(|sent| sent.call).as_ref(), Outcome::Failed, 0);
                        message.params_mut().set("requestId", Json::Number(Cow::Owned(number.to_string())));
                        self.tell(&message);
                    }
                    Some(Open::Parked) => {
                        self.open.remove(&id);
                        for parked in self.take_parked(|parked| parked.id == id) {
                            self.not_sent(&parked.message, "refused", "cancelled");
                        }
                    }
                    None => {}
                }
            }
        }
    }

    fn client_response(&mut self, id: &Id, mut message: Message<'_>) {
        match id.number().and_then(|number| self.asked.remove(&number)) {
            Some(theirs) => {
                message.set_id(&theirs);
                self.tell(&message);
            }
            None => tracing::debug!(%id, "dropped an answer of the client to nothing that is open"),
        }
    }

    // ---- to the client

    fn answer(&mut self, message: &Message<'_>) {
        self.answer_line(message.to_line());
    }

    fn answer_line(&mut self, line: Vec<u8>) {
        match self.client.put(line) {
            Ok(()) => {}
            Err(reason) => {
                // Who has not read so much will not read on.
                tracing::debug!(?reason, "the client is gone");
                self.over.get_or_insert_with(Instant::now);
                self.wake.notify_one();
            }
        }
    }

    fn refuse(&mut self, id: &Id, code: i32, problem: &str) {
        self.answer(&Message::error(Some(id), code, problem));
    }

    fn no_such_method(&mut self, id: &Id, method: &str) {
        let short: String = method.chars().take(64).collect();
        self.refuse(id, METHOD_NOT_FOUND, &format!("no method is called `{short}`"));
    }

    fn answer_list(&mut self, id: &Id, is_modern: bool) {
        let Some(catalogue) = &self.catalogue else { return };
        let mut result = catalogue.rest.clone();
        let tools = self.visible(catalogue).map(|tool| Json::Object(tool.definition.clone())).collect();
        result.set("tools", Json::Array(tools));
        if is_modern {
            // What one role sees is not for another.
            result.set("cacheScope", Json::string("private"));
        }
        let announced = self.seen(catalogue);
        if let Some(catalogue) = &mut self.catalogue {
            catalogue.announced = Some(announced);
        }
        self.answer(&Message::result(id, result));
    }

    fn visible<'c>(&'c self, catalogue: &'c Catalogue) -> impl Iterator<Item = &'c Tool> {
        catalogue.tools.iter().filter(|tool| self.judge.sees(&tool.name))
    }

    /// What the client sees, to be compared.
    fn seen(&self, catalogue: &Catalogue) -> Vec<u8> {
        let mut seen = Vec::new();
        for tool in self.visible(catalogue) {
            tool.definition.write(&mut seen);
        }
        seen
    }

    /// Tells the client that its list has changed, if it has: what it does not see is not announced.
    fn announce_if_changed(&mut self) {
        let Some(catalogue) = &self.catalogue else { return };
        let seen = self.seen(catalogue);
        if catalogue.announced.as_ref().is_none_or(|announced| *announced == seen) {
            return;
        }
        if let Some(catalogue) = &mut self.catalogue {
            catalogue.announced = Some(seen);
        }
        const CHANGED: &str = "notifications/tools/list_changed";
        if self.handshake.as_ref().is_some_and(|handshake| handshake.is_complete) {
            return self.answer(&Message::notification(CHANGED, Object::default()));
        }
        let streams: Vec<Id> = self.sent.values().filter_map(Sent::wants_tools).cloned().collect();
        for id in streams {
            let mut meta = Object::default();
            meta.set(SUBSCRIPTION, id.to_json());
            let params = [("_meta", Json::Object(meta))];
            self.answer(&Message::notification(CHANGED, params.into_iter().collect()));
        }
    }

    // ---- from the server

    fn server_message(&mut self, message: Message<'_>) {
        match message.kind.clone() {
            Kind::Response { id, succeeded } => self.server_response(&id, succeeded, message),
            Kind::Request { id, method } => self.server_request(&id, &method, message),
            Kind::Notification { method } => self.server_notification(&method, message),
        }
    }

    fn unreadable_answer(&mut self, invalid: &Invalid) {
        tracing::warn!(problem = %invalid.problem, "refused a line of the server");
        let Some(number) = invalid.id.as_ref().and_then(Id::number) else { return };
        let Some(sent) = self.sent.remove(&number) else { return };
        let problem =
            format!("the server's answer was refused: {}; the request may have run", invalid.problem);
        self.fail(sent, &problem);
    }

    fn server_response(&mut self, id: &Id, succeeded: bool, mut message: Message<'_>) {
        let Some(sent) = id.number().and_then(|number| self.sent.remove(&number)) else {
            tracing::debug!(%id, "dropped an answer of the server to nothing that is open");
            return;
        };
        match &sent.what {
            What::Page => return self.page(succeeded, message),
            What::Greeting => return self.greeted(succeeded, &message),
            What::Again => return,
            What::Initialize if succeeded => self.initialized(&mut message),
            What::Initialize => self.handshake = None,
            What::Discover if succeeded => self.narrow(&mut message),
            What::Listen { .. } => {
                if let Some(client) = &sent.client {
                    name_subscription(message.result_mut_if_any(), client);
                }
            }
            What::Discover | What::Passed => {}
        }
        if let Some(client) = sent.client {
            self.open.remove(&client);
            message.set_id(&client);
            let line = message.to_line();
            if sent.call.is_some() {
                let is_error = message.result_object().and_then(|result| result.get("isError"));
                let failed = !succeeded || is_error == Some(&Json::Bool(true));
                let outcome = if failed { Outcome::Failed } else { Outcome::Ok };
                self.ended(sent.call.as_ref(), outcome, line.len());
            }
            self.answer_line(line);
        }
        if self.over.is_some() {
            self.wake.notify_one();
        }
    }

    fn initialized(&mut self, message: &mut Message<'_>) {
        let version = message.result_object().and_then(|result| result.get("protocolVersion"));
        let version = version.and_then(Json::as_str).map(str::to_owned);
        if let Some(handshake) = &mut self.handshake {
            handshake.version = Some(version.unwrap_or_default());
        }
        self.narrow(message);
    }

    /// Takes out of a description of the server what the caller does not get.
    fn narrow(&mut self, message: &mut Message<'_>) {
        let instructions = self.judge.grants_instructions();
        let refused: Vec<&str> =
            Area::ALL.into_iter().filter(|area| !self.judge.grants(*area)).map(Area::capability).collect();
        let result = message.result_mut();
        if let Some(Json::Object(capabilities)) = result.get_mut("capabilities") {
            capabilities.retain(|name| !refused.contains(&name));
            if let Some(Json::Object(extensions)) = capabilities.get_mut("extensions") {
                extensions.retain(|name| !refused.iter().any(|area| name.ends_with(&format!("/{area}"))));
            }
            if let Some(Json::Object(tools)) = capabilities.get_mut("tools") {
                // A policy that is loaded again changes what the client sees, whatever the server does.
                tools.set("listChanged", Json::Bool(true));
            }
        }
        if !instructions {
            // They may name what is hidden.
            result.remove("instructions");
        }
        if let Some(scope) = result.get_mut("cacheScope") {
            *scope = Json::string("private");
        }
    }

    fn server_request(&mut self, id: &Id, method: &str, mut message: Message<'_>) {
        let reply = match server_request(method) {
            Some(ServerRequest::Ping) => Message::result(id, Object::default()),
            None => Message::error(Some(id), METHOD_NOT_FOUND, "no such method"),
            Some(ServerRequest::Passed) if self.asked.len() >= MAX_ASKED => {
                Message::error(Some(id), INTERNAL_ERROR, "too many requests are open")
            }
            Some(ServerRequest::Passed) => {
                let ours = self.next_id();
                message.set_id(&ours);
                self.asked.insert(self.last_id, id.clone());
                return self.answer(&message);
            }
        };
        self.tell(&reply);
    }

    fn server_notification(&mut self, method: &str, mut message: Message<'_>) {
        match server_notification(method) {
            None => return tracing::debug!(method, "dropped a notification of the server"),
            Some(ServerNotification::ToolsChanged) => {
                self.is_stale = true;
                match &mut self.refresh {
                    Some(refresh) => refresh.is_stale = true,
                    None if self.catalogue.is_some() => self.start_refresh(),
                    None => {}
                }
                return;
            }
            Some(ServerNotification::Progress) => {
                let token = message.params().and_then(|params| params.get("progressToken"));
                if token.is_none() || !self.sent.values().any(|sent| sent.progress.as_ref() == token) {
                    return;
                }
            }
            Some(ServerNotification::Cancelled) => {
                let theirs = message.params().and_then(|params| params.get("requestId")).and_then(Id::of);
                let ours =
                    self.asked.iter().find(|(_, id)| Some(*id) == theirs.as_ref()).map(|(ours, _)| *ours);
                let Some(ours) = ours else { return };
                self.asked.remove(&ours);
                message.params_mut().set("requestId", Json::Number(Cow::Owned(ours.to_string())));
            }
            Some(ServerNotification::Of(area)) if !self.judge.grants(area) => return,
            Some(ServerNotification::Acknowledged) => {
                let stream = subscription(&message);
                let Some(Sent { what: What::Listen { is_acknowledged, .. }, .. }) =
                    stream.and_then(|number| self.sent.get_mut(&number))
                else {
                    return;
                };
                // The client has heard it from the server before this one.
                if std::mem::replace(is_acknowledged, true) {
                    return;
                }
            }
            Some(ServerNotification::Of(_) | ServerNotification::Passed) => {}
        }
        if message.meta().is_some_and(|meta| meta.get(SUBSCRIPTION).is_some()) {
            let client = subscription(&message).and_then(|number| self.sent.get(&number)?.client.clone());
            let Some(client) = client else { return };
            name_subscription(Some(message.params_mut()), &client);
        }
        self.answer(&message);
    }

    // ---- to the server

    fn next_id(&mut self) -> Id {
        self.last_id += 1;
        Id::Number(self.last_id.to_string())
    }

    fn outbox(&self) -> Option<&Outbox> {
        match &self.server {
            Server::Ready(outbox) | Server::Greeted(outbox) => Some(outbox),
            Server::Down { .. } => None,
        }
    }

    /// Says something to the server, if it is there to hear it.
    fn tell(&mut self, message: &Message<'_>) {
        if let Some(outbox) = self.outbox()
            && let Err(reason) = outbox.put(message.to_line())
        {
            tracing::debug!(?reason, "the server does not hear");
        }
    }

    /// Asks the server something ourselves.
    fn ask(&mut self, method: &'static str, params: Object<'_>, what: What) {
        let id = self.next_id();
        let deadline = Instant::now() + OWN_PATIENCE;
        self.sent.insert(
            self.last_id,
            Sent { client: None, what, deadline: Some((deadline, OWN_PATIENCE)), progress: None, call: None },
        );
        self.arm(Some(deadline));
        self.tell(&Message::request(&id, method, params));
    }

    // ---- the list of tools

    fn start_refresh(&mut self) {
        if self.refresh.is_none() && matches!(self.server, Server::Ready(_)) {
            self.refresh = Some(Refresh::default());
            self.ask_page(None);
        }
    }

    fn ask_page(&mut self, cursor: Option<Json<'static>>) {
        let mut params = Object::default();
        if self.handshake.is_none() && self.meta.members().next().is_some() {
            params.set("_meta", Json::Object(self.meta.clone()));
        }
        if let Some(cursor) = cursor {
            params.set("cursor", cursor);
        }
        self.ask("tools/list", params, What::Page);
    }

    fn page(&mut self, succeeded: bool, mut message: Message<'_>) {
        let Some(refresh) = &mut self.refresh else { return };
        if !succeeded {
            let (code, text) = message.error_parts().unwrap_or_default();
            if code == METHOD_NOT_FOUND.to_string() {
                // It has no tools.
                return self.refreshed();
            }
            let problem = format!("the server does not list its tools: {text}");
            return self.refresh_failed(&problem);
        }
        let result = message.result_mut();
        let Some(Json::Array(entries)) = result.remove("tools") else {
            return self.refresh_failed("the server's list of tools is none");
        };
        refresh.entries.extend(entries.into_iter().map(Json::into_owned));
        refresh.pages += 1;
        let cursor = result.remove("nextCursor").map(Json::into_owned);
        if refresh.rest.is_none() {
            refresh.rest = Some(std::mem::take(result).into_owned());
        }
        if refresh.entries.len() > MAX_TOOLS || refresh.pages > MAX_PAGES {
            return self.refresh_failed("the server's list of tools does not end");
        }
        match cursor {
            Some(cursor @ Json::String(_)) => self.ask_page(Some(cursor)),
            Some(Json::Null) | None => self.refreshed(),
            Some(_) => self.refresh_failed("the server's list of tools has a cursor that is none"),
        }
    }

    fn refreshed(&mut self) {
        let Some(refresh) = self.refresh.take() else { return };
        let (mut tools, mut withheld) = catalogue::sort(refresh.entries);
        if let Some(pins) = &mut self.pins {
            let (kept, changed, notes) = pins.check(tools);
            tools = kept;
            withheld.extend(changed);
            for note in notes {
                tracing::warn!("{note}");
            }
        }
        if withheld != self.withheld {
            for tool in &withheld {
                tracing::warn!(tool = tool.name, "not offered: {}", tool.reason);
            }
            self.withheld = withheld;
        }
        let names = tools.iter().enumerate().map(|(place, tool)| (tool.name.clone(), place)).collect();
        let announced = self.catalogue.take().and_then(|before| before.announced);
        let rest = refresh.rest.unwrap_or_default();
        self.catalogue = Some(Catalogue { tools, names, rest, announced });
        self.is_stale = refresh.is_stale;
        let lists: Vec<Parked> = self.take_parked(|parked| parked.why == Wants::List);
        for parked in lists {
            self.open.remove(&parked.id);
            self.answer_list(&parked.id, parked.message.is_modern());
        }
        self.announce_if_changed();
        self.unpark();
        if self.is_stale {
            self.start_refresh();
        }
    }

    fn refresh_failed(&mut self, problem: &str) {
        tracing::warn!("{problem}");
        self.refresh = None;
        for parked in self.take_parked(|parked| matches!(parked.why, Wants::List | Wants::Call)) {
            self.open.remove(&parked.id);
            self.not_sent(&parked.message, "refused", "the server does not list its tools");
            self.refuse(&parked.id, INTERNAL_ERROR, &format!("not sent: {problem}"));
        }
    }

    fn take_parked(&mut self, mut which: impl FnMut(&Parked) -> bool) -> Vec<Parked> {
        let (taken, left) = std::mem::take(&mut self.parked).into_iter().partition(|parked| which(parked));
        self.parked = left;
        Vec::from(taken)
    }

    // ---- the server's life

    fn up(&mut self, outbox: Outbox) -> u64 {
        self.generation += 1;
        match &self.handshake {
            Some(Handshake { params, version: Some(_), .. }) => {
                let params = params.clone();
                self.server = Server::Greeted(outbox);
                self.ask("initialize", params, What::Greeting);
            }
            _ => {
                self.server = Server::Ready(outbox);
                self.ready();
            }
        }
        self.generation
    }

    /// A server that was started again has answered the handshake that the client made with the first.
    fn greeted(&mut self, succeeded: bool, message: &Message<'_>) {
        let version = message.result_object().and_then(|result| result.get("protocolVersion"));
        let version = version.and_then(Json::as_str);
        let known = self.handshake.as_ref().and_then(|handshake| handshake.version.as_deref());
        if !succeeded || version != known {
            tracing::error!(
                ?version,
                ?known,
                "the server that was started again does not take the handshake"
            );
            return self.condemn();
        }
        let Server::Greeted(outbox) = &self.server else { return };
        self.server = Server::Ready(outbox.clone());
        if self.handshake.as_ref().is_some_and(|handshake| handshake.is_complete) {
            self.tell(&Message::notification("notifications/initialized", Object::default()));
        }
        let still = |message: &&Message<'static>| match &message.kind {
            Kind::Request { method, .. } => self.still_grants(method),
            _ => true,
        };
        for mut message in self.again.values().filter(still).cloned().collect::<Vec<_>>() {
            let id = self.next_id();
            message.set_id(&id);
            let deadline = Some((Instant::now() + OWN_PATIENCE, OWN_PATIENCE));
            self.sent.insert(
                self.last_id,
                Sent { client: None, what: What::Again, deadline, progress: None, call: None },
            );
            self.tell(&message);
        }
        self.ready();
    }

    fn ready(&mut self) {
        if self.catalogue.is_some() {
            self.start_refresh();
        }
        self.unpark();
    }

    fn condemn(&mut self) {
        self.condemned = Some(self.generation);
        self.wake.notify_one();
    }

    fn down(&mut self, why: &str) {
        let Some(outbox) = self.outbox() else { return };
        outbox.close();
        self.server = Server::Down { why: why.to_owned() };
        self.condemned = Some(self.generation);
        self.is_stale = true;
        self.refresh = None;
        for (_, sent) in std::mem::take(&mut self.sent) {
            self.fail(
                sent,
                &format!("the server ended while the request was open ({why}): it may have run, and is not sent again"),
            );
        }
        for ours in std::mem::take(&mut self.asked).into_keys() {
            let params = [
                ("requestId", Json::Number(Cow::Owned(ours.to_string()))),
                ("reason", Json::string("the server that asked has ended")),
            ];
            self.answer(&Message::notification("notifications/cancelled", params.into_iter().collect()));
        }
        // What there is a last known answer for has it at once; the others wait, no longer than for a server
        // that was down when they came.
        let soonest = Instant::now() + self.limits.reconnect;
        for parked in &mut self.parked {
            parked.deadline = parked.deadline.map(|deadline| deadline.min(soonest));
        }
        self.arm(Some(soonest));
        self.unpark();
        self.wake.notify_one();
    }

    /// Answers what will have no answer of the server any more.
    fn fail(&mut self, sent: Sent, problem: &str) {
        match sent.what {
            What::Page => return self.refresh_failed(problem),
            What::Greeting => return self.condemn(),
            What::Again => return,
            What::Initialize => self.handshake = None,
            // Opening a stream changes nothing, so it is opened again.
            What::Listen { request, is_acknowledged } if matches!(self.server, Server::Down { .. }) => {
                if let Some(id) = sent.client {
                    self.open.insert(id.clone(), Open::Parked);
                    let why = Wants::Server(Passing::Listen { is_acknowledged });
                    self.parked.push_back(Parked { id, message: *request, why, deadline: None });
                }
                return;
            }
            What::Discover | What::Passed | What::Listen { .. } => {}
        }
        self.ended(sent.call.as_ref(), Outcome::Failed, 0);
        if let Some(client) = sent.client {
            self.open.remove(&client);
            self.refuse(&client, INTERNAL_ERROR, problem);
        }
    }

    // ---- time

    fn arm(&mut self, deadline: Option<Instant>) {
        if let Some(deadline) = deadline
            && self.armed.is_none_or(|armed| deadline < armed)
        {
            self.armed = Some(deadline);
            self.wake.notify_one();
        }
    }

    fn tick(&mut self, now: Instant) -> Todo {
        let late = |sent: &Sent| sent.deadline.is_some_and(|(deadline, _)| deadline <= now);
        let numbers: Vec<u64> =
            self.sent.iter().filter(|(_, sent)| late(sent)).map(|(number, _)| *number).collect();
        for number in numbers {
            let Some(sent) = self.sent.remove(&number) else { continue };
            let (_, limit) = sent.deadline.unwrap_or((now, Duration::ZERO));
            let problem = format!("no answer within {} s: the request may have run", limit.as_secs_f64());
            if !matches!(sent.what, What::Initialize | What::Greeting) {
                let params = [
                    ("requestId", Json::Number(Cow::Owned(number.to_string()))),
                    ("reason", Json::string("time limit")),
                ];
                self.tell(&Message::notification("notifications/cancelled", params.into_iter().collect()));
            }
            self.fail(sent, &problem);
        }
        for parked in self.take_parked(|parked| parked.deadline.is_some_and(|deadline| deadline <= now)) {
            self.open.remove(&parked.id);
            if parked.why == Wants::Server(Passing::Initialize) {
                self.handshake = None;
            }
            let problem = match &self.server {
                Server::Down { why } => format!("not sent: the server is not running ({why})"),
                _ => "not sent: the server is not ready".to_owned(),
            };
            self.not_sent(&parked.message, "refused", "the server is not running");
            self.refuse(&parked.id, INTERNAL_ERROR, &problem);
        }
        let sent = self.sent.values().filter_map(|sent| sent.deadline.map(|(deadline, _)| deadline));
        let parked = self.parked.iter().filter_map(|parked| parked.deadline);
        // A time that is still to come is kept, so that the next request need not wake anybody.
        self.armed = sent.chain(parked).chain(self.armed.filter(|armed| *armed > now)).min();
        // Whoever has closed its end may still read what it has asked for: `request | server`.
        let last = self.over.map(|since| since + super::LAST_ANSWERS);
        let is_waited_for = self.open.values().any(|open| !self.is_stream(*open));
        let end = last.is_some_and(|last| last <= now || !is_waited_for);
        let next = self.armed.into_iter().chain(last).min();
        Todo { end, condemned: self.condemned, next }
    }

    fn is_stream(&self, open: Open) -> bool {
        match open {
            Open::Sent(number) => {
                matches!(self.sent.get(&number), Some(Sent { what: What::Listen { .. }, .. }))
            }
            Open::Parked => false,
        }
    }
}

impl Call {
    fn observed<'a>(&'a self, caller: &'a Caller) -> Observed<'a> {
        let (shape, bytes) = &self.shape;
        Observed::new(caller, &self.tool, ("allowed", &self.rule), (shape, *bytes))
    }
}

fn is_call(message: &Message<'_>) -> bool {
    matches!(&message.kind, Kind::Request { method, .. } if method == "tools/call")
}

impl Sent {
    /// The id of a stream that was opened to hear of changed tools.
    fn wants_tools(&self) -> Option<&Id> {
        let What::Listen { request, .. } = &self.what else { return None };
        let wanted = request.params()?.get("notifications")?.as_object()?.get("toolsListChanged")?;
        (*wanted == Json::Bool(true)).then_some(self.client.as_ref()?)
    }
}

/// The stream that a notification belongs to, by our id.
fn subscription(message: &Message<'_>) -> Option<u64> {
    Id::of(message.meta()?.get(SUBSCRIPTION)?)?.number()
}

/// Puts the id that the client knows.
fn name_subscription(object: Option<&mut Object<'_>>, client: &Id) {
    if let Some(Json::Object(meta)) = object.and_then(|object| object.get_mut("_meta"))
        && meta.get(SUBSCRIPTION).is_some()
    {
        meta.set(SUBSCRIPTION, client.to_json());
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
