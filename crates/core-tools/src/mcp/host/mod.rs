//! The way of one call: name → visibility → arguments → policy → limits → tool → redaction and bounds.
//!
//! [`Host::call`] is the whole of it, for both transports and the command line; nothing else runs a tool.

mod builder;
mod context;
mod record;
mod run;

pub use builder::{HostBuilder, HostError};
pub use context::Context;
pub use record::Observer;

use super::answer::{Answer, ToolError};
use super::arguments;
use super::audit::{Audit, Outcome};
use super::limits::{Limits, Needs};
use super::meter::Meter;
use super::selection::Selection;
use super::tool::{Left, Tool, Toolset};
use crate::nearest::nearest;
use crate::redact::Redactor;
use arc_swap::ArcSwap;
use record::{Made, Recording, Said, Shape};
use role_policy::{Call, Caller, Effects, Lexical, Policy, Refusal, ToolFacts};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

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

/// There is no such tool, or the caller may not know of it: the same to the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NoSuchTool {
    message: String,
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
    /// each is an answer with [`Answer::is_failed`]. Dropping the future ends the call, which is recorded all the same.
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
        let mut recording = Recording::of(self, &made, registered.tool.name(), &shape);
        let answer = self.judge(&policy, registered, arguments, &shape, context, &mut recording).await;
        let answer = answer.unwrap_or_else(|error| Answer::error(&error));
        recording.came_out(answer.is_failed());
        let answer = self.send_off(answer).await;
        recording.came_out(answer.is_failed());
        recording.end(answer.weight());
        Ok(answer)
    }

    /// From arguments to an answer; what was decided on the way is put into `recording`.
    async fn judge(
        &self,
        policy: &Arc<Policy>,
        registered: &Registered,
        arguments: Map<String, Value>,
        shape: &Shape,
        mut context: Context,
        recording: &mut Recording<'_>,
    ) -> Result<Answer, ToolError> {
        context.policy = Some(Arc::clone(policy));
        let name = registered.tool.name();
        let mut not_run = |decision: &'static str, rule: &str, why: String| {
            recording.decided(Said { decision, rule: rule.into() });
            Err(ToolError::new(why))
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
        recording.decided(said);
        self.run(registered, call, context).await
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
}
