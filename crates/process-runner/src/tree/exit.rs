//! The result of reaping a process.

use crate::outcome::{ExitStatus, ResourceUsage};

/// The exit status and the resource usage of a leader that was reaped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReapedLeader {
    pub(crate) status: ExitStatus,
    /// `None` if another part of this process took the status, and the usage with it.
    pub(crate) usage: Option<ResourceUsage>,
}
