//! One toolset in a program of one's own: a host with the file tools over one folder, called without a transport.
//!
//! `cargo run -p core-tools --features filesystem,mcp --example embedded`
#![allow(clippy::print_stdout, reason = "an example shows what came of it")]
#![allow(clippy::disallowed_methods, reason = "it makes the files that it reads")]

use core_tools::mcp::{Context, Host, WorkspaceEffects, filesystem};
use core_tools::redact::Redactor;
use core_tools::workspace::Workspace;
use role_policy::{BUILTIN, Caller, Policy};
use serde_json::{Map, Value, json};
use std::sync::Arc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("notes.md"), "# Notes\n\nkey: AKIAIOSFODNN7EXAMPLE\n")?;

    let workspace = Arc::new(Workspace::new([folder.path()])?);
    // Without the facts of the tools the built-in roles may name tools that are not here.
    let policy = Policy::load(BUILTIN, "built-in", &[])?.policy;
    let host = Host::builder(policy, Redactor::new(Default::default())?)
        .toolset(filesystem::toolset(&workspace))
        .effects(Arc::new(WorkspaceEffects::new(Arc::clone(&workspace), None)))
        .build()?;

    let call = async |role: &str, tool: &str, arguments: Value| {
        let arguments: Map<String, Value> = serde_json::from_value(arguments).unwrap_or_default();
        let answer = host.call(tool, arguments, Context::new(Caller::new(role), Default::default())).await;
        answer.map_or_else(|error| error.to_string(), |answer| answer.to_text())
    };
    let read = call("readonly", "read_file", json!({"path": "notes.md"})).await;
    println!("{read}");
    // Secrets are masked on their way out.
    assert!(read.contains("# Notes") && !read.contains("AKIAIOSFODNN7EXAMPLE"), "{read}");
    // A path that leads out of the folder opens nothing; a tool that a role does not see is not there.
    let outside = call("readonly", "read_file", json!({"path": "../../etc/passwd"})).await;
    println!("{outside}");
    let hidden = call("readonly", "write_file", json!({"path": "notes.md", "content": ""})).await;
    println!("{hidden}");
    assert!(hidden.starts_with("no tool is called `write_file`"), "{hidden}");
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
