//! The result of one provider: a value within the bounds of an answer, or the reason why there is none.

use super::Error;
use super::tree::{ValueTree, ValueTruncationCounts};
use serde::Serialize;
use serde_json::Value;

/// The value that a provider has found, within the bounds of an answer.
#[derive(Debug)]
pub struct StateValue {
    pub(super) source: String,
    pub(super) value: Value,
    pub(super) truncation: ValueTruncationCounts,
    pub(super) masked: u64,
    pub(super) notes: Vec<String>,
}

impl StateValue {
    /// Takes the value at `root` out of `tree`.
    pub(super) fn from_tree(source: String, mut tree: ValueTree, root: usize) -> Self {
        let value = tree.take_value(root);
        Self { source, value, truncation: tree.truncation, masked: tree.masked, notes: Vec::new() }
    }
}

/// The reason why a [`Provider`](super::Provider) has no value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// The request is not for this provider: it names another kind of target, or a path that only others have. No answer
    /// tells of it.
    #[error("{0}")]
    NotAsked(&'static str),
    /// The provider has nothing to look into. Holds the reason, for the reader of the answer.
    #[error("{0}")]
    NotApplicable(String),
    /// The provider looked, and the path leads nowhere.
    #[error("{} has no `{}` under `{}`", .0.source, .0.failed_at, .0.resolved)]
    PathNotFound(Box<PathNotFound>),
    /// The provider failed.
    #[error(transparent)]
    Failed(#[from] Error),
}

/// A path that leads nowhere, and how far it led.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PathNotFound {
    /// The provider and the thing it looked into, as [`StateResponse::source`](super::StateResponse::source).
    pub source: String,
    /// The part of the path that exists.
    pub resolved: String,
    /// The name that does not.
    pub failed_at: String,
    /// The first 50 names that exist in its place.
    pub keys: Vec<String>,
    /// The number of all names that exist there.
    pub total: u64,
    /// The reason, if it is a special one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
