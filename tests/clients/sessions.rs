//! Sessions of the real agents: the supervisor starts each with a scripted model, follows it to its end, and resumes it after
//! a rate limit in the same conversation.

use crate::home::ClientHome;
use crate::model::{Refusal, RefusalBody, RequestedCall, ScriptedModel, text};
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

/// Checks that a command runs to its end in an agent that is given it as its prompt.
fn check_command(supervisor: &Supervisor<'_>, agent: &str, model: &ScriptedModel, calls: &[RequestedCall]) {
    let arguments = json!({"command": "/next-build", "args": "12", "agent": agent, "role": "orchestrator"});
    let id = supervisor.call("run_agent_command", arguments);
    check(supervisor, &id, model, calls);
    assert!(model.was_told("/next-build 12"), "{}", supervisor.log(&id));
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
    let body = RefusalBody::Error(body);
    // In the middle: the file is written, and the command is still to come.
    let refusal = Refusal { status: "429 Too Many Requests", body, after_results: 1 };
    let model = ScriptedModel::asking(&calls).refusing([refusal]);
    let mut variables = claude_variables(&model);
    variables.push(("CLAUDE_CODE_MAX_RETRIES", "0".to_owned()));
    let supervisor = Supervisor::start(&home, variables);
    let id = supervisor.call("new_session", json!({"prompt": "work", "command": CLAUDE}));
    check_limited(&supervisor, &id, &model, "429");
}

/// Checks that an agent stopped for the reason that it `said`, that its second process went on in the same conversation, and
/// that the work came to its end.
fn check_limited(supervisor: &Supervisor<'_>, id: &str, model: &ScriptedModel, said: &str) {
    let known = supervisor.until_over(id);
    let log = supervisor.log(id);
    assert_eq!(model.refusals_left(), 0, "{log}");
    assert!(log.contains(said), "the agent said why it stopped: {log}");
    assert_eq!(log.matches("a process of the session starts").count(), 2, "{log}");
    assert_eq!(known["last_stop"]["reason"], "completed", "{known:#}\n{log}");
    let (_, status) = supervisor.run(&["session", "status", "--json"]);
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["stats"]["total_resumes"], 1, "{status}\n{log}");
    // The same conversation: the result from before the limit is in it, and no call was asked for twice.
    let results = model.results();
    assert_eq!(results.len(), 2, "{results:#?}\n{log}");
    assert!(text(&results[1]).contains("made"), "{results:#?}");
}

/// Has Codex ask `model`, in a project that it trusts, without a sandbox, and without trying again by itself.
fn configure_codex(home: &ClientHome, model: &ScriptedModel) -> Vec<(&'static str, String)> {
    home.project.git(&["init", "-q"]);
    home.write(
        ".codex/config.toml",
        &format!(
            "model = \"gpt-5\"\nmodel_provider = \"own\"\napproval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n\
             [model_providers.own]\nname = \"own\"\nbase_url = \"{}/v1\"\nwire_api = \"responses\"\nenv_key = \"OWN_KEY\"\n\
             request_max_retries = 0\nstream_max_retries = 0\n[projects.{:?}]\ntrust_level = \"trusted\"\n",
            model.url(),
            home.project.path()
        ),
    );
    vec![("OWN_KEY", "none".to_owned())]
}

fn codex_calls() -> [RequestedCall; 2] {
    [
        ("own:exec_command", json!({"cmd": "echo made > made.txt", "yield_time_ms": 30000})),
        ("own:exec_command", json!({"cmd": "cat made.txt", "yield_time_ms": 30000})),
    ]
}

#[test]
fn a_session_of_codex_runs_to_its_end() {
    let Some(home) = ClientHome::with("codex") else { return };
    let calls = codex_calls();
    let model = ScriptedModel::asking(&calls);
    let supervisor = Supervisor::start(&home, configure_codex(&home, &model));
    let id = supervisor.call("new_session", json!({"prompt": "work", "command": "codex"}));
    check(&supervisor, &id, &model, &calls);
}

#[test]
fn a_command_of_codex_runs_to_its_end() {
    let Some(home) = ClientHome::with("codex") else { return };
    let calls = codex_calls();
    let model = ScriptedModel::asking(&calls);
    let supervisor = Supervisor::start(&home, configure_codex(&home, &model));
    check_command(&supervisor, "codex", &model, &calls);
}

#[test]
fn a_session_of_codex_waits_for_the_time_of_its_rate_limit_and_goes_on() {
    let Some(home) = ClientHome::with("codex") else { return };
    let message =
        "Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000. Please try again in 2s.";
    let error = json!({"code": "rate_limit_exceeded", "message": message});
    // As OpenAI's API says it: in a stream that has begun.
    let body = RefusalBody::Stream(vec![
        json!({"type": "response.created", "response": {"id": "resp_1"}}),
        json!({"type": "response.failed", "response": {"id": "resp_1", "error": error}}),
    ]);
    let refusal = Refusal { status: "200 OK", body, after_results: 1 };
    let model = ScriptedModel::asking(&codex_calls()).refusing([refusal]);
    let supervisor = Supervisor::start(&home, configure_codex(&home, &model));
    let id = supervisor.call("new_session", json!({"prompt": "work", "command": "codex"}));
    check_limited(&supervisor, &id, &model, "Rate limit reached");
}

/// Has Gemini CLI ask `model`, in a project that it trusts.
fn configure_gemini(home: &ClientHome, model: &ScriptedModel) -> Vec<(&'static str, String)> {
    let trusted = json!({home.project.path().to_str().unwrap(): "TRUST_FOLDER"});
    home.write(".gemini/trustedFolders.json", &trusted.to_string());
    // A command of `run_agent_command` has no options: what it may do, and its model, stand in its settings.
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "model": {"name": "gemini-2.5-pro"},
        "tools": {"allowed": ["write_file", "run_shell_command"]},
    });
    home.write(".gemini/settings.json", &settings.to_string());
    vec![("GOOGLE_GEMINI_BASE_URL", model.url()), ("GEMINI_API_KEY", "none".to_owned())]
}

fn gemini_calls(home: &ClientHome) -> [RequestedCall; 2] {
    let path = home.project.path().join("made.txt");
    [
        ("own:write_file", json!({"file_path": path, "content": "made"})),
        ("own:run_shell_command", json!({"command": "cat made.txt"})),
    ]
}

const GEMINI: &str = "gemini --model gemini-2.5-pro --approval-mode yolo";

#[test]
fn a_session_of_gemini_cli_runs_to_its_end() {
    let Some(home) = ClientHome::with("gemini") else { return };
    let calls = gemini_calls(&home);
    let model = ScriptedModel::asking(&calls);
    let supervisor = Supervisor::start(&home, configure_gemini(&home, &model));
    let id = supervisor.call("new_session", json!({"prompt": "work", "command": GEMINI}));
    check(&supervisor, &id, &model, &calls);
}

#[test]
fn a_command_of_gemini_cli_runs_to_its_end() {
    let Some(home) = ClientHome::with("gemini") else { return };
    let calls = gemini_calls(&home);
    let model = ScriptedModel::asking(&calls);
    let supervisor = Supervisor::start(&home, configure_gemini(&home, &model));
    check_command(&supervisor, "gemini", &model, &calls);
}

#[test]
fn a_session_of_gemini_cli_waits_after_a_used_up_quota_and_goes_on() {
    let Some(home) = ClientHome::with("gemini") else { return };
    // A quota of the day, after which Gemini CLI does not try again by itself, and names no time.
    let violation = json!({"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"});
    let details =
        json!([{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]}]);
    let body = RefusalBody::Error(json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED",
        "message": "You exceeded your current quota, please check your plan and billing details.",
        "details": details}}));
    let refusal = Refusal { status: "429 Too Many Requests", body, after_results: 1 };
    let model = ScriptedModel::asking(&gemini_calls(&home)).refusing([refusal]);
    let mut variables = configure_gemini(&home, &model);
    variables.push(("CORETOOLS_SESSIONS_BACKOFF_BASE_MS", "2000".to_owned()));
    let supervisor = Supervisor::start(&home, variables);
    let id = supervisor.call("new_session", json!({"prompt": "work", "command": GEMINI}));
    check_limited(&supervisor, &id, &model, "exhausted your daily quota");
}

/// Has opencode ask `model`.
fn configure_opencode(home: &ClientHome, model: &ScriptedModel) -> Vec<(&'static str, String)> {
    let options = json!({"baseURL": format!("{}/v1", model.url()), "apiKey": "none"});
    let provider = json!({"own": {"npm": "@ai-sdk/anthropic", "options": options, "models": {"m": {}}}});
    let config =
        json!({"provider": provider, "model": "own/m", "small_model": "own/m", "permission": "allow"});
    home.write(".config/opencode/opencode.json", &config.to_string());
    vec![("npm_config_fetch_retries", "0".to_owned())]
}

fn opencode_calls(home: &ClientHome) -> [RequestedCall; 2] {
    let path = home.project.path().join("made.txt");
    [
        ("own:write", json!({"filePath": path, "content": "made"})),
        ("own:bash", json!({"command": "cat made.txt", "description": "read"})),
    ]
}

#[test]
fn a_session_of_opencode_runs_to_its_end() {
    let Some(home) = ClientHome::with("opencode") else { return };
    let calls = opencode_calls(&home);
    let model = ScriptedModel::asking(&calls);
    let supervisor = Supervisor::start(&home, configure_opencode(&home, &model));
    let id = supervisor.call("new_session", json!({"prompt": "work", "command": "opencode"}));
    check(&supervisor, &id, &model, &calls);
}

#[test]
fn a_command_of_opencode_runs_to_its_end() {
    let Some(home) = ClientHome::with("opencode") else { return };
    let calls = opencode_calls(&home);
    let model = ScriptedModel::asking(&calls);
    let supervisor = Supervisor::start(&home, configure_opencode(&home, &model));
    check_command(&supervisor, "opencode", &model, &calls);
}

#[test]
fn opencode_waits_for_a_rate_limit_itself_and_is_resumed_by_a_message() {
    let Some(home) = ClientHome::with("opencode") else { return };
    let message = "Rate limit exceeded. Please try again in 2 seconds.";
    let body = RefusalBody::Error(
        json!({"type": "error", "error": {"type": "rate_limit_error", "message": message}}),
    );
    let refusal = Refusal { status: "429 Too Many Requests", body, after_results: 1 };
    let calls = opencode_calls(&home);
    let model = ScriptedModel::asking(&calls).refusing([refusal]);
    let supervisor = Supervisor::start(&home, configure_opencode(&home, &model));
    let id = supervisor.call("new_session", json!({"prompt": "work", "command": "opencode"}));
    check(&supervisor, &id, &model, &calls);
    let log = supervisor.log(&id);
    assert_eq!(model.refusals_left(), 0, "{log}");
    // Its own process waited: the supervisor started no other.
    assert_eq!(log.matches("a process of the session starts").count(), 1, "{log}");
    let before = model.longest_conversation();
    let (succeeded, said) = supervisor.run(&["session", "send", &id, "and now the rest"]);
    assert!(succeeded, "{said}\n{log}");
    let known = supervisor.until_over(&id);
    let log = supervisor.log(&id);
    assert_eq!(log.matches("a process of the session starts").count(), 2, "{log}");
    assert_eq!(known["last_stop"]["reason"], "completed", "{known:#}\n{log}");
    // The same conversation: what came before stands in the request for the answer to the message.
    assert!(model.longest_conversation() > before, "{before} messages before\n{log}");
}
