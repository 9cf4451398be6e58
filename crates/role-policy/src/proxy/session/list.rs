//! The server's list of tools, read page by page and held against what was pinned.

use super::state::{Catalogue, Core, Parked, Refresh, Server, Wants, What};
use super::{INTERNAL_ERROR, METHOD_NOT_FOUND};
use crate::proxy::catalogue;
use crate::proxy::json::{Json, Object};
use crate::proxy::message::Message;

/// Pages and tools that one list may have.
const MAX_PAGES: usize = 100;

const MAX_TOOLS: usize = 10_000;

impl Core {
    pub(super) fn start_refresh(&mut self) {
        if self.refresh.is_none() && matches!(self.server, Server::Ready(_)) {
            self.refresh = Some(Refresh::default());
            self.ask_page(None);
        }
    }

    pub(super) fn ask_page(&mut self, cursor: Option<Json<'static>>) {
        let mut params = Object::default();
        if self.handshake.is_none() && self.meta.members().next().is_some() {
            params.set("_meta", Json::Object(self.meta.clone()));
        }
        if let Some(cursor) = cursor {
            params.set("cursor", cursor);
        }
        self.ask("tools/list", params, What::Page);
    }

    pub(super) fn page(&mut self, succeeded: bool, mut message: Message<'_>) {
        let Some(refresh) = &mut self.refresh else { return };
        if !succeeded {
            let (code, text) = message.error_parts().unwrap_or_default();
            if code == METHOD_NOT_FOUND.to_string() {
                // It has no tools.
                return self.refreshed();
            }
            let problem = format!("the server does not list its tools: {text}");
            return self.refresh_failed(&problem);
        }
        let result = message.result_mut();
        let Some(Json::Array(entries)) = result.remove("tools") else {
            return self.refresh_failed("the server's answer to tools/list holds no list of tools");
        };
        refresh.entries.extend(entries.into_iter().map(Json::into_owned));
        refresh.pages += 1;
        let cursor = result.remove("nextCursor").map(Json::into_owned);
        if refresh.rest.is_none() {
            refresh.rest = Some(std::mem::take(result).into_owned());
        }
        if refresh.entries.len() > MAX_TOOLS || refresh.pages > MAX_PAGES {
            return self.refresh_failed("the server's list of tools does not end");
        }
        match cursor {
            Some(cursor @ Json::String(_)) => self.ask_page(Some(cursor)),
            Some(Json::Null) | None => self.refreshed(),
            Some(_) => self.refresh_failed("the server's answer to tools/list has a cursor that is no text"),
        }
    }

    pub(super) fn refreshed(&mut self) {
        let Some(refresh) = self.refresh.take() else { return };
        let (mut tools, mut withheld) = catalogue::sort(refresh.entries);
        if let Some(pins) = &mut self.pins {
            let (kept, changed, notes) = pins.check(tools);
            tools = kept;
            withheld.extend(changed);
            for note in notes {
                tracing::warn!("{note}");
            }
        }
        if withheld != self.withheld {
            for tool in &withheld {
                tracing::warn!(tool = tool.name, "not offered: {}", tool.reason);
            }
            self.withheld = withheld;
        }
        let names = tools.iter().enumerate().map(|(place, tool)| (tool.name.clone(), place)).collect();
        let announced = self.catalogue.take().and_then(|before| before.announced);
        let rest = refresh.rest.unwrap_or_default();
        self.catalogue = Some(Catalogue { tools, names, rest, announced });
        self.is_stale = refresh.is_stale;
        let lists: Vec<Parked> = self.take_parked(|parked| parked.why == Wants::List);
        for parked in lists {
            self.open.remove(&parked.id);
            self.answer_list(&parked.id, parked.message.is_modern());
        }
        self.announce_if_changed();
        self.unpark();
        if self.is_stale {
            self.start_refresh();
        }
    }

    pub(super) fn refresh_failed(&mut self, problem: &str) {
        tracing::warn!("{problem}");
        self.refresh = None;
        for parked in self.take_parked(|parked| matches!(parked.why, Wants::List | Wants::Call)) {
            self.open.remove(&parked.id);
            self.not_sent(&parked.message, "refused", "the server does not list its tools");
            self.refuse(&parked.id, INTERNAL_ERROR, &format!("not sent: {problem}"));
        }
    }

    pub(super) fn take_parked(&mut self, mut which: impl FnMut(&Parked) -> bool) -> Vec<Parked> {
        let (taken, left) = std::mem::take(&mut self.parked).into_iter().partition(|parked| which(parked));
        self.parked = left;
        Vec::from(taken)
    }
}
