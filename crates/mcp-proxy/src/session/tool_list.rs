//! The server's list of tools, read page by page and compared with the pinned one.

use super::state::{
    ListRefresh, OWN_REQUEST_TIMEOUT, ParkedRequest, ParkedRequestReason, ProxySessionState, ToolList,
    UpstreamRequestKind, UpstreamState,
};
use crate::observer::ProxyDecision;
use crate::server_tool;
use json_rpc::error_code::{INTERNAL_ERROR, METHOD_NOT_FOUND};
use json_rpc::json::{Json, JsonObject};
use json_rpc::message::Message;
use std::time::Instant;

/// The largest number of pages of one list.
const MAX_PAGES: usize = 100;
/// The largest number of tools of one list.
const MAX_TOOLS: usize = 10_000;

impl ProxySessionState {
    pub(super) fn start_refresh(&mut self) {
        if self.refresh.is_none() && matches!(self.server, UpstreamState::Ready(_)) {
            let limit = OWN_REQUEST_TIMEOUT.min(self.limits.request_timeout);
            let deadline = Some(Instant::now() + limit);
            self.refresh = Some(ListRefresh { deadline, ..ListRefresh::default() });
            self.ask_page(None);
        }
    }

    pub(super) fn ask_page(&mut self, cursor: Option<Json<'static>>) {
        let mut params = JsonObject::default();
        if self.handshake.is_none() && self.meta.members().next().is_some() {
            // Without a handshake each request describes the client, the proxy's own ones too.
            params.set("_meta", Json::Object(self.meta.clone()));
        }
        if let Some(cursor) = cursor {
            params.set("cursor", cursor);
        }
        self.request_from_server("tools/list", params, UpstreamRequestKind::Page);
    }

    pub(super) fn list_page(&mut self, succeeded: bool, mut message: Message<'_>) {
        let Some(refresh) = &mut self.refresh else { return };
        if !succeeded {
            let (code, text) = message.error_parts().unwrap_or_default();
            if code == METHOD_NOT_FOUND.to_string() {
                // It has no tools.
                return self.list_complete();
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
        // The other members of the result are those of the first page.
        if refresh.rest.is_none() {
            refresh.rest = Some(std::mem::take(result).into_owned());
        }
        if refresh.entries.len() > MAX_TOOLS || refresh.pages > MAX_PAGES {
            return self.refresh_failed("the server's list of tools does not end");
        }
        match cursor {
            Some(cursor @ Json::String(_)) => self.ask_page(Some(cursor)),
            Some(Json::Null) | None => self.list_complete(),
            Some(_) => self.refresh_failed("the server's answer to tools/list has a cursor that is no text"),
        }
    }

    pub(super) fn list_complete(&mut self) {
        let Some(refresh) = self.refresh.take() else { return };
        let (mut tools, mut withheld) = server_tool::separate_withheld(refresh.entries);
        if let Some(pinned_tools) = &mut self.pinned_tools {
            let (kept, changed, notes) = pinned_tools.check(tools);
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
        if !self.has_told_of_no_tools && !tools.is_empty() {
            let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            if !names.iter().any(|name| self.authorizer.sees(name)) {
                self.has_told_of_no_tools = true;
                tracing::warn!("{}", no_tools(&self.authorizer.caller().role(), &names));
            }
        }
        let names = tools.iter().enumerate().map(|(index, tool)| (tool.name.clone(), index)).collect();
        let announced = self.tool_list.take().and_then(|before| before.announced);
        let rest = refresh.rest.unwrap_or_default();
        self.tool_list = Some(ToolList { tools, names, rest, announced });
        // The list is used even if it has changed while it was read, and is read again below. A server that changes
        // it all the time must not keep the client waiting.
        self.is_stale = refresh.is_stale;
        let lists: Vec<ParkedRequest> =
            self.take_parked(|parked| parked.waits_for == ParkedRequestReason::List);
        for parked in lists {
            self.client_requests.remove(&parked.id);
            self.answer_list(&parked.id, parked.message.is_modern());
        }
        self.announce_if_changed();
        self.retry_parked();
        if self.is_stale {
            self.start_refresh();
        }
    }

    pub(super) fn refresh_failed(&mut self, problem: &str) {
        tracing::warn!("{problem}");
        self.refresh = None;
        for parked in self.take_parked(|parked| {
            matches!(parked.waits_for, ParkedRequestReason::List | ParkedRequestReason::Call)
        }) {
            self.client_requests.remove(&parked.id);
            self.record_not_sent(
                &parked.message,
                ProxyDecision::Refused,
                "the server does not list its tools",
            );
            self.refuse(&parked.id, INTERNAL_ERROR, &format!("not sent: {problem}"));
        }
    }

    pub(super) fn take_parked(
        &mut self,
        mut is_wanted: impl FnMut(&ParkedRequest) -> bool,
    ) -> Vec<ParkedRequest> {
        let (matching, remaining) =
            std::mem::take(&mut self.parked_requests).into_iter().partition(|parked| is_wanted(parked));
        self.parked_requests = remaining;
        Vec::from(matching)
    }
}

/// Says that `role` has none of the tools, and which lines of a policy would give them.
fn no_tools(role: &str, names: &[&str]) -> String {
    const MAX_NAMED: usize = 8;
    let quoted: Vec<String> = names.iter().take(MAX_NAMED).map(|name| format!("\"{name}\"")).collect();
    let rest = if names.len() > MAX_NAMED { ", …" } else { "" };
    let list = quoted.join(", ");
    format!(
        "the role `{role}` has none of the {} tools of the server: what another server says of its tools is not trusted. To \
         give it some, name them in the policy: `external_tools = [{list}{rest}]`, and `allow = [{list}{rest}]` under \
         `[roles.{role}]`",
        names.len()
    )
}
