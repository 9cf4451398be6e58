//! Uses `role-policy` in an MCP server that is built on rmcp alone, without core-tools. The server lists the tools that
//! the role sees, and runs a call only if the policy authorized it.
//!
//! The example belongs to this crate because it needs rmcp, on which `role-policy` does not depend, even in tests.
//!
//! `cargo run -p core-tools --features mcp --example foreign_server`
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use role_policy::{Authorized, Call, Caller, LexicalResolver, Policy, Refusal, ToolFacts};
use serde_json::{Map, Value, json};

const ROLES: &str = r#"
version = 1
[roles.clerk]
allow = ["orders"]
[[roles.clerk.require]]
id = "own-shop"
tools = ["orders"]
arguments.shop = { one_of = ["north"] }
"#;

/// The facts that a policy needs of each tool. No argument of this server is a path or a command.
const TOOLS: [ToolFacts<'static>; 2] = [facts("orders", true), facts("refund", false)];

const fn facts(name: &'static str, read_only: bool) -> ToolFacts<'static> {
    ToolFacts::new(name, "shop").read_only(read_only).open_world(false)
}

struct Shop {
    policy: Policy,
    caller: Caller,
}

impl Shop {
    /// Runs a call, as the server did before it had roles. Only `Policy::authorize` makes its argument.
    fn run(call: Authorized<Call>) -> String {
        let tool = call.tool().to_owned();
        format!("{tool} of {}", call.into_arguments().remove("shop").unwrap_or_default())
    }
}

impl ServerHandler for Shop {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object", "properties": {"shop": {"type": "string"}}});
        let schema: Map<String, Value> = serde_json::from_value(schema).unwrap_or_default();
        let seen = TOOLS.iter().filter(|tool| self.policy.sees(&self.caller, tool));
        let tools = seen.map(|tool| Tool::new(tool.name, "Of a shop.", schema.clone()));
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // The same message for a tool that does not exist and one that the caller does not see.
        let unknown = || ErrorData::invalid_params(format!("no tool is called {}", request.name), None);
        let tool = TOOLS.iter().find(|tool| tool.name == request.name).ok_or_else(unknown)?;
        let call = Call::new(tool.name, request.arguments.clone().unwrap_or_default());
        let result = match self.policy.authorize(&self.caller, tool, call, &LexicalResolver) {
            Ok(call) => CallToolResult::success(vec![ContentBlock::text(Self::run(call))]),
            Err(Refusal::Hidden { .. }) => return Err(unknown()),
            Err(refusal) => CallToolResult::error(vec![ContentBlock::text(refusal.to_string())]),
        };
        Ok(result.into())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let policy = Policy::load(ROLES, "roles.toml", &TOOLS)?.policy;
    let shop = Shop { policy, caller: Caller::new("clerk") };
    // The client is at the other end of a pipe, in place of standard input and output.
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let server = tokio::spawn(async move {
        shop.serve(ours).await?.waiting().await.map_err(Box::<dyn std::error::Error + Send + Sync>::from)
    });
    let client = ().serve(theirs).await?;

    let tools = client.list_all_tools().await?;
    println!("{:?}", tools.iter().map(|tool| &tool.name).collect::<Vec<_>>());
    assert_eq!(tools.len(), 1);
    for (tool, shop, expected) in [
        ("orders", "north", "orders of \"north\""),
        ("orders", "south", "this role may give one of"),
        ("refund", "north", "no tool is called"),
    ] {
        let mut call = CallToolRequestParams::new(tool);
        call.arguments = json!({ "shop": shop }).as_object().cloned();
        let answer = match client.call_tool(call).await {
            Ok(result) => serde_json::to_string(&result)?.replace("\\\"", "\""),
            Err(error) => error.to_string(),
        };
        println!("{answer}");
        assert!(answer.contains(expected), "{answer}");
    }
    client.cancel().await?;
    server.await?.map_err(|error| error.to_string())?;
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
