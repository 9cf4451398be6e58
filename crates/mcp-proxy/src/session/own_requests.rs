//! The proxy's own messages to the server.

use super::state::{
    OWN_REQUEST_TIMEOUT, ProxyPendingRequest, ProxySessionState, UpstreamRequestKind, UpstreamState,
};
use crate::output_queue::OutputQueue;
use json_rpc::json::JsonObject;
use json_rpc::message::{Id, Message};
use std::time::Instant;

impl ProxySessionState {
    // Ids of the proxy's own, for both sides: those that client and server choose could collide.
    pub(super) fn next_id(&mut self) -> Id {
        self.last_id += 1;
        Id::Number(self.last_id.to_string())
    }

    pub(super) fn server_queue(&self) -> Option<&OutputQueue> {
        match &self.server {
            UpstreamState::Ready(queue) | UpstreamState::Initializing(queue) => Some(queue),
            UpstreamState::Down { .. } => None,
        }
    }

    /// Sends a message to the server, if there is one.
    pub(super) fn send_to_server(&mut self, message: &Message<'_>) {
        if let Some(queue) = self.server_queue()
            && let Err(reason) = queue.push(message.to_line())
        {
            tracing::debug!(?reason, "the server does not hear");
        }
    }

    /// Returns the deadline that all pages of a list share, if the request is for a page.
    fn deadline_of_own_request(&self, request_kind: &UpstreamRequestKind) -> Option<Instant> {
        match request_kind {
            UpstreamRequestKind::Page => self.refresh.as_ref().and_then(|refresh| refresh.deadline),
            _ => None,
        }
    }

    /// Sends a request of the proxy's own, with its time limit.
    pub(super) fn request_from_server(
        &mut self,
        method: &'static str,
        params: JsonObject<'_>,
        request_kind: UpstreamRequestKind,
    ) {
        let id = self.next_id();
        let limit = OWN_REQUEST_TIMEOUT.min(self.limits.request_timeout);
        let deadline = self.deadline_of_own_request(&request_kind).unwrap_or_else(|| Instant::now() + limit);
        self.pending_requests.insert(
            self.last_id,
            ProxyPendingRequest {
                client: None,
                request_kind,
                deadline: Some((deadline, limit)),
                progress: None,
                call: None,
            },
        );
        self.wake_at(Some(deadline));
        self.send_to_server(&Message::request(&id, method, params));
    }
}
