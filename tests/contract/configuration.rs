//! `coretools.toml`, its environment variables, the flags over both, and `doctor`.

use integration_tests::{Era, Project, Wire};
use serde_json::{Value, json};
use std::process::{Output, Stdio};

fn run(project: &Project, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = project.server();
    command.env_remove("CORETOOLS_TOOLSETS");
    command.args(arguments).envs(variables.iter().copied()).stdin(Stdio::null()).output().unwrap()
}

/// How many tools are offered.
fn offered(project: &Project, arguments: &[&str], variables: &[(&str, &str)]) -> usize {
    let output = run(project, &[arguments, &["tools", "--json"]].concat(), variables);
    assert!(output.status.success(), "{output:?}");
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    listed["tools"].as_array().unwrap().len()
}

#[test]
fn a_flag_beats_a_variable_and_a_variable_beats_the_file() {
    let project = Project::with([("coretools.toml", "toolsets = [\"read_file\"]\n")]);
    let variable = ("CORETOOLS_TOOLSETS", "read_file,write_file");
    assert_eq!(offered(&project, &[], &[]), 1);
    assert_eq!(offered(&project, &[], &[variable]), 2);
    assert_eq!(offered(&project, &["--toolsets", "read_file,write_file,edit_file"], &[variable]), 3);
}

#[test]
fn the_file_is_found_above_the_root_and_may_be_named() {
    let project = Project::with([
        ("coretools.toml", "toolsets = [\"read_file\"]\n"),
        ("other.toml", "toolsets = [\"read_file\", \"edit_file\"]\n"),
        ("deep/down/a.txt", ""),
    ]);
    assert_eq!(offered(&project, &["--root", "deep/down"], &[]), 1);
    assert_eq!(offered(&project, &["--config", "other.toml"], &[]), 2);
}

#[test]
fn a_fault_in_the_file_is_named_with_its_line_and_the_nearest_key() {
    for (content, words) in [
        ("\ntoolset = \"edit\"\n", ["coretools.toml:2", "`toolset`", "toolsets"]),
        ("[limits]\ncall_timeout = 5\n", ["coretools.toml:2", "call_timeout", "call_timeout_ms"]),
        ("toolsets = 5\n", ["coretools.toml:1", "toolsets", "5"]),
        ("toolsets = \n", ["coretools.toml:1", "expected", ""]),
    ] {
        let project = Project::with([("coretools.toml", content)]);
        let output = run(&project, &["tools"], &[]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{content:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{content:?}: {word:?} is missing in {said}");
        }
    }
}

#[test]
fn a_file_that_came_with_the_project_cannot_give_away_what_lies_outside() {
    let project = Project::with([
        ("secret.txt", "outside\n"),
        ("project/coretools.toml", "roots = [\"..\"]\n"),
        ("project/a.txt", "inside\n"),
    ]);
    let mut command = project.server();
    command.current_dir(project.join("project"));
    let output = command.args(["call", "read_file", r#"{"path": "secret.txt"}"#]).output().unwrap();
    assert_ne!(output.status.code(), Some(0), "{output:?}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("outside\n"), "{output:?}");
}

#[test]
fn a_file_that_came_with_the_project_cannot_turn_redaction_off() {
    let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let project = Project::with([("coretools.toml", "[redaction]\nenabled = false\n"), ("a.env", token)]);
    let output = run(&project, &["call", "read_file", r#"{"path": "a.env"}"#], &[]);
    assert!(!String::from_utf8_lossy(&output.stdout).contains(token), "{output:?}");
}

#[test]
fn no_tool_changes_the_file_that_configures_it() {
    let content = "results = \"auto\"\n";
    let project = Project::with([("coretools.toml", content), ("a.txt", "a\n")]);
    let mut wire = Wire::connect(project.server(), Era::Modern);
    for (tool, arguments) in [
        ("write_file", json!({"path": "coretools.toml", "content": "x"})),
        ("write_file", json!({"path": "./coretools.toml", "content": "x", "mode": "append"})),
        (
            "edit_file",
            json!({"path": "coretools.toml", "edits": [{"old_string": "auto", "new_string": "text"}]}),
        ),
        ("delete_file", json!({"path": "coretools.toml"})),
        ("move_file", json!({"source": "coretools.toml", "destination": "b.toml"})),
        ("move_file", json!({"source": "a.txt", "destination": "coretools.toml", "overwrite": true})),
    ] {
        let text = wire.failure(tool, arguments);
        assert!(text.contains("protected"), "{tool}: {text}");
    }
    assert_eq!(project.read("coretools.toml"), content);
    assert_eq!(wire.text("read_file", json!({"path": "coretools.toml"})), content);
}

#[test]
fn the_longest_answer_is_as_long_as_the_file_says() {
    let project = Project::with([("coretools.toml", "[limits]\nmax_output_bytes = 5000\n")]);
    project.write("long.txt", &"0123456789\n".repeat(2_000));
    let mut wire = Wire::connect(project.server(), Era::Modern);
    let text = wire.text("read_file", json!({"path": "long.txt"}));
    assert!(text.len() <= 5_000 && text.contains("left out"), "{} bytes", text.len());
}

#[test]
fn commands_get_a_minimal_environment_where_that_is_asked_for() {
    let project = Project::with([("coretools.toml", "[commands]\nenvironment = \"minimal\"\n")]);
    let mut command = project.server();
    command.env("SOME_VARIABLE", "of the server");
    let mut wire = Wire::connect(command, Era::Modern);
    let result = wire.call("run_command", json!({"command": ["env"], "env": {"MINE": "set"}}));
    let environment = result["structuredContent"]["stdout"].as_str().unwrap();
    assert!(environment.contains("PATH=") && environment.contains("MINE=set"), "{environment}");
    assert!(!environment.contains("SOME_VARIABLE"), "{environment}");
}

#[test]
fn doctor_ends_with_0_where_everything_is_in_place_and_with_1_where_something_is_broken() {
    let project = Project::with([("coretools.toml", "toolsets = \"edit\"\n")]);
    let output = run(&project, &["doctor"], &[]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("coretools.toml") && said.contains("git"), "{said}");

    let output = run(&project, &["--root", "/no/such/folder", "doctor"], &[]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("/no/such/folder"), "{said}");

    let output = run(&project, &["doctor", "--json"], &[]);
    assert!(serde_json::from_slice::<Value>(&output.stdout).is_ok(), "{output:?}");
}

#[test]
fn doctor_tells_of_a_broken_configuration() {
    let project = Project::with([("coretools.toml", "nonsense = 1\n")]);
    let output = run(&project, &["doctor"], &[]);
    assert!(matches!(output.status.code(), Some(1 | 2)), "{output:?}");
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("nonsense") && said.contains("coretools.toml:1"), "{said}");
}
