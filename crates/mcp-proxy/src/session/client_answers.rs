//! Messages to the client: answers, refusals, changed lists.

use super::state::{ProxyPendingRequest, ProxySessionState, SUBSCRIPTION_ID, ToolList};
use crate::server_tool::ServerTool;
use json_rpc::error_code::METHOD_NOT_FOUND;
use json_rpc::json::{Json, JsonObject};
use json_rpc::message::{Id, Message};
use std::time::Instant;

impl ProxySessionState {
    pub(super) fn answer(&mut self, message: &Message<'_>) {
        self.answer_line(message.to_line());
    }

    pub(super) fn answer_line(&mut self, line: Vec<u8>) {
        match self.client.push(line) {
            Ok(()) => {}
            Err(reason) => {
                // A client that has left so much unread will not read on.
                tracing::debug!(?reason, "the client is gone");
                self.client_gone_at.get_or_insert_with(Instant::now);
                self.wake.notify_one();
            }
        }
    }

    pub(super) fn refuse(&mut self, id: &Id, code: i32, problem: &str) {
        self.answer(&Message::error(Some(id), code, problem));
    }

    pub(super) fn no_such_method(&mut self, id: &Id, method: &str) {
        // Cut, as the name is the client's and may have megabytes.
        let short: String = method.chars().take(64).collect();
        self.refuse(id, METHOD_NOT_FOUND, &format!("no method is called `{short}`"));
    }

    pub(super) fn answer_list(&mut self, id: &Id, is_modern: bool) {
        let Some(tool_list) = &self.tool_list else { return };
        let mut result = tool_list.rest.clone();
        let tools = self.visible(tool_list).map(|tool| Json::Object(tool.definition.clone())).collect();
        result.set("tools", Json::Array(tools));
        if is_modern {
            // A shared cache would show one role's list to another.
            result.set("cacheScope", Json::string("private"));
        }
        let announced = self.visible_definitions(tool_list);
        if let Some(tool_list) = &mut self.tool_list {
            tool_list.announced = Some(announced);
        }
        self.answer(&Message::result(id, result));
    }

    pub(super) fn visible<'c>(&'c self, tool_list: &'c ToolList) -> impl Iterator<Item = &'c ServerTool> {
        tool_list.tools.iter().filter(|tool| self.authorizer.sees(&tool.name))
    }

    /// Returns the definitions that the client sees as one text, to be compared with a later one.
    pub(super) fn visible_definitions(&self, tool_list: &ToolList) -> Vec<u8> {
        let mut visible_definitions = Vec::new();
        for tool in self.visible(tool_list) {
            tool.definition.write(&mut visible_definitions);
        }
        visible_definitions
    }

    /// Tells the client that its list has changed. A change that it cannot see is not announced.
    pub(super) fn announce_if_changed(&mut self) {
        let Some(tool_list) = &self.tool_list else { return };
        let visible_definitions = self.visible_definitions(tool_list);
        if tool_list.announced.as_ref().is_none_or(|announced| *announced == visible_definitions) {
            return;
        }
        if let Some(tool_list) = &mut self.tool_list {
            tool_list.announced = Some(visible_definitions);
        }
        // With a handshake the client hears of it once. Without one, only on the streams that it opened for it.
        const CHANGED: &str = "notifications/tools/list_changed";
        if self.handshake.as_ref().is_some_and(|handshake| handshake.is_complete) {
            return self.answer(&Message::notification(CHANGED, JsonObject::default()));
        }
        let streams: Vec<Id> =
            self.pending_requests.values().filter_map(ProxyPendingRequest::wants_tools).cloned().collect();
        for id in streams {
            let mut meta = JsonObject::default();
            meta.set(SUBSCRIPTION_ID, id.to_json());
            let params = [("_meta", Json::Object(meta))];
            self.answer(&Message::notification(CHANGED, params.into_iter().collect()));
        }
    }
}
