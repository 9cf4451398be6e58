//! Forwards requests to the server, at once or when there is one.

use super::state::{
    ClientRequestState, ForwardedRequestKind, OWN_REQUEST_TIMEOUT, ParkedRequest, ParkedRequestReason,
    ProxyPendingCall, ProxyPendingRequest, ProxySessionState, UpstreamRequestKind, UpstreamState,
};
use crate::methods::{ClientRequestKind, ProtocolArea, client_request};
use crate::observer::ObservedCallOutcome;
use crate::output_queue::EnqueueError;
use json_rpc::error_code::INTERNAL_ERROR;
use json_rpc::json::Json;
use json_rpc::message::{Id, Message, MessageKind};
use std::time::Instant;

impl ProxySessionState {
    pub(super) fn listen(&mut self, id: Id, mut message: Message<'_>) {
        let resources = self.authorizer.grants(ProtocolArea::Resources);
        let prompts = self.authorizer.grants(ProtocolArea::Prompts);
        if let Some(Json::Object(wanted)) = message.params_mut().get_mut("notifications") {
            wanted.retain(|name| match name {
                "toolsListChanged" => true,
                "promptsListChanged" => prompts,
                _ => resources,
            });
        }
        self.forward(id, message, ForwardedRequestKind::Listen { is_acknowledged: false }, None);
    }

    /// Sends a request on, or parks it until there is a server.
    pub(super) fn forward(
        &mut self,
        id: Id,
        message: Message<'_>,
        forward_kind: ForwardedRequestKind,
        deadline: Option<Instant>,
    ) {
        self.send(id, message, forward_kind, None, deadline);
    }

    /// Forwards a request, or parks it; `call` describes a call that was judged.
    pub(super) fn send(
        &mut self,
        id: Id,
        mut message: Message<'_>,
        forward_kind: ForwardedRequestKind,
        call: Option<ProxyPendingCall>,
        deadline: Option<Instant>,
    ) {
        let UpstreamState::Ready(queue) = &self.server else {
            return self.park(id, message, ParkedRequestReason::Server(forward_kind), deadline);
        };
        let queue = queue.clone();
        let limit = match (&forward_kind, &call) {
            (ForwardedRequestKind::Listen { .. }, _) => None,
            (_, Some(call)) => Some(call.limit),
            _ => Some(self.limits.request_timeout),
        };
        let request_kind = match forward_kind {
            ForwardedRequestKind::Initialize => UpstreamRequestKind::Initialize,
            ForwardedRequestKind::Discover => UpstreamRequestKind::Discover,
            ForwardedRequestKind::Plain => UpstreamRequestKind::Forwarded,
            ForwardedRequestKind::Listen { is_acknowledged } => UpstreamRequestKind::Listen {
                request: Box::new(message.clone().into_owned()),
                is_acknowledged,
            },
        };
        let progress =
            message.meta().and_then(|meta| meta.get("progressToken")).map(|token| token.clone().into_owned());
        let proxy_id = self.next_id();
        message.set_id(&proxy_id);
        match queue.push(message.to_line()) {
            Ok(()) => {
                let number = self.last_id;
                let deadline = limit.map(|limit| (Instant::now() + limit, limit));
                self.wake_at(deadline.map(|(at, _)| at));
                self.client_requests.insert(id.clone(), ClientRequestState::PendingRequest(number));
                self.pending_requests.insert(
                    number,
                    ProxyPendingRequest { client: Some(id), request_kind, deadline, progress, call },
                );
            }
            // Refused and not parked: the server has left the whole queue unread, and may never read it.
            Err(EnqueueError::Full) => {
                self.client_requests.remove(&id);
                self.record_end(call.as_ref(), ObservedCallOutcome::NotRun, 0);
                self.refuse(&id, INTERNAL_ERROR, "not sent: the server does not read what it is sent");
            }
            // The server's end is about to be noticed; until then it gets nothing more.
            Err(EnqueueError::Closed) => {
                self.condemn();
                self.record_end(call.as_ref(), ObservedCallOutcome::NotRun, 0);
                let waits_for = if call.is_some() {
                    ParkedRequestReason::Call
                } else {
                    ParkedRequestReason::Server(forward_kind)
                };
                self.park(id, message, waits_for, deadline);
            }
        }
    }

    pub(super) fn park(
        &mut self,
        id: Id,
        message: Message<'_>,
        waits_for: ParkedRequestReason,
        deadline: Option<Instant>,
    ) {
        // The catalogue of a server that runs takes as long as the server does; a server that is down has a
        // bounded time to come back.
        let wait = match self.server {
            UpstreamState::Down { .. } => self.limits.reconnect_timeout,
            _ => OWN_REQUEST_TIMEOUT,
        };
        let is_stream = matches!(waits_for, ParkedRequestReason::Server(ForwardedRequestKind::Listen { .. }));
        let deadline = (!is_stream).then(|| deadline.unwrap_or_else(|| Instant::now() + wait));
        self.wake_at(deadline);
        self.client_requests.insert(id.clone(), ClientRequestState::ParkedRequest);
        // Under the client's id again, as it is judged anew when it goes on.
        let mut message = message.into_owned();
        message.set_id(&id);
        self.parked_requests.push_back(ParkedRequest { id, message, waits_for, deadline });
    }

    /// Tries parked requests again. One that still cannot go on is parked again with its former deadline.
    pub(super) fn retry_parked(&mut self) {
        for parked in std::mem::take(&mut self.parked_requests) {
            if parked.waits_for == ParkedRequestReason::Approval {
                self.parked_requests.push_back(parked);
                continue;
            }
            self.client_requests.remove(&parked.id);
            match parked.waits_for {
                // It goes on with its answer.
                ParkedRequestReason::Approval => {}
                ParkedRequestReason::List => self.list_tools(parked.id, parked.message, parked.deadline),
                ParkedRequestReason::Call => self.call_tool(parked.id, parked.message, parked.deadline),
                ParkedRequestReason::Server(forward_kind) => match parked.message.kind.clone() {
                    // Another policy may hold by now.
                    MessageKind::Request { method, .. } if !self.is_still_granted(&method) => {
                        self.no_such_method(&parked.id, &method);
                    }
                    _ => self.forward(parked.id, parked.message, forward_kind, parked.deadline),
                },
            }
        }
    }

    pub(super) fn is_still_granted(&self, method: &str) -> bool {
        match client_request(method) {
            Some(ClientRequestKind::InArea(area)) => self.authorizer.grants(area),
            _ => true,
        }
    }
}
