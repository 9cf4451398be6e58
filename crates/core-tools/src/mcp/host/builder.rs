//! What a host is made of.

use super::{Host, Over, Shared};
use crate::mcp::audit::Audit;
use crate::mcp::limits::Limits;
use crate::mcp::meter::Meter;
use crate::mcp::selection::Selection;
use crate::mcp::tool::Toolset;
use crate::redact::Redactor;
use arc_swap::ArcSwap;
use role_policy::{Effects, Lexical, Policy};
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};

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
    /// [`unrestricted`](super::Context::unrestricted), whatever its role, since others' programs run beside its own. Off by
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
}
