//! The server's life: it starts, hears again what the one before it had heard, and ends; and what time ends.

use super::state::{Core, Handshake, Open, Parked, Passing, Sent, Server, Wants, What};
use super::{INTERNAL_ERROR, OWN_PATIENCE, Todo};
use crate::proxy::LAST_ANSWERS;
use crate::proxy::json::{Json, Object};
use crate::proxy::message::{Kind, Message};
use crate::proxy::observe::Outcome;
use crate::proxy::outbox::Outbox;
use std::borrow::Cow;
use std::time::{Duration, Instant};

impl Core {
    pub(super) fn up(&mut self, outbox: Outbox) -> u64 {
        self.generation += 1;
        match &self.handshake {
            Some(Handshake { params, version: Some(_), .. }) => {
                let params = params.clone();
                self.server = Server::Greeted(outbox);
                self.ask("initialize", params, What::Greeting);
            }
            _ => {
                self.server = Server::Ready(outbox);
                self.ready();
            }
        }
        self.generation
    }

    /// A server that was started again has answered the handshake that the client made with the first.
    pub(super) fn greeted(&mut self, succeeded: bool, message: &Message<'_>) {
        let version = message.result_object().and_then(|result| result.get("protocolVersion"));
        let version = version.and_then(Json::as_str);
        let known = self.handshake.as_ref().and_then(|handshake| handshake.version.as_deref());
        if !succeeded || version != known {
            tracing::error!(
                ?version,
                ?known,
                "the server that was started again does not take the handshake"
            );
            return self.condemn();
        }
        let Server::Greeted(outbox) = &self.server else { return };
        self.server = Server::Ready(outbox.clone());
        if self.handshake.as_ref().is_some_and(|handshake| handshake.is_complete) {
            self.tell(&Message::notification("notifications/initialized", Object::default()));
        }
        let still = |message: &&Message<'static>| match &message.kind {
            Kind::Request { method, .. } => self.still_grants(method),
            _ => true,
        };
        for mut message in self.again.values().filter(still).cloned().collect::<Vec<_>>() {
            let id = self.next_id();
            message.set_id(&id);
            let deadline = Some((Instant::now() + OWN_PATIENCE, OWN_PATIENCE));
            self.sent.insert(
                self.last_id,
                Sent { client: None, what: What::Again, deadline, progress: None, call: None },
            );
            self.tell(&message);
        }
        self.ready();
    }

    pub(super) fn ready(&mut self) {
        if self.catalogue.is_some() {
            self.start_refresh();
        }
        self.unpark();
    }

    pub(super) fn condemn(&mut self) {
        self.condemned = Some(self.generation);
        self.wake.notify_one();
    }

    pub(super) fn down(&mut self, why: &str) {
        let Some(outbox) = self.outbox() else { return };
        outbox.close();
        self.server = Server::Down { why: why.to_owned() };
        self.condemned = Some(self.generation);
        self.is_stale = true;
        self.refresh = None;
        for (_, sent) in std::mem::take(&mut self.sent) {
            self.fail(
                sent,
                &format!("the server ended while the request was open ({why}): it may have run, and is not sent again"),
            );
        }
        for ours in std::mem::take(&mut self.asked).into_keys() {
            let params = [
                ("requestId", Json::Number(Cow::Owned(ours.to_string()))),
                ("reason", Json::string("the server that asked has ended")),
            ];
            self.answer(&Message::notification("notifications/cancelled", params.into_iter().collect()));
        }
        // What there is a last known answer for has it at once; the others wait, no longer than for a server
        // that was down when they came.
        let soonest = Instant::now() + self.limits.reconnect;
        for parked in &mut self.parked {
            parked.deadline = parked.deadline.map(|deadline| deadline.min(soonest));
        }
        self.arm(Some(soonest));
        self.unpark();
        self.wake.notify_one();
    }

    /// Answers what will have no answer of the server any more.
    pub(super) fn fail(&mut self, sent: Sent, problem: &str) {
        match sent.what {
            What::Page => return self.refresh_failed(problem),
            What::Greeting => return self.condemn(),
            What::Again => return,
            What::Initialize => self.handshake = None,
            // Opening a stream changes nothing, so it is opened again.
            What::Listen { request, is_acknowledged } if matches!(self.server, Server::Down { .. }) => {
                if let Some(id) = sent.client {
                    self.open.insert(id.clone(), Open::Parked);
                    let why = Wants::Server(Passing::Listen { is_acknowledged });
                    self.parked.push_back(Parked { id, message: *request, why, deadline: None });
                }
                return;
            }
            What::Discover | What::Passed | What::Listen { .. } => {}
        }
        self.ended(sent.call.as_ref(), Outcome::Failed, 0);
        if let Some(client) = sent.client {
            self.open.remove(&client);
            self.refuse(&client, INTERNAL_ERROR, problem);
        }
    }

    pub(super) fn arm(&mut self, deadline: Option<Instant>) {
        if let Some(deadline) = deadline
            && self.armed.is_none_or(|armed| deadline < armed)
        {
            self.armed = Some(deadline);
            self.wake.notify_one();
        }
    }

    pub(super) fn tick(&mut self, now: Instant) -> Todo {
        let late = |sent: &Sent| sent.deadline.is_some_and(|(deadline, _)| deadline <= now);
        let numbers: Vec<u64> =
            self.sent.iter().filter(|(_, sent)| late(sent)).map(|(number, _)| *number).collect();
        for number in numbers {
            let Some(sent) = self.sent.remove(&number) else { continue };
            let (_, limit) = sent.deadline.unwrap_or((now, Duration::ZERO));
            let problem = format!("no answer within {} s: the request may have run", limit.as_secs_f64());
            if !matches!(sent.what, What::Initialize | What::Greeting) {
                let params = [
                    ("requestId", Json::Number(Cow::Owned(number.to_string()))),
                    ("reason", Json::string("time limit")),
                ];
                self.tell(&Message::notification("notifications/cancelled", params.into_iter().collect()));
            }
            self.fail(sent, &problem);
        }
        for parked in self.take_parked(|parked| parked.deadline.is_some_and(|deadline| deadline <= now)) {
            self.open.remove(&parked.id);
            if parked.why == Wants::Server(Passing::Initialize) {
                self.handshake = None;
            }
            let problem = match &self.server {
                Server::Down { why } => format!("not sent: the server is not running ({why})"),
                _ => "not sent: the server is not ready".to_owned(),
            };
            self.not_sent(&parked.message, "refused", "the server is not running");
            self.refuse(&parked.id, INTERNAL_ERROR, &problem);
        }
        let sent = self.sent.values().filter_map(|sent| sent.deadline.map(|(deadline, _)| deadline));
        let parked = self.parked.iter().filter_map(|parked| parked.deadline);
        // A time that is still to come is kept, so that the next request need not wake anybody.
        self.armed = sent.chain(parked).chain(self.armed.filter(|armed| *armed > now)).min();
        // Whoever has closed its end may still read what it has asked for: `request | server`.
        let last = self.over.map(|since| since + LAST_ANSWERS);
        let is_waited_for = self.open.values().any(|open| !self.is_stream(*open));
        let end = last.is_some_and(|last| last <= now || !is_waited_for);
        let next = self.armed.into_iter().chain(last).min();
        Todo { end, condemned: self.condemned, next }
    }

    pub(super) fn is_stream(&self, open: Open) -> bool {
        match open {
            Open::Sent(number) => {
                matches!(self.sent.get(&number), Some(Sent { what: What::Listen { .. }, .. }))
            }
            Open::Parked => false,
        }
    }
}
