//! The entry of this server in a client's configuration: how to start it, or where to reach it.

use super::client::KnownClient;
use serde_json::{Value, json};

/// The environment variable from which the configurations of a remote server take the token.
pub(super) const TOKEN_VARIABLE: &str = "CORETOOLS_TOKEN";

/// The mark in place of a token where a client reads no variable.
pub(super) const TOKEN_MARK: &str = "<token>";

/// The keys that an entry consists of, in any client. The others in an entry that is there, such as `env` and `timeout`,
/// are the user's, and stay.
pub(super) const ENTRY_KEYS: [&str; 10] = [
    "type",
    "command",
    "args",
    "url",
    "httpUrl",
    "serverUrl",
    "headers",
    "oauth",
    "bearer_token_env_var",
    "transport",
];

/// Returns the entry with which `client` starts the server.
pub(super) fn local(client: KnownClient, program: &str, arguments: &[String]) -> Value {
    match client {
        KnownClient::Opencode => {
            let words: Vec<_> =
                std::iter::once(program).chain(arguments.iter().map(String::as_str)).collect();
            json!({"type": "local", "command": words, "enabled": true})
        }
        KnownClient::Claude | KnownClient::Vscode => {
            json!({"type": "stdio", "command": program, "args": arguments})
        }
        KnownClient::Copilot => {
            json!({"type": "local", "command": program, "args": arguments, "tools": ["*"]})
        }
        _ => json!({"command": program, "args": arguments}),
    }
}

/// Returns the entry with which `client` connects to an `mcp-http` at `url`. It holds no token: each client reads the
/// variable, except VS Code, which asks for the token, and those that keep it in their file, where a mark stands for it.
/// Returns `None` for a client whose file takes no such servers.
pub(super) fn remote(client: KnownClient, url: &str) -> Option<Value> {
    let bearer = |token: &str| json!({"Authorization": format!("Bearer {token}")});
    let shell_variable = format!("${{{TOKEN_VARIABLE}}}");
    let named_variable = format!("${{env:{TOKEN_VARIABLE}}}");
    Some(match client {
        KnownClient::ClaudeDesktop => return None,
        KnownClient::Claude | KnownClient::Gemini => {
            json!({"type": "http", "url": url, "headers": bearer(&shell_variable)})
        }
        KnownClient::Codex => json!({"url": url, "bearer_token_env_var": TOKEN_VARIABLE}),
        // Without `oauth: false` it would look for a way to log in where the token is refused.
        KnownClient::Opencode => {
            let headers = bearer(&format!("{{env:{TOKEN_VARIABLE}}}"));
            json!({"type": "remote", "url": url, "oauth": false, "headers": headers})
        }
        KnownClient::Cursor => json!({"url": url, "headers": bearer(&named_variable)}),
        KnownClient::Windsurf => json!({"serverUrl": url, "headers": bearer(&named_variable)}),
        KnownClient::Vscode => {
            json!({"type": "http", "url": url, "headers": bearer(&format!("${{input:{INPUT_ID}}}"))})
        }
        KnownClient::Copilot => {
            json!({"type": "http", "url": url, "headers": bearer(TOKEN_MARK), "tools": ["*"]})
        }
        KnownClient::Cline => json!({"type": "streamableHttp", "url": url, "headers": bearer(TOKEN_MARK)}),
        KnownClient::Jetbrains | KnownClient::Zed => json!({"url": url, "headers": bearer(TOKEN_MARK)}),
    })
}

/// The id of the question by which VS Code asks for the token.
pub(super) const INPUT_ID: &str = "coretools-token";

/// Returns the question by which VS Code asks for the token.
pub(super) fn token_input() -> Value {
    json!({"type": "promptString", "id": INPUT_ID, "description": "CoreTools token", "password": true})
}
