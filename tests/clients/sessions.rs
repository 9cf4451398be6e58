//! Sessions of the real agents: the supervisor starts each with a scripted model, follows it to its end, and resumes it after
//! a rate limit in the same conversation.

use crate::home::ClientHome;
use crate::model::{Refusal, RequestedCall, ScriptedModel, text};
use integration_tests::{server, wait_until};
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long an agent may take for its work on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A supervisor in the environment of a user. Dropping it ends it, and with it its sessions.
struct Supervisor<'h> {
    home: &'h ClientHome,
    variables: Vec<(&'static str, String)>,
    daemon: Child,
}

impl<'h> Supervisor<'h> {
    fn start(home: &'h ClientHome, variables: Vec<(&'static str, String)>) -> Self {
        let mut command = program(home, &variables, &["session", "daemon"]);
        let daemon =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let supervisor = Self { home, variables, daemon };
        wait_until(PATIENCE, "the daemon answers", || supervisor.run(&["session", "status"]).0);
        supervisor
    }

    fn run(&self, arguments: &[&str]) -> (bool, String) {
        let output = program(self.home, &self.variables, arguments).stdin(Stdio::null()).output().unwrap();
        let said =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        (output.status.success(), said)
    }

    /// Calls a tool that starts a session. Returns the session's id.
    fn call(&self, tool: &str, arguments: Value) -> String {
        let (succeeded, said) = self.run(&["call", tool, &arguments.to_string()]);
        let started: Value = serde_json::from_str(&said).unwrap_or_default();
        assert!(succeeded && started["session_id"].is_string(), "{said}");
        started["session_id"].as_str().unwrap().to_owned()
    }

    fn known(&self, id: &str) -> Value {
        let (_, said) = self.run(&["session", "list", "--all", "--json"]);
        let list: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
        let sessions = list["sessions"].as_array().unwrap();
        sessions.iter().find(|session| session["session_id"] == id).unwrap().clone()
    }

    fn log(&self, id: &str) -> String {
        self.run(&["session", "logs", "--session", id, "--lines", "200"]).1
    }

    /// Waits until the session is over, and returns what is known of it.
    fn until_over(&self, id: &str) -> Value {
        let mut known = Value::Null;
        let over = ["stopped", "completed", "failed", "needs_attention"];
        wait_until(PATIENCE, "the session ends", || {
            known = self.known(id);
            over.contains(&known["state"].as_str().unwrap_or_default())
        });
        known
    }
}

impl Drop for Supervisor<'_> {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.daemon);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.daemon.wait();
    }
}

/// Our program in the home of a user.
fn program(home: &ClientHome, variables: &[(&'static str, String)], arguments: &[&str]) -> Command {
    let mut command = home.command(server().to_str().unwrap(), arguments);
    command.env("CORETOOLS_TOOLSETS", "all").envs(variables.iter().map(|(name, value)| (name, value)));
    command
}

/// Checks that a session ended well, that its agent did its work, and that nothing was left of the script.
fn check(supervisor: &Supervisor<'_>, id: &str, model: &ScriptedModel, calls: &[RequestedCall]) {
    let known = supervisor.until_over(id);
    let log = supervisor.log(id);
    assert_eq!(known["last_stop"]["reason"], "completed", "{known:#}\n{log}");
    let results = model.results();
    assert_eq!(results.len(), calls.len(), "{results:#?}\n{log}");
    assert_eq!(supervisor.home.project.read("made.txt").trim(), "made", "{results:#?}\n{log}");
}

fn claude_variables(model: &ScriptedModel) -> Vec<(&'static str, String)> {
    vec![
        ("ANTHROPIC_BASE_URL", model.url()),
        ("ANTHROPIC_API_KEY", "none".to_owned()),
        ("ENABLE_TOOL_SEARCH", "false".to_owned()),
        ("SHELL", "/bin/bash".to_owned()),
    ]
}

const CLAUDE: &str = "claude --allowedTools Bash,Write,Read";

fn claude_calls(home: &ClientHome) -> Vec<RequestedCall> {
    vec![
        ("own:Write", json!({"file_path": home.project.path().join("made.txt"), "content": "made"})),
        ("own:Bash", json!({"command": "cat made.txt"})),
    ]
}

#[test]
fn a_session_of_claude_code_runs_to_its_end() {
    let Some(home) = ClientHome::with("claude") else { return };
    let calls = claude_calls(&home);
    let model = ScriptedModel::asking(&calls);
    let supervisor = Supervisor::start(&home, claude_variables(&model));
    let id = supervisor.call("new_session", json!({"prompt": "work", "command": CLAUDE}));
    check(&supervisor, &id, &model, &calls);
}

#[test]
fn a_command_of_claude_code_runs_to_its_end() {
    let Some(home) = ClientHome::with("claude") else { return };
    home.project.write(".claude/commands/next-build.md", "Build number $ARGUMENTS\n");
    let settings = json!({"permissions": {"allow": ["Bash", "Write", "Read"]}});
    home.write(".claude/settings.json", &settings.to_string());
    let calls = claude_calls(&home);
    let model = ScriptedModel::asking(&calls);
    let supervisor = Supervisor::start(&home, claude_variables(&model));
    let arguments =
        json!({"command": "/next-build", "args": "12", "agent": "claude", "role": "orchestrator"});
    let id = supervisor.call("run_agent_command", arguments);
    check(&supervisor, &id, &model, &calls);
}

#[test]
fn a_session_of_claude_code_waits_for_the_time_of_its_rate_limit_and_goes_on() {
    let Some(home) = ClientHome::with("claude") else { return };
    let calls = claude_calls(&home);
    let message = "This request would exceed your account's rate limit. Please try again in 2 seconds.";
    let body = json!({"type": "error", "error": {"type": "rate_limit_error", "message": message}});
    // In the middle: the file is written, and the command is still to come.
    let refusal = Refusal { status: "429 Too Many Requests", body, after_results: 1 };
    let model = ScriptedModel::asking(&calls).refusing([refusal]);
    let mut variables = claude_variables(&model);
    variables.push(("CLAUDE_CODE_MAX_RETRIES", "0".to_owned()));
    let supervisor = Supervisor::start(&home, variables);
    let id = supervisor.call("new_session", json!({"prompt": "work", "command": CLAUDE}));
    let known = supervisor.until_over(&id);
    let log = supervisor.log(&id);
    assert_eq!(model.refusals_left(), 0, "{log}");
    assert!(log.contains("429"), "the agent said why it stopped: {log}");
    assert_eq!(log.matches("a process of the session starts").count(), 2, "{log}");
    assert_eq!(known["last_stop"]["reason"], "completed", "{known:#}\n{log}");
    // The same conversation: the result from before the limit is in it.
    let results = model.results();
    assert_eq!(results.len(), 2, "{results:#?}\n{log}");
    assert!(text(&results[1]).contains("made"), "{results:#?}");
}

#[test]
fn a_session_of_codex_runs_to_its_end() {
    let Some(home) = ClientHome::with("codex") else { return };
    let calls = [("own:exec_command", json!({"cmd": "echo made > made.txt", "yield_time_ms": 30000}))];
    let model = ScriptedModel::asking(&calls);
    home.project.git(&["init", "-q"]);
    home.write(
        ".codex/config.toml",
        &format!(
            "model = \"gpt-5\"\nmodel_provider = \"own\"\napproval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n\
             [model_providers.own]\nname = \"own\"\nbase_url = \"{}/v1\"\nwire_api = \"responses\"\nenv_key = \"OWN_KEY\"\n\
             [projects.{:?}]\ntrust_level = \"trusted\"\n",
            model.url(),
            home.project.path()
        ),
    );
    let supervisor = Supervisor::start(&home, vec![("OWN_KEY", "none".to_owned())]);
    let id = supervisor.call("new_session", json!({"prompt": "work", "command": "codex"}));
    check(&supervisor, &id, &model, &calls);
}

#[test]
fn a_session_of_gemini_cli_runs_to_its_end() {
    let Some(home) = ClientHome::with("gemini") else { return };
    let trusted = json!({home.project.path().to_str().unwrap(): "TRUST_FOLDER"});
    home.write(".gemini/trustedFolders.json", &trusted.to_string());
    home.write(".gemini/settings.json", r#"{"security": {"auth": {"selectedType": "gemini-api-key"}}}"#);
    let path = home.project.path().join("made.txt");
    let calls = [("own:write_file", json!({"file_path": path, "content": "made"}))];
    let model = ScriptedModel::asking(&calls);
    let variables = vec![("GOOGLE_GEMINI_BASE_URL", model.url()), ("GEMINI_API_KEY", "none".to_owned())];
    let supervisor = Supervisor::start(&home, variables);
    let command = "gemini --model gemini-2.5-pro --approval-mode yolo";
    let id = supervisor.call("new_session", json!({"prompt": "work", "command": command}));
    check(&supervisor, &id, &model, &calls);
}

#[test]
fn a_session_of_opencode_runs_to_its_end() {
    let Some(home) = ClientHome::with("opencode") else { return };
    let path = home.project.path().join("made.txt");
    let calls = [("own:write", json!({"filePath": path, "content": "made"}))];
    let model = ScriptedModel::asking(&calls);
    let options = json!({"baseURL": format!("{}/v1", model.url()), "apiKey": "none"});
    let provider = json!({"own": {"npm": "@ai-sdk/anthropic", "options": options, "models": {"m": {}}}});
    let config =
        json!({"provider": provider, "model": "own/m", "small_model": "own/m", "permission": "allow"});
    home.write(".config/opencode/opencode.json", &config.to_string());
    let variables = vec![("npm_config_fetch_retries", "0".to_owned())];
    let supervisor = Supervisor::start(&home, variables);
    let id = supervisor.call("new_session", json!({"prompt": "work", "command": "opencode"}));
    check(&supervisor, &id, &model, &calls);
}
