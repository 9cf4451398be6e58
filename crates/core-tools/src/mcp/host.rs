//! The way of one call: name → visibility → arguments → policy → limits → tool → redaction and bounds.
//!
//! [`Host::call`] is the whole of it, for both transports and the command line; nothing else runs a tool.

use super::answer::{Answer, ToolError};
use super::arguments;
use super::audit::{Audit, Outcome, Record, shape};
use super::effects::ScopeLimit;
use super::limits::{Limits, Needs, Programs};
use super::meter::Meter;
use super::progress::Progress;
use super::selection::Selection;
use super::tool::{Left, Tool, Toolset};
use crate::nearest::nearest;
use crate::redact::Redactor;
use crate::workspace::{Limit, Workspace};
use arc_swap::ArcSwap;
use futures_util::FutureExt;
use role_policy::{
    Authorized, Call, Caller, Effects, Lexical, Policy, Refusal, RoleLimits, Scope, ToolFacts,
};
use serde_json::{Map, Value};
use std::any::Any;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The tools, and everything that stands before and behind each of them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Host {
    shared: Arc<Shared>,
    over: Arc<Over>,
}

/// What depends on the workspace that the tools work in.
struct Over {
    tools: Vec<Registered>,
    /// Canonical names and aliases, to places in `tools`.
    names: HashMap<&'static str, usize>,
    effects: Arc<dyn Effects + Send + Sync>,
}

/// What holds for every call, whatever it works in.
struct Shared {
    selection: Selection,
    /// Replaced whole by a reload. A call is judged by the one that it finds.
    policy: ArcSwap<Policy>,
    /// How often the policy was replaced.
    reloads: watch::Sender<u64>,
    meter: Meter,
    audit: Option<Audit>,
    redactor: Redactor,
    limits: Limits,
    places: Semaphore,
    structured: bool,
    many_callers: bool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Over {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Over").field("tools", &self.tools).finish_non_exhaustive()
    }
}

/// Told of a call or a refusal, once it has ended, for figures and traces. It must not block.
#[derive(Clone)]
pub struct Observer(Arc<dyn Fn(&Record<'_>) + Send + Sync>);

impl Observer {
    /// Calls `observe` with each.
    pub fn new(observe: impl Fn(&Record<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observe))
    }

    /// Tells it of one.
    pub fn tell(&self, record: &Record<'_>) {
        (self.0)(record);
    }
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Observer")
    }
}

#[derive(Debug)]
struct Registered {
    tool: Tool,
    toolset: &'static str,
    listed: rmcp::model::Tool,
}

impl Registered {
    fn facts(&self) -> ToolFacts<'static> {
        self.tool.facts(self.toolset)
    }
}

/// What a running tool may use: who calls, how long it has, when to stop, where to say how it goes.
#[derive(Clone, Debug)]
pub struct Context {
    /// Who is calling.
    pub caller: Caller,
    /// Cancelled when the client cancels or goes away, at the deadline, and when the server ends.
    pub cancel: CancellationToken,
    /// Where to say how it goes.
    pub progress: Progress,
    /// The longest time limit that a tool may grant its caller: the host's and the role's, whichever is less.
    pub max_timeout: Duration,
    /// The longest that the caller's role lets anything run, also what outlives the call. No limit by default.
    pub role_limit: Option<Duration>,
    /// What the policy lets this call reach. Everything, outside a host.
    pub scope: Scope,
    /// What the caller itself may use, on top of what its role may. No limit by default.
    pub limits: RoleLimits,
    /// Where programs that outlive the call get a place; without it the tool's own number bounds them.
    pub programs: Option<Programs>,
    /// Hears how the call came out.
    pub observer: Option<Observer>,
    /// The caller may call every tool that there is, and the policy requires nothing of the arguments of any. False
    /// outside a host.
    pub unrestricted: bool,
    /// The policy that the call was judged by. None outside a host.
    pub policy: Option<Arc<Policy>>,
    /// Whose background programs and sessions the call is about; the caller's own by default. Whoever sets it has made sure that the
    /// caller may.
    pub owner: Option<String>,
}

impl Context {
    /// A context for one call, outside a host.
    pub fn new(caller: Caller, cancel: CancellationToken) -> Self {
        Self {
            caller,
            cancel,
            progress: Progress::default(),
            max_timeout: Limits::default().max_timeout,
            role_limit: None,
            scope: Scope::default(),
            limits: RoleLimits::default(),
            programs: None,
            observer: None,
            unrestricted: false,
            policy: None,
            owner: None,
        }
    }

    /// `workspace`, as far as the policy lets this call reach.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn within(&self, workspace: &Arc<Workspace>) -> Result<Arc<Workspace>, ToolError> {
        if self.scope.reaches_all_paths() {
            return Ok(Arc::clone(workspace));
        }
        let limit: Arc<dyn Limit> = Arc::new(ScopeLimit(self.scope.clone()));
        let limited = workspace.limited(&limit).map_err(|error| ToolError::from_error(&error))?;
        Ok(Arc::new(limited))
    }

    /// Runs blocking work on a thread where it blocks nobody. `work` should look at the token from time to
    /// time: a thread cannot be ended from outside.
    ///
    /// # Errors
    ///
    /// What `work` answers, or that the work was cancelled.
    pub async fn blocking<T, W>(self, work: W) -> Result<T, ToolError>
    where
        T: Send + 'static,
        W: FnOnce(&CancellationToken) -> Result<T, ToolError> + Send + 'static,
    {
        let cancel = self.cancel.clone();
        match tokio::task::spawn_blocking(move || work(&cancel)).await {
            Ok(result) => result,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(ToolError::new("the server is ending")),
        }
    }
}

/// There is no such tool, or the caller may not know of it: the same to the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NoSuchTool {
    message: String,
}

/// Collects what a [`Host`] is made of.
pub struct HostBuilder {
    toolsets: Vec<Toolset>,
    selection: Selection,
    policy: Policy,
    effects: Arc<dyn Effects + Send + Sync>,
    audit: Option<Audit>,
    redactor: Redactor,
    limits: Limits,
    structured: bool,
    many_callers: bool,
}

impl std::fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostBuilder").field("toolsets", &self.toolsets).finish_non_exhaustive()
    }
}

/// Why a host cannot be made of its parts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Two tools have the same name or alias.
    #[error("two tools are called `{0}`")]
    DuplicateName(String),
    /// A selection names something that is not there.
    #[error("{0}")]
    Selection(String),
}

impl HostBuilder {
    /// Adds tools. They are listed in the order they are added.
    #[must_use]
    pub fn toolset(mut self, toolset: Toolset) -> Self {
        self.toolsets.push(toolset);
        self
    }

    /// Offers only these tools; the others do not exist. All of them by default.
    #[must_use]
    pub fn selection(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// Finds out where the arguments of calls lead. By default their text alone is judged ([`Lexical`]).
    #[must_use]
    pub fn effects(mut self, effects: Arc<dyn Effects + Send + Sync>) -> Self {
        self.effects = effects;
        self
    }

    /// Records every call. None is recorded by default.
    #[must_use]
    pub fn audit(mut self, audit: Option<Audit>) -> Self {
        self.audit = audit;
        self
    }

    /// The bounds on every call.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Serves callers who are strangers to each other: none of them is
    /// [`unrestricted`](Context::unrestricted), whatever its role, since others' programs run beside its own. Off by
    /// default.
    #[must_use]
    pub fn many_callers(mut self, many_callers: bool) -> Self {
        self.many_callers = many_callers;
        self
    }

    /// Sends answers as text only, for clients that show nothing else. Off by default.
    #[must_use]
    pub fn text_only(mut self, text_only: bool) -> Self {
        self.structured = !text_only;
        self
    }

    /// The host.
    ///
    /// # Errors
    ///
    /// Where two tools share a name, or the selection names a tool or toolset that is not there.
    pub fn build(self) -> Result<Host, HostError> {
        let over = Over::new(&self.selection, self.toolsets, self.effects, self.structured)?;
        Ok(Host {
            shared: Arc::new(Shared {
                selection: self.selection,
                policy: ArcSwap::from_pointee(self.policy),
                reloads: watch::Sender::new(0),
                meter: Meter::default(),
                audit: self.audit,
                redactor: self.redactor,
                places: Semaphore::new(self.limits.max_concurrent_calls),
                limits: self.limits,
                structured: self.structured,
                many_callers: self.many_callers,
            }),
            over: Arc::new(over),
        })
    }
}

impl Over {
    fn new(
        selection: &Selection,
        toolsets: Vec<Toolset>,
        effects: Arc<dyn Effects + Send + Sync>,
        structured: bool,
    ) -> Result<Self, HostError> {
        let chosen = selection.resolve(&toolsets).map_err(HostError::Selection)?;
        let mut tools = Vec::new();
        let mut names = HashMap::new();
        for toolset in toolsets {
            for tool in toolset.tools {
                if !chosen.contains(tool.name()) {
                    continue;
                }
                for name in std::iter::once(tool.name()).chain(tool.alias_names().iter().copied()) {
                    if names.insert(name, tools.len()).is_some() {
                        return Err(HostError::DuplicateName(name.to_owned()));
                    }
                }
                let listed = tool.listed(structured);
                tools.push(Registered { tool, toolset: toolset.name, listed });
            }
        }
        Ok(Self { tools, names, effects })
    }
}

impl Host {
    /// Starts a host that judges every call by `policy` and masks every answer by `redactor`.
    pub fn builder(policy: Policy, redactor: Redactor) -> HostBuilder {
        HostBuilder {
            toolsets: Vec::new(),
            selection: Selection::default(),
            policy,
            effects: Arc::new(Lexical),
            audit: None,
            redactor,
            limits: Limits::default(),
            structured: true,
            many_callers: false,
        }
    }

    /// The same host with tools over another workspace: one policy, one audit, the same limits for all together.
    ///
    /// # Errors
    ///
    /// As [`HostBuilder::build`].
    pub fn over(
        &self,
        toolsets: Vec<Toolset>,
        effects: Arc<dyn Effects + Send + Sync>,
    ) -> Result<Self, HostError> {
        let over = Over::new(&self.shared.selection, toolsets, effects, self.shared.structured)?;
        Ok(Self { shared: Arc::clone(&self.shared), over: Arc::new(over) })
    }

    /// Ends what `principal` has left running: it may make no further call.
    pub fn leave(&self, principal: &str) {
        for registered in &self.over.tools {
            registered.tool.leave(principal);
        }
    }

    /// What callers have in the background, masked as an answer would be. For whoever answers for the server: nobody is
    /// asked whether they may see it.
    pub fn left(&self) -> Vec<Left> {
        let mut left: Vec<Left> =
            self.over.tools.iter().flat_map(|registered| registered.tool.left()).collect();
        for left in &mut left {
            left.command = self.shared.redactor.redact(&left.command).into_owned();
        }
        left
    }

    /// The tools that `caller` sees, in their stable order.
    pub fn list(&self, caller: &Caller) -> Vec<rmcp::model::Tool> {
        let policy = self.shared.policy.load();
        self.visible(&policy, caller).map(|registered| registered.listed.clone()).collect()
    }

    /// The toolset of each tool that `caller` sees, in the same order as [`Self::list`].
    pub fn toolsets(&self, caller: &Caller) -> Vec<&'static str> {
        let policy = self.shared.policy.load();
        self.visible(&policy, caller).map(|registered| registered.toolset).collect()
    }

    /// The names of the tools that `caller` sees, in the same order as [`Self::list`].
    pub fn names(&self, caller: &Caller) -> Vec<&'static str> {
        let policy = self.shared.policy.load();
        self.visible(&policy, caller).map(|registered| registered.tool.name()).collect()
    }

    /// What a policy knows of each tool, in the order of the list.
    pub fn facts(&self) -> Vec<ToolFacts<'static>> {
        self.over.tools.iter().map(Registered::facts).collect()
    }

    /// What `caller` sees, as a page of Markdown: each tool with all that it takes, also what the list leaves out.
    pub fn reference(&self, caller: &Caller) -> String {
        let policy = self.shared.policy.load();
        let tools = self.visible(&policy, caller).map(|registered| (registered.toolset, &registered.tool));
        super::reference::markdown(tools)
    }

    fn visible<'a>(&'a self, policy: &'a Policy, caller: &'a Caller) -> impl Iterator<Item = &'a Registered> {
        self.over.tools.iter().filter(|registered| policy.sees(caller, &registered.facts()))
    }

    /// The policy that calls are judged by now.
    pub fn policy(&self) -> Policy {
        Policy::clone(&self.shared.policy.load())
    }

    /// Judges every further call by `policy`. Calls that run go on as they were judged.
    pub fn replace_policy(&self, policy: Policy) {
        self.shared.policy.store(Arc::new(policy));
        self.shared.reloads.send_modify(|reloads| *reloads += 1);
    }

    /// Tells of every replaced policy.
    pub(crate) fn reloads(&self) -> watch::Receiver<u64> {
        self.shared.reloads.subscribe()
    }

    /// What a call of `tool` needs. One that `caller` does not see needs what one needs that there is not.
    pub fn needs(&self, caller: &Caller, tool: &str) -> Needs {
        let policy = self.shared.policy.load();
        let found = self.find(&policy, caller, tool);
        found.map_or(Needs { place: true, program: false }, |registered| registered.tool.needs())
    }

    /// Where calls are recorded, if they are.
    pub fn audit(&self) -> Option<&Audit> {
        self.shared.audit.as_ref()
    }

    /// The bounds on every call.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// What masks secrets in everything that leaves.
    pub fn redactor(&self) -> &Redactor {
        &self.shared.redactor
    }

    pub(crate) fn sends_structured(&self) -> bool {
        self.shared.structured
    }

    /// Makes one call, from its name to its masked and bounded answer.
    ///
    /// Arguments that do not fit, a refusal by policy, work that failed, a deadline, a panic in the tool:
    /// each is an answer with [`Answer::is_failed`].
    ///
    /// # Errors
    ///
    /// Only where `caller` knows of no such tool.
    pub async fn call(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        context: Context,
    ) -> Result<Answer, NoSuchTool> {
        let made =
            Made { by: context.caller.clone(), at: Instant::now(), observer: context.observer.clone() };
        // One policy for the whole call.
        let policy = self.shared.policy.load_full();
        let Some(registered) = self.find(&policy, &made.by, name) else {
            let hidden = self.over.names.get(name).and_then(|place| self.over.tools.get(*place));
            let said = match hidden {
                Some(hidden) => Said { decision: "hidden", rule: self.hides(&policy, &made.by, hidden) },
                None => Said { decision: "unknown", rule: "".into() },
            };
            let shape = self.shape(&made, None, &arguments);
            self.record(&made, name, &said, Outcome::NotRun, &shape, 0);
            return Err(self.no_such_tool(&policy, &made.by, name));
        };
        let shape = self.shape(&made, Some(registered), &arguments);
        let (answer, said) = self.judge(&policy, registered, arguments, &shape, context).await;
        let ran = said.decision == "allowed";
        let answer = self.send_off(answer.unwrap_or_else(|error| Answer::error(&error))).await;
        let outcome = match (ran, answer.is_failed()) {
            (false, _) => Outcome::NotRun,
            (true, true) => Outcome::Failed,
            (true, false) => Outcome::Ok,
        };
        self.record(&made, registered.tool.name(), &said, outcome, &shape, answer.weight());
        Ok(answer)
    }

    /// From arguments to an answer, with what was decided on the way.
    async fn judge(
        &self,
        policy: &Arc<Policy>,
        registered: &Registered,
        arguments: Map<String, Value>,
        shape: &Shape,
        mut context: Context,
    ) -> (Result<Answer, ToolError>, Said) {
        context.policy = Some(Arc::clone(policy));
        let name = registered.tool.name();
        let not_run = |decision: &'static str, rule: &str, why: String| {
            (Err(ToolError::new(why)), Said { decision, rule: rule.into() })
        };
        let limits = policy.limits(&context.caller).narrowed_by(context.limits);
        if let Some(most) = limits.max_argument_bytes.filter(|most| shape.bytes as u64 > *most) {
            let why = format!("the arguments have {} bytes; this role may send {most}", shape.bytes);
            return not_run("refused", "limits: max_argument_bytes", why);
        }
        let arguments = match arguments::normalise(registered.tool.input(), arguments) {
            Ok(arguments) => arguments,
            Err(faults) => {
                return not_run("invalid", "", format!("invalid arguments for `{name}`:\n{faults}"));
            }
        };
        let call = Call::new(name, arguments);
        let effects = &*self.over.effects;
        let call = match policy.authorize(&context.caller, &registered.facts(), call, effects) {
            Ok(call) => call,
            Err(refusal @ Refusal::Arguments { .. }) => {
                let why = format!("refused by policy: {refusal}");
                return not_run("refused", refusal.rule(), why);
            }
            // It was found a moment ago, by the same policy.
            Err(refusal) => return not_run("hidden", refusal.rule(), "no such tool".to_owned()),
        };
        let said = Said { decision: "allowed", rule: Arc::clone(&call.decision().rule) };
        let _running = match self.shared.meter.begin(&context.caller, limits) {
            Ok(running) => running,
            Err(why) => return not_run("refused", "limits", why),
        };
        if let Some(audit) = &self.shared.audit
            && let Err(error) = audit.start(&context.caller, name, &shape.text, shape.bytes)
        {
            tracing::error!(%error, "the audit cannot be written, so no call runs");
            let why = "not run: calls are recorded on this server, and the record cannot be written now; \
                       its operator must make room";
            return not_run("refused", "audit", why.to_owned());
        }
        context.scope = call.scope().clone();
        context.unrestricted =
            registered.tool.asks_unrestricted() && self.is_unrestricted(policy, &context.caller);
        context.role_limit = limits.max_seconds.map(Duration::from_secs);
        let most = self.limits().max_timeout;
        context.max_timeout = context.role_limit.map_or(most, |limit| limit.min(most));
        (self.run(registered, call, context).await, said)
    }

    /// Whether the policy keeps nothing from `caller`.
    fn is_unrestricted(&self, policy: &Policy, caller: &Caller) -> bool {
        !self.shared.many_callers
            && self.over.tools.iter().map(Registered::facts).all(|tool| {
                policy.sees(caller, &tool)
                    && caller.roles().all(|role| policy.requirements(role, &tool).is_empty())
            })
    }

    /// What hides a tool, for the audit.
    fn hides(&self, policy: &Policy, caller: &Caller, registered: &Registered) -> Arc<str> {
        let call = Call::new(registered.tool.name(), Map::new());
        match policy.authorize(caller, &registered.facts(), call, &Lexical) {
            Ok(_) => "".into(),
            Err(refusal) => Arc::clone(refusal.rule()),
        }
    }

    /// What is recorded of arguments. Nothing costs anything where nothing asks for it.
    fn shape(&self, made: &Made, registered: Option<&Registered>, arguments: &Map<String, Value>) -> Shape {
        let properties = registered.and_then(|registered| registered.tool.input().get("properties"));
        let known = |name: &str| properties.is_some_and(|properties| properties.get(name).is_some());
        let text = match self.shared.audit.is_some() || made.observer.is_some() {
            true => shape(arguments, known),
            false => String::new(),
        };
        Shape { text, bytes: object_size(arguments) }
    }

    fn record(
        &self,
        made: &Made,
        tool: &str,
        said: &Said,
        outcome: Outcome,
        shape: &Shape,
        bytes_out: usize,
    ) {
        let (audit, observer) = (&self.shared.audit, &made.observer);
        if audit.is_none() && observer.is_none() {
            return;
        }
        // A name that nobody registered may hold anything.
        let tool = self.shared.redactor.redact(tool);
        let record = Record {
            caller: &made.by,
            tool: &tool,
            decision: said.decision,
            rule: &said.rule,
            outcome,
            duration: made.at.elapsed(),
            arguments: &shape.text,
            bytes_in: shape.bytes,
            bytes_out,
        };
        if let Some(audit) = audit {
            audit.end(&record);
        }
        if let Some(observer) = observer {
            observer.tell(&record);
        }
    }

    /// The one exit: masks and bounds an answer. A long one on a thread of its own, for meanwhile others wait.
    async fn send_off(&self, answer: Answer) -> Answer {
        const LONG: usize = 64 * 1024;
        if answer.weight() < LONG {
            return answer.leave(&self.shared.redactor, &self.shared.limits, self.shared.structured);
        }
        let shared = Arc::clone(&self.shared);
        let left = tokio::task::spawn_blocking(move || {
            answer.leave(&shared.redactor, &shared.limits, shared.structured)
        });
        // Without having passed here nothing leaves.
        left.await.unwrap_or_else(|_| {
            Answer::error(&ToolError::new(
                "the call ended, and its answer was lost by a defect of this server, which its log tells",
            ))
        })
    }

    fn find(&self, policy: &Policy, caller: &Caller, name: &str) -> Option<&Registered> {
        let registered = self.over.names.get(name).and_then(|place| self.over.tools.get(*place))?;
        policy.sees(caller, &registered.facts()).then_some(registered)
    }

    /// The suggestion comes from what the caller sees, so it tells nothing of what is hidden.
    fn no_such_tool(&self, policy: &Policy, caller: &Caller, name: &str) -> NoSuchTool {
        let short: String = name.chars().take(64).collect();
        let seen = self.visible(policy, caller).map(|registered| registered.tool.name());
        let message = match nearest(&short, seen) {
            Some(meant) => format!("no tool is called `{short}`; did you mean `{meant}`?"),
            None => format!("no tool is called `{short}`; tools/list names those there are"),
        };
        NoSuchTool { message: self.shared.redactor.redact(&message).into_owned() }
    }

    async fn run(
        &self,
        registered: &Registered,
        call: Authorized<Call>,
        context: Context,
    ) -> Result<Answer, ToolError> {
        let limits = &self.shared.limits;
        let cancel = context.cancel.clone();
        let (limit, stopping) = if registered.tool.has_own_deadline() {
            // The tool ends itself and says what it had by then; this is for one that does not.
            (context.max_timeout + OWN_DEADLINE_BACKSTOP, OWN_DEADLINE_BACKSTOP)
        } else {
            (context.role_limit.map_or(limits.call_timeout, |most| most.min(limits.call_timeout)), STOPPING)
        };
        let deadline = Instant::now() + limit;
        let _place = match registered.tool.needs().place {
            false => None,
            true => tokio::select! {
                place = self.shared.places.acquire() => Some(place.map_err(|_| ToolError::new("the server is ending"))?),
                () = cancel.cancelled() => return Err(cancelled()),
                () = tokio::time::sleep_until(deadline) => return Err(ToolError::new(format!(
                    "not started: for {} s as many calls as may run at once ({}) were running; try again, or end some",
                    limit.as_secs(),
                    limits.max_concurrent_calls
                ))),
            },
        };
        let tool = registered.tool.run(call, context);
        let mut tool = std::pin::pin!(AssertUnwindSafe(tool).catch_unwind());
        let ended = tokio::select! {
            ended = &mut tool => Some(ended),
            () = cancel.cancelled() => None,
            () = tokio::time::sleep_until(deadline) => {
                cancel.cancel();
                None
            }
        };
        // A tool that is told to stop has a moment to say what it had done; after that its future is
        // dropped, and with it whatever it started.
        let late = Instant::now() >= deadline;
        let ended = match ended {
            Some(ended) => Some(ended),
            None => tokio::time::timeout(stopping, &mut tool).await.ok(),
        };
        match ended {
            Some(Ok(result)) => result,
            Some(Err(panic)) => Err(panicked(registered.tool.name(), panic.as_ref(), &self.shared.redactor)),
            None if late => Err(ToolError::new(format!(
                "`{}` was ended at the time limit of {} s; what it had done by then stays done",
                registered.tool.name(),
                limit.as_secs()
            ))),
            None => Err(cancelled()),
        }
    }
}

/// A call, as it came.
struct Made {
    by: Caller,
    at: Instant,
    observer: Option<Observer>,
}

/// What was decided of a call.
#[derive(Debug)]
struct Said {
    decision: &'static str,
    rule: Arc<str>,
}

/// What is recorded of arguments.
#[derive(Debug)]
struct Shape {
    text: String,
    /// About as many as their JSON has.
    bytes: usize,
}

/// About how many bytes of JSON a value has, without writing it.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        // What holds nothing has its brackets and its comma, or any number of them would weigh nothing.
        Value::Array(elements) => 2 + elements.iter().map(|element| size(element) + 1).sum::<usize>(),
        Value::Object(members) => object_size(members),
    }
}

fn object_size(members: &Map<String, Value>) -> usize {
    2 + members.iter().map(|(name, value)| name.len() + size(value) + 4).sum::<usize>()
}

/// How long a tool that is told to stop may take to say what it had done.
const STOPPING: Duration = Duration::from_millis(250);

/// Beyond the longest time limit a caller may ask for: grace, drain and sweep of a process runner.
const OWN_DEADLINE_BACKSTOP: Duration = Duration::from_secs(10);

fn cancelled() -> ToolError {
    ToolError::new("cancelled")
}

/// A panic is a defect of the server, not of the call. Its message goes to the log alone: it may hold
/// anything.
fn panicked(tool: &str, panic: &(dyn Any + Send), redactor: &Redactor) -> ToolError {
    let message = panic
        .downcast_ref::<&str>()
        .map(|message| (*message).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    tracing::error!(tool, "a tool panicked: {}", redactor.redact(&message));
    ToolError::new(format!(
        "`{tool}` stopped because of a defect in this server; it may have done a part of its work. \
         The server goes on, and its log has the details"
    ))
}
