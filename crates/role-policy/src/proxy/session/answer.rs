//! What the client is told.

use super::state::{Catalogue, Core, Sent};
use super::{METHOD_NOT_FOUND, SUBSCRIPTION};
use crate::proxy::catalogue::Tool;
use crate::proxy::json::{Json, Object};
use crate::proxy::message::{Id, Message};
use std::time::Instant;

impl Core {
    pub(super) fn answer(&mut self, message: &Message<'_>) {
        self.answer_line(message.to_line());
    }

    pub(super) fn answer_line(&mut self, line: Vec<u8>) {
        match self.client.put(line) {
            Ok(()) => {}
            Err(reason) => {
                // Who has not read so much will not read on.
                tracing::debug!(?reason, "the client is gone");
                self.over.get_or_insert_with(Instant::now);
                self.wake.notify_one();
            }
        }
    }

    pub(super) fn refuse(&mut self, id: &Id, code: i32, problem: &str) {
        self.answer(&Message::error(Some(id), code, problem));
    }

    pub(super) fn no_such_method(&mut self, id: &Id, method: &str) {
        let short: String = method.chars().take(64).collect();
        self.refuse(id, METHOD_NOT_FOUND, &format!("no method is called `{short}`"));
    }

    pub(super) fn answer_list(&mut self, id: &Id, is_modern: bool) {
        let Some(catalogue) = &self.catalogue else { return };
        let mut result = catalogue.rest.clone();
        let tools = self.visible(catalogue).map(|tool| Json::Object(tool.definition.clone())).collect();
        result.set("tools", Json::Array(tools));
        if is_modern {
            // What one role sees is not for another.
            result.set("cacheScope", Json::string("private"));
        }
        let announced = self.seen(catalogue);
        if let Some(catalogue) = &mut self.catalogue {
            catalogue.announced = Some(announced);
        }
        self.answer(&Message::result(id, result));
    }

    pub(super) fn visible<'c>(&'c self, catalogue: &'c Catalogue) -> impl Iterator<Item = &'c Tool> {
        catalogue.tools.iter().filter(|tool| self.judge.sees(&tool.name))
    }

    /// What the client sees, to be compared.
    pub(super) fn seen(&self, catalogue: &Catalogue) -> Vec<u8> {
        let mut seen = Vec::new();
        for tool in self.visible(catalogue) {
            tool.definition.write(&mut seen);
        }
        seen
    }

    /// Tells the client that its list has changed, if it has: what it does not see is not announced.
    pub(super) fn announce_if_changed(&mut self) {
        let Some(catalogue) = &self.catalogue else { return };
        let seen = self.seen(catalogue);
        if catalogue.announced.as_ref().is_none_or(|announced| *announced == seen) {
            return;
        }
        if let Some(catalogue) = &mut self.catalogue {
            catalogue.announced = Some(seen);
        }
        const CHANGED: &str = "notifications/tools/list_changed";
        if self.handshake.as_ref().is_some_and(|handshake| handshake.is_complete) {
            return self.answer(&Message::notification(CHANGED, Object::default()));
        }
        let streams: Vec<Id> = self.sent.values().filter_map(Sent::wants_tools).cloned().collect();
        for id in streams {
            let mut meta = Object::default();
            meta.set(SUBSCRIPTION, id.to_json());
            let params = [("_meta", Json::Object(meta))];
            self.answer(&Message::notification(CHANGED, params.into_iter().collect()));
        }
    }
}
