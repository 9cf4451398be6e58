//! Codex, Gemini CLI, opencode and Copilot CLI with the hook and our server: the attempts to get around the policy, a call
//! that waits for a person, and the death of the client. Those of Claude Code stand in `hooks_of_claude`.

use crate::attempts::{ATTEMPTS, ClientFiles, Means, Stop, filled};
use crate::home::ClientHome;
use crate::hooks::{REFUSED, audit, converse};
use crate::model::{RequestedCall, ScriptedModel, text};
use integration_tests::{server, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long a client may take for its first step on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// A client, and how it is started and used.
pub(crate) struct GovernedClient {
    pub(crate) name: &'static str,
    files: ClientFiles,
    /// Writes what the client needs to ask the model, beside the hook and the server.
    pub(crate) configure: fn(&ClientHome, &ScriptedModel),
    /// Connects it to our server with these arguments.
    pub(crate) connect: fn(&ClientHome, &[&str]),
    /// The command that works on a prompt and ends.
    pub(crate) command: fn(&ClientHome, &ScriptedModel) -> Command,
    /// Its own call for the same effect, if it has such a tool.
    call: fn(&ClientHome, Means, &str) -> Option<RequestedCall>,
}

impl GovernedClient {
    fn home(&self) -> Option<ClientHome> {
        ClientHome::with(self.name)
    }

    /// Writes the settings: those of the client first, because the hook and the server are merged into them.
    fn govern(&self, home: &ClientHome, model: &ScriptedModel, hook: &[&str]) {
        (self.configure)(home, model);
        home.install_hook(self.name, hook);
        (self.connect)(home, &["--role", "worker", "--root", home.project.path().to_str().unwrap()]);
    }
}

fn print_config(client: &str, home: &ClientHome, arguments: &[&str]) {
    let mut command = home.own_program(&["print-config", client, "--write"]);
    let output = command.args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn object(name: &'static str, input: Value) -> Option<RequestedCall> {
    Some((name, input))
}

pub(crate) const CODEX: GovernedClient = GovernedClient {
    name: "codex",
    files: ClientFiles {
        folder: ".codex",
        pattern: ".cod",
        hook: ".codex/hooks.json",
        project_folder: ".codex",
        project_file: ".codex/hooks.json",
    },
    configure: |home, model| home.configure_codex(model, "gpt-5"),
    connect: |home, arguments| print_config("codex", home, arguments),
    command: |home, _| {
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
        command
    },
    // It reads and writes files by lines of its shell.
    call: |_, means, text| match means {
        Means::Shell(_) => object("own:exec_command", json!({"cmd": text, "yield_time_ms": 30000})),
        Means::Agent => object("own:multi_agent_v1__spawn_agent", json!({"message": "do it"})),
        _ => None,
    },
};

pub(crate) const GEMINI: GovernedClient = GovernedClient {
    name: "gemini",
    files: ClientFiles {
        folder: ".gemini",
        pattern: ".gem",
        hook: ".gemini/settings.json",
        project_folder: ".gemini",
        project_file: ".gemini/.env",
    },
    configure: |home, _| {
        let trusted = json!({home.project.path().to_str().unwrap(): "TRUST_FOLDER"});
        home.write(".gemini/trustedFolders.json", &trusted.to_string());
        home.write(".gemini/settings.json", r#"{"security": {"auth": {"selectedType": "gemini-api-key"}}}"#);
    },
    connect: |home, arguments| print_config("gemini", home, arguments),
    command: |home, model| {
        let arguments = ["--model", "gemini-2.5-pro", "--approval-mode", "yolo", "--prompt", "work"];
        let mut command = home.command("gemini", &arguments);
        command.env("GOOGLE_GEMINI_BASE_URL", model.url()).env("GEMINI_API_KEY", "none");
        command
    },
    call: |_, means, text| match means {
        Means::Shell(_) => object("own:run_shell_command", json!({"command": text})),
        Means::Read(_) => object("own:read_file", json!({"file_path": text})),
        Means::Write(_) => object("own:write_file", json!({"file_path": text, "content": "{}"})),
        Means::Agent => object("own:invoke_agent", json!({"agent_name": "generalist", "prompt": "do it"})),
        Means::Ours(..) => None,
    },
};

pub(crate) const OPENCODE: GovernedClient = GovernedClient {
    name: "opencode",
    files: ClientFiles {
        folder: ".config/opencode",
        pattern: ".config/opencode/plu",
        hook: ".config/opencode/plugin/coretools-hook.js",
        project_folder: ".opencode/plugin",
        project_file: ".opencode/plugin/coretools-hook.js",
    },
    configure: |home, model| {
        let options = json!({"baseURL": format!("{}/v1", model.url()), "apiKey": "none"});
        let provider = json!({"own": {"npm": "@ai-sdk/anthropic", "options": options, "models": {"m": {}}}});
        let config =
            json!({"provider": provider, "model": "own/m", "small_model": "own/m", "permission": "allow"});
        home.write(".config/opencode/opencode.json", &config.to_string());
    },
    connect: |home, arguments| print_config("opencode", home, arguments),
    command: |home, _| {
        let mut command = home.command("opencode", &["run", "work"]);
        // It fetches a package for plugins, which is not needed, and waits while npm tries again.
        command.env("npm_config_fetch_retries", "0");
        command
    },
    call: |_, means, text| match means {
        Means::Shell(_) => object("own:bash", json!({"command": text, "description": "do"})),
        Means::Read(_) => object("own:read", json!({"filePath": text})),
        Means::Write(_) => object("own:write", json!({"filePath": text, "content": "{}"})),
        Means::Agent => {
            object("own:task", json!({"description": "do it", "prompt": "do it", "subagent_type": "general"}))
        }
        Means::Ours(..) => None,
    },
};

pub(crate) const COPILOT: GovernedClient = GovernedClient {
    name: "copilot",
    files: ClientFiles {
        folder: ".copilot",
        pattern: ".cop",
        hook: ".copilot/hooks/coretools.json",
        project_folder: ".github/hooks",
        project_file: ".github/hooks/more.json",
    },
    configure: |_, _| {},
    connect: |home, arguments| {
        let server = json!({"type": "local", "command": server(), "args": arguments, "tools": ["*"]});
        home.write(".copilot/mcp-config.json", &json!({"mcpServers": {"coretools": server}}).to_string());
    },
    command: |home, model| {
        let arguments = ["-p", "work", "--allow-all-tools", "--allow-all-paths", "--no-auto-update"];
        let mut command = home.command("copilot", &arguments);
        for (name, value) in [
            ("COPILOT_PROVIDER_BASE_URL", model.url().as_str()),
            ("COPILOT_PROVIDER_TYPE", "anthropic"),
            ("COPILOT_PROVIDER_API_KEY", "none"),
            ("COPILOT_MODEL", "claude-sonnet-4"),
            ("COPILOT_OFFLINE", "true"),
        ] {
            command.env(name, value);
        }
        command
    },
    call: |_, means, text| match means {
        Means::Shell(_) => object("own:bash", json!({"command": text, "description": "do"})),
        Means::Read(_) => object("own:view", json!({"path": text})),
        Means::Write(_) => object("own:create", json!({"path": text, "file_text": "{}"})),
        Means::Agent => object(
            "own:task",
            json!({"description": "do it", "prompt": "do it", "agent_type": "general-purpose", "name": "x"}),
        ),
        Means::Ours(..) => None,
    },
};

/// Returns true if a client refused by itself what it would have had to ask the hook about.
fn is_refused_by_the_client(said: &str) -> bool {
    ["not within", "outside", "workspace", "not found", "must have been used", "does not exist"]
        .iter()
        .any(|words| said.contains(words))
}

/// Makes every attempt for which the client has a tool, and checks that each failed, by whom, and what the audit says.
fn check_attempts(client: &GovernedClient) {
    let Some(home) = client.home() else { return };
    std::os::unix::fs::symlink(home.path(""), home.project.path().join("link")).unwrap();
    home.write(".bashrc", "mine\n");
    let fill = |text: &str| filled(&home, client.name, client.files, text);
    let attempts: Vec<(Stop, Means, RequestedCall)> = ATTEMPTS
        .iter()
        .filter_map(|(stop, means)| {
            let call = match means {
                Means::Ours(tool, input) => Some((*tool, serde_json::from_str(&fill(input)).unwrap())),
                Means::Shell(text) | Means::Read(text) | Means::Write(text) => {
                    (client.call)(&home, *means, &fill(text))
                }
                Means::Agent => (client.call)(&home, *means, ""),
            };
            Some((*stop, *means, call?))
        })
        .collect();
    assert!(attempts.len() >= 40, "{}: {}", client.name, attempts.len());
    let calls: Vec<RequestedCall> = attempts.iter().map(|(_, _, call)| call.clone()).collect();
    let model = ScriptedModel::asking(&calls);
    client.govern(&home, &model, &["--exec-timeout", "5"]);
    let settings = fs::read_to_string(home.path(client.files.hook)).unwrap();
    let results = converse((client.command)(&home, &model), &model, &calls);
    let mut wrong = Vec::new();
    for ((stop, means, call), result) in attempts.iter().zip(&results) {
        let said = text(result);
        let is_refused = match means {
            Means::Ours(..) => said.contains("is protected") || said.contains("belongs to git"),
            Means::Shell(_) => said.contains(REFUSED),
            _ => said.contains(REFUSED) || is_refused_by_the_client(&said),
        };
        if (*stop == Stop::Refused) != is_refused {
            wrong.push(format!("{stop:?} {call:?}\n    {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Nothing has changed that must not.
    assert_eq!(fs::read_to_string(home.path(client.files.hook)).unwrap(), settings);
    assert_eq!(fs::read_to_string(home.path(".bashrc")).unwrap(), "mine\n");
    for path in [
        home.path(".profile"),
        home.path(".zshrc"),
        home.path("found"),
        home.path(&format!("{}/new.json", client.files.folder)),
        home.project.path().join(client.files.project_file),
        home.project.path().join("coretools.toml"),
    ] {
        assert!(!path.exists(), "{} was made", path.display());
    }
    let refused = results.iter().filter(|result| text(result).contains(REFUSED)).count();
    let lines = audit(&home);
    let recorded = lines.iter().filter(|line| line["decision"] == "refused").count();
    assert_eq!(recorded, refused, "{lines:#?}");
    // Whatever the attempts did, the doctor finds the hook as it was installed.
    let doctor = home.own_program(&["doctor"]).current_dir(home.project.path()).output().unwrap();
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    let line = doctor.lines().find(|line| line.contains(client.files.hook)).unwrap_or_default();
    // Nobody has trusted the hook in the dialog of Codex.
    assert!(line.starts_with("ok") || client.name == "codex" && line.contains("trusted"), "{doctor}");
}

#[test]
fn the_attempts_of_codex_to_get_around_the_policy_fail() {
    check_attempts(&CODEX);
}

#[test]
fn the_attempts_of_gemini_cli_to_get_around_the_policy_fail() {
    check_attempts(&GEMINI);
}

#[test]
fn the_attempts_of_opencode_to_get_around_the_policy_fail() {
    check_attempts(&OPENCODE);
}

#[test]
fn the_attempts_of_copilot_cli_to_get_around_the_policy_fail() {
    check_attempts(&COPILOT);
}

const ASKS: &str = r#"version = 1
[roles.minimal]
allow = ["get_diagnostics"]
[roles.careful]
allow = ["*"]
ask = ["write_file"]
"#;

/// Checks that a call of our server waits for a person, who answers in a terminal, and that it then goes through.
fn check_ask(client: &GovernedClient) {
    let Some(home) = client.home() else { return };
    home.write("roles.toml", ASKS);
    let calls = [
        ("write_file", json!({"path": "asked.txt", "content": "allowed"})),
        ("write_file", json!({"path": "denied.txt", "content": "no"})),
    ];
    let model = ScriptedModel::asking(&calls);
    (client.configure)(&home, &model);
    // Some of them declare that they ask their user, and without a terminal answer no by themselves.
    home.write("coretools.toml", "[policy]\napprovers = \"operator\"\n");
    let (policy, root) = (home.path("roles.toml"), home.project.path().to_path_buf());
    let config = home.path("coretools.toml");
    let mut arguments = vec!["--config", config.to_str().unwrap(), "--role", "careful"];
    arguments.extend(["--policy", policy.to_str().unwrap(), "--root", root.to_str().unwrap()]);
    (client.connect)(&home, &arguments);
    let mut command = (client.command)(&home, &model);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let approvals = |arguments: &[&str]| {
        // In the environment of the client, and so with its folder of approvals.
        let mut command = home.command(server().to_str().unwrap(), &["approvals"]);
        let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let waiting = |path: &str| -> Option<String> {
        let list: Value = serde_json::from_str(&approvals(&["list", "--json"])).ok()?;
        let list = list["approvals"].as_array()?;
        let question = list.iter().find(|question| question.to_string().contains(path))?;
        question["id"].as_str().map(str::to_owned)
    };
    let mut id = None;
    wait_until(PATIENCE, "the call waits", || {
        id = waiting("asked.txt");
        id.is_some()
    });
    // It waits, and has done nothing.
    assert!(!home.project.path().join("asked.txt").exists() && model.results().is_empty());
    approvals(&["allow", &id.unwrap()]);
    let mut id = None;
    wait_until(PATIENCE, "the second call waits", || {
        id = waiting("denied.txt");
        id.is_some()
    });
    assert_eq!(home.project.read("asked.txt"), "allowed");
    approvals(&["deny", &id.unwrap(), "--reason", "not this one"]);
    let output = child.wait_with_output().unwrap();
    let results = model.results();
    assert_eq!(results.len(), 2, "{results:#?}\n{output:?}");
    assert!(text(&results[1]).contains("not this one"), "{results:#?}");
    assert!(!home.project.path().join("denied.txt").exists());
}

#[test]
fn a_call_of_codex_waits_for_a_person() {
    check_ask(&CODEX);
}

#[test]
fn a_call_of_gemini_cli_waits_for_a_person() {
    check_ask(&GEMINI);
}

#[test]
fn a_call_of_opencode_waits_for_a_person() {
    check_ask(&OPENCODE);
}

#[test]
fn a_call_of_copilot_cli_waits_for_a_person() {
    check_ask(&COPILOT);
}

/// The command lines of all processes.
fn command_lines() -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).collect()
}

/// Kills the client in the middle of a command, and checks that nothing of the command survives.
fn check_death(client: &GovernedClient) {
    let Some(home) = client.home() else { return };
    let seconds = integration_tests::unique_seconds();
    let line = format!("setsid sleep {seconds} & sleep {seconds}");
    let call = (client.call)(&home, Means::Shell(""), &line).unwrap();
    let model = ScriptedModel::asking(&[call]);
    (client.configure)(&home, &model);
    home.install_hook(client.name, &["--exec-timeout", "600"]);
    let mut command = (client.command)(&home, &model);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let sleeping =
        || command_lines().iter().filter(|line| line.starts_with(&format!("sleep {seconds}"))).count();
    wait_until(PATIENCE, "the command runs", || sleeping() == 2);
    let supervisor = command_lines().into_iter().find(|line| {
        line.contains(" exec ") && line.contains("--ends-with") && line.contains(&seconds.to_string())
    });
    let words: Vec<String> = supervisor.unwrap().split(' ').map(str::to_owned).collect();
    let owner = &words[words.iter().position(|word| word == "--ends-with").unwrap() + 1];
    assert!(Command::new("kill").args(["-KILL", owner]).status().unwrap().success());
    wait_until(PATIENCE, "the command ends", || sleeping() == 0);
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn nothing_that_codex_runs_survives_its_death() {
    check_death(&CODEX);
}

#[test]
fn nothing_that_gemini_cli_runs_survives_its_death() {
    check_death(&GEMINI);
}

#[test]
fn nothing_that_opencode_runs_survives_its_death() {
    check_death(&OPENCODE);
}

#[test]
fn nothing_that_copilot_cli_runs_survives_its_death() {
    check_death(&COPILOT);
}
