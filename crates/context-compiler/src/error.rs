//! Why there is no document.

/// Why there is no document.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A part of the request that cannot be used.
    #[error("`{name}` {reason}")]
    Argument {
        /// The member of the request.
        name: &'static str,
        /// What is wrong with it, and what is allowed.
        reason: String,
    },
    /// Not even the headings, and a line for each section, fit.
    #[error("a budget of {budget} tokens is too small; this needs at least {needed}")]
    BudgetTooSmall {
        /// What was given.
        budget: usize,
        /// The smallest budget that is enough.
        needed: usize,
    },
    /// The plan that was named cannot be read.
    #[error("the plan `{path}` {problem}")]
    Plan {
        /// As it was named.
        path: String,
        /// Why.
        problem: String,
    },
}

impl Error {
    pub(crate) fn argument(name: &'static str, reason: impl Into<String>) -> Self {
        Self::Argument { name, reason: reason.into() }
    }
}
