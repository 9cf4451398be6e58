//! Notifications of changed lists, and of changed resources that a client watches.

use super::connection::RequestContext;
use super::host::OfferedNames;
use super::resource_updates::ResourceUpdate;
use futures_util::future::{FutureExt, select_all};
use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, SubscriptionContext};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

/// The time between two checks that a client of the `initialize` era is still connected: nothing wakes the task when it
/// goes.
const DISCONNECT_CHECK: Duration = Duration::from_secs(60);

/// A change that concerns one caller.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    Tools,
    Prompts,
    Resources,
    /// A resource was updated.
    Updated(Arc<str>),
    /// So many resources were updated that it is not known which.
    UpdatedMany,
}

/// Waits for changes that concern one caller.
struct Changes {
    context: RequestContext,
    reloads: watch::Receiver<u64>,
    switches: Vec<watch::Receiver<u64>>,
    updates: broadcast::Receiver<ResourceUpdate>,
    names: OfferedNames,
}

impl Changes {
    fn new(context: RequestContext) -> Self {
        // In this order, or a change between the two would be missed.
        let host = &context.host;
        let (reloads, switches) = (host.policy_reloads(), host.availability_changes());
        let updates = host.resource_updates().subscribe();
        Self { names: host.offered_names(&context.caller), context, reloads, switches, updates }
    }

    /// Waits for the next changes. Returns none when there can be no more. May be dropped while it waits.
    async fn next(&mut self) -> Option<Vec<Change>> {
        loop {
            let switched = async {
                match self.switches.is_empty() {
                    true => std::future::pending().await,
                    false => {
                        select_all(self.switches.iter_mut().map(|switch| switch.changed().boxed())).await.0
                    }
                }
            };
            let changes = tokio::select! {
                reloaded = self.reloads.changed() => {
                    reloaded.ok()?;
                    self.changed_lists()
                }
                switched = switched => {
                    switched.ok()?;
                    self.changed_lists()
                }
                update = self.updates.recv() => match update {
                    Ok(update) if update.concerns(self.context.caller.principal()) => vec![Change::Updated(update.uri)],
                    Ok(_) => Vec::new(),
                    Err(RecvError::Lagged(_)) => vec![Change::UpdatedMany],
                    Err(RecvError::Closed) => return None,
                },
            };
            // What changes nothing for this caller tells it nothing.
            if !changes.is_empty() {
                return Some(changes);
            }
        }
    }

    /// Returns the lists that have changed for the caller.
    fn changed_lists(&mut self) -> Vec<Change> {
        let names = self.context.host.offered_names(&self.context.caller);
        let known = std::mem::replace(&mut self.names, names);
        let changes = [
            (Change::Tools, known.tools != self.names.tools),
            (Change::Prompts, known.prompts != self.names.prompts),
            (Change::Resources, known.resources != self.names.resources),
        ];
        changes.into_iter().filter(|(_, changed)| *changed).map(|(change, _)| change).collect()
    }

    /// Returns those of the watched resources that a change concerns and that the caller may read now.
    fn updated<'a>(&self, change: &Change, watched: impl Iterator<Item = &'a str>) -> Vec<String> {
        let is_updated = |uri: &&str| match change {
            Change::Updated(updated) => **updated == **uri,
            Change::UpdatedMany => true,
            Change::Tools | Change::Prompts | Change::Resources => false,
        };
        let (host, caller) = (&self.context.host, &self.context.caller);
        watched
            .filter(is_updated)
            .filter(|uri| host.find_resource(caller, uri).is_some())
            .map(str::to_owned)
            .collect()
    }
}

/// Sends `peer` a notification at each change, for as long as it is connected. `watched` are the resources that it has
/// subscribed to.
pub(super) async fn notify_peer(
    peer: Peer<RoleServer>,
    context: RequestContext,
    watched: Arc<Mutex<HashSet<String>>>,
) {
    let mut changes = Changes::new(context);
    loop {
        // `next` keeps its state when the other branch wins, so no change is missed.
        let goes_on = tokio::select! {
            next = changes.next() => match next {
                Some(next) => notify_peer_of(&peer, &changes, &next, &watched).await,
                None => false,
            },
            () = tokio::time::sleep(DISCONNECT_CHECK) => !peer.is_transport_closed(),
        };
        if !goes_on {
            return;
        }
    }
}

/// Sends `peer` some changes. Returns false if it is gone.
async fn notify_peer_of(
    peer: &Peer<RoleServer>,
    changes: &Changes,
    next: &[Change],
    watched: &Mutex<HashSet<String>>,
) -> bool {
    for change in next {
        let sent = match change {
            Change::Tools => peer.notify_tool_list_changed().await,
            Change::Prompts => peer.notify_prompt_list_changed().await,
            Change::Resources => peer.notify_resource_list_changed().await,
            Change::Updated(_) | Change::UpdatedMany => {
                let updated = {
                    let watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
                    changes.updated(change, watched.iter().map(String::as_str))
                };
                let mut sent = Ok(());
                for uri in updated {
                    sent = peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await;
                }
                sent
            }
        };
        if sent.is_err() {
            return false;
        }
    }
    true
}

/// Sends a subscription a notification at each change that it has asked for, until either side ends it.
pub(super) async fn notify_subscription(subscription: SubscriptionContext, context: RequestContext) {
    let request_ended = context.cancel.clone();
    // A resource that the caller may not read is no different from one that is not there.
    let accepted = context.host.allowed_subscriptions(&context.caller, subscription.accepted().clone());
    let mut changes = Changes::new(context);
    loop {
        let next = tokio::select! {
            () = subscription.cancelled() => return,
            () = request_ended.cancelled() => return,
            next = changes.next() => next,
        };
        let Some(next) = next else { return };
        let sink = subscription.sink();
        for change in &next {
            let sent = match change {
                Change::Tools if accepted.tools_list_changed == Some(true) => {
                    sink.notify_tool_list_changed().await
                }
                Change::Prompts if accepted.prompts_list_changed == Some(true) => {
                    sink.notify_prompt_list_changed().await
                }
                Change::Resources if accepted.resources_list_changed == Some(true) => {
                    sink.notify_resource_list_changed().await
                }
                Change::Tools | Change::Prompts | Change::Resources => Ok(()),
                Change::Updated(_) | Change::UpdatedMany => {
                    let watched = accepted.resource_subscriptions.iter().flatten().map(String::as_str);
                    let mut sent = Ok(());
                    for uri in changes.updated(change, watched) {
                        sent = sink.notify_resource_updated(uri).await;
                    }
                    sent
                }
            };
            if sent.is_err() {
                return;
            }
        }
    }
}
