//! The errors of a compilation.

use std::fmt;

/// The reason why a request gave no document.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A field of the request has a value that is not allowed.
    #[error("`{field}` {reason}")]
    InvalidRequest {
        /// The field with the value.
        field: ContextRequestField,
        /// The problem with the value, and what is allowed.
        reason: String,
    },
    /// The headings and one line for each section do not fit the budget.
    #[error("a budget of {budget} tokens is too small; this needs at least {needed}")]
    BudgetTooSmall {
        /// The budget of the request, in tokens of the model.
        budget: usize,
        /// The smallest budget that is enough, in tokens of the model.
        needed: usize,
    },
    /// The plan that the request names cannot be read.
    #[error("the plan `{path}` {problem}")]
    Plan {
        /// The path as the request has it.
        path: String,
        /// The reason why it cannot be read.
        problem: String,
    },
}

/// A field of a request that can be invalid. Its `Display` is the name that messages use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each is the field of the same name")]
pub enum ContextRequestField {
    Role,
    BudgetTokens,
    TokenFactor,
    PrefixShare,
    Plan,
    Include,
    Since,
}

impl fmt::Display for ContextRequestField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Role => "role",
            Self::BudgetTokens => "budget",
            Self::TokenFactor => "factor",
            Self::PrefixShare => "prefix_share",
            Self::Plan => "plan",
            Self::Include => "include",
            Self::Since => "since",
        })
    }
}

impl Error {
    pub(crate) fn invalid(field: ContextRequestField, reason: impl Into<String>) -> Self {
        Self::InvalidRequest { field, reason: reason.into() }
    }
}
