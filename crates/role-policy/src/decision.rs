//! The decision about a call, and the value that proves it.

use crate::approval::ApprovalRequest;
use crate::scope::CallScope;
use crate::tool::Call;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The reason why a call was allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// The rule that allowed it, with its file and line: ``dev: allow `git_*` (roles.toml:12)``. For a caller with
    /// several roles it is the rule of the first.
    pub rule: Arc<str>,
    /// The person who approved the call, if the policy asked for one.
    pub approver: Option<Arc<str>>,
}

/// A call that a policy has allowed. Only [`Policy::authorize`](crate::Policy::authorize) and, with the approval of a
/// person, [`Policy::authorize_approved`](crate::Policy::authorize_approved) make one.
// The fields are private and there is no `Clone`: one value proves that the policy was asked about one call.
#[derive(Debug)]
#[must_use = "a call that is authorized has not run"]
pub struct Authorized<C> {
    call: C,
    decision: Decision,
    scope: CallScope,
}

impl<C> Authorized<C> {
    pub(crate) fn new(call: C, decision: Decision, scope: CallScope) -> Self {
        Self { call, decision, scope }
    }

    /// Returns the reason why it was allowed.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// Returns the paths and databases that the call may reach while it runs. Check what is really opened against it:
    /// a link may be swapped between the decision and the opening.
    pub fn scope(&self) -> &CallScope {
        &self.scope
    }
}

impl Authorized<Call> {
    /// Returns the canonical name of the tool.
    pub fn tool(&self) -> &str {
        self.call.tool()
    }

    /// Returns the arguments that were judged, to run the call with.
    pub fn into_arguments(self) -> Map<String, Value> {
        self.call.into_arguments()
    }
}

/// The refusal of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The caller may not see the tool. To the caller this is the same as a tool that does not exist.
    Hidden {
        /// The rule that hides it, for the operator and never for the caller.
        rule: Arc<str>,
    },
    /// The caller may call the tool, but not with these arguments.
    Arguments {
        /// The rule that refused them.
        rule: Arc<str>,
        /// The reason, and what is allowed, in words for the caller.
        reason: String,
    },
    /// The caller may call the tool with these arguments only if a person approves it. Who can ask nobody refuses the
    /// call.
    Approval(ApprovalRequest),
}

impl Refusal {
    /// Returns the rule that refused, for the operator.
    pub fn rule(&self) -> &Arc<str> {
        match self {
            Self::Hidden { rule } | Self::Arguments { rule, .. } => rule,
            Self::Approval(request) => request.rule(),
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            // Without the rule: the caller must not learn from the text that the tool exists.
            Self::Hidden { .. } => f.write_str("no such tool"),
            Self::Arguments { reason, .. } => f.write_str(reason),
            Self::Approval(request) => request.fmt(f),
        }
    }
}

impl std::error::Error for Refusal {}
