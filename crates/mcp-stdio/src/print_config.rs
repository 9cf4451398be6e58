//! The subcommand `print-config`: the configuration that connects a client.

use crate::cli::{GlobalOptions, KnownClient};
use crate::error::Error;
use serde_json::json;
use std::path::Path;

/// Returns the configuration for `client` that starts `program` with `options`, ready to be pasted, with a line
/// that says where.
///
/// # Errors
///
/// A path is not valid UTF-8: no configuration could name it.
pub(crate) fn print_config(
    client: KnownClient,
    program: &Path,
    options: &GlobalOptions,
) -> Result<String, Error> {
    let program = text(program)?;
    let arguments = arguments(options)?;
    Ok(match client {
        KnownClient::Claude => format!(
            "# Run this in the project (add --scope user for every project):\n{}",
            command_line("claude mcp add coretools --", &program, &arguments)
        ),
        KnownClient::Codex => format!(
            "# Run this, or put the table below into ~/.codex/config.toml:\n{}\n\n[mcp_servers.coretools]\ncommand = {}\nargs = {}",
            command_line("codex mcp add coretools --", &program, &arguments),
            toml::Value::from(program.as_str()),
            toml::Value::from(arguments.clone()),
        ),
        KnownClient::Opencode => {
            let command: Vec<_> = std::iter::once(&program).chain(&arguments).collect();
            entry(OPENCODE, &json!({"type": "local", "command": command, "enabled": true}))
        }
        KnownClient::Gemini => entry(GEMINI, &json!({"command": program, "args": arguments})),
        KnownClient::Cursor => entry(CURSOR, &json!({"command": program, "args": arguments})),
        KnownClient::Vscode => {
            entry(VSCODE, &json!({"type": "stdio", "command": program, "args": arguments}))
        }
        KnownClient::Zed => entry(ZED, &json!({"command": program, "args": arguments})),
    })
}

/// The environment variable from which the configurations of a remote server take the token.
const TOKEN: &str = "CORETOOLS_TOKEN";

/// Returns the configuration for `client` that connects to an `mcp-http` at `url`. It holds no token: each client reads the
/// variable, except VS Code, which asks for the token, and Zed, which keeps it in its settings.
///
/// # Errors
///
/// `url` is not a URL, or `options` has a flag that only a server which the client starts could heed.
pub(crate) fn remote(client: KnownClient, url: &str, options: &GlobalOptions) -> Result<String, Error> {
    if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme))
        // The URL is printed into a line for a shell.
        || url.chars().any(|character| character.is_whitespace() || character.is_control())
    {
        return Err(Error::Argument(format!(
            "--url {url:?} is no address; expected one such as https://tools.example/mcp"
        )));
    }
    // Not those that a variable may have set: they are not meant for this command.
    let flags = GlobalOptions { config: None, log: None, ..options.clone() };
    if let Some(flag) = arguments(&flags)?.first() {
        return Err(Error::Argument(format!(
            "{flag} does not go with --url: the server there has its own; give it to mcp-http, or to the token \
             (`mcp-http token new --help`)"
        )));
    }
    let bearer = |token: &str| json!({"Authorization": format!("Bearer {token}")});
    let variable = format!("${{{TOKEN}}}");
    Ok(match client {
        KnownClient::Claude => format!(
            "# Run this in the project (add --scope user for every project); ${TOKEN} is read when it connects:\n\
             claude mcp add --transport http coretools {} --header {}",
            quoted(url),
            quoted(&format!("Authorization: Bearer {variable}")),
        ),
        KnownClient::Codex => format!(
            "# Run this, or put the table below into ~/.codex/config.toml:\ncodex mcp add coretools --url {} \
             --bearer-token-env-var {TOKEN}\n\n[mcp_servers.coretools]\nurl = {}\nbearer_token_env_var = \"{TOKEN}\"",
            quoted(url),
            toml::Value::from(url),
        ),
        // Without `oauth: false` it would look for a way to log in where the token is refused.
        KnownClient::Opencode => {
            let headers = bearer(&format!("{{env:{TOKEN}}}"));
            entry(OPENCODE, &json!({"type": "remote", "url": url, "oauth": false, "headers": headers}))
        }
        KnownClient::Gemini => {
            entry(GEMINI, &json!({"type": "http", "url": url, "headers": bearer(&variable)}))
        }
        KnownClient::Cursor => {
            entry(CURSOR, &json!({"url": url, "headers": bearer(&format!("${{env:{TOKEN}}}"))}))
        }
        KnownClient::Vscode => {
            let input = json!([{"type": "promptString", "id": "coretools-token", "description": "CoreTools token", "password": true}]);
            let headers = bearer("${input:coretools-token}");
            let server = json!({"type": "http", "url": url, "headers": headers});
            format!("{}\n{:#}", VSCODE.location, json!({"inputs": input, "servers": {"coretools": server}}))
        }
        KnownClient::Zed => entry(ZED, &json!({"url": url, "headers": bearer("<token>")})),
    })
}

/// A client's configuration file in JSON.
#[derive(Clone, Copy)]
struct ClientFile {
    /// A comment that says where the file is.
    location: &'static str,
    /// The key of the servers in it.
    key: &'static str,
}

const OPENCODE: ClientFile = ClientFile {
    location: "// opencode.json in the project, or ~/.config/opencode/opencode.json:",
    key: "mcp",
};
const GEMINI: ClientFile = ClientFile {
    location: "// .gemini/settings.json in the project, or ~/.gemini/settings.json:",
    key: "mcpServers",
};
const CURSOR: ClientFile =
    ClientFile { location: "// .cursor/mcp.json in the project, or ~/.cursor/mcp.json:", key: "mcpServers" };
const VSCODE: ClientFile = ClientFile { location: "// .vscode/mcp.json in the project:", key: "servers" };
const ZED: ClientFile = ClientFile {
    location: "// Zed's settings.json (its command `zed: open settings file`):",
    key: "context_servers",
};

/// Writes the entry for a client that reads such a file.
fn entry(file: ClientFile, server: &serde_json::Value) -> String {
    format!("{}\n{:#}", file.location, json!({file.key: {"coretools": server}}))
}

/// Returns the flags that were given, so that the client starts the same server.
fn arguments(options: &GlobalOptions) -> Result<Vec<String>, Error> {
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

/// Makes a path absolute: a client may start the server in any folder.
fn absolute(path: &Path) -> Result<String, Error> {
    text(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

fn text(path: &Path) -> Result<String, Error> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Error::Argument(format!("{} is not valid UTF-8, and no client could name it", path.display()))
    })
}

fn command_line(client: &str, program: &str, arguments: &[String]) -> String {
    let words = std::iter::once(program).chain(arguments.iter().map(String::as_str)).map(quoted);
    format!("{client} {}", words.collect::<Vec<_>>().join(" "))
}

/// Quotes a word for a shell: a POSIX one, or on Windows `cmd` and PowerShell.
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

    fn awkward() -> (String, GlobalOptions) {
        let program = "/opt/it's \"here\" $HOME `id` \\n & co;/mcp-stdio\n2".to_owned();
        let options = GlobalOptions {
            roots: vec!["/a b".into(), "/=x~*?[!]{1,2}".into(), "/\u{2028}ключ".into()],
            toolsets: Some("edit, git_log".to_owned()),
            config: Some("/etc/#c.toml".into()),
            text_only: true,
            log: Some("debug".to_owned()),
            ..GlobalOptions::default()
        };
        (program, options)
    }

    #[test]
    fn a_shell_reads_back_every_word_of_the_one_line_commands() {
        let (program, options) = awkward();
        let expected: Vec<String> =
            std::iter::once(program.clone()).chain(arguments(&options).unwrap()).collect();
        for client in [KnownClient::Claude, KnownClient::Codex] {
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
        let printed = print_config(KnownClient::Codex, Path::new(&program), &options).unwrap();
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
        assert_eq!(arguments(&GlobalOptions::default()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_path_that_is_no_text_is_an_error() {
        use std::os::unix::ffi::OsStrExt;
        let program = Path::new(std::ffi::OsStr::from_bytes(b"/opt/\xff/mcp-stdio"));
        assert!(print_config(KnownClient::Claude, program, &GlobalOptions::default()).is_err());
    }
}
