//! Notifications of changed lists, of changed resources that a client watches, and of log messages that belong to no call.
#![allow(
    deprecated,
    reason = "SEP-2577 takes logging out of the protocol one day, and today's clients have it"
)]

use super::client_log::SessionLogLevel;
use super::client_notices::{LogNotice, NoticeSubject};
use super::connection::RequestContext;
use super::host::OfferedNames;
use super::watch_start::{PendingWatches, WatchStart};
use futures_util::future::{FutureExt, select_all};
use rmcp::RoleServer;
use rmcp::model::{LoggingMessageNotificationParam, ResourceUpdatedNotificationParam};
use rmcp::service::{Peer, SubscriptionContext};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;

/// The time between two checks that a client of the `initialize` era is still connected: nothing wakes the task when it
/// goes.
const DISCONNECT_CHECK: Duration = Duration::from_secs(60);

/// A change that concerns one caller.
#[derive(Clone, Debug, PartialEq)]
enum Change {
    Tools,
    Prompts,
    Resources,
    /// A resource was updated.
    Updated(Arc<str>),
    /// So many resources were updated that it is not known which.
    UpdatedMany,
    /// A log message.
    Log(Arc<LogNotice>),
}

/// Waits for changes that concern one caller.
pub(super) struct Changes {
    context: RequestContext,
    start: WatchStart,
    names: OfferedNames,
    /// The lists that may have changed before their names were read.
    missed: Vec<Change>,
}

impl Changes {
    /// Watches from now on.
    pub(super) fn new(context: RequestContext) -> Self {
        let start = WatchStart::of(&context.host);
        Self::since(start, context)
    }

    /// Watches from `start` on. What has changed meanwhile is among the first changes.
    fn since(mut start: WatchStart, context: RequestContext) -> Self {
        let mut is_known = true;
        if !start.host.has_same_tools(&context.host) {
            // The switches of other tools are watched from now on alone.
            start.switches = context.host.availability_changes();
            is_known = start.switches.is_empty();
        }
        let names = context.host.offered_names(&context.caller);
        // After the names: a change between the two is told once too often, and never missed.
        let missed = match start.take_list_change() || !is_known {
            true => vec![Change::Tools, Change::Prompts, Change::Resources],
            false => Vec::new(),
        };
        Self { context, start, names, missed }
    }

    /// Waits for the next changes. Returns none when there can be no more. May be dropped while it waits.
    async fn next(&mut self) -> Option<Vec<Change>> {
        if !self.missed.is_empty() {
            return Some(std::mem::take(&mut self.missed));
        }
        loop {
            let WatchStart { reloads, switches, notices, .. } = &mut self.start;
            let switched = async {
                match switches.is_empty() {
                    true => std::future::pending().await,
                    false => select_all(switches.iter_mut().map(|switch| switch.changed().boxed())).await.0,
                }
            };
            let changes = tokio::select! {
                reloaded = reloads.changed() => {
                    reloaded.ok()?;
                    self.changed_lists()
                }
                switched = switched => {
                    switched.ok()?;
                    self.changed_lists()
                }
                notice = notices.recv() => match notice {
                    Ok(notice) if notice.concerns(self.context.caller.principal()) => match notice.subject {
                        NoticeSubject::ResourceUpdated(uri) => vec![Change::Updated(uri)],
                        NoticeSubject::Log(message) => vec![Change::Log(message)],
                    },
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
            Change::Tools | Change::Prompts | Change::Resources | Change::Log(_) => false,
        };
        let (host, caller) = (&self.context.host, &self.context.caller);
        watched
            .filter(is_updated)
            .filter(|uri| host.find_resource(caller, uri).is_some())
            .map(str::to_owned)
            .collect()
    }
}

/// A client of the `initialize` era, and what it wants to be told.
pub(super) struct NotifiedPeer {
    pub(super) peer: Peer<RoleServer>,
    /// The resources that it has subscribed to.
    pub(super) watched: Arc<Mutex<HashSet<String>>>,
    /// The level of log messages that it has set.
    pub(super) log_level: Arc<SessionLogLevel>,
}

/// Sends a client of the `initialize` era a notification at each change, for as long as it is connected.
pub(super) async fn notify_peer(to: NotifiedPeer, mut changes: Changes) {
    loop {
        // `next` keeps its state when the other branch wins, so no change is missed.
        let goes_on = tokio::select! {
            next = changes.next() => match next {
                Some(next) => to.notify(&changes, &next).await,
                None => false,
            },
            () = tokio::time::sleep(DISCONNECT_CHECK) => !to.peer.is_transport_closed(),
        };
        if !goes_on {
            return;
        }
    }
}

impl NotifiedPeer {
    /// Sends some changes. Returns false if the client is gone.
    async fn notify(&self, changes: &Changes, next: &[Change]) -> bool {
        for change in next {
            let sent = match change {
                Change::Tools => self.peer.notify_tool_list_changed().await,
                Change::Prompts => self.peer.notify_prompt_list_changed().await,
                Change::Resources => self.peer.notify_resource_list_changed().await,
                Change::Log(message) => match self.log_level.get() {
                    Some(lowest) if message.level >= lowest => {
                        let mut data = message.data.clone();
                        changes.context.host.redactor().redact_json(&mut data);
                        let level = message.level.to_protocol();
                        let message =
                            LoggingMessageNotificationParam::new(level, data).with_logger(message.logger);
                        self.peer.notify_logging_message(message).await
                    }
                    _ => Ok(()),
                },
                Change::Updated(_) | Change::UpdatedMany => {
                    let updated = {
                        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
                        changes.updated(change, watched.iter().map(String::as_str))
                    };
                    let mut sent = Ok(());
                    for uri in updated {
                        let updated = ResourceUpdatedNotificationParam::new(uri);
                        sent = self.peer.notify_resource_updated(updated).await;
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
}

/// Sends a subscription a notification at each change that it has asked for, until either side ends it.
pub(super) async fn notify_subscription(
    subscription: SubscriptionContext,
    context: RequestContext,
    pending: &PendingWatches,
) {
    let request_ended = context.cancel.clone();
    // A resource that the caller may not read is no different from one that is not there.
    let accepted = context.host.allowed_subscriptions(&context.caller, subscription.accepted().clone());
    let mut changes = match pending.take(subscription.requested()) {
        Some(start) => Changes::since(start, context),
        None => Changes::new(context),
    };
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
                // On 2026-07-28, log messages belong to calls.
                Change::Tools | Change::Prompts | Change::Resources | Change::Log(_) => Ok(()),
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
