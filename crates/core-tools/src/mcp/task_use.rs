//! [`TaskUse`]: when a call of a tool becomes a task.

use std::time::Duration;

/// The time after which a call of a tool of the library becomes a task: most end before, and need no second request.
#[cfg_attr(
    not(any(feature = "ci", feature = "introspection")),
    allow(dead_code, reason = "only programs take long")
)]
pub(super) const TASK_AFTER: Duration = Duration::from_secs(5);

/// The use of tasks by a tool: when a call becomes one, for a client that has tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskUse {
    pub(crate) start: TaskStart,
    /// True if the tool cannot be called by a client without tasks.
    pub(crate) is_required: bool,
}

/// The moment at which a call becomes a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TaskStart {
    /// It never does.
    #[default]
    Never,
    /// Once it has run for this time.
    After(Duration),
    /// When the tool says so.
    WhenBegun,
}
