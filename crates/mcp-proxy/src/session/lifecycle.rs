//! The lifecycle of the server (start, repeated handshake, end) and the deadlines of requests.

use super::approvals::ANSWER_INTERVAL;
use super::state::{
    AskedPerson, ClientRequestState, ForwardedRequestKind, Handshake, OWN_REQUEST_TIMEOUT, ParkedRequest,
    ParkedRequestReason, ProxyPendingRequest, ProxySessionState, SupervisorWork, UpstreamRequestKind,
    UpstreamState, WaitingApproval,
};
use crate::limits::LAST_ANSWERS_TIMEOUT;
use crate::observer::{ObservedCallOutcome, ProxyDecision};
use crate::output_queue::OutputQueue;
use json_rpc::error_code::INTERNAL_ERROR;
use json_rpc::json::{Json, JsonObject};
use json_rpc::message::{Message, MessageKind};
use std::borrow::Cow;
use std::time::{Duration, Instant};

impl ProxySessionState {
    pub(super) fn server_up(&mut self, queue: OutputQueue) -> u64 {
        self.generation += 1;
        match &self.handshake {
            Some(Handshake { params, version: Some(_), .. }) => {
                let params = params.clone();
                // Nothing of the client reaches the new server before it has answered this handshake.
                self.server = UpstreamState::Initializing(queue);
                self.request_from_server("initialize", params, UpstreamRequestKind::ReplayHandshake);
            }
            _ => {
                self.server = UpstreamState::Ready(queue);
                self.server_ready();
            }
        }
        self.generation
    }

    /// A server that was started again has answered the handshake that the client made with the first.
    pub(super) fn handshake_replayed(&mut self, succeeded: bool, message: &Message<'_>) {
        let version = message.result_object().and_then(|result| result.get("protocolVersion"));
        let version = version.and_then(Json::as_str);
        let known = self.handshake.as_ref().and_then(|handshake| handshake.version.as_deref());
        // The client goes on in the version that the first server chose, so a server that chooses another is of no
        // use.
        if !succeeded || version != known {
            tracing::error!(
                ?version,
                ?known,
                "the server that was started again does not take the handshake"
            );
            return self.condemn();
        }
        let UpstreamState::Initializing(queue) = &self.server else { return };
        self.server = UpstreamState::Ready(queue.clone());
        if self.handshake.as_ref().is_some_and(|handshake| handshake.is_complete) {
            self.send_to_server(&Message::notification("notifications/initialized", JsonObject::default()));
        }
        let is_granted = |message: &&Message<'static>| match &message.kind {
            MessageKind::Request { method, .. } => self.is_still_granted(method),
            _ => true,
        };
        // The client has had its answers to these; the new ones are dropped (`UpstreamRequestKind::ReplaySetting`).
        for mut message in self.replayed_settings.values().filter(is_granted).cloned().collect::<Vec<_>>() {
            let id = self.next_id();
            message.set_id(&id);
            let deadline = Some((Instant::now() + OWN_REQUEST_TIMEOUT, OWN_REQUEST_TIMEOUT));
            self.pending_requests.insert(
                self.last_id,
                ProxyPendingRequest {
                    client: None,
                    request_kind: UpstreamRequestKind::ReplaySetting,
                    deadline,
                    progress: None,
                    call: None,
                },
            );
            self.send_to_server(&message);
        }
        self.server_ready();
    }

    pub(super) fn server_ready(&mut self) {
        if self.tool_list.is_some() {
            self.start_refresh();
        }
        self.retry_parked();
    }

    pub(super) fn condemn(&mut self) {
        self.condemned = Some(self.generation);
        self.wake.notify_one();
    }

    pub(super) fn server_down(&mut self, reason: &str) {
        let Some(queue) = self.server_queue() else { return };
        queue.close();
        self.server = UpstreamState::Down { reason: reason.to_owned() };
        self.condemned = Some(self.generation);
        self.is_stale = true;
        self.refresh = None;
        for (_, pending) in std::mem::take(&mut self.pending_requests) {
            self.fail(
                pending,
                &format!("the server ended while the request was open ({reason}): it may have run, and is not sent again"),
            );
        }
        for proxy_id in std::mem::take(&mut self.server_requests).into_keys() {
            let params = [
                ("requestId", Json::Number(Cow::Owned(proxy_id.to_string()))),
                ("reason", Json::string("the server that asked has ended")),
            ];
            self.answer(&Message::notification("notifications/cancelled", params.into_iter().collect()));
        }
        // Requests for the list get the last known one at once. The others wait, but no longer than if the server had
        // been down when they came.
        let latest_deadline = Instant::now() + self.limits.reconnect_timeout;
        for parked in &mut self.parked_requests {
            parked.deadline = parked.deadline.map(|deadline| deadline.min(latest_deadline));
        }
        self.wake_at(Some(latest_deadline));
        self.retry_parked();
        self.wake.notify_one();
    }

    /// Fails a request that the server will not answer any more.
    pub(super) fn fail(&mut self, pending: ProxyPendingRequest, problem: &str) {
        match pending.request_kind {
            UpstreamRequestKind::Page => return self.refresh_failed(problem),
            UpstreamRequestKind::ReplayHandshake => return self.condemn(),
            UpstreamRequestKind::ReplaySetting => return,
            // So that the client can try again.
            UpstreamRequestKind::Initialize => self.handshake = None,
            // Opening a stream changes nothing, so it is opened again.
            UpstreamRequestKind::Listen { request, is_acknowledged }
                if matches!(self.server, UpstreamState::Down { .. }) =>
            {
                if let Some(id) = pending.client {
                    self.client_requests.insert(id.clone(), ClientRequestState::ParkedRequest);
                    let waits_for =
                        ParkedRequestReason::Server(ForwardedRequestKind::Listen { is_acknowledged });
                    self.parked_requests.push_back(ParkedRequest {
                        id,
                        message: *request,
                        waits_for,
                        deadline: None,
                    });
                }
                return;
            }
            UpstreamRequestKind::Discover
            | UpstreamRequestKind::Forwarded
            | UpstreamRequestKind::Listen { .. } => {}
        }
        self.record_end(pending.call.as_ref(), ObservedCallOutcome::Failed, 0);
        if let Some(client) = pending.client {
            self.client_requests.remove(&client);
            self.refuse(&client, INTERNAL_ERROR, problem);
        }
    }

    pub(super) fn wake_at(&mut self, deadline: Option<Instant>) {
        if let Some(deadline) = deadline
            && self.next_wake.is_none_or(|next_wake| deadline < next_wake)
        {
            self.next_wake = Some(deadline);
            self.wake.notify_one();
        }
    }

    pub(super) fn tick(&mut self, now: Instant) -> SupervisorWork {
        let is_late =
            |pending: &ProxyPendingRequest| pending.deadline.is_some_and(|(deadline, _)| deadline <= now);
        let numbers: Vec<u64> = self
            .pending_requests
            .iter()
            .filter(|(_, pending)| is_late(pending))
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            let Some(pending) = self.pending_requests.remove(&number) else { continue };
            let (_, limit) = pending.deadline.unwrap_or((now, Duration::ZERO));
            let problem = format!("no answer within {} s: the request may have run", limit.as_secs_f64());
            // MCP: `initialize` is not cancelled.
            if !matches!(
                pending.request_kind,
                UpstreamRequestKind::Initialize | UpstreamRequestKind::ReplayHandshake
            ) {
                let params = [
                    ("requestId", Json::Number(Cow::Owned(number.to_string()))),
                    ("reason", Json::string("time limit")),
                ];
                self.send_to_server(&Message::notification(
                    "notifications/cancelled",
                    params.into_iter().collect(),
                ));
            }
            self.fail(pending, &problem);
        }
        self.take_approvals();
        self.expire_paused_calls(now);
        for parked in self.take_parked(|parked| parked.deadline.is_some_and(|deadline| deadline <= now)) {
            self.client_requests.remove(&parked.id);
            if parked.waits_for == ParkedRequestReason::Approval {
                self.waiting_approvals.remove(&parked.id);
                self.withdraw_client_question(&parked.id);
                self.record_not_sent(&parked.message, ProxyDecision::Refused, "nobody answered");
                let text = "not run: a person must approve this call, and nobody answered in time. No answer is no; call \
                            again when somebody is there";
                self.refuse_call(&parked.id, text.to_owned());
                continue;
            }
            if parked.waits_for == ParkedRequestReason::Server(ForwardedRequestKind::Initialize) {
                self.handshake = None;
            }
            let problem = match &self.server {
                UpstreamState::Down { reason } => format!("not sent: the server is not running ({reason})"),
                _ => "not sent: the server is not ready".to_owned(),
            };
            self.record_not_sent(&parked.message, ProxyDecision::Refused, "the server is not running");
            self.refuse(&parked.id, INTERNAL_ERROR, &problem);
        }
        let pending = self
            .pending_requests
            .values()
            .filter_map(|pending| pending.deadline.map(|(deadline, _)| deadline));
        let parked = self.parked_requests.iter().filter_map(|parked| parked.deadline);
        let is_asked = |waiting: &WaitingApproval| matches!(waiting.asked, AskedPerson::Operator(_));
        let answers = self.waiting_approvals.values().any(is_asked).then(|| now + ANSWER_INTERVAL);
        let paused = self.paused_calls.values().map(|paused| paused.deadline);
        // A time that is still to come is kept, so that the next request need not wake anybody.
        self.next_wake = pending
            .chain(parked)
            .chain(answers)
            .chain(paused)
            .chain(self.next_wake.filter(|next_wake| *next_wake > now))
            .min();
        // A client that has closed its end may still read the answers it has asked for, as in `request | server`.
        let last_answers_at = self.client_gone_at.map(|since| since + LAST_ANSWERS_TIMEOUT);
        let is_waited_for = self.client_requests.values().any(|open| !self.is_stream(*open));
        let is_over = last_answers_at.is_some_and(|last_answers_at| last_answers_at <= now || !is_waited_for);
        let next_check = self.next_wake.into_iter().chain(last_answers_at).min();
        SupervisorWork { is_over, condemned: self.condemned, next_check }
    }

    pub(super) fn is_stream(&self, open: ClientRequestState) -> bool {
        match open {
            ClientRequestState::PendingRequest(number) => {
                matches!(
                    self.pending_requests.get(&number),
                    Some(ProxyPendingRequest { request_kind: UpstreamRequestKind::Listen { .. }, .. })
                )
            }
            ClientRequestState::ParkedRequest => false,
        }
    }
}
