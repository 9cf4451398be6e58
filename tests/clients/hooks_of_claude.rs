//! The hook of Claude Code: an allowed piece of work, fifty attempts to get around the policy, and the death of the client.

use crate::attempts::{ATTEMPTS, ClientFiles, Means, Stop, filled};
use crate::home::ClientHome;
use crate::hooks::{REFUSED, audit, converse};
use crate::model::{RequestedCall, ScriptedModel, text};
use integration_tests::server;
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A client with the hook and our server, both for the role `worker`.
fn governed() -> Option<ClientHome> {
    let home = ClientHome::with("claude")?;
    home.install_hook("claude", &["--exec-timeout", "3"]);
    home.connect("claude", &["--role", "worker", "--root", home.project.path().to_str().unwrap()]);
    Some(home)
}

pub(crate) fn claude(home: &ClientHome, model: &ScriptedModel) -> Command {
    // Everything is allowed by the client itself: only the hook and the server are left to refuse anything.
    let allowed = "Bash,Read,Write,Edit,Glob,Grep,NotebookEdit,Task,Agent,WebFetch,mcp__coretools";
    let mut command = home.command("claude", &["-p", "work", "--allowedTools", allowed]);
    command.env("ANTHROPIC_BASE_URL", model.url()).env("ANTHROPIC_API_KEY", "none");
    command.env("ENABLE_TOOL_SEARCH", "false").env("SHELL", "/bin/bash");
    command
}

#[test]
fn claude_code_works_within_the_policy_and_a_hanging_command_ends() {
    let Some(home) = governed() else { return };
    let path = |name: &str| home.project.path().join(name);
    let calls = [
        ("own:Bash", json!({"command": "echo made > made.txt && cat made.txt"})),
        ("own:Read", json!({"file_path": path("a.txt")})),
        ("own:Edit", json!({"file_path": path("a.txt"), "old_string": "hello", "new_string": "changed"})),
        ("own:Bash", json!({"command": "ls not-there"})),
        ("own:Bash", json!({"command": "echo before; sleep 600 & sleep 601"})),
        ("read_file", json!({"path": "made.txt"})),
        ("read_file", json!({"path": "/etc/hostname"})),
    ];
    let model = ScriptedModel::asking(&calls);
    let results = converse(claude(&home, &model), &model, &calls);
    let texts: Vec<String> = results.iter().map(text).collect();
    assert!(texts[0].contains("made") && texts[1].contains("hello"), "{texts:#?}");
    assert_eq!(home.project.read("a.txt"), "changed\n", "{texts:#?}");
    assert!(texts[3].contains("Exit code 2"), "{texts:#?}");
    assert!(texts[4].contains("before") && texts[4].contains("its time limit"), "{texts:#?}");
    assert_eq!(texts[5], "made\n");
    assert!(results[6]["is_error"] == true && texts[6].contains("outside"), "{texts:#?}");
    let lines = audit(&home);
    let failed = lines.iter().filter(|line| line["outcome"] == "failed").count();
    assert_eq!(failed, 2, "the command with exit code 2 and the one that hung: {lines:#?}");
    let doctor = home.project.server().env("HOME", home.path("")).arg("doctor").output().unwrap();
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(
        doctor.contains("hook           Claude Code") && !doctor.contains("switches hooks off"),
        "{doctor}"
    );
}

/// The files of Claude Code.
const FILES: ClientFiles = ClientFiles {
    folder: ".claude",
    pattern: ".cla",
    hook: ".claude/settings.json",
    project_folder: ".claude",
    project_file: ".claude/settings.local.json",
};

/// Returns the call of Claude Code that makes an attempt.
fn attempt(home: &ClientHome, means: Means) -> RequestedCall {
    let fill = |text: &str| filled(home, "claude", FILES, text);
    match means {
        Means::Shell(line) => ("own:Bash", json!({"command": fill(line)})),
        Means::Read(path) => ("own:Read", json!({"file_path": fill(path)})),
        Means::Write(path) => ("own:Write", json!({"file_path": fill(path), "content": "{}"})),
        Means::Agent => (
            "own:Agent",
            json!({"description": "do it", "prompt": "do it", "subagent_type": "general-purpose"}),
        ),
        Means::Ours(tool, input) => (tool, serde_json::from_str(&fill(input)).unwrap()),
    }
}

#[test]
fn fifty_attempts_of_claude_code_to_get_around_the_policy_fail() {
    let Some(home) = governed() else { return };
    std::os::unix::fs::symlink(home.path(""), home.project.path().join("link")).unwrap();
    home.write(".bashrc", "mine\n");
    assert!(ATTEMPTS.len() >= 50);
    let settings = fs::read_to_string(home.path(".claude/settings.json")).unwrap();
    let calls: Vec<RequestedCall> = ATTEMPTS.iter().map(|(_, means)| attempt(&home, *means)).collect();
    let model = ScriptedModel::asking(&calls);
    let results = converse(claude(&home, &model), &model, &calls);
    let mut wrong = Vec::new();
    for ((stop, means), result) in ATTEMPTS.iter().zip(&results) {
        let said = text(result);
        let is_refused = said.contains(REFUSED) || matches!(means, Means::Ours(..));
        if result["is_error"] != true || (*stop == Stop::Refused) != is_refused {
            wrong.push(format!("{stop:?} {means:?}\n    {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Nothing has changed that must not.
    assert_eq!(fs::read_to_string(home.path(".claude/settings.json")).unwrap(), settings);
    assert_eq!(fs::read_to_string(home.path(".bashrc")).unwrap(), "mine\n");
    for path in
        [home.path(".profile"), home.path("found"), home.project.path().join(".claude/settings.local.json")]
    {
        assert!(!path.exists(), "{} was made", path.display());
    }
    let is_refused_by_the_hook =
        |(stop, means): &&(Stop, Means)| *stop == Stop::Refused && !matches!(means, Means::Ours(..));
    let refused = ATTEMPTS.iter().filter(is_refused_by_the_hook).count();
    let lines = audit(&home);
    let recorded = lines.iter().filter(|line| line["decision"] == "refused").count();
    assert_eq!(recorded, refused, "{lines:#?}");
}

/// Waits until `found` returns something.
fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(90);
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The command lines of all processes.
fn command_lines() -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).collect()
}

#[test]
fn nothing_that_claude_code_runs_survives_its_death() {
    let Some(home) = ClientHome::with("claude") else { return };
    home.install_hook("claude", &["--exec-timeout", "600"]);
    let seconds = integration_tests::unique_seconds();
    let line = format!("setsid sleep {seconds} & sleep {seconds}");
    let model = ScriptedModel::asking(&[("own:Bash", json!({"command": line}))]);
    let mut client = claude(&home, &model).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let sleeping =
        || command_lines().iter().filter(|line| line.starts_with(&format!("sleep {seconds}"))).count();
    wait_for("the command", || (sleeping() == 2).then_some(()));
    let supervisor = command_lines()
        .into_iter()
        .find(|line| line.contains(" exec ") && line.contains(&seconds.to_string()));
    let words: Vec<String> = supervisor.unwrap().split(' ').map(str::to_owned).collect();
    let owner = &words[words.iter().position(|word| word == "--ends-with").unwrap() + 1];
    assert!(Command::new("kill").args(["-KILL", owner]).status().unwrap().success());
    wait_for("the end of the command", || (sleeping() == 0).then_some(()));
    let _ = client.wait();
}

#[test]
fn a_hook_whose_program_is_gone_refuses_everything() {
    let Some(home) = ClientHome::with("claude") else { return };
    home.install_hook("claude", &[]);
    let path = home.path(".claude/settings.json");
    let settings = fs::read_to_string(&path).unwrap();
    fs::write(&path, settings.replace(server().to_str().unwrap(), "/nonexistent/mcp-stdio")).unwrap();
    let calls = [("own:Bash", json!({"command": "echo ran > ran.txt"}))];
    let model = ScriptedModel::asking(&calls);
    let results: Vec<Value> = converse(claude(&home, &model), &model, &calls);
    assert_eq!(results[0]["is_error"], true, "{results:#?}");
    assert!(!home.project.path().join("ran.txt").exists());
}
