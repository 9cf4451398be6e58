//! [`ToolError`]: why a tool could not do its work.

/// The cause of a failure, where a client is told of it by more than a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FailureCause {
    /// The arguments, the policy, or the work itself.
    #[default]
    Call,
    /// There is no such thing as was asked for.
    NotFound,
    /// A defect of the server.
    Defect,
    /// The call was cancelled.
    Cancelled,
    /// A path of the call leads outside the roots, so that nothing was done.
    OutsideRoots,
}

/// The error of a tool that could not do its work. Its message says what was wrong, where, what is expected, and what to
/// do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    message: String,
    cause: FailureCause,
}

impl ToolError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), cause: FailureCause::Call }
    }

    /// The error of a resource that does not exist. A client gets it as the protocol's error for that.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(message).because(FailureCause::NotFound)
    }

    /// Sets the cause of the failure.
    pub(crate) fn because(mut self, cause: FailureCause) -> Self {
        self.cause = cause;
        self
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn cause(&self) -> FailureCause {
        self.cause
    }

    /// An error and everything that led to it, outermost first.
    pub fn from_error(error: &(dyn std::error::Error + 'static)) -> Self {
        let is_outside = |cause: &(dyn std::error::Error + 'static)| {
            cause.downcast_ref::<workspace::Error>().is_some_and(workspace::Error::is_outside)
        };
        let mut causes = std::iter::successors(Some(error), |cause| cause.source());
        let is_outside = causes.any(is_outside);
        Self::new(error_causes::chain(error)).outside_roots_if(is_outside)
    }

    /// Notes that the call was refused because a path leads outside the roots.
    pub(crate) fn outside_roots_if(self, is_outside: bool) -> Self {
        if is_outside { self.because(FailureCause::OutsideRoots) } else { self }
    }
}
