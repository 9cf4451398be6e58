//! Gemini CLI, in a folder that its user has said to trust: in another it starts no server.

use crate::home::{ClientHome, WRONG_TOKEN};
use crate::model::{ScriptedModel, text};
use serde_json::json;

/// The project is trusted, as the dialog at the first start records it.
fn trusting() -> Option<ClientHome> {
    let home = ClientHome::with("gemini")?;
    let trusted = json!({home.project.path().to_str().unwrap(): "TRUST_FOLDER"});
    home.write(".gemini/trustedFolders.json", &trusted.to_string());
    Some(home)
}

#[test]
fn gemini_connects_with_the_file_that_print_config_writes() {
    let Some(home) = trusting() else { return };
    home.connect_stdio("gemini");
    let listed = home.run("gemini", &["mcp", "list"]);
    assert!(listed.contains("✓ coretools") && listed.contains("(stdio) - Connected"), "{listed}");
}

#[test]
fn gemini_starts_no_server_in_a_folder_that_is_not_trusted() {
    let Some(home) = ClientHome::with("gemini") else { return };
    home.connect_stdio("gemini");
    let listed = home.run("gemini", &["mcp", "list"]);
    assert!(listed.contains("(stdio) - Disabled"), "{listed}");
}

#[test]
fn gemini_connects_over_http_with_a_token_and_is_refused_without_a_good_one() {
    let Some(home) = trusting() else { return };
    let (server, token) = home.connect_http("gemini");
    let listed = home.run_with_token("gemini", &["mcp", "list"], Some(&token));
    assert!(listed.contains("(http) - Connected"), "{listed}\n{}", server.log());
    let listed = home.run_with_token("gemini", &["mcp", "list"], Some(WRONG_TOKEN));
    assert!(listed.contains("(http) - Disconnected"), "{listed}");
    assert!(server.log().contains("no such token"), "{}", server.log());
}

#[test]
fn gemini_gives_its_model_the_text_of_what_our_tools_answer() {
    let Some(home) = trusting() else { return };
    home.connect_stdio("gemini");
    home.write(".gemini/settings.json", r#"{"security": {"auth": {"selectedType": "gemini-api-key"}}}"#);
    let model = ScriptedModel::asking(&[
        ("read_file", json!({"path": "a.txt"})),
        ("run_command", json!({"command": "echo hi"})),
        ("run_command", json!({"command": ["sh", "-c", "echo no; exit 3"]})),
    ]);
    let mut command =
        home.command("gemini", &["--model", "gemini-2.5-pro", "--approval-mode", "yolo", "--prompt", "work"]);
    command.env("GOOGLE_GEMINI_BASE_URL", model.url()).env("GEMINI_API_KEY", "none");
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let results = model.results();
    assert_eq!(results.len(), 3, "{results:?}\n{output:?}");
    assert!(text(&results[0]).contains("hello\n"), "{results:?}");
    assert!(text(&results[1]).contains("exit code 0") && text(&results[1]).contains("hi"), "{results:?}");
    // Of a failure it gives everything.
    let failure = text(&results[2]);
    assert!(failure.contains("exit code 3") && failure.contains("\"exit_code\":3"), "{failure}");
}
