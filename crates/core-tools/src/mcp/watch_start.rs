//! [`WatchStart`]: the beginning of a watch for changes, before the caller whom they concern is known.

use super::client_notices::ClientNotice;
use super::host::Host;
use rmcp::model::SubscriptionFilter;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::sync::{broadcast, watch};

/// The most watches of one connection that have begun and have no caller yet.
const MAX_PENDING: usize = 64;

/// The beginning of a watch: the receivers of everything that changes from now on. The caller may not be known yet.
#[derive(Debug)]
pub(super) struct WatchStart {
    pub(super) host: Host,
    pub(super) reloads: watch::Receiver<u64>,
    pub(super) switches: Vec<watch::Receiver<u64>>,
    pub(super) notices: broadcast::Receiver<ClientNotice>,
}

impl WatchStart {
    /// Begins a watch of `host`.
    pub(super) fn of(host: &Host) -> Self {
        Self {
            host: host.clone(),
            reloads: host.policy_reloads(),
            switches: host.availability_changes(),
            notices: host.client_notices().subscribe(),
        }
    }

    /// Returns true if a list may have changed since the beginning, and forgets it.
    pub(super) fn take_list_change(&mut self) -> bool {
        let receivers = std::iter::once(&mut self.reloads).chain(&mut self.switches);
        // All of them, so that no change is told twice. A receiver without a sender has no change to come.
        receivers.fold(false, |changed, receiver| {
            let has_changed = receiver.has_changed().unwrap_or_default();
            receiver.mark_unchanged();
            changed || has_changed
        })
    }
}

/// The watches that began before their subscription was acknowledged. A client may act on the acknowledgement at once, so a
/// watch that began after it would miss changes.
#[derive(Debug, Default)]
pub(super) struct PendingWatches(Mutex<VecDeque<(SubscriptionFilter, WatchStart)>>);

impl PendingWatches {
    /// Begins a watch of `host` for a request with this filter.
    pub(super) fn begin(&self, requested: &SubscriptionFilter, host: &Host) {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.len() >= MAX_PENDING {
            // Of a request whose client went away before the acknowledgement.
            pending.pop_front();
        }
        pending.push_back((requested.clone(), WatchStart::of(host)));
    }

    /// Takes the first watch that began for a request with this filter.
    pub(super) fn take(&self, requested: &SubscriptionFilter) -> Option<WatchStart> {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = pending.iter().position(|(filter, _)| filter == requested)?;
        pending.remove(index).map(|(_, start)| start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{ClientNotices, Toolset};
    use crate::redact::Redactor;
    use role_policy::Policy;

    #[test]
    fn what_changes_between_the_request_and_the_watch_is_told() {
        let notices = ClientNotices::default();
        let host = Host::builder(Policy::allow_all(), Redactor::new(Default::default()).unwrap())
            .toolset(Toolset::new("own", []))
            .client_notices(notices.clone())
            .build()
            .unwrap();
        let pending = PendingWatches::default();
        let filter = |uri: &str| SubscriptionFilter::builder().resource_subscriptions([uri]).build();
        pending.begin(&filter("a:1"), &host);
        pending.begin(&filter("a:2"), &host);
        // The acknowledgement is on its way, and `listen` was not called yet.
        notices.resource_updated("a:1");
        host.replace_policy(Policy::allow_all());
        let mut start = pending.take(&filter("a:1")).unwrap();
        assert!(start.notices.try_recv().is_ok());
        assert!(start.take_list_change() && !start.take_list_change());
        assert!(pending.take(&filter("a:1")).is_none(), "each is taken once");
        assert!(pending.take(&filter("a:2")).is_some());
    }

    #[test]
    fn watches_that_nobody_takes_are_forgotten() {
        let host = Host::builder(Policy::allow_all(), Redactor::new(Default::default()).unwrap());
        let host = host.build().unwrap();
        let pending = PendingWatches::default();
        for number in 0..=MAX_PENDING {
            let filter =
                SubscriptionFilter::builder().resource_subscriptions([format!("a:{number}")]).build();
            pending.begin(&filter, &host);
        }
        assert_eq!(pending.0.lock().unwrap().len(), MAX_PENDING);
    }
}
