//! The parts of a host.

use super::error::HostError;
use super::host::{Host, SharedHost};
use super::tools::ToolTable;
use crate::mcp::answer::AnswerFormat;
use crate::mcp::approval::ApprovalOptions;
use crate::mcp::audit::{Audit, AuditLevel};
use crate::mcp::call_tasks::CallTasks;
use crate::mcp::client_notices::ClientNotices;
use crate::mcp::limits::HostLimits;
use crate::mcp::paused_calls::PausedCalls;
use crate::mcp::permits::CallPermits;
use crate::mcp::rate_limiter::RateLimiter;
use crate::mcp::selection::ToolSelection;
use crate::mcp::toolset::Toolset;
use crate::redact::Redactor;
use arc_swap::ArcSwap;
use role_policy::{EffectResolver, LexicalResolver, Policy};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// Builds a [`Host`] from its parts.
pub struct HostBuilder {
    toolsets: Vec<Toolset>,
    selection: ToolSelection,
    policy: Policy,
    effects: Arc<dyn EffectResolver + Send + Sync>,
    audit: Option<Audit>,
    audit_level: AuditLevel,
    approvals: ApprovalOptions,
    redactor: Redactor,
    limits: HostLimits,
    answer_format: AnswerFormat,
    multi_tenant: bool,
    roots: Vec<PathBuf>,
    notice: Option<String>,
    client_log: bool,
    client_notices: ClientNotices,
}

impl std::fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostBuilder").field("toolsets", &self.toolsets).finish_non_exhaustive()
    }
}

impl HostBuilder {
    /// Adds tools. Tools are listed in the order in which they are added.
    #[must_use]
    pub fn toolset(mut self, toolset: Toolset) -> Self {
        self.toolsets.push(toolset);
        self
    }

    /// Offers only these tools; the others do not exist. All of them by default.
    #[must_use]
    pub fn selection(mut self, selection: ToolSelection) -> Self {
        self.selection = selection;
        self
    }

    /// Resolves the paths and programs in arguments, for the policy to judge. By default their text alone is judged
    /// ([`LexicalResolver`]).
    #[must_use]
    pub fn effects(mut self, effects: Arc<dyn EffectResolver + Send + Sync>) -> Self {
        self.effects = effects;
        self
    }

    /// Records every call. None is recorded by default.
    #[must_use]
    pub fn audit(mut self, audit: Option<Audit>) -> Self {
        self.audit = audit;
        self
    }

    /// Records this much of the arguments of calls. Names and sizes by default.
    #[must_use]
    pub fn audit_level(mut self, level: AuditLevel) -> Self {
        self.audit_level = level;
        self
    }

    /// Asks persons in this way about the calls that the policy allows only with an approval. The client's user alone by
    /// default.
    #[must_use]
    pub fn approvals(mut self, approvals: ApprovalOptions) -> Self {
        self.approvals = approvals;
        self
    }

    /// The bounds on every call.
    #[must_use]
    pub fn limits(mut self, limits: HostLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Serves callers who are strangers to each other: none of them is
    /// [`unrestricted`](crate::mcp::CallContext::unrestricted), whatever its role, since other callers' programs run beside its
    /// own. Off by default.
    #[must_use]
    pub fn multi_tenant(mut self, multi_tenant: bool) -> Self {
        self.multi_tenant = multi_tenant;
        self
    }

    /// Names the folders that tools may use, for the instructions of a server. None by default.
    #[must_use]
    pub fn roots<P: Into<PathBuf>>(mut self, roots: impl IntoIterator<Item = P>) -> Self {
        self.roots = roots.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a restriction of the whole server to the answer about a tool that is not there. None by default.
    #[must_use]
    pub fn notice(mut self, notice: Option<String>) -> Self {
        self.notice = notice;
        self
    }

    /// Sends answers as text only, for clients that show nothing else. Off by default.
    #[must_use]
    pub fn text_only(mut self, text_only: bool) -> Self {
        self.answer_format = if text_only { AnswerFormat::TextOnly } else { AnswerFormat::Structured };
        self
    }

    /// Lets clients ask for log messages of their calls ([`CallContext::log`](crate::mcp::CallContext::log)). Off by default.
    #[must_use]
    pub fn client_log(mut self, client_log: bool) -> Self {
        self.client_log = client_log;
        self
    }

    /// Tells clients of changes that belong to no call by `notices`, which the caller of this function keeps to tell of
    /// its own. Tools that [send notices](crate::mcp::Tool::sends_notices) use them as well.
    #[must_use]
    pub fn client_notices(mut self, notices: ClientNotices) -> Self {
        self.client_notices = notices;
        self
    }

    /// Builds the host.
    ///
    /// # Errors
    ///
    /// Two tools share a name, or the selection names a tool or toolset that is not there.
    pub fn build(self) -> Result<Host, HostError> {
        let mut tools = ToolTable::new(&self.selection, self.toolsets, self.effects, self.answer_format)?;
        tools.roots = self.roots;
        tools.connect_notices(&self.client_notices);
        Ok(Host {
            shared: Arc::new(SharedHost {
                selection: self.selection,
                policy: ArcSwap::from_pointee(self.policy),
                policy_reloads: watch::Sender::new(0),
                rate_limiter: RateLimiter::default(),
                audit: self.audit,
                audit_level: self.audit_level,
                approvals: self.approvals,
                paused_calls: PausedCalls::default(),
                redactor: self.redactor,
                call_permits: CallPermits::new(self.limits.max_concurrent_calls),
                limits: self.limits,
                answer_format: self.answer_format,
                multi_tenant: self.multi_tenant,
                notice: self.notice,
                client_log: self.client_log,
                client_notices: self.client_notices,
                tasks: CallTasks::default(),
            }),
            tools: Arc::new(tools),
        })
    }
}

impl Host {
    /// Returns a builder of a host that judges every call by `policy` and masks every answer by `redactor`.
    pub fn builder(policy: Policy, redactor: Redactor) -> HostBuilder {
        HostBuilder {
            toolsets: Vec::new(),
            selection: ToolSelection::default(),
            policy,
            effects: Arc::new(LexicalResolver),
            audit: None,
            audit_level: AuditLevel::default(),
            approvals: ApprovalOptions::default(),
            redactor,
            limits: HostLimits::default(),
            answer_format: AnswerFormat::Structured,
            multi_tenant: false,
            roots: Vec::new(),
            notice: None,
            client_log: false,
            client_notices: ClientNotices::default(),
        }
    }
}
