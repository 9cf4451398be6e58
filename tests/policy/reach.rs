//! Ways to reach something that a policy does not name.

use crate::{PolicyFixture, listed, tester};
use integration_tests::{Era, Wire, wait_until};
use serde_json::{Value, json};
use std::time::Duration;

const LIMITED: &str = "allow = [\"*\"]\n[[roles.tester.require]]\nid = \"rule\"\ntools = [\"*\"]\nread_within = [\"docs\"]\nwrite_within = [\"docs\"]";

fn command(wire: &mut Wire, words: &[&str]) -> Value {
    wire.call("run_command", json!({"command": words, "working_directory": "docs"}))
}

#[test]
fn a_program_reaches_no_more_than_the_call_that_started_it() {
    let judged = PolicyFixture::by(&tester(LIMITED), [("docs/a.txt", "a"), ("src/secret.txt", "needle")]);
    let mut wire = judged.connect(Era::Modern);
    assert_eq!(wire.call("read_file", json!({"path": "src/secret.txt"}))["isError"], true);
    let read = command(&mut wire, &["cat", "../src/secret.txt"]).to_string();
    assert!(!read.contains("needle"), "{read}");
    command(&mut wire, &["touch", "../src/new.txt"]);
    assert!(!judged.project.join("src/new.txt").exists());
}

#[test]
fn a_key_of_markers_that_tools_could_read_keeps_the_server_from_starting() {
    let judged = PolicyFixture::by(&tester("allow = [\"*\"]"), []);
    crate::put(&judged.project.join("marker.key"), "0123456789abcdef0123456789abcdef", 0o600);
    let config = format!("[policy]\nmarker_key = {:?}\n", judged.project.join("marker.key"));
    let config = crate::put(&judged.outside.join("coretools.toml"), config, 0o600);
    let mut command = crate::server(&judged.project, ["tools", "--config"]);
    command.arg(config);
    let output = crate::run(command);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("lies in a root"), "{output:?}");
}

/// A client that says `initialized` often is still one listener.
#[test]
fn a_change_is_told_once_however_often_a_client_says_that_it_is_ready() {
    let judged = PolicyFixture::by(&tester("allow = [\"*\"]"), []);
    let mut wire = judged.connect(Era::BOTH[0]);
    for _ in 0..5 {
        wire.notify("notifications/initialized", json!({}));
    }
    wire.request("tools/list", json!({}));
    judged.set_policy(&tester("allow = [\"*\"]\ndeny = [\"write_file\"]"));
    wait_until(Duration::from_secs(20), "the new policy holds", || !listed(&mut wire).contains("write_file"));
    wire.is_silent_for(Duration::from_millis(500));
    wire.is_silent_for(Duration::from_millis(500));
    let told = wire
        .others()
        .iter()
        .filter(|message| message["method"] == "notifications/tools/list_changed")
        .count();
    assert_eq!(told, 1);
}

#[test]
fn an_audit_that_was_removed_is_made_again() {
    let judged = PolicyFixture::by(&tester("allow = [\"*\"]"), []);
    let audit = judged.outside.join("audit.jsonl");
    let mut command = judged.server();
    command.arg("--audit").arg(&audit);
    let mut wire = Wire::connect(command, Era::Modern);
    wire.call("list_commands", json!({}));
    std::fs::remove_file(&audit).unwrap();
    wire.call("list_commands", json!({}));
    assert!(audit.exists());
}

/// A line that is JSON is a list where a list may stand, and is judged as what it becomes.
#[test]
fn a_command_that_is_a_list_in_a_string_is_judged_as_it_runs() {
    let lines = "allow = [\"*\"]\n[[roles.tester.require]]\nid = \"rule\"\ntools = [\"run_command\"]\ncommands = [\"echo hello\"]";
    let judged = PolicyFixture::by(&tester(lines), []);
    let mut wire = judged.connect(Era::Modern);
    for command in
        [r#"["touch","ran"]"#, r#"["sh","-c","touch ran"]"#, r#" ["touch","ran"]"#, r#"["echo hello","x"]"#]
    {
        let result = wire.call("run_command", json!({"command": command}));
        assert_eq!(result["isError"], true, "{command}: {result}");
        assert!(!judged.project.join("ran").exists(), "{command}");
    }
    // Whether it is taken or refused, it is never another command.
    let result = wire.call("run_command", json!({"command": r#"["echo","hello"]"#})).to_string();
    assert!(result.contains("hello") || result.contains("refused by policy"), "{result}");
}

fn starts(judged: &PolicyFixture, arguments: &[&str]) -> std::process::Output {
    let mut command = judged.server();
    command.args(arguments).arg("tools");
    crate::run(command)
}

const EXCLUDING: &str =
    "allow = [\"*\"]\n[[roles.tester.require]]\nid = \"rule\"\ntools = [\"*\"]\nnot_within = [\"PLACE\"]";

/// The target of a link has another path, by which it could be reached.
#[test]
fn an_exclusion_that_does_not_hold_keeps_the_server_from_starting() {
    for (place, said) in [("conf", "is `real`"), ("nosuch:x", "is `./nosuch:x`")] {
        let judged = PolicyFixture::by(&tester(&EXCLUDING.replace("PLACE", place)), [("real/x", "needle")]);
        std::os::unix::fs::symlink("real", judged.project.join("conf")).unwrap();
        let output = starts(&judged, &[]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(said), "{output:?}");
    }
    let judged =
        PolicyFixture::by(&tester(&EXCLUDING.replace("PLACE", "sub/secret")), [("sub/secret/x", "needle")]);
    let (root, sub) = (judged.project.path().display().to_string(), judged.project.join("sub"));
    assert_eq!(starts(&judged, &["--root", &root]).status.code(), Some(0));
    let output = starts(&judged, &["--root", &root, "--root", &sub.display().to_string()]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("lies in the root"), "{output:?}");
}

#[test]
fn a_program_that_is_found_through_a_link_into_a_root_is_none_that_was_allowed() {
    let lines = "allow = [\"*\"]\n[[roles.tester.require]]\nid = \"rule\"\ntools = [\"run_command\"]\ncommands = [\"tool\", \"true\"]";
    let judged = PolicyFixture::by(&tester(lines), []);
    let (found, real) = (judged.outside.join("bin"), judged.project.join("tool"));
    std::fs::create_dir(&found).unwrap();
    crate::put(&real, "#!/bin/sh\necho evil\n", 0o755);
    std::os::unix::fs::symlink(&real, found.join("tool")).unwrap();
    std::os::unix::fs::symlink("/usr/bin", judged.project.join("link")).unwrap();
    let mut command = judged.server();
    command.env("PATH", format!("{}:/usr/bin:/bin", found.display()));
    let mut wire = Wire::connect(command, Era::Modern);
    let through = judged.project.join("link/true").display().to_string();
    for command in [json!(["tool"]), json!([through]), json!([real.display().to_string()])] {
        let result = wire.call("run_command", json!({"command": command}));
        assert_eq!(result["isError"], true, "{command}: {result}");
        assert!(!result.to_string().contains("evil"), "{result}");
    }
    assert_eq!(wire.call("run_command", json!({"command": ["true"]}))["isError"], false);
}

/// Beside the settings of tools lie their passwords.
#[test]
fn a_confined_program_reads_no_credentials_of_its_user() {
    let judged = PolicyFixture::by(&tester("allow = [\"*\"]\ndeny = [\"delete_file\"]"), []);
    let home = judged.outside.path();
    let files = [
        ".ssh/id_rsa",
        ".config/git/credentials",
        ".config/gh/hosts.yml",
        ".local/share/uv/credentials/credentials.toml",
        ".dotnet/corefx/cryptography/x509stores/my/a.pfx",
        ".cargo/credentials.toml",
        ".npmrc",
        ".netrc",
        ".aws/credentials",
    ];
    for file in files {
        let path = home.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        crate::put(&path, "needle", 0o600);
    }
    let mut command = judged.server();
    command.env("HOME", home);
    let mut wire = Wire::connect(command, Era::Modern);
    let words: Vec<String> = ["cat".to_owned()]
        .into_iter()
        .chain(files.iter().map(|file| home.join(file).display().to_string()))
        .collect();
    let result = wire.call("run_command", json!({"command": words}));
    assert!(!result.to_string().contains("needle"), "{result}");
    assert!(
        result.to_string().contains("Permission denied")
            || result.to_string().contains("No such file or directory"),
        "the programs of this role are confined: {result}"
    );
}
