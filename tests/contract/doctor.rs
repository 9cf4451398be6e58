//! `doctor`, where something is wrong for real: what it finds, and what it says to do.

use integration_tests::Project;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;

/// Runs `doctor` as `prepare` says: returns its exit code, and the lines about `what`, each with its remedy.
fn doctor(project: &Project, what: &str, prepare: impl FnOnce(&mut Command)) -> (i32, String) {
    let mut command = project.server();
    command.args(["doctor", "--json"]);
    // Only what a test makes is found.
    command.env("HOME", project.state()).env_remove("SHELL").env_remove("TMPDIR");
    prepare(&mut command);
    let output = command.output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let mut lines = Vec::new();
    for finding in answer["findings"].as_array().unwrap().iter().filter(|finding| finding["what"] == what) {
        let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        lines.push(format!("{}: {}", text("state"), text("detail")));
        // Whatever is not as it should be has a remedy.
        assert_eq!(finding["state"] != "ok", !text("remedy").is_empty(), "{finding}");
        if finding["state"] != "ok" {
            lines.push(format!("  -> {}", text("remedy")));
        }
    }
    let code = output.status.code().unwrap();
    assert_eq!(answer["healthy"], code == 0);
    let said = lines.join("\n");
    let said = said.replace(project.state().to_str().unwrap(), "$STATE");
    (code, said.replace(project.path().to_str().unwrap(), "$PROJECT"))
}

/// A folder with programs, each a script.
fn programs(project: &Project, scripts: &[(&str, &str)]) -> String {
    let folder = project.state().join("bin");
    fs::create_dir_all(&folder).unwrap();
    for (name, script) in scripts {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    // A shell is always there.
    let _ = symlink("/bin/sh", folder.join("sh"));
    folder.to_str().unwrap().to_owned()
}

#[test]
fn a_root_that_is_not_there_or_no_folder_is_broken_and_doctor_says_what_would_do() {
    let project = Project::with([("a.txt", "")]);
    let (code, said) = doctor(&project, "root", |command| {
        command.args(["--root", "missing", "--root", "a.txt"]);
    });
    assert_eq!(code, 1);
    insta::assert_snapshot!(said);
}

#[test]
fn a_root_that_cannot_be_written_to_or_is_too_much_is_worth_a_note() {
    let project = Project::empty();
    let (code, said) = doctor(&project, "root", |command| {
        command.args(["--root", "/sys", "--root", "/", "--root", project.state().to_str().unwrap()]);
    });
    assert_eq!(code, 0);
    // A container may have it read-only.
    let said = said.replace("Read-only file system (os error 30)", "Permission denied (os error 13)");
    insta::assert_snapshot!(said);
}

#[test]
fn a_configuration_that_cannot_be_used_is_broken_and_doctor_says_where() {
    let project = Project::with([("coretools.toml", "\ntoolset = \"edit\"\n")]);
    let (code, said) = doctor(&project, "configuration", |_| {});
    assert_eq!(code, 1);
    insta::assert_snapshot!(said);
}

#[test]
fn a_configuration_that_others_may_write_to_is_told() {
    let project = Project::with([("coretools.toml", "toolsets = \"edit\"\n"), ("named.toml", "")]);
    for file in ["coretools.toml", "named.toml"] {
        fs::set_permissions(project.join(file), fs::Permissions::from_mode(0o666)).unwrap();
    }
    let (code, found) = doctor(&project, "configuration", |_| {});
    assert_eq!(code, 1);
    let (_, named) = doctor(&project, "configuration", |command| {
        command.args(["--config", "named.toml"]);
    });
    insta::assert_snapshot!(format!("{found}\n{named}"));
}

#[test]
fn a_role_that_is_not_declared_is_told_with_those_that_are() {
    let project = Project::empty();
    let (code, said) = doctor(&project, "role", |command| {
        command.args(["--role", "wroker"]);
    });
    assert_eq!(code, 0);
    insta::assert_snapshot!(said);
}

#[test]
fn a_marker_that_cannot_be_used_is_told() {
    let project = Project::empty();
    let folder = project.state().join("session");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("teleclaude_role"), "").unwrap();
    let (code, said) = doctor(&project, "role", |command| {
        command.env("TMPDIR", &folder);
    });
    assert_eq!(code, 0);
    insta::assert_snapshot!(said);
}

#[test]
fn a_policy_that_cannot_be_used_is_broken() {
    let project = Project::with([("roles.toml", "[roles.worker]\nalow = []\n")]);
    let (code, said) = doctor(&project, "policy", |command| {
        command.args(["--policy", "roles.toml"]);
    });
    assert_eq!(code, 1);
    insta::assert_snapshot!(said);
}

#[test]
fn a_git_that_is_missing_too_old_or_no_git_is_told() {
    let project = Project::empty();
    let mut said = Vec::new();
    for script in [None, Some("echo git version 1.8.3.1"), Some("echo hello"), Some("exit 1")] {
        let scripts: Vec<_> = script.map(|script| ("git", script)).into_iter().collect();
        let path = programs(&project, &scripts);
        said.push(
            doctor(&project, "git", |command| {
                command.env("PATH", path);
            })
            .1,
        );
    }
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn programs_that_only_the_login_shell_finds_are_named_with_their_folder() {
    let project = Project::empty();
    let cargo = project.state().join("tools");
    fs::create_dir(&cargo).unwrap();
    fs::write(cargo.join("cargo"), "").unwrap();
    // It is asked with `-l -c COMMAND`.
    let shell = format!("echo welcome; PATH={}; eval \"$3\"", cargo.display());
    let path = programs(&project, &[("login-shell", &shell)]);
    let (_, said) = doctor(&project, "PATH", |command| {
        command.env("PATH", &path).env("SHELL", format!("{path}/login-shell"));
    });
    insta::assert_snapshot!(said);
}

#[test]
fn a_state_folder_that_is_none_or_open_to_others_is_told() {
    let project = Project::empty();
    let (_, none) = doctor(&project, "state", |command| {
        command.env("XDG_STATE_HOME", "/dev/null");
    });
    let folder = project.state().join("coretools/sessions");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let (_, open) = doctor(&project, "state", |_| {});
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let (_, good) = doctor(&project, "state", |_| {});
    insta::assert_snapshot!(format!("{none}\n{open}\n{good}"));
}

#[test]
fn a_socket_that_a_killed_supervisor_left_is_no_reason_for_a_note() {
    let project = Project::empty();
    let folder = project.state().join("coretools/sessions");
    fs::create_dir_all(&folder).unwrap();
    drop(UnixListener::bind(folder.join("socket")).unwrap());
    let (code, said) = doctor(&project, "sessions", |_| {});
    assert_eq!(code, 0);
    insta::assert_snapshot!(said);
}

#[test]
fn a_port_that_is_taken_is_told() {
    let project = Project::empty();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    project.write("http.toml", &format!("[http]\nlisten = [\"{address}\", \"nowhere\"]\n"));
    let (code, said) = doctor(&project, "http.listen", |command| {
        command.args(["--config", "http.toml"]);
    });
    assert_eq!(code, 0);
    insta::assert_snapshot!(said.replace(&taken.local_addr().unwrap().port().to_string(), "PORT"));
}

#[test]
fn few_open_files_are_told() {
    let project = Project::empty();
    let server = project.server();
    let (_, said) = doctor(&project, "limits", |command| {
        let mut limited = Command::new("sh");
        limited.args(["-c", "ulimit -n 256; exec \"$0\" doctor --json"]).arg(server.get_program());
        limited.current_dir(project.path());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        }
        *command = limited;
    });
    insta::assert_snapshot!(said);
}

#[test]
fn a_selection_of_which_the_role_sees_nothing_is_told() {
    let project = Project::empty();
    let (_, said) = doctor(&project, "tools", |command| {
        command.args(["--role", "worker", "--toolsets", "send_message"]);
    });
    insta::assert_snapshot!(said);
}

#[test]
fn people_read_the_same_as_a_table_with_the_remedies_below() {
    let project = Project::empty();
    let output = project.server().args(["--root", "missing", "doctor"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let root: Vec<_> = said.lines().skip_while(|line| !line.starts_with("BROKEN  root")).take(2).collect();
    let root = root.join("\n").replace(project.path().to_str().unwrap(), "$PROJECT");
    insta::assert_snapshot!(root);
    assert!(said.ends_with("something is broken\n"), "{said}");
}
