//! What is passed on to the server, at once or when it can be.

use super::state::{Call, Core, Open, Parked, Passing, Sent, Server, Wants, What};
use super::{INTERNAL_ERROR, OWN_PATIENCE};
use crate::proxy::json::Json;
use crate::proxy::message::{Id, Kind, Message};
use crate::proxy::methods::{Area, ClientRequest, client_request};
use crate::proxy::observe::Outcome;
use crate::proxy::outbox::NotTaken;
use std::time::Instant;

impl Core {
    pub(super) fn listen(&mut self, id: Id, mut message: Message<'_>) {
        let resources = self.judge.grants(Area::Resources);
        let prompts = self.judge.grants(Area::Prompts);
        if let Some(Json::Object(wanted)) = message.params_mut().get_mut("notifications") {
            wanted.retain(|name| match name {
                "toolsListChanged" => true,
                "promptsListChanged" => prompts,
                _ => resources,
            });
        }
        self.pass(id, message, Passing::Listen { is_acknowledged: false }, None);
    }

    /// Sends a request on, or parks it until there is a server.
    pub(super) fn pass(&mut self, id: Id, message: Message<'_>, how: Passing, deadline: Option<Instant>) {
        self.send(id, message, how, None, deadline);
    }

    /// The same; `call` is what was judged, where it is a call.
    pub(super) fn send(
        &mut self,
        id: Id,
        mut message: Message<'_>,
        how: Passing,
        call: Option<Call>,
        deadline: Option<Instant>,
    ) {
        let Server::Ready(outbox) = &self.server else {
            return self.park(id, message, Wants::Server(how), deadline);
        };
        let outbox = outbox.clone();
        let limit = match (&how, &call) {
            (Passing::Listen { .. }, _) => None,
            (_, Some(call)) => Some(call.limit),
            _ => Some(self.limits.call),
        };
        let what = match how {
            Passing::Initialize => What::Initialize,
            Passing::Discover => What::Discover,
            Passing::Plain => What::Passed,
            Passing::Listen { is_acknowledged } => {
                What::Listen { request: Box::new(message.clone().into_owned()), is_acknowledged }
            }
        };
        let progress =
            message.meta().and_then(|meta| meta.get("progressToken")).map(|token| token.clone().into_owned());
        let ours = self.next_id();
        message.set_id(&ours);
        match outbox.put(message.to_line()) {
            Ok(()) => {
                let number = self.last_id;
                let deadline = limit.map(|limit| (Instant::now() + limit, limit));
                self.arm(deadline.map(|(at, _)| at));
                self.open.insert(id.clone(), Open::Sent(number));
                self.sent.insert(number, Sent { client: Some(id), what, deadline, progress, call });
            }
            Err(NotTaken::Full) => {
                self.open.remove(&id);
                self.ended(call.as_ref(), Outcome::NotRun, 0);
                self.refuse(&id, INTERNAL_ERROR, "not sent: the server does not read what it is sent");
            }
            // Its end is about to be noticed, and it gets no more.
            Err(NotTaken::Closed) => {
                self.condemn();
                self.ended(call.as_ref(), Outcome::NotRun, 0);
                let why = if call.is_some() { Wants::Call } else { Wants::Server(how) };
                self.park(id, message, why, deadline);
            }
        }
    }

    pub(super) fn park(&mut self, id: Id, message: Message<'_>, why: Wants, deadline: Option<Instant>) {
        // The catalogue of a server that runs takes as long as the server does; a server that is down has a
        // bounded time to come back.
        let wait = match self.server {
            Server::Down { .. } => self.limits.reconnect,
            _ => OWN_PATIENCE,
        };
        let is_stream = matches!(why, Wants::Server(Passing::Listen { .. }));
        let deadline = (!is_stream).then(|| deadline.unwrap_or_else(|| Instant::now() + wait));
        self.arm(deadline);
        self.open.insert(id.clone(), Open::Parked);
        let mut message = message.into_owned();
        message.set_id(&id);
        self.parked.push_back(Parked { id, message, why, deadline });
    }

    /// Tries again what was parked; what still cannot go on is parked again, no longer than before.
    pub(super) fn unpark(&mut self) {
        for parked in std::mem::take(&mut self.parked) {
            self.open.remove(&parked.id);
            match parked.why {
                Wants::List => self.list_tools(parked.id, parked.message, parked.deadline),
                Wants::Call => self.call_tool(parked.id, parked.message, parked.deadline),
                Wants::Server(how) => match parked.message.kind.clone() {
                    // Another policy may hold by now.
                    Kind::Request { method, .. } if !self.still_grants(&method) => {
                        self.no_such_method(&parked.id, &method);
                    }
                    _ => self.pass(parked.id, parked.message, how, parked.deadline),
                },
            }
        }
    }

    pub(super) fn still_grants(&self, method: &str) -> bool {
        match client_request(method) {
            Some(ClientRequest::Of(area)) => self.judge.grants(area),
            _ => true,
        }
    }
}
