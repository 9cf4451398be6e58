//! The host: its tools and its policy, and what each caller sees of them.

use super::error::{HostError, NoSuchTool};
use super::tools::{OfferKind, RegisteredTool, ToolTable};
use crate::mcp::answer::AnswerFormat;
use crate::mcp::approval::ApprovalOptions;
use crate::mcp::audit::{Audit, AuditLevel};
use crate::mcp::availability::Availability;
use crate::mcp::background_process::BackgroundProcess;
use crate::mcp::call_tasks::CallTasks;
use crate::mcp::client_notices::ClientNotices;
use crate::mcp::found_tools::FoundTools;
use crate::mcp::limits::HostLimits;
use crate::mcp::paused_calls::PausedCalls;
use crate::mcp::permits::{CallPermits, ResourceClass};
use crate::mcp::rate_limiter::RateLimiter;
use crate::mcp::reference;
use crate::mcp::selection::ToolSelection;
use crate::mcp::tool::Tool;
use crate::mcp::toolset::Toolset;
use crate::redact::Redactor;
use arc_swap::ArcSwap;
use did_you_mean::nearest;
use role_policy::{Caller, EffectResolver, Policy, ToolFacts};
use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// The tools, and everything that stands before and behind each of them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Host {
    pub(super) shared: Arc<SharedHost>,
    pub(super) tools: Arc<ToolTable>,
}

/// The state that is shared by the hosts over all workspaces.
pub(super) struct SharedHost {
    pub(super) selection: ToolSelection,
    /// Replaced whole by a reload. Each call loads it once.
    pub(super) policy: ArcSwap<Policy>,
    /// Counts how often the policy was replaced.
    pub(super) policy_reloads: watch::Sender<u64>,
    pub(super) rate_limiter: RateLimiter,
    pub(super) audit: Option<Audit>,
    pub(super) audit_level: AuditLevel,
    pub(super) approvals: ApprovalOptions,
    pub(super) paused_calls: PausedCalls,
    pub(super) redactor: Redactor,
    pub(super) limits: HostLimits,
    pub(super) call_permits: CallPermits,
    pub(super) answer_format: AnswerFormat,
    pub(super) multi_tenant: bool,
    /// A restriction of the whole server that a caller who misses a tool should know.
    pub(super) notice: Option<String>,
    /// True if clients may ask for log messages of calls.
    pub(super) client_log: bool,
    pub(super) client_notices: ClientNotices,
    pub(super) tasks: CallTasks,
}

impl fmt::Debug for SharedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedHost").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Host {
    /// Returns the same host with tools over another workspace, whose folders are `roots`: one policy, one audit, the same
    /// limits for all together.
    ///
    /// # Errors
    ///
    /// As [`HostBuilder::build`](super::HostBuilder::build).
    pub fn for_workspace(
        &self,
        toolsets: Vec<Toolset>,
        effects: Arc<dyn EffectResolver + Send + Sync>,
        roots: Vec<PathBuf>,
    ) -> Result<Self, HostError> {
        let mut tools = ToolTable::new(&self.shared.selection, toolsets, effects, self.shared.answer_format)?;
        tools.roots = roots;
        tools.connect_notices(&self.shared.client_notices);
        Ok(Self { shared: Arc::clone(&self.shared), tools: Arc::new(tools) })
    }

    /// Ends what `principal` has running in the background, also what its commands have left running. To be called once it may make no further call.
    pub fn release_caller(&self, principal: &str) {
        self.tools.release_caller(principal);
        self.shared.tasks.release_caller(principal);
    }

    /// Returns the background programs of all callers, their commands masked as an answer would be. For the operator of
    /// the server: no policy is asked.
    pub fn background_processes(&self) -> Vec<BackgroundProcess> {
        let mut processes: Vec<BackgroundProcess> =
            self.tools.iter().flat_map(|registered| registered.tool.hooks().background_processes()).collect();
        for process in &mut processes {
            process.command = self.shared.redactor.redact(&process.command).into_owned();
        }
        processes
    }

    /// Returns the tools that are listed to `caller`, in their stable order.
    pub fn list(&self, caller: &Caller) -> Vec<rmcp::model::Tool> {
        self.list_with(caller, &FoundTools::default())
    }

    /// Returns the tools that are listed to `caller` after its client has found others as well.
    pub(crate) fn list_with(&self, caller: &Caller, found: &FoundTools) -> Vec<rmcp::model::Tool> {
        let policy = self.shared.policy.load();
        // One policy decides about the whole list. A reload in between would mix the lists of two policies.
        let listed: Vec<&RegisteredTool> = self
            .visible(&policy, caller)
            .filter(|registered| registered.is_listed || found.contains(registered.tool.name()))
            .collect();
        let names: HashSet<&str> = listed.iter().map(|registered| registered.tool.name()).collect();
        let definition =
            |registered: &RegisteredTool| registered.definition(&self.tools.known, &names).into_owned();
        listed.into_iter().map(definition).collect()
    }

    /// Returns the toolset of each tool that is listed to `caller`, in the same order as [`Self::list`].
    pub fn toolsets(&self, caller: &Caller) -> Vec<&'static str> {
        let policy = self.shared.policy.load();
        self.listed(&policy, caller).map(|registered| registered.toolset).collect()
    }

    /// Returns the names of the tools that are listed to `caller`, in the same order as [`Self::list`].
    pub fn names(&self, caller: &Caller) -> Vec<&'static str> {
        let policy = self.shared.policy.load();
        self.listed(&policy, caller).map(|registered| registered.tool.name()).collect()
    }

    /// Returns the names of the tools that `caller` may call: the listed tools, and the tools that a preset leaves out
    /// of the list.
    pub fn callable_names(&self, caller: &Caller) -> Vec<&'static str> {
        let policy = self.shared.policy.load();
        self.visible(&policy, caller).map(|registered| registered.tool.name()).collect()
    }

    /// Returns the facts about each tool that a policy judges by, in the order of the list.
    pub fn facts(&self) -> Vec<ToolFacts<'static>> {
        self.tools.of_kind(OfferKind::Tool).map(RegisteredTool::facts).collect()
    }

    /// Writes the tools that `caller` sees as a page of Markdown, each with all its parameters, including the
    /// parameters that the list leaves out.
    pub fn reference(&self, caller: &Caller) -> String {
        let policy = self.shared.policy.load();
        let tools = self.listed(&policy, caller).map(|registered| (registered.toolset, &registered.tool));
        reference::markdown(tools)
    }

    /// Returns the tools that are listed to `caller`.
    pub(super) fn listed<'a>(
        &'a self,
        policy: &'a Policy,
        caller: &'a Caller,
    ) -> impl Iterator<Item = &'a RegisteredTool> {
        self.visible(policy, caller).filter(|registered| registered.is_listed)
    }

    /// Returns the tools that `caller` may call.
    pub(super) fn visible<'a>(
        &'a self,
        policy: &'a Policy,
        caller: &'a Caller,
    ) -> impl Iterator<Item = &'a RegisteredTool> {
        self.offers(policy, caller, OfferKind::Tool)
    }

    /// Returns what `caller` may use of one kind.
    pub(super) fn offers<'a>(
        &'a self,
        policy: &'a Policy,
        caller: &'a Caller,
        kind: OfferKind,
    ) -> impl Iterator<Item = &'a RegisteredTool> {
        self.tools.iter().filter(move |registered| self.is_offered(policy, caller, kind, registered))
    }

    /// Returns the tool that `caller` knows as `name`.
    pub(super) fn find(&self, policy: &Policy, caller: &Caller, name: &str) -> Option<&RegisteredTool> {
        self.find_offer(policy, caller, OfferKind::Tool, name)
    }

    /// Returns what `caller` knows as `name` among the offers of one kind.
    pub(super) fn find_offer(
        &self,
        policy: &Policy,
        caller: &Caller,
        kind: OfferKind,
        name: &str,
    ) -> Option<&RegisteredTool> {
        self.tools.get(name).filter(|registered| self.is_offered(policy, caller, kind, registered))
    }

    /// Returns true if `caller` may use an entry, which must be of this kind. What calls other tools is offered only
    /// with all of them.
    fn is_offered(
        &self,
        policy: &Policy,
        caller: &Caller,
        kind: OfferKind,
        registered: &RegisteredTool,
    ) -> bool {
        let is_visible = |registered: &RegisteredTool| {
            registered.tool.is_available() && policy.sees(caller, &registered.facts())
        };
        registered.offer.kind() == kind
            && is_visible(registered)
            && registered.tool.used_tools().iter().all(|name| self.tools.get(name).is_some_and(is_visible))
    }

    /// The error for a name that `caller` does not see. Its suggestion is a tool that the caller sees, so it tells
    /// nothing of what is hidden.
    pub(super) fn no_such_tool(&self, policy: &Policy, caller: &Caller, name: &str) -> NoSuchTool {
        // The name is text of the caller, of any length.
        let short: String = name.chars().take(64).collect();
        let seen = self.visible(policy, caller).map(|registered| registered.tool.name());
        let mut message = match nearest(&short, seen) {
            Some(meant) => format!("no tool is called `{short}`; did you mean `{meant}`?"),
            None => format!("no tool is called `{short}`; tools/list names those there are"),
        };
        if let Some(notice) = &self.shared.notice {
            message = format!("{message} ({notice})");
        }
        NoSuchTool { message: self.shared.redactor.redact(&message).into_owned() }
    }

    /// Returns the policy that calls are judged by now.
    pub fn policy(&self) -> Policy {
        Policy::clone(&self.shared.policy.load())
    }

    /// Judges every further call by `policy`. Calls that run go on as they were judged.
    pub fn replace_policy(&self, policy: Policy) {
        self.shared.policy.store(Arc::new(policy));
        // After the store, so that a task which wakes finds the new policy.
        self.shared.policy_reloads.send_modify(|reloads| *reloads += 1);
    }

    /// Returns a receiver that wakes whenever the policy is replaced.
    pub(crate) fn policy_reloads(&self) -> watch::Receiver<u64> {
        self.shared.policy_reloads.subscribe()
    }

    /// Returns the permits that a call of `tool` needs. A tool that `caller` does not see needs what one does that is
    /// not there, so that waiting tells nothing of it.
    pub fn resources(&self, caller: &Caller, tool: &str) -> ResourceClass {
        let policy = self.shared.policy.load();
        let registered = self.find(&policy, caller, tool);
        registered.map_or(ResourceClass::Call, |registered| registered.tool.resources())
    }

    /// Returns the permits for calls that run at once. All the hosts [over other workspaces](Self::for_workspace) share
    /// them.
    pub fn call_permits(&self) -> &CallPermits {
        &self.shared.call_permits
    }

    /// Returns the audit, if calls are recorded.
    pub fn audit(&self) -> Option<&Audit> {
        self.shared.audit.as_ref()
    }

    /// Returns the way in which persons are asked about calls.
    pub fn approvals(&self) -> &ApprovalOptions {
        &self.shared.approvals
    }

    /// Returns the calls that wait for the next request of their client.
    pub(in crate::mcp) fn paused_calls(&self) -> &PausedCalls {
        &self.shared.paused_calls
    }

    /// Returns true if `caller` may call the tool with this name.
    pub(in crate::mcp) fn is_callable(&self, caller: &Caller, name: &str) -> bool {
        let policy = self.shared.policy.load();
        self.find(&policy, caller, name).is_some()
    }

    /// Returns the tool that `caller` knows as `name`.
    pub(in crate::mcp) fn tool(&self, caller: &Caller, name: &str) -> Option<&Tool> {
        let policy = self.shared.policy.load();
        self.find(&policy, caller, name).map(|registered| &registered.tool)
    }

    /// Returns the calls that go on as tasks.
    pub(in crate::mcp) fn tasks(&self) -> &CallTasks {
        &self.shared.tasks
    }

    /// Returns the notices to clients of changes that belong to no call.
    pub(in crate::mcp) fn client_notices(&self) -> &ClientNotices {
        &self.shared.client_notices
    }

    /// Returns true if clients may ask for log messages of calls.
    pub(in crate::mcp) fn has_client_log(&self) -> bool {
        self.shared.client_log
    }

    /// Returns true if both hosts have the same tools, over one workspace.
    pub(in crate::mcp) fn has_same_tools(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.tools, &other.tools)
    }

    /// Returns receivers that wake whenever what is available changes.
    pub(in crate::mcp) fn availability_changes(&self) -> Vec<watch::Receiver<u64>> {
        self.tools.availabilities().iter().map(Availability::changes).collect()
    }

    /// Returns the folders that tools may use, as the caller of this host knows them. The first is where relative paths
    /// begin.
    pub fn roots(&self) -> &[PathBuf] {
        &self.tools.roots
    }

    /// Returns the restriction of the whole server, if there is one.
    pub fn notice(&self) -> Option<&str> {
        self.shared.notice.as_deref()
    }

    /// Returns the bounds on every call.
    pub fn limits(&self) -> &HostLimits {
        &self.shared.limits
    }

    /// Returns the redactor that masks secrets in everything that leaves.
    pub fn redactor(&self) -> &Redactor {
        &self.shared.redactor
    }

    pub(crate) fn answer_format(&self) -> AnswerFormat {
        self.shared.answer_format
    }
}
