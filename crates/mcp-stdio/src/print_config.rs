//! How to connect each client.

use crate::cli::{Client, Options};
use serde_json::json;
use std::path::Path;

/// The configuration for `client` that starts `program` with `options`, ready to be pasted, with a line
/// that says where.
///
/// # Errors
///
/// Where a path is no text: no configuration could name it.
pub(crate) fn print_config(client: Client, program: &Path, options: &Options) -> Result<String, String> {
    let program = text(program)?;
    let arguments = arguments(options)?;
    Ok(match client {
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
            entry(OPENCODE, &json!({"type": "local", "command": command, "enabled": true}))
        }
        Client::Gemini => entry(GEMINI, &json!({"command": program, "args": arguments})),
        Client::Cursor => entry(CURSOR, &json!({"command": program, "args": arguments})),
        Client::Vscode => entry(VSCODE, &json!({"type": "stdio", "command": program, "args": arguments})),
        Client::Zed => entry(ZED, &json!({"command": program, "args": arguments})),
    })
}

/// The variable that the configurations of a remote server take the token from.
const TOKEN: &str = "CORETOOLS_TOKEN";

/// The same for a `mcp-http` at `url`. No token is in it: each client takes it from the variable, VS Code and Zed
/// aside, which ask for it or hold it.
///
/// # Errors
///
/// Where `url` is none, or `options` has what only a server that the client starts could heed.
pub(crate) fn remote(client: Client, url: &str, options: &Options) -> Result<String, String> {
    if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme))
        || url.chars().any(|character| character.is_whitespace() || character.is_control())
    {
        return Err(format!("--url {url:?} is no address; expected one such as https://tools.example/mcp"));
    }
    // Not what a variable may have set: nobody asked for it here.
    let own = Options { config: None, log: None, ..options.clone() };
    if let Some(flag) = arguments(&own)?.first() {
        return Err(format!(
            "{flag} does not go with --url: the server there has its own; give it to mcp-http, or to the token \
             (`mcp-http token new --help`)"
        ));
    }
    let bearer = |token: &str| json!({"Authorization": format!("Bearer {token}")});
    let variable = format!("${{{TOKEN}}}");
    Ok(match client {
        Client::Claude => format!(
            "# Run this in the project (add --scope user for every project); ${TOKEN} is read when it connects:\n\
             claude mcp add --transport http coretools {} --header {}",
            quoted(url),
            quoted(&format!("Authorization: Bearer {variable}")),
        ),
        Client::Codex => format!(
            "# Run this, or put the table below into ~/.codex/config.toml:\ncodex mcp add coretools --url {} \
             --bearer-token-env-var {TOKEN}\n\n[mcp_servers.coretools]\nurl = {}\nbearer_token_env_var = \"{TOKEN}\"",
            quoted(url),
            toml::Value::from(url),
        ),
        // Without `oauth: false` it would look for a way to log in where the token is refused.
        Client::Opencode => {
            let headers = bearer(&format!("{{env:{TOKEN}}}"));
            entry(OPENCODE, &json!({"type": "remote", "url": url, "oauth": false, "headers": headers}))
        }
        Client::Gemini => entry(GEMINI, &json!({"type": "http", "url": url, "headers": bearer(&variable)})),
        Client::Cursor => {
            entry(CURSOR, &json!({"url": url, "headers": bearer(&format!("${{env:{TOKEN}}}"))}))
        }
        Client::Vscode => {
            let input = json!([{"type": "promptString", "id": "coretools-token", "description": "CoreTools token", "password": true}]);
            let headers = bearer("${input:coretools-token}");
            let server = json!({"type": "http", "url": url, "headers": headers});
            format!("{}\n{:#}", VSCODE.0, json!({"inputs": input, "servers": {"coretools": server}}))
        }
        Client::Zed => entry(ZED, &json!({"url": url, "headers": bearer("<token>")})),
    })
}

/// A client's file of JSON: a comment that says where it is, and the key of the servers in it.
type File = (&'static str, &'static str);

const OPENCODE: File = ("// opencode.json in the project, or ~/.config/opencode/opencode.json:", "mcp");
const GEMINI: File = ("// .gemini/settings.json in the project, or ~/.gemini/settings.json:", "mcpServers");
const CURSOR: File = ("// .cursor/mcp.json in the project, or ~/.cursor/mcp.json:", "mcpServers");
const VSCODE: File = ("// .vscode/mcp.json in the project:", "servers");
const ZED: File = ("// Zed's settings.json (its command `zed: open settings file`):", "context_servers");

/// The entry for a client that reads such a file.
fn entry((place, key): File, server: &serde_json::Value) -> String {
    format!("{place}\n{:#}", json!({key: {"coretools": server}}))
}

/// The flags that were given, so that the client starts the same server.
fn arguments(options: &Options) -> Result<Vec<String>, String> {
    let mut arguments = Vec::new();
    for root in &options.roots {
        arguments.extend(["--root".to_owned(), absolute(root)?]);
    }
    if let Some(toolsets) = &options.toolsets {
        arguments.extend(["--toolsets".to_owned(), toolsets.clone()]);
    }
    if let Some(role) = &options.role {
        arguments.extend(["--role".to_owned(), role.clone()]);
    }
    for (flag, path) in [("--policy", &options.policy), ("--audit", &options.audit)] {
        if let Some(path) = path {
            arguments.extend([flag.to_owned(), absolute(path)?]);
        }
    }
    if let Some(config) = &options.config {
        arguments.extend(["--config".to_owned(), absolute(config)?]);
    }
    if options.text_only {
        arguments.push("--text-only".to_owned());
    }
    if let Some(level) = &options.log {
        arguments.extend(["--log".to_owned(), level.clone()]);
    }
    Ok(arguments)
}

/// A client may start the server anywhere.
fn absolute(path: &Path) -> Result<String, String> {
    text(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

fn text(path: &Path) -> Result<String, String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| format!("{} is not valid UTF-8, and no client could name it", path.display()))
}

fn command_line(client: &str, program: &str, arguments: &[String]) -> String {
    let words = std::iter::once(program).chain(arguments.iter().map(String::as_str)).map(quoted);
    format!("{client} {}", words.collect::<Vec<_>>().join(" "))
}

/// A word as a shell reads it back: a POSIX one, or on Windows `cmd` and PowerShell.
fn quoted(word: &str) -> String {
    // Not `=` and `~`, which zsh expands at the start of a word.
    let plain = |character: char| character.is_ascii_alphanumeric() || "/._-+:,@".contains(character);
    if cfg!(windows) {
        if !word.is_empty() && word.chars().all(|character| plain(character) || character == '\\') {
            return word.to_owned();
        }
        return format!("\"{word}\"");
    }
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
#[cfg(unix)]
#[allow(clippy::disallowed_methods, reason = "a real shell reads back what was quoted for one")]
mod tests {
    use super::*;

    fn awkward() -> (String, Options) {
        let program = "/opt/it's \"here\" $HOME `id` \\n & co;/mcp-stdio\n2".to_owned();
        let options = Options {
            roots: vec!["/a b".into(), "/=x~*?[!]{1,2}".into(), "/\u{2028}ключ".into()],
            toolsets: Some("edit, git_log".to_owned()),
            config: Some("/etc/#c.toml".into()),
            text_only: true,
            log: Some("debug".to_owned()),
            ..Options::default()
        };
        (program, options)
    }

    #[test]
    fn a_shell_reads_back_every_word_of_the_one_line_commands() {
        let (program, options) = awkward();
        let expected: Vec<String> =
            std::iter::once(program.clone()).chain(arguments(&options).unwrap()).collect();
        for client in [Client::Claude, Client::Codex] {
            let printed = print_config(client, Path::new(&program), &options).unwrap();
            let line = printed.split_once(" -- ").unwrap().1;
            let line = line.split("\n\n[mcp_servers").next().unwrap();
            let shell = std::process::Command::new("sh")
                .args(["-c", &format!("printf '%s\\0' {line}")])
                .output()
                .expect("sh is needed");
            let words = String::from_utf8(shell.stdout).unwrap();
            let words: Vec<_> = words.split_terminator('\0').collect();
            assert_eq!(words, expected, "{client:?}");
        }
    }

    #[test]
    fn the_table_for_codex_is_toml_that_holds_every_word() {
        let (program, options) = awkward();
        let printed = print_config(Client::Codex, Path::new(&program), &options).unwrap();
        let table = &printed[printed.find("[mcp_servers").unwrap()..];
        let table: toml::Table = table.parse().unwrap();
        let server = &table["mcp_servers"]["coretools"];
        assert_eq!(server["command"].as_str(), Some(program.as_str()));
        assert_eq!(server["args"], toml::Value::from(arguments(&options).unwrap()));
    }

    #[test]
    fn every_flag_that_was_given_is_carried_and_none_that_was_not() {
        let (_, options) = awkward();
        let carried = arguments(&options).unwrap();
        for flag in ["--root", "--toolsets", "--config", "--text-only", "--log"] {
            assert!(carried.iter().any(|argument| argument == flag), "{flag}");
        }
        assert_eq!(arguments(&Options::default()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_path_that_is_no_text_is_an_error() {
        use std::os::unix::ffi::OsStrExt;
        let program = Path::new(std::ffi::OsStr::from_bytes(b"/opt/\xff/mcp-stdio"));
        assert!(print_config(Client::Claude, program, &Options::default()).is_err());
    }
}
