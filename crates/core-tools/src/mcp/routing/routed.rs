//! Tools whose calls are made on the machine that their arguments name.

use super::lists;
use super::places::RoutedTool;
use super::routes::CallRoutes;
use crate::mcp::call_context::CallContext;
use crate::mcp::forwarding::ForwardedCall;
use crate::mcp::tool::Tool;
use crate::mcp::tool_error::ToolError;
use crate::mcp::toolset::Toolset;
use futures_util::future::FutureExt;
use serde_json::{Map, Value};

impl Toolset {
    /// Returns the same tools, whose calls `routes` makes on another machine if their paths are there. The tools about tools
    /// work here: what they find and call is routed on its own.
    #[must_use]
    pub fn routed(mut self, routes: &CallRoutes) -> Self {
        let toolset = self.name;
        let route = |tool: Tool| {
            if tool.wants_directory() || tool.wants_to_call_tools() {
                return tool;
            }
            let (routes, facts) = (routes.clone(), tool.facts(toolset));
            let routed = RoutedTool { name: facts.name, toolset, effects: facts.effects };
            let tool = tool.also_sends_notices(routes.connect_notices.as_ref());
            if routed.lists_all_machines() {
                return tool.followed_by(move |here, arguments, context| {
                    lists::list_all(routes.clone(), routed, here, (arguments, context)).boxed()
                });
            }
            tool.with_detour(move |arguments: &mut Map<String, Value>, context: &CallContext| {
                match routes.machine_of(&routed, arguments) {
                    Ok(None) => None,
                    Ok(Some(machine)) => {
                        let (arguments, context) = (std::mem::take(arguments), context.clone());
                        let call = ForwardedCall { tool: routed.name, arguments, context };
                        let name = routes.name(machine).to_owned();
                        let answer = (routes.route)(machine, call);
                        Some(async move { Ok(routed.with_machine(&name, answer.await?)) }.boxed())
                    }
                    Err(not_routed) => {
                        Some(std::future::ready(Err(ToolError::from_error(&not_routed))).boxed())
                    }
                }
            })
        };
        self.tools = self.tools.into_iter().map(route).collect();
        self
    }
}
