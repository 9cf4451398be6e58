//! Editors, which cannot be run without a screen and an account: their configuration is held against the format that
//! their makers document, and the server in it is started.

use integration_tests::Project;
use serde_json::{Value, json};
use std::process::Command;

/// Returns what `print-config` prints.
fn printed(project: &Project, client: &str, arguments: &[&str]) -> Value {
    let output = project.server().args(["print-config", client]).args(arguments).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// An object with these members and no others; the first ones are required.
fn object(required: &[&str], members: Value) -> Value {
    json!({"type": "object", "required": required, "properties": members, "additionalProperties": false})
}

/// The format of each: its key for servers, an entry that starts one, and an entry for one at an address.
fn formats() -> [(&'static str, &'static str, Value, Value); 7] {
    let (text, texts) = (json!({"type": "string"}), json!({"type": "array", "items": {"type": "string"}}));
    let (url, map) = (
        json!({"type": "string", "pattern": "^https?://"}),
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
    );
    [
        // https://cursor.com/docs/context/mcp
        (
            "cursor",
            "mcpServers",
            object(&["command"], json!({"command": text, "args": texts, "env": map, "envFile": text})),
            object(&["url"], json!({"url": url, "headers": map})),
        ),
        // https://code.visualstudio.com/docs/copilot/reference/mcp-configuration
        (
            "vscode",
            "servers",
            object(
                &["type", "command"],
                json!({"type": {"const": "stdio"}, "command": text, "args": texts, "env": map, "envFile": text}),
            ),
            object(&["type", "url"], json!({"type": {"enum": ["http", "sse"]}, "url": url, "headers": map})),
        ),
        // https://zed.dev/docs/ai/mcp
        (
            "zed",
            "context_servers",
            object(&["command"], json!({"command": text, "args": texts, "env": map})),
            object(&["url"], json!({"url": url, "headers": map})),
        ),
        // https://docs.windsurf.com/windsurf/cascade/mcp
        (
            "windsurf",
            "mcpServers",
            object(
                &["command"],
                json!({"command": text, "args": texts, "env": map, "disabled": {"type": "boolean"}}),
            ),
            object(&["serverUrl"], json!({"serverUrl": url, "headers": map})),
        ),
        // https://docs.cline.bot/mcp/mcp-overview
        (
            "cline",
            "mcpServers",
            object(
                &["command"],
                json!({"command": text, "args": texts, "env": map, "disabled": {"type": "boolean"}}),
            ),
            object(
                &["type", "url"],
                json!({"type": {"enum": ["streamableHttp", "sse"]}, "url": url, "headers": map}),
            ),
        ),
        // https://www.jetbrains.com/help/junie/model-context-protocol-mcp.html
        (
            "jetbrains",
            "mcpServers",
            object(&["command"], json!({"command": text, "args": texts, "env": map})),
            object(&["url"], json!({"url": url, "headers": map})),
        ),
        // https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers
        (
            "copilot",
            "mcpServers",
            object(
                &["type", "command", "tools"],
                json!({"type": {"enum": ["local", "stdio"]}, "command": text, "args": texts, "env": map, "tools": texts}),
            ),
            object(
                &["type", "url", "tools"],
                json!({"type": {"enum": ["http", "sse"]}, "url": url, "headers": map, "tools": texts}),
            ),
        ),
    ]
}

#[test]
fn each_editors_configuration_has_the_documented_format_and_starts_the_server() {
    let project = Project::with([("a.txt", "hello\n")]);
    let root = project.path().to_str().unwrap();
    for (editor, key, starts, _) in formats() {
        let config = printed(&project, editor, &["--root", root, "--toolsets", "minimal"]);
        let server = &config[key]["coretools"];
        jsonschema::validate(&starts, server).unwrap_or_else(|error| panic!("{editor}: {error}"));
        let words = server["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        let mut command = Command::new(server["command"].as_str().unwrap());
        let output = command.args(words).arg("tools").current_dir("/").output().unwrap();
        let tools = String::from_utf8(output.stdout).unwrap();
        assert!(tools.contains("read_file"), "{editor}: {tools}");
    }
}

#[test]
fn each_editors_configuration_of_a_remote_server_has_the_documented_format_and_no_token() {
    let project = Project::empty();
    for (editor, key, _, remote) in formats() {
        let config = printed(&project, editor, &["--url", "https://tools.example/mcp"]);
        let server = &config[key]["coretools"];
        jsonschema::validate(&remote, server).unwrap_or_else(|error| panic!("{editor}: {error}"));
        let bearer = server["headers"]["Authorization"].as_str().unwrap();
        let expected = match editor {
            "cursor" | "windsurf" => "Bearer ${env:CORETOOLS_TOKEN}",
            "vscode" => "Bearer ${input:coretools-token}",
            _ => "Bearer <token>",
        };
        assert_eq!(bearer, expected, "{editor}");
    }
    let config = printed(&project, "vscode", &["--url", "https://tools.example/mcp"]);
    let input = &config["inputs"][0];
    assert_eq!((&input["type"], &input["id"]), (&json!("promptString"), &json!("coretools-token")));
    assert_eq!(input["password"], true);
}
