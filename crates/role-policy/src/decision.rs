//! What was decided, and the value that proves it.

use crate::rule::PathRule;
use crate::tool::Call;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Why a call was allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// The rule that allowed it, and where it stands: ``dev: allow `git_*` (roles.toml:12)``. Of several
    /// roles, the first one's.
    pub rule: Arc<str>,
}

/// A call that a policy has allowed. Only [`Policy::authorize`](crate::Policy::authorize) makes one.
#[derive(Debug)]
pub struct Authorized<C> {
    call: C,
    decision: Decision,
    scope: Scope,
}

impl<C> Authorized<C> {
    pub(crate) fn new(call: C, decision: Decision, scope: Scope) -> Self {
        Self { call, decision, scope }
    }

    /// Why it was allowed.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// What the call may reach while it runs. Whoever runs it must hold this up against what it opens, for
    /// a link may be swapped between the decision and the opening.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }
}

impl Authorized<Call> {
    /// The canonical tool name.
    pub fn tool(&self) -> &str {
        self.call.tool()
    }

    /// The arguments that were judged, to run the call with.
    pub fn into_arguments(self) -> Map<String, Value> {
        self.call.into_arguments()
    }
}

/// What is done with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// It is read, listed or looked at.
    Read,
    /// It is created, changed, moved or removed.
    Write,
}

/// What a call may reach while it runs. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// All must hold.
    pub(crate) paths: Vec<Arc<PathRule>>,
    /// A database may be read only.
    pub(crate) sql_read_only: bool,
}

impl Scope {
    /// Whether every path that the server serves may be reached.
    pub fn reaches_all_paths(&self) -> bool {
        self.paths.is_empty()
    }

    /// Whether a database may only be read. The database's own means must see to it.
    pub fn sql_read_only(&self) -> bool {
        self.sql_read_only
    }

    /// Judges a path as [`Effects::resolve_path`](crate::Effects::resolve_path) gives them: where it leads,
    /// relative to its root.
    ///
    /// # Errors
    /// What is allowed, in words for the caller.
    pub fn check_path(&self, access: Access, resolved: &str) -> Result<(), String> {
        self.paths.iter().try_for_each(|rule| rule.check(access, resolved))
    }

    /// Judges a folder with everything in it, as [`check_path`](Self::check_path) does a path.
    ///
    /// # Errors
    /// What is allowed, in words for the caller.
    pub fn check_folder(&self, access: Access, resolved: &str) -> Result<(), String> {
        self.check_path(access, resolved)?;
        self.paths.iter().try_for_each(|rule| rule.check_holds(resolved))
    }

    /// The folders that may be reached for `access`, for what can only be told folders: every path that
    /// [`check_path`](Self::check_path) allows lies in one of them, though not everything in them is
    /// allowed. Nothing if all are.
    pub fn folders(&self, access: Access) -> Option<Vec<&str>> {
        let mut limits = self.paths.iter().filter_map(|rule| rule.folders(access));
        let first: Vec<&str> = limits.next()?.collect();
        // A folder beneath both, of which one lies in the other.
        Some(limits.fold(first, |held, further| {
            let further: Vec<&str> = further.collect();
            let mut both: Vec<&str> = Vec::new();
            for (one, other) in held.iter().flat_map(|one| further.iter().map(move |other| (*one, *other))) {
                let inner = if crate::rule::lies_in(one, other) {
                    one
                } else if crate::rule::lies_in(other, one) {
                    other
                } else {
                    continue;
                };
                if !both.contains(&inner) {
                    both.push(inner);
                }
            }
            both
        }))
    }
}

/// Why a call was refused.
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
        /// What was wrong and what is allowed, in words for the caller.
        reason: String,
    },
}

impl Refusal {
    /// The rule that refused, for the operator.
    pub fn rule(&self) -> &Arc<str> {
        match self {
            Self::Hidden { rule } | Self::Arguments { rule, .. } => rule,
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Hidden { .. } => f.write_str("no such tool"),
            Self::Arguments { reason, .. } => f.write_str(reason),
        }
    }
}

impl std::error::Error for Refusal {}
