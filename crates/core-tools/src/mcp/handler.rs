//! The host as rmcp sees it: both eras of the protocol, one handler.

use super::answer::{Answer, Shape};
use super::errors;
use super::host::{Context, Host, Observer};
use super::limits::Programs;
use super::progress::Progress;
use crate::redact::Redactor;
use rmcp::ErrorData;
use rmcp::RoleServer;
use rmcp::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, DiscoverResult, Extensions,
    Implementation, InitializeRequestParams, InitializeResult, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProgressToken,
    ProtocolVersion, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use role_policy::{Caller, RoleLimits};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// A connection to a [`Host`]: what rmcp serves. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Connection {
    visitors: Visitors,
    server: Implementation,
    /// Somebody listens for changes already.
    listening: Arc<AtomicBool>,
}

/// Who makes a request, and on which host.
#[derive(Clone)]
pub struct Visitor {
    /// The tools.
    pub host: Host,
    /// Who is calling.
    pub caller: Caller,
    /// What the caller itself may use, on top of what its role may.
    pub limits: RoleLimits,
    /// Where programs that outlive a call get a place; without it the tool's own number bounds them.
    pub programs: Option<Programs>,
    /// Hears of its calls.
    pub observer: Option<Observer>,
    /// Ends its requests, as the transport does when the client cancels or goes away.
    pub cancel: CancellationToken,
}

/// Finds the visitor that a transport has put beside a request.
type Find = Arc<dyn Fn(&Extensions) -> Option<Visitor> + Send + Sync>;

#[derive(Clone)]
enum Visitors {
    One { visitor: Box<Visitor>, instructions: String },
    Many { find: Find, instructions: fn(&[&str]) -> String },
}

impl std::fmt::Debug for Visitors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::One { visitor, .. } => f.debug_tuple("One").field(&visitor.caller).finish(),
            Self::Many { .. } => f.write_str("Many"),
        }
    }
}

impl Connection {
    /// A connection on which every call is made by `caller`. `name` and `version` are what the server says
    /// of itself; `instructions` tell a model in under 2 KB how to use it, the most important words first.
    pub fn new(
        host: Host,
        caller: Caller,
        name: &str,
        version: &str,
        instructions: impl Into<String>,
    ) -> Self {
        let (limits, cancel) = (RoleLimits::default(), CancellationToken::new());
        let visitor = Visitor { host, caller, limits, programs: None, observer: None, cancel };
        Self::of(
            Visitors::One { visitor: Box::new(visitor), instructions: instructions.into() },
            name,
            version,
        )
    }

    /// A connection that carries the requests of many: `find` says of each who makes it, by what the transport has put
    /// beside it. One of whom it says nothing is refused. `instructions` are told from the names of the tools that are
    /// seen.
    pub fn shared(
        find: impl Fn(&Extensions) -> Option<Visitor> + Send + Sync + 'static,
        name: &str,
        version: &str,
        instructions: fn(&[&str]) -> String,
    ) -> Self {
        Self::of(Visitors::Many { find: Arc::new(find), instructions }, name, version)
    }

    fn of(visitors: Visitors, name: &str, version: &str) -> Self {
        let mut server = Implementation::new(name, version);
        server.title = Some("CoreTools".to_owned());
        Self { visitors, server, listening: Arc::default() }
    }

    /// Another connection like this one.
    #[must_use]
    pub fn fresh(&self) -> Self {
        Self { listening: Arc::default(), ..self.clone() }
    }

    fn visitor(&self, extensions: &Extensions) -> Result<Visitor, ErrorData> {
        match &self.visitors {
            Visitors::One { visitor, .. } => Ok(Visitor::clone(visitor)),
            Visitors::Many { find, .. } => find(extensions).ok_or_else(errors::nobody),
        }
    }

    /// What the server says of itself to whom `extensions` tell of.
    fn info(&self, extensions: &Extensions) -> Result<ServerConfig, ErrorData> {
        let instructions = match &self.visitors {
            Visitors::One { instructions, .. } => instructions.clone(),
            Visitors::Many { instructions, .. } => {
                let visitor = self.visitor(extensions)?;
                instructions(&visitor.host.names(&visitor.caller))
            }
        };
        Ok(self.get_info().with_instructions(instructions))
    }
}

/// How often it is looked whether a client is still there to hear of changes.
const GONE: Duration = Duration::from_secs(60);

/// How often a waiting client may hear something new.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// How often a waiting client hears something at all. Clients give up on a silent call after 10 to 60 s.
const HEARTBEAT: Duration = Duration::from_secs(5);

impl ServerHandler for Connection {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build())
            .with_server_info(self.server.clone())
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?;
        result.instructions = self.info(&context.extensions)?.instructions;
        Ok(result)
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, self.info(&context.extensions)?))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let visitor = self.visitor(&context.extensions)?;
        if let Some(cursor) = request.and_then(|request| request.cursor) {
            return Err(errors::invalid_cursor(&visitor.host.redactor().redact(&cursor)));
        }
        let mut tools = visitor.host.list(&visitor.caller);
        if !knows_structured(&context) {
            // A client would look for the object that the schema promises, and these get none.
            tools.iter_mut().for_each(|tool| tool.output_schema = None);
        }
        let mut result = ListToolsResult::with_all_items(tools);
        if is_modern(&context) {
            result.ttl_ms = Some(0);
            result.cache_scope = Some(CacheScope::Private);
        }
        Ok(result)
    }

    /// A client of the `initialize` era hears of a changed list on its connection.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        // A client may say it as often as it likes.
        if self.listening.swap(true, Ordering::Relaxed) {
            return;
        }
        let Ok(visitor) = self.visitor(&context.extensions) else { return };
        let peer = context.peer;
        tokio::spawn(async move {
            let mut changes = Changes::of(visitor);
            loop {
                let changed = tokio::select! {
                    changed = changes.next() => changed,
                    () = tokio::time::sleep(GONE) => !peer.is_transport_closed(),
                };
                // A reload nobody hears of is judged all the same.
                if !changed || (changes.take() && peer.notify_tool_list_changed().await.is_err()) {
                    break;
                }
            }
        });
    }

    /// One of 2026-07-28 asks to hear of it.
    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let visitor = self.visitor(&context.request_context().extensions)?;
        let ended = visitor.cancel.clone();
        let mut changes = Changes::of(visitor);
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = ended.cancelled() => return Ok(()),
                changed = changes.next() => {
                    if !changed || context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Visitor { host, caller, limits, programs, observer, cancel } =
            self.visitor(&context.extensions)?;
        let shape = if host.sends_structured() && knows_structured(&context) {
            Shape::Structured
        } else {
            Shape::TextOnly
        };
        let mut call = Context::new(caller, context.ct.child_token());
        (call.limits, call.programs, call.observer) = (limits, programs, observer);
        if context.meta.get_progress_token().is_some() {
            call.progress = Progress::heard();
        }
        let (progress, cancelled) = (call.progress.clone(), call.cancel.clone());
        // In a box, or every future around it has room for it twice, which is moved from one to the next.
        let call = Box::pin(host.call(&request.name, request.arguments.unwrap_or_default(), call));
        let call = until(call, &cancel, &cancelled);
        let answer = match context.meta.get_progress_token() {
            Some(token) => with_progress(call, &progress, token, &context, host.redactor()).await,
            None => call.await,
        };
        match answer {
            Ok(answer) => Ok(CallToolResult::into(answer.into_result(shape))),
            Err(no_such_tool) => {
                Err(errors::no_such_tool(&no_such_tool, context.protocol_version().as_ref()))
            }
        }
    }

    /// A call on which rmcp may judge `x-mcp-header` parameters before the role is known: no tool uses them,
    /// and nothing is told.
    fn get_tool(&self, _name: &str) -> Option<Tool> {
        None
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let visitor = self.visitor(&context.extensions)?;
        Err(errors::unreadable_request(&visitor.host.redactor().redact(&request.method)))
    }

    // Not declared, so not there. The defaults would answer with empty lists.

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }
}

/// Waits until a caller's list is another one.
struct Changes {
    visitor: Visitor,
    reloads: watch::Receiver<u64>,
    seen: Vec<&'static str>,
    changed: bool,
}

impl Changes {
    fn of(visitor: Visitor) -> Self {
        // In this order, or a reload between the two would be missed.
        let reloads = visitor.host.reloads();
        Self { seen: visitor.host.names(&visitor.caller), visitor, reloads, changed: false }
    }

    /// Returns whether there will be more.
    async fn next(&mut self) -> bool {
        while self.reloads.changed().await.is_ok() {
            let seen = self.visitor.host.names(&self.visitor.caller);
            if seen != self.seen {
                (self.seen, self.changed) = (seen, true);
                return true;
            }
        }
        false
    }

    /// Whether it changed since this was asked last.
    fn take(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }
}

/// Waits for `call`, and cancels it by `inner` once `outer` is.
async fn until<T>(call: impl Future<Output = T>, outer: &CancellationToken, inner: &CancellationToken) -> T {
    let mut call = std::pin::pin!(call);
    tokio::select! {
        biased;
        answer = &mut call => return answer,
        () = outer.cancelled() => inner.cancel(),
    }
    call.await
}

/// Waits for `call`, and meanwhile tells the client how it goes: what the tool said last, at most once
/// a second, and a heartbeat where it says nothing. Nothing is sent once the client has cancelled.
async fn with_progress<E>(
    call: impl Future<Output = Result<Answer, E>>,
    progress: &Progress,
    token: ProgressToken,
    context: &RequestContext<RoleServer>,
    redactor: &Redactor,
) -> Result<Answer, E> {
    let mut call = std::pin::pin!(call);
    let started = Instant::now();
    let mut last = started;
    let mut ticks = tokio::time::interval_at(started + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            answer = &mut call => return answer,
            now = ticks.tick() => {
                let said = progress.take();
                if context.ct.is_cancelled() || (said.is_none() && now - last < HEARTBEAT) {
                    continue;
                }
                last = now;
                let seconds = (now - started).as_secs_f64();
                let message = said.unwrap_or_else(|| format!("running for {seconds:.0} s"));
                let message = redactor.redact(&message).into_owned();
                let notice = ProgressNotificationParam::new(token.clone(), seconds).with_message(message);
                // A client that has gone away is seen by the transport; the call ends with it.
                let _ = context.peer.notify_progress(notice).await;
            }
        }
    }
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Structured content came with 2025-06-18.
fn knows_structured(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_none_or(|version| version >= ProtocolVersion::V_2025_06_18)
}
