//! opencode.

use crate::home::{ClientHome, WRONG_TOKEN};
use crate::model::{ScriptedModel, text};
use serde_json::{Value, json};

#[test]
fn opencode_connects_with_the_file_that_print_config_writes() {
    let Some(home) = ClientHome::with("opencode") else { return };
    home.connect_stdio("opencode");
    let listed = home.run("opencode", &["mcp", "list"]);
    assert!(listed.contains("✓ coretools"), "{listed}");
}

#[test]
fn opencode_connects_over_http_with_a_token_and_is_refused_without_a_good_one() {
    let Some(home) = ClientHome::with("opencode") else { return };
    let (server, token) = home.connect_http("opencode");
    let listed = home.run_with_token("opencode", &["mcp", "list"], Some(&token));
    assert!(listed.contains("✓ coretools"), "{listed}\n{}", server.log());
    let listed = home.run_with_token("opencode", &["mcp", "list"], Some(WRONG_TOKEN));
    assert!(listed.contains("✗ coretools") && listed.contains("401"), "{listed}");
}

#[test]
fn opencode_gives_its_model_the_text_of_what_our_tools_answer() {
    let Some(home) = ClientHome::with("opencode") else { return };
    home.connect_stdio("opencode");
    let model = ScriptedModel::asking(&[
        ("read_file", json!({"path": "a.txt"})),
        ("run_command", json!({"command": "echo hi"})),
        ("run_command", json!({"command": ["sh", "-c", "echo no; exit 3"]})),
    ]);
    let mut config: Value = serde_json::from_str(&home.project.read("opencode.json")).unwrap();
    let options = json!({"baseURL": format!("{}/v1", model.url()), "apiKey": "none"});
    config["provider"] =
        json!({"own": {"npm": "@ai-sdk/anthropic", "options": options, "models": {"m": {}}}});
    config["model"] = json!("own/m");
    config["small_model"] = json!("own/m");
    home.project.write("opencode.json", &config.to_string());
    let mut command = home.command("opencode", &["run", "work"]);
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let results = model.results();
    assert_eq!(results.len(), 3, "{results:?}\n{output:?}");
    assert_eq!(text(&results[0]), "hello\n");
    let answer = text(&results[1]);
    assert!(answer.starts_with("exit code 0") && answer.contains("hi"), "{answer}");
    assert_eq!(results[2]["is_error"], true);
    assert!(text(&results[2]).starts_with("exit code 3"), "{results:?}");
}
