//! `print-config --write`: clients' files as people have them, with the server merged into them.

use integration_tests::Project;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};

/// The server of `project` with a home of the user's own in it.
fn command(project: &Project, arguments: &[&str]) -> Command {
    let mut command = project.server();
    let home = project.join("home");
    std::fs::create_dir_all(&home).unwrap();
    command.arg("print-config").args(arguments).env("HOME", &home).env_remove("XDG_CONFIG_HOME");
    for variable in ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "CLINE_MCP_SETTINGS_PATH"] {
        command.env_remove(variable);
    }
    command
}

fn run(project: &Project, arguments: &[&str]) -> Output {
    command(project, arguments).output().unwrap()
}

/// Returns what it prints; it must succeed.
fn written(project: &Project, arguments: &[&str]) -> String {
    let output = run(project, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn each_client_gets_its_file_and_a_second_time_changes_nothing() {
    let project = Project::empty();
    for (client, file) in [
        ("claude", ".claude.json"),
        ("claude-desktop", ".config/Claude/claude_desktop_config.json"),
        ("codex", ".codex/config.toml"),
        ("opencode", ".config/opencode/opencode.json"),
        ("gemini", ".gemini/settings.json"),
        ("copilot", ".copilot/mcp-config.json"),
        ("cursor", ".cursor/mcp.json"),
        ("vscode", ".config/Code/User/mcp.json"),
        ("windsurf", ".codeium/windsurf/mcp_config.json"),
        ("cline", ".cline/data/settings/cline_mcp_settings.json"),
        ("jetbrains", ".junie/mcp/mcp.json"),
        ("zed", ".config/zed/settings.json"),
    ] {
        let path = format!("home/{file}");
        let said = written(&project, &[client, "--write", "--root", "."]);
        assert!(said.contains(file) && said.starts_with("wrote "), "{client}: {said}");
        let content = project.read(&path);
        assert_eq!(content, written(&project, &[client, "--root", "."]), "{client}");
        let said = written(&project, &[client, "--write", "--root", "."]);
        assert!(said.contains("nothing was changed"), "{client}: {said}");
        assert_eq!(project.read(&path), content, "{client}");
        assert!(!project.join(&format!("{path}.bak")).exists());
    }
}

#[test]
fn what_else_is_in_a_file_stays_with_its_comments_and_a_copy_is_kept() {
    let before =
        "{\n  // my servers\n  \"servers\": {\n    \"other\": { \"url\": \"http://x/\" }, // old\n  },\n}\n";
    let project = Project::with([(".vscode/mcp.json", before)]);
    let said = written(&project, &["vscode", "--write", "--project"]);
    assert!(said.contains("as it was before: ") && said.contains("mcp.json.bak"), "{said}");
    assert_eq!(project.read(".vscode/mcp.json.bak"), before);
    let after = project.read(".vscode/mcp.json");
    for kept in ["// my servers", "\"other\": { \"url\": \"http://x/\" }, // old"] {
        assert!(after.contains(kept), "{kept}: {after}");
    }
    assert!(after.contains("    \"coretools\": {\n      \"type\": \"stdio\","), "{after}");
    // VS Code asks for the token of a remote server once.
    for _ in 0..2 {
        written(
            &project,
            &["vscode", "--write", "--project", "--as", "far", "--url", "https://tools.example/mcp"],
        );
    }
    assert_eq!(project.read(".vscode/mcp.json").matches("promptString").count(), 1);
}

#[test]
fn the_users_own_settings_of_the_server_survive_a_change_of_its_flags() {
    let before = r#"{"mcpServers": {"coretools": {"command": "/old", "args": ["x"], "env": {"A": "1"}, "timeout": 5}}}"#;
    let project = Project::with([("home/.cursor/mcp.json", before)]);
    written(&project, &["cursor", "--write", "--toolsets", "edit"]);
    let after: Value = serde_json::from_str(&project.read("home/.cursor/mcp.json")).unwrap();
    let server = &after["mcpServers"]["coretools"];
    assert_eq!((&server["env"], &server["timeout"]), (&json!({"A": "1"}), &json!(5)), "{after}");
    assert_eq!(server["args"], json!(["--toolsets", "edit"]));
    assert!(Path::new(server["command"].as_str().unwrap()).is_file());
}

#[test]
fn a_file_that_cannot_be_changed_without_harm_stays_and_the_message_says_what_to_add() {
    for (client, file, content, why) in [
        ("cursor", ".cursor/mcp.json", "{\"mcpServers\": {", "it is not valid"),
        ("gemini", ".gemini/settings.json", "{\"mcpServers\": []}", "`mcpServers` in it is not an object"),
        (
            "claude",
            ".mcp.json",
            "{\"mcpServers\": {\"coretools\": {\"command\": \"x\" /* mine */}}}",
            "has comments, which would be lost",
        ),
        ("codex", ".codex/config.toml", "mcp_servers = { a = { command = \"b\" } }", "cannot be changed"),
    ] {
        let project = Project::with([(file, content)]);
        let output = run(&project, &[client, "--write", "--project"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{client}: {said}");
        assert!(said.contains(why) && said.contains(file) && said.contains("by hand:"), "{client}: {said}");
        assert!(said.contains("command"), "{client}: {said}");
        assert_eq!(project.read(file), content);
        assert!(!project.join(&format!("{file}.bak")).exists());
    }
}

#[test]
fn what_a_client_cannot_do_is_refused_with_what_to_do_instead() {
    let project = Project::empty();
    for (arguments, why) in [
        (&["windsurf", "--write", "--project"][..], "reads no servers from a project"),
        (&["claude-desktop"], "--root ~/project"),
        (&["claude-desktop", "--url", "https://x/mcp"], "custom connector"),
        (&["zed", "--write", "--url", "https://x/mcp"], "keeps the token itself"),
        (&["cursor", "--as", "a b"], "--as \"a b\" is no name"),
        (&["cursor", "--project"], "--write"),
    ] {
        let output = run(&project, arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(why), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(std::fs::read_dir(project.join("home")).unwrap().count(), 0);
}

#[test]
fn a_named_file_is_written_instead_of_the_clients_own() {
    let project = Project::empty();
    written(&project, &["zed", "--write", "--file", "deep/settings.json", "--as", "mine"]);
    let config: Value = serde_json::from_str(&project.read("deep/settings.json")).unwrap();
    assert!(config["context_servers"]["mine"]["command"].is_string(), "{config}");
}
