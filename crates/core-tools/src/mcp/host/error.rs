//! The errors of a host.

use crate::mcp::selection::UnknownSelection;

/// The error of a host that cannot be built from its parts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Two tools have the same name or alias.
    #[error("two tools are called `{0}`")]
    DuplicateName(String),
    /// A selection names something that is not there.
    #[error(transparent)]
    Selection(#[from] UnknownSelection),
}

/// There is no such tool, or the caller does not see it: to the caller that is the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NoSuchTool {
    pub(super) message: String,
}
