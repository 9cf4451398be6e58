//! [`SessionChange`]: a change of the state of a session, and who is told of it.

use crate::state_kind::SessionStateKind;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A change of the state of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionChange {
    /// The id of the session.
    pub session_id: String,
    /// The caller of a shared server to whom the session belongs.
    pub principal: Option<String>,
    /// The state that the session is in now.
    pub state: SessionStateKind,
    /// The reason of the change, in words.
    pub reason: String,
}

impl SessionChange {
    /// Returns true if the session is over.
    pub fn is_over(&self) -> bool {
        matches!(self.state, SessionStateKind::Stopped | SessionStateKind::Failed)
    }
}

type OnChange = dyn Fn(&SessionChange) + Send + Sync;

/// Is told of the changes of the sessions of a supervisor. Nobody is by default. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct SessionObserver(Arc<OnceLock<Box<OnChange>>>);

impl SessionObserver {
    /// Tells `on_change` from now on. The first one stays.
    pub(crate) fn set(&self, on_change: impl Fn(&SessionChange) + Send + Sync + 'static) {
        // The hosts over several workspaces share one service, and the notices of one server.
        let _ = self.0.set(Box::new(on_change));
    }

    /// Returns true if somebody is told.
    pub(crate) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    pub(crate) fn changed(&self, change: &SessionChange) {
        if let Some(on_change) = self.0.get() {
            on_change(change);
        }
    }
}

impl fmt::Debug for SessionObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionObserver")
    }
}
