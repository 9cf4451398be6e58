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
