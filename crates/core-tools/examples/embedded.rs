//! Embeds one toolset in a program: a host with the file tools over one folder, called without a transport.
//!
//! `cargo run -p core-tools --features filesystem,mcp --example embedded`
#![allow(clippy::print_stdout, reason = "an example prints its result")]
#![allow(clippy::disallowed_methods, reason = "the example creates the files that it reads")]

use core_tools::mcp::{CallContext, Host, WorkspaceEffects, filesystem};
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
    // No facts are given, so that the built-in roles may name tools of toolsets that are not here.
    let policy = Policy::load(BUILTIN, "built-in", &[])?.policy;
    let host = Host::builder(policy, Redactor::new(Default::default())?)
        .toolset(filesystem::toolset(&workspace))
        .effects(Arc::new(WorkspaceEffects::new(Arc::clone(&workspace), None)))
        .build()?;

    let call = async |role: &str, tool: &str, arguments: Value| {
        let arguments: Map<String, Value> = serde_json::from_value(arguments).unwrap_or_default();
        let answer =
            host.call(tool, arguments, CallContext::new(Caller::new(role), Default::default())).await;
        answer.map_or_else(|error| error.to_string(), |answer| answer.to_text())
    };
    let read = call("readonly", "read_file", json!({"path": "notes.md"})).await;
    println!("{read}");
    // Secrets are masked in every answer.
    assert!(read.contains("# Notes") && !read.contains("AKIAIOSFODNN7EXAMPLE"), "{read}");
    // A path outside the folder opens nothing; a tool that a role does not see does not exist for it.
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
