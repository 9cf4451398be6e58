//! A tool: its entry in a client's list, the facts that a policy judges it by, and the function that runs.

use super::answer::{Answer, AnswerFormat};
use super::availability::Availability;
use super::background_process::BackgroundProcess;
use super::call_context::CallContext;
use super::client_notices::ClientNotices;
use super::client_requests::ClientCapability;
use super::deadline_owner::DeadlineOwner;
use super::permits::{NoPermit, ResourceClass};
use super::schema::{JsonSchemaObject, LazySchema};
use super::search_hints;
use super::stored_schemas::SchemaUse;
use super::task_use::{TaskStart, TaskUse};
use super::tool_error::ToolError;
use super::tool_hooks::{ConnectNotices, ToolHooks};
use futures_util::future::{BoxFuture, FutureExt};
use process_runner::LeftoverTree;
use rmcp::model::ToolAnnotations;
use role_policy::{Authorized, Call, Effect, ToolFacts};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

type ToolHandler =
    dyn Fn(Map<String, Value>, CallContext) -> BoxFuture<'static, Result<Answer, ToolError>> + Send + Sync;

/// A tool: its entry in a client's list, the facts that a policy judges it by, and the function that runs.
///
/// The input type is the schema: its doc comments are the descriptions that a client reads, its ranges are
/// checked before the function is called.
#[derive(Clone)]
pub struct Tool {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    aliases: &'static [&'static str],
    input: Arc<LazySchema>,
    output: Option<Arc<LazySchema>>,
    change: ToolChange,
    effects: &'static [Effect],
    idempotence: Idempotence,
    world: ToolReach,
    deadline: DeadlineOwner,
    resources: ResourceClass,
    unrestricted: UnrestrictedCheck,
    directory: DirectoryUse,
    work: WorkSource,
    hooks: ToolHooks,
    availability: Option<Availability>,
    task: TaskUse,
    required_capabilities: &'static [ClientCapability],
    used_tools: &'static [&'static str],
    handler: Arc<ToolHandler>,
}

/// The effect of a tool on what is there: MCP's `readOnlyHint` and `destructiveHint`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToolChange {
    None,
    Additive,
    Destructive,
}

/// The effect of a second call with the same arguments: MCP's `idempotentHint`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Idempotence {
    Idempotent,
    NotIdempotent,
}

/// The reach of a tool, on this machine or beyond: MCP's `openWorldHint`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToolReach {
    Closed,
    Open,
}

/// The check if the caller of a tool is unrestricted. It looks at every rule, so only tools that ask for it get it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnrestrictedCheck {
    Skipped,
    Made,
}

/// The use of the list of tools by a tool. It is made for those alone that search in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DirectoryUse {
    None,
    Searched,
}

/// The source of what a call of a tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkSource {
    /// The tool itself.
    Tool,
    /// The calls of other tools that it makes.
    InnerCalls,
}

impl Tool {
    /// A tool that only reads, runs to the host's deadline and answers with text.
    ///
    /// `name` is `snake_case`, at most 48 characters. `description` says in under 1 KB when to use it, and
    /// when another tool serves better.
    pub fn new<I, F, R>(name: &'static str, title: &'static str, description: &'static str, run: F) -> Self
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(I, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Answer, ToolError>> + Send + 'static,
    {
        let handler =
            move |arguments: Map<String, Value>, context: CallContext| match serde_json::from_value::<I>(
                Value::Object(arguments),
            ) {
                Ok(input) => run(input, context).boxed(),
                // The schema has been checked before, so this says what the schema cannot.
                Err(error) => {
                    std::future::ready(Err(ToolError::new(format!("invalid arguments: {error}")))).boxed()
                }
            };
        Self::of(name, title, description, LazySchema::of_input::<I>(), Arc::new(handler))
    }

    /// A tool whose input schema is given as it is, and listed word for word. Arguments are checked by its properties, as
    /// far as they say what is required, and by types, ranges and sets; members that it does not list are refused.
    ///
    /// ```
    /// use core_tools::mcp::{Answer, CallContext, Tool};
    /// use serde_json::{Map, Value, json};
    ///
    /// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    /// let run = |input: Map<String, Value>, _: CallContext| async move { Ok(Answer::text(input["city"].to_string())) };
    /// let tool = Tool::with_schema("weather", "Weather", "Says the weather.", schema, run);
    /// assert_eq!(tool.name(), "weather");
    /// ```
    pub fn with_schema<F, R>(
        name: &'static str,
        title: &'static str,
        description: &'static str,
        schema: Value,
        run: F,
    ) -> Self
    where
        F: Fn(Map<String, Value>, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Answer, ToolError>> + Send + 'static,
    {
        let handler =
            move |arguments: Map<String, Value>, context: CallContext| run(arguments, context).boxed();
        Self::of(name, title, description, LazySchema::verbatim(schema), Arc::new(handler))
    }

    fn of(
        name: &'static str,
        title: &'static str,
        description: &'static str,
        input: LazySchema,
        handler: Arc<ToolHandler>,
    ) -> Self {
        Self {
            name,
            title,
            description,
            aliases: &[],
            input: Arc::new(input),
            output: None,
            change: ToolChange::None,
            effects: &[],
            idempotence: Idempotence::Idempotent,
            world: ToolReach::Closed,
            deadline: DeadlineOwner::Host,
            resources: ResourceClass::Call,
            unrestricted: UnrestrictedCheck::Skipped,
            directory: DirectoryUse::None,
            work: WorkSource::Tool,
            hooks: ToolHooks::default(),
            availability: None,
            task: TaskUse::default(),
            required_capabilities: &[],
            used_tools: &[],
            handler,
        }
    }

    /// Offers the tool only while `availability` is on. Clients are told of each change.
    #[must_use]
    pub fn available_while(mut self, availability: &Availability) -> Self {
        self.availability = Some(availability.clone());
        self
    }

    /// Lets a call become a task once it has run for `after`, for a client with the tasks extension: the client gets a
    /// handle, asks for the state, and cancels the task if it no longer wants the answer. Other clients wait as ever. With
    /// [`Duration::ZERO`], the call is a task from its beginning.
    #[must_use]
    pub fn long_running(mut self, after: Duration) -> Self {
        self.task.start = TaskStart::After(after);
        self
    }

    /// Lets a call become a task when the tool says so, by [`CallContext::begin_task`]. A tool that first asks the client
    /// for something calls it afterwards.
    #[must_use]
    pub fn begins_task(mut self) -> Self {
        self.task.start = TaskStart::WhenBegun;
        self
    }

    /// Refuses calls of clients without the tasks extension, for a tool that only makes sense as a task.
    #[must_use]
    pub fn requires_tasks(mut self) -> Self {
        self.task.is_required = true;
        self
    }

    /// Refuses calls of clients that do not declare these capabilities, before the tool runs.
    #[must_use]
    pub fn requires_client(mut self, capabilities: &'static [ClientCapability]) -> Self {
        self.required_capabilities = capabilities;
        self
    }

    /// Marks a tool that creates or appends, and loses nothing that was there. Not idempotent.
    #[must_use]
    pub fn adds(mut self) -> Self {
        (self.change, self.idempotence) = (ToolChange::Additive, Idempotence::NotIdempotent);
        self
    }

    /// Marks a tool that may overwrite or remove what was there. Not idempotent.
    #[must_use]
    pub fn destroys(mut self) -> Self {
        (self.change, self.idempotence) = (ToolChange::Destructive, Idempotence::NotIdempotent);
        self
    }

    /// Marks a tool for which a second call with the same arguments changes nothing more.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.idempotence = Idempotence::Idempotent;
        self
    }

    /// Marks a tool that reaches beyond this machine, or runs programs that may.
    #[must_use]
    pub fn open_world(mut self) -> Self {
        self.world = ToolReach::Open;
        self
    }

    /// Declares the reach of the arguments, for a policy to judge. Each argument that is a path, a command or a role
    /// must be named.
    #[must_use]
    pub fn effects(mut self, effects: &'static [Effect]) -> Self {
        self.effects = effects;
        self
    }

    /// Declares that answers are structured objects of type `T`.
    #[must_use]
    pub fn answers<T: JsonSchema>(mut self) -> Self {
        self.output = Some(Arc::new(LazySchema::of_output::<T>()));
        self
    }

    /// Adds names that the tool had elsewhere. The names can be called and are not listed. The policy judges the
    /// canonical name.
    #[must_use]
    pub fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Leaves the deadline to the tool, which takes a time limit as a parameter. The host's own is then only a backstop.
    #[must_use]
    pub fn own_deadline(mut self) -> Self {
        self.deadline = DeadlineOwner::Own;
        self
    }

    /// Has the host find out whether the caller is [`unrestricted`](CallContext::unrestricted), for a tool that does
    /// more for an unrestricted caller.
    #[must_use]
    pub fn checks_unrestricted(mut self) -> Self {
        self.unrestricted = UnrestrictedCheck::Made;
        self
    }

    /// Gives the tool the list of all tools that its caller may call.
    #[must_use]
    pub(super) fn searches_tools(mut self) -> Self {
        self.directory = DirectoryUse::Searched;
        self
    }

    /// Gives the tool a way to call other tools in the name of its caller. It does nothing else, so a policy judges it as
    /// one that only reads, and its calls on their own; a client is shown the hints that the tool declares.
    #[must_use]
    pub(super) fn calls_tools(mut self) -> Self {
        (self.work, self.deadline) = (WorkSource::InnerCalls, DeadlineOwner::InnerCalls);
        self
    }

    /// Gives a prompt, a resource or suggestions a way to call these tools in the name of their caller, who must see all of
    /// them.
    #[must_use]
    pub(super) fn uses_tools(self, tools: &'static [&'static str]) -> Self {
        // Unmetered: its calls acquire permits, and it waits for them.
        Self { used_tools: tools, ..self.calls_tools().unmetered() }
    }

    /// Offers a prompt, a resource or suggestions only to callers who see all of these tools.
    #[must_use]
    pub(super) fn offered_with(self, tools: &'static [&'static str]) -> Self {
        Self { used_tools: tools, ..self }
    }

    /// Lets calls run without a call permit ([`ResourceClass::Unmetered`]), for a tool that answers at once or waits: a
    /// command can then be stopped while every permit is taken.
    #[must_use]
    pub fn unmetered(mut self) -> Self {
        self.resources = ResourceClass::Unmetered;
        self
    }

    /// Marks a tool that runs a program for as long as it is called ([`ResourceClass::Program`]).
    #[must_use]
    pub fn runs_programs(mut self) -> Self {
        self.resources = ResourceClass::Program;
        self
    }

    /// Calls `release` with a principal that may make no further call, to end the programs and other resources that the
    /// tool keeps for the principal beyond a call. `release` must not block.
    #[must_use]
    pub fn on_release_caller(mut self, release: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.hooks.release_caller = Some(Arc::new(release));
        self
    }

    /// Takes over what a command of a principal has left running, by `take`, which then lists and ends it, or refuses to
    /// have it go on. It must not block.
    #[must_use]
    #[cfg_attr(not(feature = "ci"), allow(dead_code, reason = "only commands leave something running"))]
    pub(crate) fn takes_leftovers(
        mut self,
        take: impl Fn(&str, &LeftoverTree) -> Result<(), NoPermit> + Send + Sync + 'static,
    ) -> Self {
        self.hooks.take_leftovers = Some(Arc::new(take));
        self
    }

    /// Lists the background programs of all callers by `list`. `list` must not block.
    #[must_use]
    pub fn lists_background(
        mut self,
        list: impl Fn() -> Vec<BackgroundProcess> + Send + Sync + 'static,
    ) -> Self {
        self.hooks.list_background = Some(Arc::new(list));
        self
    }

    /// Gives the tool the way to tell clients of changes that belong to no call: a host that is built with the tool calls
    /// `connect` once. `connect` must not block.
    #[must_use]
    pub fn sends_notices(mut self, connect: impl Fn(&ClientNotices) + Send + Sync + 'static) -> Self {
        self.hooks.connect_notices = Some(Arc::new(connect));
        self
    }

    /// Sets the largest value of a number among the parameters, where a setting bounds it and not the type.
    #[must_use]
    pub fn maximum(mut self, parameter: &str, maximum: u64) -> Self {
        Arc::make_mut(&mut self.input).set_maximum(parameter, maximum);
        self
    }

    /// Returns the canonical name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn description(&self) -> &'static str {
        self.description
    }

    pub(crate) fn alias_names(&self) -> &'static [&'static str] {
        self.aliases
    }

    pub(crate) fn input(&self) -> &JsonSchemaObject {
        self.input.get()
    }

    /// Returns the schemas of its types that can be stored.
    pub(super) fn generated_schemas(
        &self,
    ) -> impl Iterator<Item = (SchemaUse, &'static str, JsonSchemaObject)> + use<> {
        let output = self.output.as_ref().map(|output| output.generated());
        self.input.generated().chain(output.into_iter().flatten())
    }

    /// Takes over the aliases of the tool that this one replaces, unless it has its own.
    pub(crate) fn inherit_aliases(&mut self, replaced: &Self) {
        if self.aliases.is_empty() {
            self.aliases = replaced.aliases;
        }
    }

    pub(crate) fn task(&self) -> TaskUse {
        self.task
    }

    pub(crate) fn required_capabilities(&self) -> &'static [ClientCapability] {
        self.required_capabilities
    }

    pub(crate) fn used_tools(&self) -> &'static [&'static str] {
        self.used_tools
    }

    pub(crate) fn availability(&self) -> Option<&Availability> {
        self.availability.as_ref()
    }

    pub(crate) fn is_available(&self) -> bool {
        self.availability.as_ref().is_none_or(Availability::is_on)
    }

    pub(crate) fn wants_unrestricted(&self) -> bool {
        self.unrestricted == UnrestrictedCheck::Made
    }

    pub(crate) fn wants_directory(&self) -> bool {
        self.directory == DirectoryUse::Searched
    }

    pub(crate) fn wants_to_call_tools(&self) -> bool {
        self.work == WorkSource::InnerCalls
    }

    pub(crate) fn deadline(&self) -> DeadlineOwner {
        self.deadline
    }

    pub(crate) fn facts(&self, toolset: &'static str) -> ToolFacts<'static> {
        let itself = self.work == WorkSource::Tool;
        ToolFacts::new(self.name, toolset)
            .read_only(!itself || self.change == ToolChange::None)
            .destructive(itself && self.change == ToolChange::Destructive)
            .open_world(itself && self.world == ToolReach::Open)
            .effects(self.effects)
    }

    pub(super) fn hooks(&self) -> &ToolHooks {
        &self.hooks
    }

    pub(crate) fn resources(&self) -> ResourceClass {
        self.resources
    }

    /// Runs a call. Takes only one that a policy has allowed: nothing else makes an `Authorized<Call>`.
    pub(crate) fn run(
        &self,
        call: Authorized<Call>,
        context: CallContext,
    ) -> BoxFuture<'static, Result<Answer, ToolError>> {
        (self.handler)(call.into_arguments(), context)
    }

    /// Replaces the function that does the work, and everything that it keeps beyond a call.
    pub(crate) fn with_handler(
        mut self,
        handler: impl Fn(Map<String, Value>, CallContext) -> BoxFuture<'static, Result<Answer, ToolError>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.hooks = ToolHooks::default();
        self.handler = Arc::new(handler);
        self
    }

    /// Puts `detour` before the function that does the work: a call for which it returns a future is made elsewhere. What
    /// the tool keeps beyond a call stays.
    pub(crate) fn with_detour(
        mut self,
        detour: impl Fn(
            &mut Map<String, Value>,
            &CallContext,
        ) -> Option<BoxFuture<'static, Result<Answer, ToolError>>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let here = Arc::clone(&self.handler);
        self.handler = Arc::new(move |mut arguments, context| match detour(&mut arguments, &context) {
            Some(elsewhere) => elsewhere,
            None => here(arguments, context),
        });
        self
    }

    /// Hands `connect` the way to tell clients of changes as well.
    pub(crate) fn also_sends_notices(mut self, connect: Option<&Arc<ConnectNotices>>) -> Self {
        let Some(connect) = connect.cloned() else { return self };
        self.hooks.connect_notices = Some(match self.hooks.connect_notices.take() {
            None => connect,
            Some(own) => Arc::new(move |notices: &ClientNotices| {
                own(notices);
                connect(notices);
            }),
        });
        self
    }

    /// Has `then` complete the answer of the function that does the work, by the arguments and the context of the call. What
    /// the tool keeps beyond a call stays.
    pub(crate) fn followed_by(
        mut self,
        then: impl Fn(
            Result<Answer, ToolError>,
            Map<String, Value>,
            CallContext,
        ) -> BoxFuture<'static, Result<Answer, ToolError>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let (here, then) = (Arc::clone(&self.handler), Arc::new(then));
        self.handler = Arc::new(move |arguments, context| {
            let (answer, then) = (here(arguments.clone(), context.clone()), Arc::clone(&then));
            async move { then(answer.await, arguments, context).await }.boxed()
        });
        self
    }

    /// Returns the entry of a list. All four hints are always present, because a client assumes the worst of a missing
    /// one.
    pub(crate) fn listed(&self, format: AnswerFormat) -> rmcp::model::Tool {
        let mut tool = rmcp::model::Tool::new(self.name, self.description, self.input.listed());
        tool.title = Some(self.title.to_owned());
        // A client checks every answer against this schema, so it is only there where answers are structured.
        tool.output_schema = match format {
            AnswerFormat::Structured => self.output.as_ref().map(|schema| Arc::clone(schema.get())),
            AnswerFormat::TextOnly => None,
        };
        tool.meta = search_hints::meta(self.name);
        tool.annotations = Some(
            ToolAnnotations::new()
                .read_only(self.change == ToolChange::None)
                .destructive(self.change == ToolChange::Destructive)
                .idempotent(self.idempotence == Idempotence::Idempotent)
                .open_world(self.world == ToolReach::Open),
        );
        tool
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).field("change", &self.change).finish_non_exhaustive()
    }
}
