//! The hooks of Codex, Gemini CLI, opencode and Copilot CLI: `hook install` in an empty home, and a scripted conversation in which the
//! model uses the client's own tools.

use crate::home::ClientHome;
use crate::model::{RequestedCall, ScriptedModel, text};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

/// The words of the hook before each reason.
pub(crate) const REFUSED: &str = "refused by the CoreTools policy";

/// Runs a conversation to its end, and returns what the model was given for each call.
pub(crate) fn converse(mut command: Command, model: &ScriptedModel, calls: &[RequestedCall]) -> Vec<Value> {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let results = model.results();
    assert_eq!(results.len(), calls.len(), "{results:#?}\n{output:?}");
    results
}

/// The lines of the audit.
pub(crate) fn audit(home: &ClientHome) -> Vec<Value> {
    let text = std::fs::read_to_string(home.path("audit.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Checks what every client has in common: the first two calls work, those after them are refused with the reason, and the
/// last one hangs and is ended.
fn check(home: &ClientHome, results: &[Value]) {
    let texts: Vec<String> = results.iter().map(text).collect();
    assert!(!texts[0].contains(REFUSED) && texts[0].contains("worked"), "{texts:#?}");
    assert_eq!(home.project.read("made.txt").trim(), "made", "{texts:#?}");
    let (last, refused) = texts[2..].split_last().unwrap();
    for refusal in refused {
        assert!(refusal.contains(REFUSED), "{refusal}\n{texts:#?}");
    }
    assert!(!last.contains(REFUSED) && last.contains("its time limit"), "{last}");
    let lines = audit(home);
    let count = |decision: &str| lines.iter().filter(|line| line["decision"] == decision).count();
    assert_eq!(count("refused"), refused.len(), "{lines:#?}");
    assert!(count("allowed") >= 3 && lines.iter().all(|line| line["role"] == "worker"), "{lines:#?}");
}

#[test]
fn gemini_asks_the_hook_before_its_own_tools() {
    let Some(home) = ClientHome::with("gemini") else { return };
    let trusted = json!({home.project.path().to_str().unwrap(): "TRUST_FOLDER"});
    home.write(".gemini/trustedFolders.json", &trusted.to_string());
    home.write(".gemini/settings.json", r#"{"security": {"auth": {"selectedType": "gemini-api-key"}}}"#);
    home.install_hook("gemini", &["--exec-timeout", "2"]);
    let calls = [
        ("own:run_shell_command", json!({"command": "echo worked"})),
        ("own:write_file", json!({"file_path": home.project.path().join("made.txt"), "content": "made"})),
        ("own:run_shell_command", json!({"command": "claude -p other"})),
        ("own:run_shell_command", json!({"command": "echo x > ../outside.txt"})),
        (
            "own:write_file",
            json!({"file_path": home.project.path().join(".gemini/settings.json"), "content": "{}"}),
        ),
        ("own:run_shell_command", json!({"command": "echo before; sleep 600"})),
    ];
    let model = ScriptedModel::asking(&calls);
    let arguments = ["--model", "gemini-2.5-pro", "--approval-mode", "yolo", "--prompt", "work"];
    let mut command = home.command("gemini", &arguments);
    command.env("GOOGLE_GEMINI_BASE_URL", model.url()).env("GEMINI_API_KEY", "none");
    check(&home, &converse(command, &model, &calls));
}

#[test]
fn opencode_asks_the_hook_before_its_own_tools() {
    let Some(home) = ClientHome::with("opencode") else { return };
    home.install_hook("opencode", &["--exec-timeout", "2"]);
    let calls = [
        ("own:bash", json!({"command": "echo worked", "description": "say"})),
        ("own:write", json!({"filePath": home.project.path().join("made.txt"), "content": "made"})),
        ("own:bash", json!({"command": "claude -p other", "description": "ask"})),
        ("own:bash", json!({"command": "echo x > ../outside.txt", "description": "write"})),
        ("own:write", json!({"filePath": home.project.path().join("opencode.json"), "content": "{}"})),
        ("own:bash", json!({"command": "echo before; sleep 600", "description": "wait"})),
    ];
    let model = ScriptedModel::asking(&calls);
    let options = json!({"baseURL": format!("{}/v1", model.url()), "apiKey": "none"});
    let provider = json!({"own": {"npm": "@ai-sdk/anthropic", "options": options, "models": {"m": {}}}});
    let config =
        json!({"provider": provider, "model": "own/m", "small_model": "own/m", "permission": "allow"});
    home.write(".config/opencode/opencode.json", &config.to_string());
    let mut command = home.command("opencode", &["run", "work"]);
    // It fetches a package for plugins, which is not needed, and waits while npm tries again.
    command.env("npm_config_fetch_retries", "0");
    check(&home, &converse(command, &model, &calls));
}

#[test]
fn codex_asks_the_hook_before_its_own_tools() {
    let Some(home) = ClientHome::with("codex") else { return };
    home.install_hook("codex", &["--exec-timeout", "2"]);
    let calls = [
        ("own:exec_command", json!({"cmd": "echo worked", "yield_time_ms": 30000})),
        ("own:exec_command", json!({"cmd": "echo made > made.txt", "yield_time_ms": 30000})),
        ("own:exec_command", json!({"cmd": "claude -p other", "yield_time_ms": 30000})),
        ("own:exec_command", json!({"cmd": "echo x > ../outside.txt", "yield_time_ms": 30000})),
        ("own:exec_command", json!({"cmd": "echo {} > .codex/hooks.json", "yield_time_ms": 30000})),
        ("own:exec_command", json!({"cmd": "echo before; sleep 600", "yield_time_ms": 30000})),
    ];
    let model = ScriptedModel::asking(&calls);
    home.configure_codex(&model, "gpt-5");
    // A user trusts the hook once, in a dialog; nobody sits here.
    let arguments = [
        "exec",
        "--dangerously-bypass-hook-trust",
        "--dangerously-bypass-approvals-and-sandbox",
        "--skip-git-repo-check",
        "work",
    ];
    let mut command = home.command("codex", &arguments);
    command.env("OWN_KEY", "none");
    check(&home, &converse(command, &model, &calls));
}

#[test]
fn copilot_asks_the_hook_before_its_own_tools() {
    let Some(home) = ClientHome::with("copilot") else { return };
    home.install_hook("copilot", &["--exec-timeout", "2"]);
    let project = home.project.path();
    let calls = [
        ("own:bash", json!({"command": "echo worked", "description": "say"})),
        ("own:create", json!({"path": project.join("made.txt"), "file_text": "made"})),
        ("own:bash", json!({"command": "claude -p other", "description": "ask"})),
        ("own:bash", json!({"command": "echo x > ../outside.txt", "description": "write"})),
        ("own:create", json!({"path": project.join(".github/hooks/coretools.json"), "file_text": "{}"})),
        ("own:edit", json!({"path": "/etc/hostname", "old_str": "a", "new_str": "b"})),
        ("own:grep", json!({"pattern": "x", "paths": ["a.txt", "/etc"]})),
        ("own:bash", json!({"command": "echo before; sleep 600", "description": "wait"})),
    ];
    let model = ScriptedModel::asking(&calls);
    let command = (crate::governed::COPILOT.command)(&home, &model);
    check(&home, &converse(command, &model, &calls));
}
