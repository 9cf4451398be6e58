//! `hook install`, `hook test`, `hook remove` and `doctor` for each client, and the events of Cursor, whose program cannot be
//! had: they have the form that its documents give them.
#![cfg(target_os = "linux")]

use integration_tests::Project;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A client: its word, its file of the user, what stands in the file before, and its tools for a line and for a file.
struct HookedClient {
    name: &'static str,
    file: &'static str,
    before: Option<&'static str>,
    line: (&'static str, &'static str),
    write: (&'static str, &'static str),
    /// A file beneath the home, and the text in it that switches the hook off.
    off: Option<(&'static str, &'static str)>,
}

const CLIENTS: [HookedClient; 6] = [
    HookedClient {
        name: "claude",
        file: ".claude/settings.json",
        before: Some(r#"{"model": "own", "hooks": {"PreToolUse": [{"matcher": "X", "hooks": []}]}}"#),
        line: ("Bash", "command"),
        write: ("Write", "file_path"),
        off: Some((".claude/settings.local.json", r#"{"disableAllHooks": true}"#)),
    },
    HookedClient {
        name: "codex",
        file: ".codex/hooks.json",
        before: None,
        line: ("Bash", "command"),
        write: ("apply_patch", "command"),
        off: Some((".codex/config.toml", "[features]\nhooks = false\n")),
    },
    HookedClient {
        name: "gemini",
        file: ".gemini/settings.json",
        before: Some(r#"{"ui": {"theme": "own"}}"#),
        line: ("run_shell_command", "command"),
        write: ("write_file", "file_path"),
        off: None,
    },
    HookedClient {
        name: "opencode",
        file: ".config/opencode/plugin/coretools-hook.js",
        before: None,
        line: ("bash", "command"),
        write: ("write", "filePath"),
        off: None,
    },
    HookedClient {
        name: "copilot",
        file: ".copilot/hooks/coretools.json",
        before: None,
        line: ("bash", "command"),
        write: ("create", "path"),
        off: Some((".copilot/settings.json", r#"{"disableAllHooks": true}"#)),
    },
    HookedClient {
        name: "cursor",
        file: ".cursor/hooks.json",
        before: Some(r#"{"version": 1, "hooks": {"stop": [{"command": "mine.sh"}]}}"#),
        line: ("Shell", "command"),
        write: ("Write", "file_path"),
        off: None,
    },
];

struct HookHome {
    folder: tempfile::TempDir,
    project: Project,
}

impl HookHome {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), project: Project::with([("a.txt", "hello\n")]) }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.project.server();
        command.args(arguments).env("HOME", self.folder.path()).current_dir(self.project.path());
        for name in
            ["XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "COPILOT_HOME", "CURSOR_PROJECT_DIR"]
        {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    fn succeeds(&self, arguments: &[&str], input: &str) -> String {
        let output = self.run(arguments, input);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Returns the doctor's line about the hook in `file`.
    fn doctor(&self, file: &str) -> String {
        let output = self.run(&["doctor"], "");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let about = |line: &&str| line.contains("hook ") && line.contains(file);
        said.lines().find(about).map(str::to_owned).unwrap_or_default()
    }
}

fn without_whitespace(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_hook_of_each_client_is_installed_tried_examined_and_removed() {
    for client in CLIENTS {
        let home = HookHome::new();
        let file = home.path(client.file);
        if let Some(before) = client.before {
            home.write(client.file, before);
        }
        assert_eq!(home.doctor(client.file), "", "{}: nothing is installed yet", client.name);
        let install = ["--role", "worker", "hook", "install", client.name];
        assert!(home.succeeds(&install, "").contains(client.file), "{}", client.name);
        let installed = fs::read_to_string(&file).unwrap();
        assert!(installed.contains("worker"), "{}: {installed}", client.name);
        // A second time nothing changes.
        home.succeeds(&install, "");
        assert_eq!(fs::read_to_string(&file).unwrap(), installed, "{}", client.name);

        let line = |text: &str| json!({"tool_name": client.line.0, "tool_input": {client.line.1: text}});
        let inside = home.project.join("new.txt");
        let patch = format!("*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch", inside.display());
        let written = if client.name == "codex" { patch } else { inside.display().to_string() };
        let outside = written.replace(inside.to_str().unwrap(), "/etc/new.txt");
        let write = |path: &str| json!({"tool_name": client.write.0, "tool_input": {client.write.1: path}});
        let events = [
            line("ls && cat a.txt"),
            line("claude -p x"),
            line("echo x > ../outside.txt"),
            write(&written),
            write(&outside),
            json!({"tool_name": "nosuchtool", "tool_input": {}}),
        ];
        let events: Vec<String> = events.iter().map(Value::to_string).collect();
        let decided = home.succeeds(&["--role", "worker", "hook", "test", client.name], &events.join("\n"));
        let words: Vec<&str> = decided.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(words, ["allow", "deny", "deny", "allow", "deny", "deny"], "{}: {decided}", client.name);

        if client.name == "codex" {
            let finding = home.doctor(client.file);
            assert!(!finding.starts_with("ok") && finding.contains("nobody has trusted it"), "{finding}");
            let key = format!("{}:pre_tool_use:0:0", file.display());
            home.write(
                ".codex/config.toml",
                &format!("[hooks.state.{key:?}]\ntrusted_hash = \"sha256:0\"\n"),
            );
        }
        let finding = home.doctor(client.file);
        assert!(finding.starts_with("ok"), "{}: {finding}", client.name);
        if let Some((path, text)) = client.off {
            let old = fs::read_to_string(home.path(path)).ok();
            home.write(path, text);
            let output = String::from_utf8_lossy(&home.run(&["doctor"], "").stdout).into_owned();
            assert!(output.contains("switches hooks off"), "{}: {output}", client.name);
            match old {
                Some(old) => home.write(path, &old),
                None => fs::remove_file(home.path(path)).unwrap(),
            }
        }
        // The program is gone.
        let server = integration_tests::server().to_str().unwrap().to_owned();
        fs::write(&file, installed.replace(&server, "/nonexistent/mcp-stdio")).unwrap();
        let finding = home.doctor(client.file);
        assert!(finding.contains("is not there"), "{}: {finding}", client.name);
        fs::write(&file, &installed).unwrap();

        home.succeeds(&["hook", "remove", client.name], "");
        assert_eq!(home.doctor(client.file), "", "{}: nothing is installed any more", client.name);
        match client.before {
            Some(before) => {
                let before: Value = serde_json::from_str(before).unwrap();
                let after = without_whitespace(&file);
                for (key, value) in before.as_object().unwrap().iter().filter(|(key, _)| *key != "hooks") {
                    assert_eq!(&after[key], value, "{}", client.name);
                }
                for (event, hooks) in before["hooks"].as_object().into_iter().flatten() {
                    assert_eq!(&after["hooks"][event], hooks, "{}", client.name);
                }
            }
            None if client.name == "opencode" => assert!(!file.exists()),
            None => assert!(!fs::read_to_string(&file).unwrap().contains("mcp-stdio")),
        }
    }
}

#[test]
fn a_plug_in_of_opencode_that_somebody_changed_is_found() {
    let home = HookHome::new();
    let file = ".config/opencode/plugin/coretools-hook.js";
    home.succeeds(&["--role", "worker", "hook", "install", "opencode"], "");
    let text = fs::read_to_string(home.path(file)).unwrap();
    assert!(home.doctor(file).starts_with("ok"));
    home.write(file, &text.replace("throw new Error", "console.log"));
    let finding = home.doctor(file);
    assert!(!finding.starts_with("ok") && finding.contains("not as `hook install` writes it"), "{finding}");
}

/// An event of Cursor 3.9 before it uses a tool.
fn cursor_event(home: &HookHome, tool: &str, input: &Value) -> Value {
    json!({
        "conversation_id": "3fd0c9b2-5a07-4a44-9a38-0a8b58b5a3f1",
        "generation_id": "0b7f6e0e-6c1f-4c0f-8e0c-1f7a3a0c9d11",
        "session_id": "3fd0c9b2-5a07-4a44-9a38-0a8b58b5a3f1",
        "model": "default",
        "hook_event_name": "preToolUse",
        "cursor_version": "3.9.16",
        "workspace_roots": [home.project.path()],
        "user_email": null,
        "transcript_path": null,
        "tool_name": tool,
        "tool_input": input,
        "tool_use_id": "tool_3b7c03f6",
        "cwd": "",
    })
}

#[test]
fn events_of_cursor_are_answered_in_its_form() {
    let home = HookHome::new();
    home.succeeds(&["--role", "worker", "hook", "install", "cursor"], "");
    let audit = home.path("audit.jsonl");
    let ask = |tool: &str, input: Value| -> Value {
        let event = cursor_event(&home, tool, &input).to_string();
        let arguments = ["--role", "worker", "--audit", audit.to_str().unwrap(), "hook", "cursor"];
        serde_json::from_str(&home.succeeds(&arguments, &event)).unwrap()
    };
    let path = |name: &str| home.project.join(name);
    let line = |text: &str| json!({"command": text, "cwd": "", "timeout": 30000});

    let answer = ask("Shell", line("echo hi > made.txt && cat made.txt"));
    assert_eq!(answer["permission"], "allow", "{answer}");
    // The rest of the arguments stays, and the line in its place runs and is confined.
    let input = &answer["updated_input"];
    assert_eq!(input["timeout"], 30000, "{answer}");
    let replaced = input["command"].as_str().unwrap();
    assert!(replaced.contains(" exec ") && replaced.contains("bash -c"), "{replaced}");
    let replaced = replaced.replace(&format!("--ends-with {}", std::process::id()), "");
    let mut shell = Command::new("bash");
    shell.args(["-c", &replaced]).current_dir(home.project.path()).env("HOME", home.folder.path());
    let output = shell.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success() && output.stdout == b"hi\n", "{output:?}");

    for (tool, input) in [
        ("Read", json!({"file_path": path("a.txt")})),
        ("Write", json!({"file_path": path("new.txt"), "content": "x"})),
        ("Grep", json!({"pattern": "hello", "file_path": path("")})),
        ("MCP:read_file", json!({"path": "a.txt"})),
    ] {
        assert_eq!(ask(tool, input), json!({"permission": "allow"}), "{tool}");
    }
    let refused = [
        ("Shell", line("claude -p x")),
        ("Shell", line("echo {} > .cursor/hooks.json")),
        ("Shell", json!({"command": "echo x > b.txt", "cwd": "/etc"})),
        ("Read", json!({"file_path": "/etc/passwd"})),
        ("Write", json!({"file_path": path(".cursor/hooks.json"), "content": "{}"})),
        ("Write", json!({"file_path": home.path(".cursor/hooks.json"), "content": "{}"})),
        ("Grep", json!({"pattern": "x", "file_path": "/etc"})),
        ("Delete", json!({"file_path": "/etc/passwd"})),
        ("Task", json!({"description": "x", "prompt": "x", "subagent_type": "general-purpose"})),
        ("MCP:new_session", json!({"prompt": "x"})),
        ("ComputerUse", json!({})),
    ];
    let count = refused.len();
    for (tool, input) in refused {
        let answer = ask(tool, input);
        assert_eq!(answer["permission"], "deny", "{tool}: {answer}");
        let reason = answer["user_message"].as_str().unwrap();
        assert!(reason.starts_with("refused by the CoreTools policy"), "{tool}: {answer}");
        assert_eq!(answer["agent_message"], reason);
    }
    let lines = fs::read_to_string(&audit).unwrap();
    let decided = |word: &str| lines.matches(&format!("\"decision\":\"{word}\"")).count();
    assert_eq!(decided("refused"), count, "{lines}");
    // Whatever is no event is refused too.
    for text in ["", "{}", "[1]", r#"{"hook_event_name": "beforeReadFile", "tool_name": "Read", "cwd": "/"}"#]
    {
        let answer: Value = serde_json::from_str(&home.succeeds(&["hook", "cursor"], text)).unwrap();
        assert_eq!(answer["permission"], "deny", "{text}: {answer}");
    }
    // Nobody answers where Cursor asks nobody: the entry makes a hook that fails a refusal.
    let settings = without_whitespace(&home.path(".cursor/hooks.json"));
    assert_eq!(settings["version"], 1);
    assert_eq!(settings["hooks"]["preToolUse"][0]["failClosed"], true, "{settings}");
}
