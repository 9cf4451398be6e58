//! Claude Code.

use crate::home::{ClientHome, WRONG_TOKEN};
use crate::model::{ScriptedModel, text};
use serde_json::{Value, json};

#[test]
fn claude_code_connects_with_the_file_that_print_config_writes() {
    let Some(home) = ClientHome::with("claude") else { return };
    home.connect_stdio("claude");
    let listed = home.run("claude", &["mcp", "list"]);
    assert!(listed.contains("✔ Connected"), "{listed}");
    let shown = home.run("claude", &["mcp", "get", "coretools"]);
    assert!(shown.contains("Status: ✔ Connected") && shown.contains("Type: stdio"), "{shown}");
}

#[test]
fn claude_code_connects_over_http_with_a_token_and_is_refused_without_a_good_one() {
    let Some(home) = ClientHome::with("claude") else { return };
    let (server, token) = home.connect_http("claude");
    let listed = home.run_with_token("claude", &["mcp", "list"], Some(&token));
    assert!(listed.contains("(HTTP) - ✔ Connected"), "{listed}\n{}", server.log());
    let listed = home.run_with_token("claude", &["mcp", "list"], Some(WRONG_TOKEN));
    assert!(listed.contains("✘ Failed to connect") && listed.contains("401"), "{listed}");
    assert!(server.log().contains("no such token"), "{}", server.log());
}

/// A conversation in which its model asks for three calls, of our tools alone.
fn conversation(home: &ClientHome, token: &str) -> Vec<Value> {
    let model = ScriptedModel::asking(&[
        ("read_file", json!({"path": "a.txt"})),
        ("run_command", json!({"command": "echo hi"})),
        ("run_command", json!({"command": ["sh", "-c", "echo no; exit 3"]})),
    ]);
    let mut command = home.command("claude", &["-p", "work", "--allowedTools", "mcp__coretools"]);
    command.env("ANTHROPIC_BASE_URL", model.url()).env("ANTHROPIC_API_KEY", "none");
    // All tools in the first request: the model does not look for them.
    command.env("ENABLE_TOOL_SEARCH", "false").env("CORETOOLS_TOKEN", token);
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    model.results()
}

#[test]
fn claude_code_gives_its_model_structured_content_where_there_is_some_and_the_text_of_what_failed() {
    let Some(home) = ClientHome::with("claude") else { return };
    home.connect_stdio("claude");
    let over_stdio = conversation(&home, "");
    home.run("claude", &["mcp", "remove", "coretools"]);
    let (_server, token) = home.connect_http("claude");
    for results in [over_stdio, conversation(&home, &token)] {
        assert_eq!(results.len(), 3, "{results:?}");
        assert_eq!(text(&results[0]), "hello\n");
        let report: Value = serde_json::from_str(&text(&results[1])).expect("structured content, as JSON");
        assert_eq!((&report["exit_code"], &report["stdout"]), (&json!(0), &json!("hi\n")), "{report}");
        assert_eq!(results[2]["is_error"], true);
        let failure = text(&results[2]);
        assert!(failure.starts_with("exit code 3") && failure.contains("no"), "{failure}");
    }
}
