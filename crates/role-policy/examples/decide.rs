//! A program with two commands and a file of roles, without any protocol: what is listed, what runs, and why not.
//! The example `foreign_server` of core-tools does the same in an MCP server.
//!
//! `cargo run -p role-policy --example decide`
#![allow(clippy::print_stdout, reason = "an example shows what came of it")]

use role_policy::{Authorized, Call, Caller, Effect, LexicalResolver, Policy, ToolFacts};
use serde_json::{Map, Value, json};

const ROLES: &str = r#"
version = 1

[roles.reader]
allow = ["annotation:read-only"]

[roles.writer]
extends = "reader"
allow = ["save"]

[[roles.writer.require]]
id = "docs-only"
tools = ["save"]
write_within = ["docs"]
must_allow = [{ arguments = { path = "docs/today.md" } }]     # judged whenever the file is loaded
must_deny = [{ arguments = { path = "docs/../main.rs" } }]
"#;

/// What each command is, told once.
const TOOLS: [ToolFacts<'static>; 2] = [
    ToolFacts::new("show", "files").read_only(true).open_world(false).effects(&[Effect::Reads("path")]),
    ToolFacts::new("save", "files").open_world(false).effects(&[Effect::Writes("path")]),
];

/// It takes nothing but what a policy has allowed, so nothing can get past the policy.
fn dispatch(call: &Authorized<Call>) -> String {
    format!("{} ran", call.tool())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let policy = Policy::load(ROLES, "roles.toml", &TOOLS)?.policy;
    let mut said = Vec::new();
    for role in ["reader", "writer", "stranger"] {
        let caller = Caller::new(role);
        let seen: Vec<_> =
            TOOLS.iter().filter(|tool| policy.sees(&caller, tool)).map(|tool| tool.name).collect();
        said.push(format!("{role} sees {seen:?}"));
        for path in ["docs/plan.md", "src/main.rs"] {
            let arguments: Map<String, Value> = serde_json::from_value(json!({ "path": path }))?;
            // `LexicalResolver` judges a path by its text; a server that has files judges where it leads.
            let decided =
                policy.authorize(&caller, &TOOLS[1], Call::new("save", arguments), &LexicalResolver);
            said.push(
                decided
                    .map_or_else(|refusal| format!("  {refusal}"), |call| format!("  {}", dispatch(&call))),
            );
        }
    }
    println!("{}", said.join("\n"));
    assert_eq!(said[3], "writer sees [\"show\", \"save\"]");
    assert_eq!(said[4], "  save ran");
    assert!(said[5].contains("this role may write only in `docs`"));
    assert_eq!(said[6], "stranger sees []");
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
