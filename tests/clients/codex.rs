//! Codex: `codex mcp list` connects to nothing, so what its app speaks with it is spoken here, `codex app-server`.

use crate::home::{ClientHome, WRONG_TOKEN};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A `codex app-server`, which speaks JSON-RPC in lines.
struct CodexAppServer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last_id: i64,
}

impl CodexAppServer {
    fn start(home: &ClientHome, token: Option<&str>) -> Self {
        let mut command = home.command("codex", &["app-server"]);
        if let Some(token) = token {
            command.env("CORETOOLS_TOKEN", token);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut codex = Self { child, input, output: BufReader::new(output), last_id: 0 };
        codex.ask("initialize", json!({"clientInfo": {"name": "test", "version": "1"}}));
        codex.send(&json!({"method": "initialized"}));
        codex
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    /// The answer to a request: `{"result": …}` or `{"error": …}`.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "codex has ended without an answer");
            let message: Value = serde_json::from_str(&line).unwrap_or_default();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Returns what it knows of our server: its tools, or why there are none.
    fn status(&mut self) -> Value {
        let answer = self.ask("mcpServerStatus/list", json!({}));
        let servers = answer["result"]["data"].as_array().cloned().unwrap_or_default();
        let ours = servers.into_iter().find(|server| server["name"] == "coretools");
        ours.unwrap_or_else(|| panic!("no coretools in {answer}"))
    }

    /// Calls a tool of our server in a conversation of its own.
    fn call(&mut self, home: &ClientHome, tool: &str, arguments: Value) -> Value {
        let thread = self.ask("thread/start", json!({"cwd": home.project.path()}));
        let thread = &thread["result"]["thread"]["id"];
        let call = json!({"threadId": thread, "server": "coretools", "tool": tool, "arguments": arguments});
        self.ask("mcpServer/tool/call", call)
    }

    /// Ends it, as its app does.
    fn end(mut self) {
        drop(self.input);
        assert!(self.child.wait().unwrap().success());
    }
}

/// Lists the tools and calls some of them.
fn works(home: &ClientHome, token: Option<&str>) {
    let mut codex = CodexAppServer::start(home, token);
    let status = codex.status();
    let tools = status["tools"].as_object().expect("tools");
    for tool in ["read_file", "edit_file", "run_command", "search_files"] {
        assert!(tools.contains_key(tool), "{status}");
    }
    let read = codex.call(home, "read_file", json!({"path": "a.txt"}));
    assert_eq!(read["result"]["content"][0]["text"], "hello\n", "{read}");
    let failed = codex.call(home, "run_command", json!({"command": ["sh", "-c", "exit 3"]}));
    assert_eq!(failed["result"]["isError"], true, "{failed}");
    assert_eq!(failed["result"]["structuredContent"]["exit_code"], 3, "{failed}");
    codex.end();
}

#[test]
fn codex_lists_and_calls_our_tools_with_the_file_that_print_config_writes() {
    let Some(home) = ClientHome::with("codex") else { return };
    home.connect_stdio("codex");
    let listed = home.run("codex", &["mcp", "list"]);
    assert!(listed.contains("coretools") && listed.contains("enabled"), "{listed}");
    works(&home, None);
}

#[test]
fn codex_lists_and_calls_our_tools_with_the_table_that_print_config_prints() {
    let Some(home) = ClientHome::with("codex") else { return };
    let root = home.project.path().to_str().unwrap();
    let output = home.project.server().args(["print-config", "codex", "--root", root]).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    home.write(".codex/config.toml", &printed);
    works(&home, None);
}

#[test]
fn codex_lists_and_calls_our_tools_over_http_with_a_token_and_is_refused_without_a_good_one() {
    let Some(home) = ClientHome::with("codex") else { return };
    let (server, token) = home.connect_http("codex");
    works(&home, Some(&token));
    let mut codex = CodexAppServer::start(&home, Some(WRONG_TOKEN));
    let status = codex.status();
    assert_eq!(status["tools"], json!({}), "{status}");
    assert!(status["toolsError"].as_str().is_some_and(|error| error.contains("Auth required")), "{status}");
    let refused = codex.call(&home, "read_file", json!({"path": "a.txt"}));
    assert!(refused.get("error").is_some(), "{refused}");
    codex.end();
    assert!(server.log().contains("no such token"), "{}", server.log());
}
