//! Messages from the client.

use super::state::{
    ClientRequestState, ForwardedRequestKind, Handshake, ParkedRequestReason, ProxySessionState,
    SUBSCRIPTION_ID, UpstreamRequestKind, UpstreamState,
};
use crate::methods::{
    ClientNotification, ClientRequestKind, ProtocolArea, client_notification, client_request,
};
use crate::observer::{ObservedCallOutcome, ProxyDecision};
use json_rpc::error_code::{INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR};
use json_rpc::json::{Json, JsonObject};
use json_rpc::message::{Id, InvalidMessage, Message, MessageKind};
use std::borrow::Cow;
use std::time::Instant;

impl ProxySessionState {
    pub(super) fn refuse_line(&mut self, invalid: &InvalidMessage) {
        tracing::warn!(problem = %invalid.problem, "refused a line of the client");
        if invalid.is_answered {
            let kind = if invalid.code == PARSE_ERROR { "parse error" } else { "invalid request" };
            // Not under the id of something else that is open.
            let id = invalid.id.as_ref().filter(|id| !self.client_requests.contains_key(id));
            self.answer(&Message::error(id, invalid.code, &format!("{kind}: {}", invalid.problem)));
        }
    }

    pub(super) fn client_message(&mut self, message: Message<'_>) {
        match message.kind.clone() {
            MessageKind::Request { id, method } => self.client_request(id, &method, message),
            MessageKind::Notification { method } => self.client_notification(&method, message),
            MessageKind::Response { id, .. } => self.client_response(&id, message),
        }
    }

    pub(super) fn client_request(&mut self, id: Id, method: &str, mut message: Message<'_>) {
        if self.client_requests.contains_key(&id) {
            self.record_not_sent(&message, ProxyDecision::Invalid, "its id is open already");
            let problem = format!("invalid request: the id {id} belongs to a request that is still open");
            // Under no id: the client would take an answer under this one for that of the open request.
            return self.answer(&Message::error(None, INVALID_REQUEST, &problem));
        }
        if self.client_requests.len() >= self.limits.max_open_requests {
            let problem = format!("not sent: {} requests are open already", self.client_requests.len());
            self.record_not_sent(&message, ProxyDecision::Refused, "too many requests are open");
            return self.refuse(&id, INTERNAL_ERROR, &problem);
        }
        self.note_client_forms(method, &message);
        self.withhold_client_capabilities(method, &mut message);
        if message.is_modern() {
            self.remember_meta(&message);
        }
        let Some(class) = client_request(method) else { return self.no_such_method(&id, method) };
        match class {
            // MCP without a handshake has no `ping`.
            ClientRequestKind::Ping if message.is_modern() => self.no_such_method(&id, method),
            ClientRequestKind::Ping => self.answer(&Message::result(&id, JsonObject::default())),
            ClientRequestKind::Initialize => self.initialize(id, message),
            ClientRequestKind::Discover => self.forward(id, message, ForwardedRequestKind::Discover, None),
            ClientRequestKind::ListTools => self.list_tools(id, message, None),
            ClientRequestKind::CallTool => {
                if let Some(message) = self.resume_paused(&id, message) {
                    self.call_tool(id, message, None);
                }
            }
            ClientRequestKind::SetLevel => {
                // Under the method's name, so that a later level replaces this one.
                self.replayed_settings.insert(method.to_owned(), message.clone().into_owned());
                self.forward(id, message, ForwardedRequestKind::Plain, None);
            }
            ClientRequestKind::Listen => self.listen(id, message),
            ClientRequestKind::InArea(area) => {
                if !self.authorizer.grants(area) {
                    return self.no_such_method(&id, method);
                }
                self.remember_subscription(method, &message);
                self.forward(id, message, ForwardedRequestKind::Plain, None);
            }
        }
    }

    /// Removes from a client's description of itself what the server may not ask it for, so that a server does not try.
    fn withhold_client_capabilities(&self, method: &str, message: &mut Message<'_>) {
        const MODERN: &str = "io.modelcontextprotocol/clientCapabilities";
        let is_declared = |capabilities: Option<&Json<'_>>| {
            let capabilities = capabilities.and_then(Json::as_object);
            capabilities.is_some_and(|capabilities| {
                ProtocolArea::OF_CLIENT.iter().any(|area| capabilities.get(area.capability()).is_some())
            })
        };
        let is_initialize = method == "initialize";
        // Nearly every message declares nothing, and is left as it is.
        let declares = match is_initialize {
            true => is_declared(message.params().and_then(|params| params.get("capabilities"))),
            false => is_declared(message.meta().and_then(|meta| meta.get(MODERN))),
        };
        if !declares {
            return;
        }
        let withheld = ProtocolArea::OF_CLIENT.into_iter().filter(|area| !self.authorizer.grants(*area));
        let withheld: Vec<&str> = withheld.map(ProtocolArea::capability).collect();
        let params = message.params_mut();
        let capabilities = match is_initialize {
            true => params.get_mut("capabilities"),
            false => match params.get_mut("_meta") {
                Some(Json::Object(meta)) => meta.get_mut(MODERN),
                _ => None,
            },
        };
        if let Some(Json::Object(capabilities)) = capabilities {
            capabilities.retain(|name| !withheld.contains(&name));
        }
    }

    /// Keeps the `_meta` with which a client without a handshake describes itself.
    pub(super) fn remember_meta(&mut self, message: &Message<'_>) {
        let Some(meta) = message.meta() else { return };
        const MCP_PREFIX: &str = "io.modelcontextprotocol/";
        let mcp_members =
            || meta.members().filter(|(name, _)| name.starts_with(MCP_PREFIX) && *name != SUBSCRIPTION_ID);
        // The usual case: a client says the same of itself in each request.
        if self
            .meta
            .members()
            .map(|(name, value)| (name, value.clone()))
            .eq(mcp_members().map(|(n, v)| (n, v.clone())))
        {
            return;
        }
        let mut client_meta = JsonObject::default();
        for (name, value) in mcp_members() {
            client_meta.set(name.to_owned(), value.clone().into_owned());
        }
        self.meta = client_meta;
    }

    pub(super) fn remember_subscription(&mut self, method: &str, message: &Message<'_>) {
        /// A client that subscribes to more hears of them until the server is started again.
        const MAX_SUBSCRIPTIONS: usize = 1024;
        let Some(uri) = message.params().and_then(|params| params.get("uri")).and_then(Json::as_str) else {
            return;
        };
        let key = format!("resources/subscribe {uri}");
        match method {
            "resources/subscribe" if self.replayed_settings.len() < MAX_SUBSCRIPTIONS => {
                self.replayed_settings.insert(key, message.clone().into_owned());
            }
            "resources/unsubscribe" => drop(self.replayed_settings.remove(&key)),
            _ => {}
        }
    }

    pub(super) fn initialize(&mut self, id: Id, message: Message<'_>) {
        if self.handshake.is_some() {
            return self.refuse(&id, INVALID_REQUEST, "invalid request: the handshake has been made already");
        }
        let params = message.params().cloned().unwrap_or_default().into_owned();
        // Kept with its parameters, to be repeated to a server that is started again.
        self.handshake = Some(Handshake { params, version: None, is_complete: false });
        self.forward(id, message, ForwardedRequestKind::Initialize, None);
    }

    pub(super) fn list_tools(&mut self, id: Id, message: Message<'_>, deadline: Option<Instant>) {
        if let Some(cursor) = message.params().and_then(|params| params.get("cursor")) {
            let short: String = cursor.to_string().chars().take(64).collect();
            let problem = format!("no such cursor: {short}; this list has one page");
            return self.refuse(&id, INVALID_PARAMS, &problem);
        }
        // The client need not notice that the server was started again. If the new list is another one, the client
        // is told.
        if !matches!(self.server, UpstreamState::Ready(_)) && self.tool_list.is_some() {
            return self.answer_list(&id, message.is_modern());
        }
        self.park(id, message, ParkedRequestReason::List, deadline);
        self.start_refresh();
    }

    pub(super) fn client_notification(&mut self, method: &str, mut message: Message<'_>) {
        match client_notification(method) {
            None => tracing::debug!(method, "dropped a notification of the client"),
            Some(ClientNotification::Initialized) => {
                let Some(handshake) = &mut self.handshake else { return };
                handshake.is_complete = true;
                self.send_to_server(&message);
            }
            Some(ClientNotification::InArea(area)) if !self.authorizer.grants(area) => {
                tracing::debug!(method, "dropped a notification of the client");
            }
            Some(ClientNotification::Forwarded | ClientNotification::InArea(_)) => {
                self.send_to_server(&message);
            }
            Some(ClientNotification::Cancelled) => {
                let id = message.params().and_then(|params| params.get("requestId")).and_then(Id::from_json);
                let Some(id) = id else { return };
                match self.client_requests.get(&id) {
                    // MCP: the handshake is not cancelled.
                    Some(ClientRequestState::PendingRequest(number))
                        if matches!(
                            self.pending_requests.get(number).map(|pending| &pending.request_kind),
                            Some(UpstreamRequestKind::Initialize)
                        ) => {}
                    Some(ClientRequestState::PendingRequest(number)) => {
                        let number = *number;
                        self.client_requests.remove(&id);
                        let pending = self.pending_requests.remove(&number);
                        self.record_end(
                            pending.and_then(|pending| pending.call).as_ref(),
                            ObservedCallOutcome::Failed,
                            0,
                        );
                        message.params_mut().set("requestId", Json::Number(Cow::Owned(number.to_string())));
                        self.send_to_server(&message);
                    }
                    Some(ClientRequestState::ParkedRequest) => {
                        self.client_requests.remove(&id);
                        self.waiting_approvals.remove(&id);
                        self.withdraw_client_question(&id);
                        for parked in self.take_parked(|parked| parked.id == id) {
                            self.record_not_sent(&parked.message, ProxyDecision::Refused, "cancelled");
                        }
                    }
                    None => {}
                }
            }
        }
    }

    pub(super) fn client_response(&mut self, id: &Id, mut message: Message<'_>) {
        if id.as_u64().is_some_and(|number| self.client_answered(number, &message)) {
            return;
        }
        match id.as_u64().and_then(|number| self.server_requests.remove(&number)) {
            Some(server_id) => {
                message.set_id(&server_id);
                self.send_to_server(&message);
            }
            None => tracing::debug!(%id, "dropped an answer of the client to nothing that is open"),
        }
    }
}
