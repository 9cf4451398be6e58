//! What the client says.

use super::state::{Core, Handshake, Open, Passing, Server, Wants, What};
use super::{INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, SUBSCRIPTION};
use crate::proxy::json::{Json, Object};
use crate::proxy::message::{Id, Invalid, Kind, Message};
use crate::proxy::methods::{ClientNotification, ClientRequest, client_notification, client_request};
use crate::proxy::observe::Outcome;
use std::borrow::Cow;
use std::time::Instant;

impl Core {
    pub(super) fn refuse_line(&mut self, invalid: &Invalid) {
        tracing::warn!(problem = %invalid.problem, "refused a line of the client");
        if invalid.is_answered {
            let kind = if invalid.code == PARSE_ERROR { "parse error" } else { "invalid request" };
            // Not under the id of something else that is open.
            let id = invalid.id.as_ref().filter(|id| !self.open.contains_key(id));
            self.answer(&Message::error(id, invalid.code, &format!("{kind}: {}", invalid.problem)));
        }
    }

    pub(super) fn client_message(&mut self, message: Message<'_>) {
        match message.kind.clone() {
            Kind::Request { id, method } => self.client_request(id, &method, message),
            Kind::Notification { method } => self.client_notification(&method, message),
            Kind::Response { id, .. } => self.client_response(&id, message),
        }
    }

    pub(super) fn client_request(&mut self, id: Id, method: &str, message: Message<'_>) {
        if self.open.contains_key(&id) {
            self.not_sent(&message, "invalid", "its id is open already");
            let problem = format!("invalid request: the id {id} belongs to a request that is still open");
            return self.answer(&Message::error(None, INVALID_REQUEST, &problem));
        }
        if self.open.len() >= self.limits.in_flight {
            let problem = format!("not sent: {} requests are open already", self.open.len());
            self.not_sent(&message, "refused", "too many requests are open");
            return self.refuse(&id, INTERNAL_ERROR, &problem);
        }
        if message.is_modern() {
            self.remember_meta(&message);
        }
        let Some(class) = client_request(method) else { return self.no_such_method(&id, method) };
        match class {
            ClientRequest::Ping if message.is_modern() => self.no_such_method(&id, method),
            ClientRequest::Ping => self.answer(&Message::result(&id, Object::default())),
            ClientRequest::Initialize => self.initialize(id, message),
            ClientRequest::Discover => self.pass(id, message, Passing::Discover, None),
            ClientRequest::ListTools => self.list_tools(id, message, None),
            ClientRequest::CallTool => self.call_tool(id, message, None),
            ClientRequest::SetLevel => {
                self.again.insert(method.to_owned(), message.clone().into_owned());
                self.pass(id, message, Passing::Plain, None);
            }
            ClientRequest::Listen => self.listen(id, message),
            ClientRequest::Of(area) => {
                if !self.judge.grants(area) {
                    return self.no_such_method(&id, method);
                }
                self.remember_subscription(method, &message);
                self.pass(id, message, Passing::Plain, None);
            }
        }
    }

    /// What a modern client says of itself.
    pub(super) fn remember_meta(&mut self, message: &Message<'_>) {
        let Some(meta) = message.meta() else { return };
        const OWN: &str = "io.modelcontextprotocol/";
        let own = || meta.members().filter(|(name, _)| name.starts_with(OWN) && *name != SUBSCRIPTION);
        if self
            .meta
            .members()
            .map(|(name, value)| (name, value.clone()))
            .eq(own().map(|(n, v)| (n, v.clone())))
        {
            return;
        }
        let mut kept = Object::default();
        for (name, value) in own() {
            kept.set(name.to_owned(), value.clone().into_owned());
        }
        self.meta = kept;
    }

    pub(super) fn remember_subscription(&mut self, method: &str, message: &Message<'_>) {
        /// A client that subscribes to more hears of them until the server is started again.
        const MOST: usize = 1024;
        let Some(uri) = message.params().and_then(|params| params.get("uri")).and_then(Json::as_str) else {
            return;
        };
        let key = format!("resources/subscribe {uri}");
        match method {
            "resources/subscribe" if self.again.len() < MOST => {
                self.again.insert(key, message.clone().into_owned());
            }
            "resources/unsubscribe" => drop(self.again.remove(&key)),
            _ => {}
        }
    }

    pub(super) fn initialize(&mut self, id: Id, message: Message<'_>) {
        if self.handshake.is_some() {
            return self.refuse(&id, INVALID_REQUEST, "invalid request: the handshake has been made already");
        }
        let params = message.params().cloned().unwrap_or_default().into_owned();
        self.handshake = Some(Handshake { params, version: None, is_complete: false });
        self.pass(id, message, Passing::Initialize, None);
    }

    pub(super) fn list_tools(&mut self, id: Id, message: Message<'_>, deadline: Option<Instant>) {
        if let Some(cursor) = message.params().and_then(|params| params.get("cursor")) {
            let short: String = cursor.to_string().chars().take(64).collect();
            let problem = format!("no such cursor: {short}; this list has one page");
            return self.refuse(&id, INVALID_PARAMS, &problem);
        }
        if !matches!(self.server, Server::Ready(_)) && self.catalogue.is_some() {
            return self.answer_list(&id, message.is_modern());
        }
        self.park(id, message, Wants::List, deadline);
        self.start_refresh();
    }

    pub(super) fn client_notification(&mut self, method: &str, mut message: Message<'_>) {
        match client_notification(method) {
            None => tracing::debug!(method, "dropped a notification of the client"),
            Some(ClientNotification::Initialized) => {
                let Some(handshake) = &mut self.handshake else { return };
                handshake.is_complete = true;
                self.tell(&message);
            }
            Some(ClientNotification::Passed) => self.tell(&message),
            Some(ClientNotification::Cancelled) => {
                let id = message.params().and_then(|params| params.get("requestId")).and_then(Id::of);
                let Some(id) = id else { return };
                match self.open.get(&id) {
                    // MCP: the handshake is not cancelled.
                    Some(Open::Sent(number))
                        if matches!(self.sent.get(number).map(|sent| &sent.what), Some(What::Initialize)) => {
                    }
                    Some(Open::Sent(number)) => {
                        let number = *number;
                        self.open.remove(&id);
                        let sent = self.sent.remove(&number);
                        self.ended(sent.and_then(|sent| sent.call).as_ref(), Outcome::Failed, 0);
                        message.params_mut().set("requestId", Json::Number(Cow::Owned(number.to_string())));
                        self.tell(&message);
                    }
                    Some(Open::Parked) => {
                        self.open.remove(&id);
                        for parked in self.take_parked(|parked| parked.id == id) {
                            self.not_sent(&parked.message, "refused", "cancelled");
                        }
                    }
                    None => {}
                }
            }
        }
    }

    pub(super) fn client_response(&mut self, id: &Id, mut message: Message<'_>) {
        match id.number().and_then(|number| self.asked.remove(&number)) {
            Some(theirs) => {
                message.set_id(&theirs);
                self.tell(&message);
            }
            None => tracing::debug!(%id, "dropped an answer of the client to nothing that is open"),
        }
    }
}
