//! [`BackgroundObserver`]: is told when a background command starts and when one ends.

use super::process::BackgroundCommand;
use super::report::BackgroundState;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

type OnChange = dyn Fn(&str, &BackgroundState) + Send + Sync;

/// Is told when a background command starts and when one ends. Nobody is by default. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct BackgroundObserver(Arc<OnceLock<Box<OnChange>>>);

impl BackgroundObserver {
    /// Tells `on_change` from now on. The first one stays.
    pub(super) fn set(&self, on_change: impl Fn(&str, &BackgroundState) + Send + Sync + 'static) {
        // A registry that is shared by several hosts tells the first.
        let _ = self.0.set(Box::new(on_change));
    }

    /// Tells of a command that has started or ended.
    pub(super) fn changed(&self, process: &BackgroundCommand) {
        if let Some(on_change) = self.0.get()
            && process.is_listed()
        {
            on_change(&process.owner, &process.state());
        }
    }
}

impl fmt::Debug for BackgroundObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BackgroundObserver")
    }
}

/// Tells of the end of what another command has left running. The tree of processes drops it at their end.
pub(super) struct LeftoverEndNotice {
    pub(super) observer: BackgroundObserver,
    pub(super) process: Weak<BackgroundCommand>,
}

impl Drop for LeftoverEndNotice {
    fn drop(&mut self) {
        // Forgotten meanwhile, or its registry ended with the server.
        let Some(process) = self.process.upgrade() else { return };
        process.on_leftovers_ended();
        self.observer.changed(&process);
    }
}
