//! Messages from the server.

use super::state::{ProxyPendingRequest, ProxySessionState, SUBSCRIPTION_ID, UpstreamRequestKind};
use crate::methods::{ProtocolArea, ServerNotification, ServerRequest, server_notification, server_request};
use crate::observer::ObservedCallOutcome;
use json_rpc::error_code::{INTERNAL_ERROR, METHOD_NOT_FOUND};
use json_rpc::json::{Json, JsonObject};
use json_rpc::message::{Id, InvalidMessage, Message, MessageKind};
use std::borrow::Cow;

/// The largest number of the server's requests that may wait for the client.
const MAX_SERVER_REQUESTS: usize = 256;

impl ProxySessionState {
    pub(super) fn server_message(&mut self, message: Message<'_>) {
        match message.kind.clone() {
            MessageKind::Response { id, succeeded } => self.server_response(&id, succeeded, message),
            MessageKind::Request { id, method } => self.server_request(&id, &method, message),
            MessageKind::Notification { method } => self.server_notification(&method, message),
        }
    }

    pub(super) fn unreadable_answer(&mut self, invalid: &InvalidMessage) {
        tracing::warn!(problem = %invalid.problem, "refused a line of the server");
        let Some(number) = invalid.id.as_ref().and_then(Id::as_u64) else { return };
        let Some(pending) = self.pending_requests.remove(&number) else { return };
        let problem =
            format!("the server's answer was refused: {}; the request may have run", invalid.problem);
        self.fail(pending, &problem);
    }

    pub(super) fn server_response(&mut self, id: &Id, succeeded: bool, mut message: Message<'_>) {
        let Some(pending) = id.as_u64().and_then(|number| self.pending_requests.remove(&number)) else {
            tracing::debug!(%id, "dropped an answer of the server to nothing that is open");
            return;
        };
        match &pending.request_kind {
            UpstreamRequestKind::Page => return self.list_page(succeeded, message),
            UpstreamRequestKind::ReplayHandshake => return self.handshake_replayed(succeeded, &message),
            UpstreamRequestKind::ReplaySetting => return,
            UpstreamRequestKind::Initialize if succeeded => self.initialized(&mut message),
            UpstreamRequestKind::Initialize => self.handshake = None,
            UpstreamRequestKind::Discover if succeeded => self.filter_server_info(&mut message),
            UpstreamRequestKind::Listen { .. } => {
                if let Some(client) = &pending.client {
                    name_subscription(message.result_mut_if_any(), client);
                }
            }
            UpstreamRequestKind::Discover | UpstreamRequestKind::Forwarded => {}
        }
        let refused = if succeeded { self.refused_input_request(&message) } else { None };
        if let Some(method) = refused {
            tracing::info!(method, "refused an answer of the server that asks the client");
            let problem = format!("the server asks the client by `{method}`, which its role does not have");
            return self.fail(pending, &problem);
        }
        if let Some(client) = pending.client {
            self.client_requests.remove(&client);
            message.set_id(&client);
            let line = message.to_line();
            if pending.call.is_some() {
                let is_error = message.result_object().and_then(|result| result.get("isError"));
                let failed = !succeeded || is_error == Some(&Json::Bool(true));
                let outcome = if failed { ObservedCallOutcome::Failed } else { ObservedCallOutcome::Ok };
                self.record_end(pending.call.as_ref(), outcome, line.len());
            }
            self.answer_line(line);
        }
        // The supervising task ends the session after the last answer.
        if self.client_gone_at.is_some() {
            self.wake.notify_one();
        }
    }

    /// Returns the method of a request in a result that the policy does not let the client see. Since 2026-07-28 a server
    /// asks its client in the result of a request (`inputRequests`).
    fn refused_input_request(&self, message: &Message<'_>) -> Option<String> {
        let Some(Json::Object(requests)) = message.result_object()?.get("inputRequests") else { return None };
        let methods = requests.members().map(|(_, request)| {
            request
                .as_object()
                .and_then(|request| request.get("method"))
                .and_then(Json::as_str)
                .unwrap_or_default()
        });
        let is_refused = |method: &&str| match server_request(method) {
            Some(ServerRequest::InArea(area)) => !self.authorizer.grants(area),
            Some(ServerRequest::Ping) | None => true,
        };
        methods.into_iter().find(is_refused).map(str::to_owned)
    }

    pub(super) fn initialized(&mut self, message: &mut Message<'_>) {
        let version = message.result_object().and_then(|result| result.get("protocolVersion"));
        let version = version.and_then(Json::as_str).map(str::to_owned);
        if let Some(handshake) = &mut self.handshake {
            handshake.version = Some(version.unwrap_or_default());
        }
        self.filter_server_info(message);
    }

    /// Removes from the server's description of itself what the caller may not use.
    pub(super) fn filter_server_info(&mut self, message: &mut Message<'_>) {
        let instructions = self.authorizer.grants_instructions();
        let refused: Vec<&str> = ProtocolArea::ALL
            .into_iter()
            .filter(|area| !self.authorizer.grants(*area))
            .map(ProtocolArea::capability)
            .collect();
        let result = message.result_mut();
        if let Some(Json::Object(capabilities)) = result.get_mut("capabilities") {
            capabilities.retain(|name| !refused.contains(&name));
            // An area can also be declared as an extension, under a name that ends with it.
            if let Some(Json::Object(extensions)) = capabilities.get_mut("extensions") {
                extensions.retain(|name| !refused.iter().any(|area| name.ends_with(&format!("/{area}"))));
            }
            if let Some(Json::Object(tools)) = capabilities.get_mut("tools") {
                // A policy that is loaded again changes what the client sees, whatever the server does.
                tools.set("listChanged", Json::Bool(true));
            }
        }
        if !instructions {
            // The instructions may name hidden tools.
            result.remove("instructions");
        }
        if let Some(scope) = result.get_mut("cacheScope") {
            *scope = Json::string("private");
        }
    }

    pub(super) fn server_request(&mut self, id: &Id, method: &str, mut message: Message<'_>) {
        let reply = match server_request(method) {
            Some(ServerRequest::Ping) => Message::result(id, JsonObject::default()),
            None => Message::error(Some(id), METHOD_NOT_FOUND, "no such method"),
            Some(ServerRequest::InArea(area)) if !self.authorizer.grants(area) => {
                tracing::info!(method, area = area.name(), "refused a request of the server");
                Message::error(Some(id), METHOD_NOT_FOUND, "the role of the client does not have this")
            }
            Some(ServerRequest::InArea(_)) if self.server_requests.len() >= MAX_SERVER_REQUESTS => {
                Message::error(Some(id), INTERNAL_ERROR, "too many requests are open")
            }
            Some(ServerRequest::InArea(_)) => {
                let proxy_id = self.next_id();
                message.set_id(&proxy_id);
                self.server_requests.insert(self.last_id, id.clone());
                return self.answer(&message);
            }
        };
        self.send_to_server(&reply);
    }

    pub(super) fn server_notification(&mut self, method: &str, mut message: Message<'_>) {
        match server_notification(method) {
            None => return tracing::debug!(method, "dropped a notification of the server"),
            Some(ServerNotification::ToolsChanged) => {
                // Not forwarded: the client is told once the list was read, and only if what it sees has changed.
                self.is_stale = true;
                match &mut self.refresh {
                    Some(refresh) => refresh.is_stale = true,
                    None if self.tool_list.is_some() => self.start_refresh(),
                    None => {}
                }
                return;
            }
            Some(ServerNotification::Progress) => {
                let token = message.params().and_then(|params| params.get("progressToken"));
                if token.is_none()
                    || !self.pending_requests.values().any(|pending| pending.progress.as_ref() == token)
                {
                    return;
                }
            }
            Some(ServerNotification::Cancelled) => {
                let server_id =
                    message.params().and_then(|params| params.get("requestId")).and_then(Id::from_json);
                let proxy_id = self
                    .server_requests
                    .iter()
                    .find(|(_, id)| Some(*id) == server_id.as_ref())
                    .map(|(proxy_id, _)| *proxy_id);
                let Some(proxy_id) = proxy_id else { return };
                self.server_requests.remove(&proxy_id);
                message.params_mut().set("requestId", Json::Number(Cow::Owned(proxy_id.to_string())));
            }
            Some(ServerNotification::InArea(area)) if !self.authorizer.grants(area) => return,
            Some(ServerNotification::Acknowledged) => {
                let stream = subscription(&message);
                let Some(ProxyPendingRequest {
                    request_kind: UpstreamRequestKind::Listen { is_acknowledged, .. },
                    ..
                }) = stream.and_then(|number| self.pending_requests.get_mut(&number))
                else {
                    return;
                };
                // The client has heard it from the server before this one.
                if std::mem::replace(is_acknowledged, true) {
                    return;
                }
            }
            Some(ServerNotification::InArea(_) | ServerNotification::Forwarded) => {}
        }
        if message.meta().is_some_and(|meta| meta.get(SUBSCRIPTION_ID).is_some()) {
            let client =
                subscription(&message).and_then(|number| self.pending_requests.get(&number)?.client.clone());
            let Some(client) = client else { return };
            name_subscription(Some(message.params_mut()), &client);
        }
        self.answer(&message);
    }
}

/// Returns the stream that a notification belongs to, by the proxy's id.
fn subscription(message: &Message<'_>) -> Option<u64> {
    Id::from_json(message.meta()?.get(SUBSCRIPTION_ID)?)?.as_u64()
}

/// Replaces the stream's id by the one that the client knows.
fn name_subscription(object: Option<&mut JsonObject<'_>>, client: &Id) {
    if let Some(Json::Object(meta)) = object.and_then(|object| object.get_mut("_meta"))
        && meta.get(SUBSCRIPTION_ID).is_some()
    {
        meta.set(SUBSCRIPTION_ID, client.to_json());
    }
}
