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
    for command in ["tools", "call", "doctor", "print-config", "wrap", "completions"] {
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
    let configurations: Vec<_> = ["claude", "codex", "opencode", "gemini", "cursor", "vscode", "zed"]
        .into_iter()
        .map(|client| {
            let plain = stdout(&project, &["print-config", client]);
            let arguments =
                ["print-config", client, "--root", "my project", "--root", "/srv/it's", "--toolsets", "edit"];
            let chosen = stdout(&project, &arguments);
            let remote = stdout(&project, &["print-config", client, "--url", "https://tools.example/mcp"]);
            format!("===== {client}\n{plain}\n----- with flags\n{chosen}\n----- of mcp-http\n{remote}")
        })
        .collect();
    insta::assert_snapshot!("print_config", configurations.join("\n"));
}

#[test]
fn a_printed_configuration_starts_the_server_it_describes() {
    let project = Project::with([("my project/a.txt", "")]);
    let arguments = ["print-config", "claude", "--root", "my project", "--toolsets", "read_file"];
    let output = run(&project, &arguments);
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.split_once(" -- ")).expect("a command line").1;
    let output = Command::new("sh").args(["-c", &format!("{line} tools")]).current_dir("/").output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(listed.contains("\n1 tools") || listed.contains("\n1 tool;"), "{line}: {listed}");
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
        // What failed is said, and not where the answer would stand.
        assert_eq!(output.stdout.is_empty(), code != 0, "{arguments:?}: {output:?}");
        assert_eq!(output.stderr.is_empty(), code == 0, "{arguments:?}: {output:?}");
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
fn a_call_gets_the_time_that_the_operator_allows() {
    let project = Project::with([("more.toml", "[limits]\nmax_timeout_ms = 700000\n")]);
    let call = |timeout: u64| {
        let arguments = format!(r#"{{"command": "true", "timeout_ms": {timeout}}}"#);
        run(&project, &["--config", "more.toml", "call", "run_command", &arguments])
    };
    assert!(call(650_000).status.success());
    let refused = call(700_001);
    assert_eq!(refused.status.code(), Some(1));
    assert!(printed(&project, &refused.stderr).contains("from 1 to 700000"), "{refused:?}");
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
