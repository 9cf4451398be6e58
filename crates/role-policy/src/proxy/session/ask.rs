//! What we say to the server ourselves.

use super::OWN_PATIENCE;
use super::state::{Core, Sent, Server, What};
use crate::proxy::json::Object;
use crate::proxy::message::{Id, Message};
use crate::proxy::outbox::Outbox;
use std::time::Instant;

impl Core {
    pub(super) fn next_id(&mut self) -> Id {
        self.last_id += 1;
        Id::Number(self.last_id.to_string())
    }

    pub(super) fn outbox(&self) -> Option<&Outbox> {
        match &self.server {
            Server::Ready(outbox) | Server::Greeted(outbox) => Some(outbox),
            Server::Down { .. } => None,
        }
    }

    /// Says something to the server, if it is there to hear it.
    pub(super) fn tell(&mut self, message: &Message<'_>) {
        if let Some(outbox) = self.outbox()
            && let Err(reason) = outbox.put(message.to_line())
        {
            tracing::debug!(?reason, "the server does not hear");
        }
    }

    /// Asks the server something ourselves.
    pub(super) fn ask(&mut self, method: &'static str, params: Object<'_>, what: What) {
        let id = self.next_id();
        let deadline = Instant::now() + OWN_PATIENCE;
        self.sent.insert(
            self.last_id,
            Sent { client: None, what, deadline: Some((deadline, OWN_PATIENCE)), progress: None, call: None },
        );
        self.arm(Some(deadline));
        self.tell(&Message::request(&id, method, params));
    }
}
