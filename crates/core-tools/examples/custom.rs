//! Adds custom tools to those of the library: a new one, and one that replaces `read_file` under the same name, so that
//! clients and roles need no change.
//!
//! `cargo run -p core-tools --features filesystem,mcp --example custom`
#![allow(clippy::print_stdout, reason = "an example prints its result")]
#![allow(clippy::disallowed_methods, reason = "the example creates the files that it reads")]

use core_tools::mcp::{
    Answer, CallContext, Effect, Host, HostBuilder, Tool, ToolError, Toolset, WorkspaceEffects, filesystem,
};
use core_tools::redact::Redactor;
use core_tools::workspace::Workspace;
use role_policy::{Caller, Policy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::io::Read;
use std::sync::Arc;

/// The input of `roll`. Clients read the comments on its fields; the range is checked before the tool runs.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Roll {
    /// Dice to roll
    #[schemars(range(min = 1, max = 100))]
    dice: u32,
}

#[derive(Serialize, JsonSchema)]
struct Rolled {
    /// The smallest and the largest possible sum
    range: (u32, u32),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Shout {
    /// File to read
    path: String,
}

fn custom_tools(workspace: &Arc<Workspace>) -> Toolset {
    let roll = Tool::new("roll", "Roll dice", "Rolls dice.", |input: Roll, _: CallContext| async move {
        Answer::structured(&Rolled { range: (input.dice, input.dice * 6) })
    })
    .answers::<Rolled>();
    let workspace = Arc::clone(workspace);
    let shout = Tool::new(
        "read_file",
        "Read loudly",
        "Reads a file in capitals.",
        move |input: Shout, context: CallContext| {
            // Limited to the paths that the policy lets this call reach.
            let workspace = context.within(&workspace);
            context.blocking(move |_| {
                let path = workspace?.locate(&input.path).map_err(|error| ToolError::from_error(&error))?;
                let (file, _) = path.open_read().map_err(|error| ToolError::from_error(&error))?;
                let mut text = String::new();
                file.take(1 << 20)
                    .read_to_string(&mut text)
                    .map_err(|error| ToolError::from_error(&error))?;
                Ok(Answer::text(text.to_uppercase()))
            })
        },
    )
    // Declares which argument is a path. Without this a rule about paths could not be checked, and the policy would
    // refuse every call.
    .effects(&[Effect::Reads("path")]);
    Toolset::new("own", [roll, shout])
}

const ROLES: &str = r#"
version = 1
[roles.all]
allow = ["*"]
[roles.docs]
allow = ["toolset:filesystem", "toolset:own"]
[[roles.docs.require]]
id = "docs-only"
tools = ["read_file"]
read_within = ["docs"]
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    std::fs::create_dir(folder.path().join("docs"))?;
    std::fs::write(folder.path().join("docs/a.md"), "hello\n")?;
    std::fs::write(folder.path().join("b.md"), "secret\n")?;
    let workspace = Arc::new(Workspace::new([folder.path()])?);

    let mut toolsets = vec![filesystem::toolset(&workspace)];
    custom_tools(&workspace).overlay(&mut toolsets);
    let facts: Vec<_> = toolsets.iter().flat_map(Toolset::facts).collect();
    let policy = Policy::load(ROLES, "roles.toml", &facts)?.policy;
    let effects = Arc::new(WorkspaceEffects::new(Arc::clone(&workspace), None));
    let builder = Host::builder(policy, Redactor::new(Default::default())?).effects(effects);
    let host = toolsets.into_iter().fold(builder, HostBuilder::toolset).build()?;

    let names = host.names(&Caller::new("all"));
    assert_eq!(names.iter().filter(|name| **name == "read_file").count(), 1);
    assert_eq!((names.first(), names.last()), (Some(&"read_file"), Some(&"roll")));
    let call = async |role: &str, tool: &str, arguments: Value| {
        let arguments: Map<String, Value> = serde_json::from_value(arguments).unwrap_or_default();
        let answer =
            host.call(tool, arguments, CallContext::new(Caller::new(role), Default::default())).await;
        answer.map_or_else(|error| error.to_string(), |answer| answer.to_text())
    };
    let mut answers = Vec::new();
    for (role, tool, arguments) in [
        ("all", "roll", json!({"dice": 2})),
        ("all", "roll", json!({"dice": 1000})),
        ("docs", "read_file", json!({"path": "docs/a.md"})),
        ("docs", "read_file", json!({"path": "b.md"})),
    ] {
        answers.push(call(role, tool, arguments).await);
    }
    println!("{}", answers.join("\n"));
    assert_eq!(answers[0], r#"{"range":[2,12]}"#);
    assert!(answers[1].contains("invalid arguments for `roll`"), "{answers:?}");
    assert_eq!(answers[2], "HELLO\n");
    assert!(answers[3].contains("refused by policy"), "{answers:?}");
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
