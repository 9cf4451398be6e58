//! The command line: what it prints, and its exit codes.

use integration_tests::Project;
use std::process::{Command, Output, Stdio};

fn run(project: &Project, arguments: &[&str]) -> Output {
    // Help is wrapped to the terminal's width.
    let mut command: Command = project.server();
    command
        .args(arguments)
        .env("COLUMNS", "100")
        .env("HOME", "/home/user")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Returns what is printed, with the paths of this run and this machine taken out.
fn printed(project: &Project, bytes: &[u8]) -> String {
    let server = integration_tests::server().canonicalize().unwrap();
    String::from_utf8(bytes.to_vec())
        .unwrap()
        .replace(&server.display().to_string(), "/bin/mcp-stdio")
        .replace(&project.path().canonicalize().unwrap().display().to_string(), "/project")
        .lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join("\n")
}

fn stdout(project: &Project, arguments: &[&str]) -> String {
    let output = run(project, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    printed(project, &output.stdout)
}

#[test]
fn help_is_as_recorded() {
    let project = Project::empty();
    insta::assert_snapshot!("help", stdout(&project, &["--help"]));
    for command in ["tools", "call", "doctor", "print-config", "policy", "wrap", "completions"] {
        insta::assert_snapshot!(format!("help_{command}"), stdout(&project, &[command, "--help"]));
    }
}

#[test]
fn the_version_is_the_packages() {
    let project = Project::empty();
    assert_eq!(stdout(&project, &["--version"]), concat!("mcp-stdio ", env!("CARGO_PKG_VERSION")));
}

#[test]
fn each_clients_configuration_is_as_recorded() {
    let project = Project::with([("my project/coretools.toml", "")]);
    let configurations: Vec<_> = [
        "claude",
        "claude-desktop",
        "codex",
        "opencode",
        "gemini",
        "copilot",
        "cursor",
        "vscode",
        "windsurf",
        "cline",
        "jetbrains",
        "zed",
    ]
    .into_iter()
    .map(|client| {
        let chosen = ["--root", "my project", "--root", "/srv/it's", "--toolsets", "edit"];
        let flags = stdout(&project, &[&["print-config", client][..], &chosen].concat());
        // These need a root, or take no addresses.
        let other = |arguments: &[&str]| match client {
            "claude-desktop" => "refused".to_owned(),
            _ => stdout(&project, &[&["print-config", client][..], arguments].concat()),
        };
        let (plain, remote) = (other(&[]), other(&["--url", "https://tools.example/mcp"]));
        format!("===== {client}\n{plain}\n----- with flags\n{flags}\n----- of mcp-http\n{remote}")
    })
    .collect();
    insta::assert_snapshot!("print_config", configurations.join("\n"));
}

#[test]
fn a_printed_configuration_starts_the_server_it_describes() {
    let project = Project::with([("my project/a.txt", "")]);
    let arguments = ["print-config", "claude", "--root", "my project", "--toolsets", "read_file"];
    let config: serde_json::Value = serde_json::from_slice(&run(&project, &arguments).stdout).unwrap();
    let server = &config["mcpServers"]["coretools"];
    let words = server["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let mut command = Command::new(server["command"].as_str().unwrap());
    let output = command.args(words).arg("tools").current_dir("/").output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(listed.contains("\n1 tools") || listed.contains("\n1 tool;"), "{listed}");
}

#[test]
fn the_list_of_tools_is_as_recorded() {
    let project = Project::empty();
    insta::assert_snapshot!("tools_table", stdout(&project, &["tools"]));
    let json: serde_json::Value = serde_json::from_str(&stdout(&project, &["tools", "--json"])).unwrap();
    assert_eq!(json["tools"], serde_json::json!(crate::all()));
}

#[test]
fn a_call_ends_with_0_for_success_1_for_failure_and_2_where_there_was_nothing_to_call() {
    let project = Project::with([("a.txt", "hello\n")]);
    for (arguments, code) in [
        (&["call", "read_file", r#"{"path": "a.txt"}"#][..], 0),
        (&["call", "list_directory"], 0),
        (&["call", "run_command", r#"{"command": "true"}"#], 0),
        (&["call", "read_file", r#"{"path": "nothing"}"#], 1),
        (&["call", "read_file", r#"{"pth": "a.txt"}"#], 1),
        (&["call", "run_command", r#"{"command": "false"}"#], 1),
        (&["call", "no_such_tool"], 2),
        (&["call", "read_file", "no json"], 2),
        (&["call", "read_file", "[1]"], 2),
        (&["--toolsets", "no_such", "tools"], 2),
        (&["--root", "/no/such/folder", "tools"], 2),
        (&["--no-such-flag"], 2),
        (&["no-such-command"], 2),
        (&["print-config", "no-such-client"], 2),
        (&["--log", "loud", "tools"], 2),
    ] {
        let output = run(&project, arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
        // An answer is on standard output, also that of work that failed. Without one, the reason is on standard error.
        assert_eq!(output.stdout.is_empty(), code == 2, "{arguments:?}: {output:?}");
        assert_eq!(output.stderr.is_empty(), code != 2, "{arguments:?}: {output:?}");
    }
}

#[test]
fn a_call_prints_the_whole_result_as_json_where_that_is_asked_for() {
    let project = Project::empty();
    let result = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_slice(&run(&project, arguments).stdout).unwrap()
    };
    let result =
        result(&["call", "--json", "run_command", r#"{"command": ["sh", "-c", "echo hi; exit 3"]}"#]);
    assert_eq!(result["isError"], true);
    assert_eq!(result["structuredContent"]["exit_code"], 3);
    assert_eq!(result["structuredContent"]["stdout"], "hi\n");
}

#[test]
fn help_behind_a_tool_prints_what_it_takes_and_only_to_a_role_that_sees_it() {
    let project = Project::empty();
    let help = stdout(&project, &["call", "search_files", "--help"]);
    for words in [
        "Usage: mcp-stdio call search_files '{\"pattern\"",
        "  pattern  text, required",
        "  max_results  integer",
    ] {
        assert!(help.contains(words), "{words}: {help}");
    }
    let hidden = run(&project, &["call", "--role", "readonly", "write_file", "--help"]);
    let unknown = run(&project, &["call", "--role", "readonly", "wrzzz_fzzz", "--help"]);
    assert_eq!((hidden.status.code(), hidden.stdout.len()), (Some(2), 0), "{hidden:?}");
    let said = |output: &Output| printed(&project, &output.stderr);
    assert_eq!(said(&hidden).replace("write_file", "NAME"), said(&unknown).replace("wrzzz_fzzz", "NAME"));
    assert!(stdout(&project, &["call", "--help"]).contains("Usage: mcp-stdio call"));
}

#[test]
fn the_help_of_a_subcommand_has_its_own_options_first_and_names_the_global_ones() {
    let project = Project::empty();
    let help = stdout(&project, &["tools", "--help"]);
    assert!(help.lines().count() < 16 && help.find("--json") < help.find("Global options: --root"), "{help}");
    assert!(!help.contains("Folder that tools may use"), "{help}");
    // They are taken all the same, before and behind it.
    for arguments in [&["--toolsets", "read_file", "tools"][..], &["tools", "--toolsets", "read_file"]] {
        assert!(stdout(&project, arguments).contains("\n1 tools"));
    }
}

#[test]
fn a_call_of_the_sessions_leaves_no_supervisor_behind_for_doctor_to_find() {
    let project = Project::empty();
    assert!(run(&project, &["call", "status"]).status.success());
    let doctor = stdout(&project, &["doctor"]);
    assert!(!doctor.contains("supervisor"), "{doctor}");
}

#[test]
fn a_call_gets_the_time_that_the_operator_allows() {
    let project = Project::with([("more.toml", "[limits]\nmax_timeout_ms = 700000\n")]);
    let call = |timeout: u64| {
        let arguments = format!(r#"{{"command": "true", "timeout_ms": {timeout}}}"#);
        run(&project, &["--config", "more.toml", "call", "run_command", &arguments])
    };
    assert!(call(650_000).status.success());
    let refused = call(700_001);
    assert_eq!(refused.status.code(), Some(1));
    assert!(printed(&project, &refused.stdout).contains("from 1 to 700000"), "{refused:?}");
}

#[test]
fn a_call_reads_its_arguments_from_standard_input() {
    let project = Project::with([("a.txt", "hello\n"), ("arguments", r#"{"path": "a.txt"}"#)]);
    let input = std::fs::File::open(project.join("arguments")).unwrap();
    let output = project.server().args(["call", "read_file", "-"]).stdin(input).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim_end(), "hello");
}

#[test]
fn what_is_wrong_on_the_command_line_is_said_as_recorded() {
    let project = Project::empty();
    let said: Vec<_> = [
        &["--toolsets", "edti", "tools"][..],
        &["--root", "/no/such/folder", "tools"],
        &["call", "read_fil"],
        &["call", "read_file", "{path: 1}"],
        &["call", "read_file", "[]"],
        &["--log", "loud", "tools"],
        &["print-config", "claud"],
        &["--toolset", "edit"],
        &["tols"],
    ]
    .into_iter()
    .map(|arguments| {
        let output = run(&project, arguments);
        format!("$ mcp-stdio {}\n{}\n", arguments.join(" "), printed(&project, &output.stderr))
    })
    .collect();
    insta::assert_snapshot!("command_line_errors", said.join("\n"));
}

#[test]
fn every_shell_has_completions_that_know_the_subcommands() {
    let project = Project::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&project, &["completions", shell]);
        for word in ["mcp-stdio", "print-config", "doctor", "toolsets"] {
            assert!(script.contains(word), "{shell} knows nothing of {word}");
        }
    }
}

#[test]
fn completions_for_bash_are_a_program_that_bash_takes() {
    let project = Project::empty();
    project.write("completions", &stdout(&project, &["completions", "bash"]));
    let output =
        Command::new("bash").args(["-n", "completions"]).current_dir(project.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn output_that_nobody_reads_is_no_fault() {
    let project = Project::empty();
    let script = format!("{} tools --json | head -c 10", integration_tests::server().display());
    let output = Command::new("bash")
        .args(["-o", "pipefail", "-c", &script])
        .current_dir(project.path())
        .output()
        .unwrap();
    assert!(output.stderr.is_empty(), "{output:?}");
}
