//! What the server says.

use super::state::{Core, Sent, What};
use super::{INTERNAL_ERROR, METHOD_NOT_FOUND, SUBSCRIPTION};
use crate::proxy::json::{Json, Object};
use crate::proxy::message::{Id, Invalid, Kind, Message};
use crate::proxy::methods::{Area, ServerNotification, ServerRequest, server_notification, server_request};
use crate::proxy::observe::Outcome;
use std::borrow::Cow;

/// Requests of the server that may wait for the client.
const MAX_ASKED: usize = 256;

impl Core {
    pub(super) fn server_message(&mut self, message: Message<'_>) {
        match message.kind.clone() {
            Kind::Response { id, succeeded } => self.server_response(&id, succeeded, message),
            Kind::Request { id, method } => self.server_request(&id, &method, message),
            Kind::Notification { method } => self.server_notification(&method, message),
        }
    }

    pub(super) fn unreadable_answer(&mut self, invalid: &Invalid) {
        tracing::warn!(problem = %invalid.problem, "refused a line of the server");
        let Some(number) = invalid.id.as_ref().and_then(Id::number) else { return };
        let Some(sent) = self.sent.remove(&number) else { return };
        let problem =
            format!("the server's answer was refused: {}; the request may have run", invalid.problem);
        self.fail(sent, &problem);
    }

    pub(super) fn server_response(&mut self, id: &Id, succeeded: bool, mut message: Message<'_>) {
        let Some(sent) = id.number().and_then(|number| self.sent.remove(&number)) else {
            tracing::debug!(%id, "dropped an answer of the server to nothing that is open");
            return;
        };
        match &sent.what {
            What::Page => return self.page(succeeded, message),
            What::Greeting => return self.greeted(succeeded, &message),
            What::Again => return,
            What::Initialize if succeeded => self.initialized(&mut message),
            What::Initialize => self.handshake = None,
            What::Discover if succeeded => self.narrow(&mut message),
            What::Listen { .. } => {
                if let Some(client) = &sent.client {
                    name_subscription(message.result_mut_if_any(), client);
                }
            }
            What::Discover | What::Passed => {}
        }
        if let Some(client) = sent.client {
            self.open.remove(&client);
            message.set_id(&client);
            let line = message.to_line();
            if sent.call.is_some() {
                let is_error = message.result_object().and_then(|result| result.get("isError"));
                let failed = !succeeded || is_error == Some(&Json::Bool(true));
                let outcome = if failed { Outcome::Failed } else { Outcome::Ok };
                self.ended(sent.call.as_ref(), outcome, line.len());
            }
            self.answer_line(line);
        }
        if self.over.is_some() {
            self.wake.notify_one();
        }
    }

    pub(super) fn initialized(&mut self, message: &mut Message<'_>) {
        let version = message.result_object().and_then(|result| result.get("protocolVersion"));
        let version = version.and_then(Json::as_str).map(str::to_owned);
        if let Some(handshake) = &mut self.handshake {
            handshake.version = Some(version.unwrap_or_default());
        }
        self.narrow(message);
    }

    /// Takes out of a description of the server what the caller does not get.
    pub(super) fn narrow(&mut self, message: &mut Message<'_>) {
        let instructions = self.judge.grants_instructions();
        let refused: Vec<&str> =
            Area::ALL.into_iter().filter(|area| !self.judge.grants(*area)).map(Area::capability).collect();
        let result = message.result_mut();
        if let Some(Json::Object(capabilities)) = result.get_mut("capabilities") {
            capabilities.retain(|name| !refused.contains(&name));
            if let Some(Json::Object(extensions)) = capabilities.get_mut("extensions") {
                extensions.retain(|name| !refused.iter().any(|area| name.ends_with(&format!("/{area}"))));
            }
            if let Some(Json::Object(tools)) = capabilities.get_mut("tools") {
                // A policy that is loaded again changes what the client sees, whatever the server does.
                tools.set("listChanged", Json::Bool(true));
            }
        }
        if !instructions {
            // They may name what is hidden.
            result.remove("instructions");
        }
        if let Some(scope) = result.get_mut("cacheScope") {
            *scope = Json::string("private");
        }
    }

    pub(super) fn server_request(&mut self, id: &Id, method: &str, mut message: Message<'_>) {
        let reply = match server_request(method) {
            Some(ServerRequest::Ping) => Message::result(id, Object::default()),
            None => Message::error(Some(id), METHOD_NOT_FOUND, "no such method"),
            Some(ServerRequest::Passed) if self.asked.len() >= MAX_ASKED => {
                Message::error(Some(id), INTERNAL_ERROR, "too many requests are open")
            }
            Some(ServerRequest::Passed) => {
                let ours = self.next_id();
                message.set_id(&ours);
                self.asked.insert(self.last_id, id.clone());
                return self.answer(&message);
            }
        };
        self.tell(&reply);
    }

    pub(super) fn server_notification(&mut self, method: &str, mut message: Message<'_>) {
        match server_notification(method) {
            None => return tracing::debug!(method, "dropped a notification of the server"),
            Some(ServerNotification::ToolsChanged) => {
                self.is_stale = true;
                match &mut self.refresh {
                    Some(refresh) => refresh.is_stale = true,
                    None if self.catalogue.is_some() => self.start_refresh(),
                    None => {}
                }
                return;
            }
            Some(ServerNotification::Progress) => {
                let token = message.params().and_then(|params| params.get("progressToken"));
                if token.is_none() || !self.sent.values().any(|sent| sent.progress.as_ref() == token) {
                    return;
                }
            }
            Some(ServerNotification::Cancelled) => {
                let theirs = message.params().and_then(|params| params.get("requestId")).and_then(Id::of);
                let ours =
                    self.asked.iter().find(|(_, id)| Some(*id) == theirs.as_ref()).map(|(ours, _)| *ours);
                let Some(ours) = ours else { return };
                self.asked.remove(&ours);
                message.params_mut().set("requestId", Json::Number(Cow::Owned(ours.to_string())));
            }
            Some(ServerNotification::Of(area)) if !self.judge.grants(area) => return,
            Some(ServerNotification::Acknowledged) => {
                let stream = subscription(&message);
                let Some(Sent { what: What::Listen { is_acknowledged, .. }, .. }) =
                    stream.and_then(|number| self.sent.get_mut(&number))
                else {
                    return;
                };
                // The client has heard it from the server before this one.
                if std::mem::replace(is_acknowledged, true) {
                    return;
                }
            }
            Some(ServerNotification::Of(_) | ServerNotification::Passed) => {}
        }
        if message.meta().is_some_and(|meta| meta.get(SUBSCRIPTION).is_some()) {
            let client = subscription(&message).and_then(|number| self.sent.get(&number)?.client.clone());
            let Some(client) = client else { return };
            name_subscription(Some(message.params_mut()), &client);
        }
        self.answer(&message);
    }
}

/// The stream that a notification belongs to, by our id.
fn subscription(message: &Message<'_>) -> Option<u64> {
    Id::of(message.meta()?.get(SUBSCRIPTION)?)?.number()
}

/// Puts the id that the client knows.
fn name_subscription(object: Option<&mut Object<'_>>, client: &Id) {
    if let Some(Json::Object(meta)) = object.and_then(|object| object.get_mut("_meta"))
        && meta.get(SUBSCRIPTION).is_some()
    {
        meta.set(SUBSCRIPTION, client.to_json());
    }
}
