//! One tool: what a client is told of it, and what runs.

use super::Context;
use super::answer::{Answer, ToolError};
use super::arguments::{self, InvalidArguments};
use super::limits::Needs;
use super::schema::{self, Schema};
use futures_util::future::{BoxFuture, FutureExt};
use rmcp::model::ToolAnnotations;
use role_policy::{Authorized, Call, Effect, ToolFacts};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

type Leave = dyn Fn(&str) + Send + Sync;
type TellsLeft = dyn Fn() -> Vec<Left> + Send + Sync;
type Handler =
    dyn Fn(Map<String, Value>, Context) -> BoxFuture<'static, Result<Answer, ToolError>> + Send + Sync;

/// Tools that belong together, and are chosen together.
#[derive(Debug)]
pub struct Toolset {
    /// The name it is chosen by, for example `filesystem`.
    pub name: &'static str,
    /// Its tools, in the order they are listed.
    pub tools: Vec<Tool>,
}

/// A tool, and arguments in the form in which they are judged and run.
pub type Prepared = (ToolFacts<'static>, Map<String, Value>);

impl Toolset {
    /// What a policy knows of its tools.
    pub fn facts(&self) -> impl Iterator<Item = ToolFacts<'static>> {
        self.tools.iter().map(|tool| tool.facts(self.name))
    }

    /// Lays these tools over `others`. One that has the name of a tool there stands in its place: in its toolset, in its
    /// order, called by its former names too, and judged by the rules for that name, with the effects and hints that it
    /// declares itself. All else follows as a toolset of its own.
    pub fn over(self, others: &mut Vec<Self>) {
        let mut rest = Vec::new();
        for mut own in self.tools {
            let replaced =
                others.iter_mut().flat_map(|toolset| &mut toolset.tools).find(|tool| tool.name == own.name);
            match replaced {
                Some(tool) => {
                    if own.aliases.is_empty() {
                        own.aliases = tool.aliases;
                    }
                    *tool = own;
                }
                None => rest.push(own),
            }
        }
        if !rest.is_empty() {
            others.push(Self { name: self.name, tools: rest });
        }
    }

    /// What a policy knows of the tool that is called `name`, or was elsewhere, and `arguments` in the form in
    /// which they are judged and run. Nothing if it is not in this toolset.
    ///
    /// # Errors
    /// The arguments do not fit the tool.
    pub fn prepare(
        &self,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Option<Result<Prepared, InvalidArguments>> {
        let tool = self.tools.iter().find(|tool| tool.name == name || tool.aliases.contains(&name))?;
        let normalised = arguments::normalise(&tool.input, arguments);
        Some(normalised.map(|arguments| (tool.facts(self.name), arguments)))
    }
}

/// One tool: what a client is told of it, and what runs.
///
/// The input type is the schema: its doc comments are the descriptions a client reads, its ranges are
/// checked before the handler sees anything.
#[derive(Clone)]
pub struct Tool {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    aliases: &'static [&'static str],
    input: Arc<Schema>,
    output: Option<Arc<Schema>>,
    change: Change,
    effects: &'static [Effect],
    idempotent: bool,
    open_world: bool,
    own_deadline: bool,
    without_place: bool,
    runs_programs: bool,
    knows_unrestricted: bool,
    on_leave: Option<Arc<Leave>>,
    tells_left: Option<Arc<TellsLeft>>,
    handler: Arc<Handler>,
}

/// A program that outlives the call that started it.
#[derive(Clone, Debug)]
pub struct Left {
    /// Whose it is; empty for who has no name.
    pub principal: String,
    /// What its tools know it by.
    pub id: u32,
    /// The command.
    pub command: String,
    /// `running`, or how it ended.
    pub state: &'static str,
    /// How long it ran, or has run.
    pub duration: Duration,
}

/// What a tool does to what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Reads,
    Adds,
    Destroys,
}

impl Tool {
    /// A tool that only reads, runs to the host's deadline and answers with text.
    ///
    /// `name` is `snake_case`, at most 48 characters. `description` says in under 1 KB when to use it, and
    /// when another tool serves better.
    pub fn new<I, F, R>(name: &'static str, title: &'static str, description: &'static str, run: F) -> Self
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(I, Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Answer, ToolError>> + Send + 'static,
    {
        let handler = move |arguments: Map<String, Value>, context: Context| match serde_json::from_value::<I>(
            Value::Object(arguments),
        ) {
            Ok(input) => run(input, context).boxed(),
            // The schema has been checked before, so this says what the schema cannot.
            Err(error) => {
                std::future::ready(Err(ToolError::new(format!("invalid arguments: {error}")))).boxed()
            }
        };
        Self {
            name,
            title,
            description,
            aliases: &[],
            input: Arc::new(schema::input::<I>()),
            output: None,
            change: Change::Reads,
            effects: &[],
            idempotent: true,
            open_world: false,
            own_deadline: false,
            without_place: false,
            runs_programs: false,
            knows_unrestricted: false,
            on_leave: None,
            tells_left: None,
            handler: Arc::new(handler),
        }
    }

    /// It changes what is there without losing anything: it creates, or it appends. Not idempotent.
    #[must_use]
    pub fn adds(mut self) -> Self {
        (self.change, self.idempotent) = (Change::Adds, false);
        self
    }

    /// It may overwrite or remove what was there. Not idempotent.
    #[must_use]
    pub fn destroys(mut self) -> Self {
        (self.change, self.idempotent) = (Change::Destroys, false);
        self
    }

    /// Doing it twice is the same as doing it once.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// It reaches beyond this machine, or runs programs that may.
    #[must_use]
    pub fn open_world(mut self) -> Self {
        self.open_world = true;
        self
    }

    /// What its arguments reach, for a policy to judge. Each argument that is a path, a command or a role must
    /// be named.
    #[must_use]
    pub fn effects(mut self, effects: &'static [Effect]) -> Self {
        self.effects = effects;
        self
    }

    /// Its answers are structured objects of this type.
    #[must_use]
    pub fn answers<T: JsonSchema>(mut self) -> Self {
        self.output = Some(Arc::new(schema::output::<T>()));
        self
    }

    /// Names it had elsewhere. They can be called and are not listed; policy judges the canonical name.
    #[must_use]
    pub fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// It takes a time limit as a parameter, so the host's own deadline is only a backstop.
    #[must_use]
    pub fn own_deadline(mut self) -> Self {
        self.own_deadline = true;
        self
    }

    /// It does more for who is [`unrestricted`](super::Context::unrestricted), which is found out for it.
    #[must_use]
    pub fn knows_unrestricted(mut self) -> Self {
        self.knows_unrestricted = true;
        self
    }

    /// It does no work of its own, it answers at once or waits: calls of it take no place among those that
    /// may run at once, so that a command can be stopped when all places are taken.
    #[must_use]
    pub fn without_place(mut self) -> Self {
        self.without_place = true;
        self
    }

    /// It runs a program for as long as it is called, which counts among those that its caller may run.
    #[must_use]
    pub fn runs_programs(mut self) -> Self {
        self.runs_programs = true;
        self
    }

    /// What it keeps for a principal beyond a call is given up by `leave` once that principal is gone. It must not
    /// block.
    #[must_use]
    pub fn on_leave(mut self, leave: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_leave = Some(Arc::new(leave));
        self
    }

    /// It can say what callers have in the background, and so knows it all.
    #[must_use]
    pub fn tells_left(mut self, tell: impl Fn() -> Vec<Left> + Send + Sync + 'static) -> Self {
        self.tells_left = Some(Arc::new(tell));
        self
    }

    /// The largest value of a number among its parameters, where a setting bounds it and not the type.
    #[must_use]
    pub fn maximum(mut self, parameter: &str, maximum: u64) -> Self {
        let properties = Arc::make_mut(&mut self.input).get_mut("properties");
        if let Some(Value::Object(schema)) = properties.and_then(|properties| properties.get_mut(parameter)) {
            schema.insert("maximum".to_owned(), maximum.into());
        }
        self
    }

    /// The canonical name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn description(&self) -> &'static str {
        self.description
    }

    pub(crate) fn alias_names(&self) -> &'static [&'static str] {
        self.aliases
    }

    pub(crate) fn input(&self) -> &Schema {
        &self.input
    }

    pub(crate) fn asks_unrestricted(&self) -> bool {
        self.knows_unrestricted
    }

    pub(crate) fn has_own_deadline(&self) -> bool {
        self.own_deadline
    }

    pub(crate) fn facts(&self, toolset: &'static str) -> ToolFacts<'static> {
        ToolFacts {
            name: self.name,
            toolset,
            read_only: self.change == Change::Reads,
            destructive: self.change == Change::Destroys,
            open_world: self.open_world,
            effects: self.effects,
        }
    }

    pub(crate) fn leave(&self, principal: &str) {
        if let Some(leave) = &self.on_leave {
            leave(principal);
        }
    }

    pub(crate) fn left(&self) -> Vec<Left> {
        self.tells_left.as_ref().map(|tell| tell()).unwrap_or_default()
    }

    pub(crate) fn needs(&self) -> Needs {
        Needs { place: !self.without_place, program: self.runs_programs }
    }

    /// Takes only a call that a policy has allowed.
    pub(crate) fn run(
        &self,
        call: Authorized<Call>,
        context: Context,
    ) -> BoxFuture<'static, Result<Answer, ToolError>> {
        (self.handler)(call.into_arguments(), context)
    }

    /// What a client is told. All four hints are always there: clients take a missing one for the worst.
    pub(crate) fn listed(&self, structured: bool) -> rmcp::model::Tool {
        let mut tool = rmcp::model::Tool::new(self.name, self.description, schema::listed(&self.input));
        tool.title = Some(self.title.to_owned());
        tool.output_schema = self.output.clone().filter(|_| structured);
        tool.annotations = Some(
            ToolAnnotations::new()
                .read_only(self.change == Change::Reads)
                .destructive(self.change == Change::Destroys)
                .idempotent(self.idempotent)
                .open_world(self.open_world),
        );
        tool
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).field("change", &self.change).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Host, HostError};
    use crate::redact::Redactor;
    use role_policy::{Caller, Policy};

    #[derive(serde::Deserialize, JsonSchema)]
    struct Nothing {}

    fn tool(name: &'static str, says: &'static str) -> Tool {
        Tool::new(name, "Title", "Description.", move |_: Nothing, _: Context| async move {
            Ok(Answer::text(says))
        })
    }

    fn library() -> Vec<Toolset> {
        let status = tool("git_status", "theirs").destroys().aliases(&["get_status"]);
        vec![
            Toolset { name: "git", tools: vec![status, tool("git_log", "theirs")] },
            Toolset { name: "ci", tools: vec![tool("build", "theirs")] },
        ]
    }

    fn host(own: Vec<Tool>) -> Result<Host, HostError> {
        let mut toolsets = library();
        Toolset { name: "own", tools: own }.over(&mut toolsets);
        let builder = Host::builder(Policy::allow_all(), Redactor::new(Default::default()).unwrap());
        toolsets.into_iter().fold(builder, crate::mcp::HostBuilder::toolset).build()
    }

    #[tokio::test]
    async fn an_own_tool_takes_the_place_and_the_former_names_of_the_one_it_is_called_after() {
        let host = host(vec![tool("more", "ours"), tool("git_status", "ours")]).unwrap();
        let caller = Caller::new("orchestrator");
        assert_eq!(host.names(&caller), ["git_status", "git_log", "build", "more"]);
        assert_eq!(host.toolsets(&caller), ["git", "git", "ci", "own"]);
        // What it declares itself is what a policy judges.
        assert!(host.facts()[0].read_only);
        for (name, says) in [("git_status", "ours"), ("get_status", "ours"), ("git_log", "theirs")] {
            let context = Context::new(caller.clone(), Default::default());
            assert_eq!(host.call(name, Map::new(), context).await.unwrap().to_text(), says, "{name}");
        }
    }

    #[test]
    fn an_own_tool_with_a_former_name_of_another_is_an_error() {
        let error = host(vec![tool("get_status", "ours")]).unwrap_err();
        assert_eq!(error.to_string(), "two tools are called `get_status`");
    }
}
