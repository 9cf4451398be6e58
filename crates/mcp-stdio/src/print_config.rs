//! How to connect each client.

use crate::cli::{Client, Options};
use serde_json::json;
use std::path::Path;

/// The configuration for `client` that starts `program` with `options`, ready to be pasted, with a line
/// that says where.
pub(crate) fn print_config(client: Client, program: &Path, options: &Options) -> String {
    let program = program.display().to_string();
    let arguments = arguments(options);
    let json = |value: serde_json::Value| format!("{value:#}");
    match client {
        Client::Claude => format!(
            "# Run this in the project (add --scope user for every project):\n{}",
            command_line("claude mcp add coretools --", &program, &arguments)
        ),
        Client::Codex => format!(
            "# Run this, or put the table below into ~/.codex/config.toml:\n{}\n\n[mcp_servers.coretools]\ncommand = {}\nargs = {}",
            command_line("codex mcp add coretools --", &program, &arguments),
            toml::Value::from(program.as_str()),
            toml::Value::from(arguments.clone()),
        ),
        Client::Opencode => {
            let command: Vec<_> = std::iter::once(&program).chain(&arguments).collect();
            format!(
                "// opencode.json in the project:\n{}",
                json(json!({"mcp": {"coretools": {"type": "local", "command": command, "enabled": true}}}))
            )
        }
        Client::Gemini => format!(
            "// .gemini/settings.json in the project, or ~/.gemini/settings.json:\n{}",
            json(json!({"mcpServers": {"coretools": {"command": program, "args": arguments}}}))
        ),
        Client::Cursor => format!(
            "// .cursor/mcp.json in the project, or ~/.cursor/mcp.json:\n{}",
            json(json!({"mcpServers": {"coretools": {"command": program, "args": arguments}}}))
        ),
        Client::Vscode => format!(
            "// .vscode/mcp.json in the project:\n{}",
            json(json!({"servers": {"coretools": {"type": "stdio", "command": program, "args": arguments}}}))
        ),
    }
}

/// The flags that were given, so that the client starts the same server.
fn arguments(options: &Options) -> Vec<String> {
    let mut arguments = Vec::new();
    for root in &options.roots {
        arguments.extend(["--root".to_owned(), absolute(root)]);
    }
    if !options.toolsets.is_empty() {
        arguments.extend(["--toolsets".to_owned(), options.toolsets.join(",")]);
    }
    if let Some(config) = &options.config {
        arguments.extend(["--config".to_owned(), absolute(config)]);
    }
    if options.text_only {
        arguments.push("--text-only".to_owned());
    }
    arguments
}

/// A client may start the server anywhere.
fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

fn command_line(client: &str, program: &str, arguments: &[String]) -> String {
    let words = std::iter::once(program).chain(arguments.iter().map(String::as_str)).map(quoted);
    format!("{client} {}", words.collect::<Vec<_>>().join(" "))
}

/// A word as a POSIX shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || "/._-+=:,@%".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
