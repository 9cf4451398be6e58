//! [`ToolHooks`]: the functions by which a host reaches what a tool keeps beyond a call.

use super::background_process::BackgroundProcess;
use super::client_notices::ClientNotices;
use super::permits::NoPermit;
use process_runner::LeftoverTree;
use std::sync::Arc;

type ReleaseCaller = dyn Fn(&str) + Send + Sync;
type TakeLeftovers = dyn Fn(&str, &LeftoverTree) -> Result<(), NoPermit> + Send + Sync;
type ListBackground = dyn Fn() -> Vec<BackgroundProcess> + Send + Sync;
pub(super) type ConnectNotices = dyn Fn(&ClientNotices) + Send + Sync;

/// The functions by which a host reaches what a tool keeps beyond a call. None by default.
#[derive(Clone, Default)]
pub(super) struct ToolHooks {
    pub(super) release_caller: Option<Arc<ReleaseCaller>>,
    pub(super) list_background: Option<Arc<ListBackground>>,
    pub(super) take_leftovers: Option<Arc<TakeLeftovers>>,
    pub(super) connect_notices: Option<Arc<ConnectNotices>>,
}

impl ToolHooks {
    /// Ends what `principal` has running.
    pub(super) fn release_caller(&self, principal: &str) {
        if let Some(release) = &self.release_caller {
            release(principal);
        }
    }

    /// Has the tool take over `tree`, if it takes over such things.
    pub(super) fn take_leftovers(
        &self,
        principal: &str,
        tree: &LeftoverTree,
    ) -> Option<Result<(), NoPermit>> {
        self.take_leftovers.as_ref().map(|take| take(principal, tree))
    }

    /// Returns the background programs of all callers.
    pub(super) fn background_processes(&self) -> Vec<BackgroundProcess> {
        self.list_background.as_ref().map(|list| list()).unwrap_or_default()
    }

    /// Hands the tool the way to tell clients of changes.
    pub(super) fn connect_notices(&self, notices: &ClientNotices) {
        if let Some(connect) = &self.connect_notices {
            connect(notices);
        }
    }
}
