//! [`EventError`]: the reasons why an event cannot be read.

/// The reason why an event cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// It is not JSON.
    #[error("the event is no JSON object: {0}")]
    Json(#[source] serde_json::Error),
    /// A member is missing, or of another type.
    #[error("the event has no `{0}`, or it is of another type")]
    Member(&'static str),
    /// It is another event than the one before a tool runs.
    #[error("the event `{found}` is not the one before a tool runs, which is `{expected}`")]
    Event {
        /// The event that came.
        found: String,
        /// The event that is answered.
        expected: &'static str,
    },
}
