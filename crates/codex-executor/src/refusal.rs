//! [`ExecutorRefusal`]: the reason why something may not be done.

/// The reason why something may not be done, in words for a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExecutorRefusal(String);

impl ExecutorRefusal {
    /// Creates a refusal.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}
