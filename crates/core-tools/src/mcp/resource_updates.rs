//! [`ResourceUpdates`]: tells clients that resources have changed.

use std::sync::Arc;
use tokio::sync::broadcast;

/// The most updates that a client may be behind. One that is further behind is told of each resource that it watches.
const MAX_BEHIND: usize = 256;

/// Tells clients that a resource has changed, so that they need not ask. Cheap to clone; the part of a program that knows
/// of changes keeps one, and the host is [built with it](super::HostBuilder::resource_updates).
#[derive(Clone, Debug)]
pub struct ResourceUpdates(broadcast::Sender<ResourceUpdate>);

/// A resource that has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResourceUpdate {
    pub(super) uri: Arc<str>,
    /// The one principal whom it concerns. Everybody, if there is none.
    principal: Option<Arc<str>>,
}

impl Default for ResourceUpdates {
    fn default() -> Self {
        Self(broadcast::Sender::new(MAX_BEHIND))
    }
}

impl ResourceUpdates {
    /// Tells everybody who has subscribed to `uri` and may read it.
    pub fn notify(&self, uri: &str) {
        self.send(ResourceUpdate { uri: uri.into(), principal: None });
    }

    /// Tells the subscribers of `uri` who are `principal`; a caller without a name has the empty one.
    pub fn notify_principal(&self, uri: &str, principal: &str) {
        self.send(ResourceUpdate { uri: uri.into(), principal: Some(principal.into()) });
    }

    fn send(&self, update: ResourceUpdate) {
        // Nobody listens where no client has subscribed.
        let _ = self.0.send(update);
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<ResourceUpdate> {
        self.0.subscribe()
    }
}

impl ResourceUpdate {
    /// Returns true if `principal` is told.
    pub(super) fn concerns(&self, principal: Option<&str>) -> bool {
        self.principal.as_deref().is_none_or(|of| of == principal.unwrap_or_default())
    }
}
