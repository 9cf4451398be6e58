//! A server with everything that a host of this library offers to authors: tools with every kind of answer, tools that ask
//! the client, tasks, prompts, resources, suggestions, log messages, and lists that change. The names are those that the
//! official conformance suite looks for, and `docs/conformance.md` has the results.
//!
//! Every call is judged by a policy, limited and masked, as in the servers of this project.
//!
//! ```sh
//! cargo run -p core-tools --features mcp --example everything                          # over standard input and output
//! cargo run -p core-tools --features mcp --example everything -- --http 127.0.0.1:0   # prints the address
//! cargo run -p core-tools --features mcp --example everything -- --role reader        # sees what only reads
//! ```
#![allow(clippy::print_stdout, reason = "an example prints its address")]
#![allow(clippy::disallowed_methods, reason = "a program reads its own arguments")]

mod answers;
mod changes;
mod client;
mod http_server;
mod prompts;
mod resources;
mod tasks;

use core_tools::mcp::{Availability, ClientNotices, Connection, Host, Toolset};
use core_tools::redact::Redactor;
use rmcp::ServiceExt;
use role_policy::{Caller, Policy};
use std::error::Error;

const ROLES: &str = r#"
version = 1
[roles.all]
allow = ["*"]
[roles.reader]
allow = ["annotation:read-only", "mcp/resources/*"]
deny = ["mcp/prompts/*", "test_sampling"]
"#;

/// The input of a tool without parameters.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoInput {}

/// Builds the host with all of it.
fn host() -> Result<Host, Box<dyn Error>> {
    let (extra_tool, extra_prompt) = (Availability::new(false), Availability::new(false));
    let notices = ClientNotices::default();
    let tools = answers::tools()
        .into_iter()
        .chain(client::tools())
        .chain(tasks::tools())
        .chain(changes::tools(&extra_tool, &extra_prompt, &notices));
    let toolset = Toolset::new("everything", tools)
        .prompts(prompts::prompts(&extra_prompt))
        .resources(resources::resources());
    let facts: Vec<_> = toolset.facts().collect();
    let policy = Policy::load(ROLES, "roles.toml", &facts)?.policy;
    let host = Host::builder(policy, Redactor::new(Default::default())?)
        .toolset(toolset)
        .client_log(true)
        .client_notices(notices)
        .build()?;
    Ok(host)
}

/// Returns the value of a flag in the program's arguments.
fn argument(flag: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != flag);
    arguments.nth(1)
}

fn connection(host: Host, role: &str) -> Connection {
    let instructions = "Everything that a server can offer, for tests of clients.";
    Connection::new(host, Caller::new(role), "everything", env!("CARGO_PKG_VERSION"), instructions)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let connection = connection(host()?, &argument("--role").unwrap_or_else(|| "all".to_owned()));
    match argument("--http") {
        Some(address) => http_server::serve(&address, connection).await,
        None => {
            let server = connection.serve((tokio::io::stdin(), tokio::io::stdout())).await?;
            server.waiting().await?;
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_tools::mcp::CallContext;
    use serde_json::Map;

    #[tokio::test]
    async fn each_role_is_offered_what_its_policy_allows() {
        let host = host().unwrap();
        let (all, reader) = (Caller::new("all"), Caller::new("reader"));
        assert!(
            host.names(&all).contains(&"test_sampling") && !host.names(&reader).contains(&"test_sampling")
        );
        assert!(host.listed_prompts(&all).len() > 4 && host.listed_prompts(&reader).is_empty());
        assert_eq!(host.listed_resources(&all), host.listed_resources(&reader));
        let context = CallContext::new(all, Default::default());
        let answer = host.call("test_simple_text", Map::new(), context).await.unwrap();
        assert_eq!(answer.to_text(), "This is a simple text response for testing.");
    }
}
