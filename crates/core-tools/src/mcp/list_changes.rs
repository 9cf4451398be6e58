//! Changes of the tool list, as one caller sees it.

use super::connection::RequestContext;
use rmcp::RoleServer;
use rmcp::service::{Peer, SubscriptionContext};
use std::time::Duration;
use tokio::sync::watch;

/// The time between two checks that a client of the `initialize` era is still connected: nothing wakes the task when it
/// goes.
const DISCONNECT_CHECK: Duration = Duration::from_secs(60);

/// Waits until a caller's list of tools has changed.
struct ListChanges {
    context: RequestContext,
    reloads: watch::Receiver<u64>,
    names: Vec<&'static str>,
}

impl ListChanges {
    fn new(context: RequestContext) -> Self {
        // In this order, or a reload between the two would be missed.
        let reloads = context.host.policy_reloads();
        Self { names: context.host.names(&context.caller), context, reloads }
    }

    /// Waits for the next change. Returns false when there can be no more. May be dropped while it waits.
    async fn changed(&mut self) -> bool {
        while self.reloads.changed().await.is_ok() {
            // A reload that changes nothing for this caller tells it nothing.
            let names = self.context.host.names(&self.context.caller);
            if names != self.names {
                self.names = names;
                return true;
            }
        }
        false
    }
}

/// Sends `peer` a notification at each change, for as long as it is connected.
pub(super) async fn notify_peer(peer: Peer<RoleServer>, context: RequestContext) {
    let mut changes = ListChanges::new(context);
    loop {
        // `changed` keeps its state when the other branch wins, so no reload is missed.
        let goes_on = tokio::select! {
            changed = changes.changed() => changed && peer.notify_tool_list_changed().await.is_ok(),
            () = tokio::time::sleep(DISCONNECT_CHECK) => !peer.is_transport_closed(),
        };
        if !goes_on {
            return;
        }
    }
}

/// Sends a subscription a notification at each change, until either side ends it.
pub(super) async fn notify_subscription(subscription: SubscriptionContext, context: RequestContext) {
    let request_ended = context.cancel.clone();
    let mut changes = ListChanges::new(context);
    loop {
        tokio::select! {
            () = subscription.cancelled() => return,
            () = request_ended.cancelled() => return,
            changed = changes.changed() => {
                if !changed || subscription.sink().notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
        }
    }
}
