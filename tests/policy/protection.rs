//! The files that decide what tools may do, inside a root that tools may write.

use crate::{put, server};
use integration_tests::{Era, Project, Wire};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

const FILES: [&str; 7] = [
    "rules/roles.toml",
    "rules/coretools.toml",
    "rules/audit.jsonl",
    "rules/audit.jsonl.1",
    "rules/audit.jsonl.5",
    "tmp/coretools_role",
    "tmp/teleclaude_session_id",
];

/// A project that holds its own policy, configuration, audit and marker: everything in reach.
fn everything_inside() -> (Project, Command) {
    let project = Project::with([("src/a.txt", "a")]);
    for folder in ["rules", "tmp"] {
        fs::create_dir(project.join(folder)).unwrap();
    }
    put(&project.join("rules/roles.toml"), crate::tester("allow = [\"*\"]"), 0o600);
    let config = "[policy]\nfile = \"roles.toml\"\naudit = \"audit.jsonl\"\n";
    put(&project.join("rules/coretools.toml"), config, 0o600);
    put(&project.join("rules/audit.jsonl.1"), "before\n", 0o600);
    put(&project.join("rules/audit.jsonl.5"), "long before\n", 0o600);
    put(&project.join("tmp/teleclaude_session_id"), "s1", 0o600);
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(project.join("tmp"), fs::Permissions::from_mode(0o700)).unwrap();
    let mut marker = server(&project, ["policy", "marker", "--role", "tester"]);
    marker.arg(project.join("tmp"));
    assert!(crate::run(marker).status.success());
    let mut command = server(&project, ["--config"]);
    command.arg(project.join("rules/coretools.toml")).env("TMPDIR", project.join("tmp"));
    (project, command)
}

fn contents(project: &Project) -> Vec<(&'static str, Vec<u8>)> {
    // The audit grows by being asked.
    let fixed = FILES.iter().filter(|file| **file != "rules/audit.jsonl");
    fixed.map(|file| (*file, fs::read(project.join(file)).unwrap())).collect()
}

fn refuse(wire: &mut Wire, tool: &str, arguments: Value) {
    let result = wire.call(tool, arguments.clone());
    assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
}

#[test]
fn no_writing_tool_touches_what_decides_what_tools_may_do() {
    let (project, command) = everything_inside();
    let mut wire = Wire::connect(command, Era::Modern);
    let before = contents(&project);
    let absolute = project.path().display().to_string();
    for file in FILES {
        let (folder, name) = file.rsplit_once('/').unwrap();
        let spellings = [
            file.to_owned(),
            format!("./{file}"),
            format!("{folder}//{name}"),
            format!("{folder}/./{name}"),
            format!("src/../{file}"),
            format!("{folder}/../{file}"),
            format!("{absolute}/{file}"),
        ];
        for path in spellings {
            for mode in ["overwrite", "append", "create"] {
                refuse(&mut wire, "write_file", json!({"path": path, "content": "x", "mode": mode}));
            }
            let edits = json!([{"old_string": "e", "new_string": "x", "replace_all": true}]);
            refuse(&mut wire, "edit_file", json!({"path": path, "edits": edits}));
            refuse(&mut wire, "delete_file", json!({"path": path}));
            refuse(&mut wire, "create_directory", json!({"path": path}));
            refuse(&mut wire, "move_file", json!({"source": path, "destination": "src/moved"}));
            for overwrite in [true, false] {
                let onto = json!({"source": "src/a.txt", "destination": path, "overwrite": overwrite});
                refuse(&mut wire, "move_file", onto);
            }
        }
    }
    for folder in ["rules", "tmp", "./rules/", "src/../tmp"] {
        refuse(&mut wire, "move_file", json!({"source": folder, "destination": "elsewhere"}));
        refuse(&mut wire, "delete_file", json!({"path": folder}));
        refuse(&mut wire, "move_file", json!({"source": "src", "destination": folder, "overwrite": true}));
    }
    assert_eq!(contents(&project), before);
    assert!(project.join("src/a.txt").is_file());
    // What lies beside them may be written.
    wire.text("write_file", json!({"path": "rules/notes.md", "content": "x"}));
    wire.text("write_file", json!({"path": "tmp/scratch", "content": "x"}));
}

#[test]
fn nor_by_a_link_to_it_or_to_its_folder() {
    let (project, command) = everything_inside();
    symlink("rules", project.join("link_to_folder")).unwrap();
    symlink("rules/roles.toml", project.join("link_to_file")).unwrap();
    symlink(project.join("rules/roles.toml"), project.join("absolute_link")).unwrap();
    symlink("link_to_file", project.join("link_to_link")).unwrap();
    let before = contents(&project);
    let mut wire = Wire::connect(command, Era::Modern);
    for path in ["link_to_folder/roles.toml", "link_to_file", "absolute_link", "link_to_link"] {
        refuse(&mut wire, "write_file", json!({"path": path, "content": "x"}));
        refuse(&mut wire, "write_file", json!({"path": path, "content": "x", "mode": "append"}));
        let edits = json!([{"old_string": "version", "new_string": "x"}]);
        refuse(&mut wire, "edit_file", json!({"path": path, "edits": edits}));
    }
    refuse(&mut wire, "delete_file", json!({"path": "link_to_folder/roles.toml"}));
    refuse(&mut wire, "move_file", json!({"source": "link_to_folder/roles.toml", "destination": "x"}));
    refuse(
        &mut wire,
        "move_file",
        json!({"source": "src/a.txt", "destination": "link_to_folder/roles.toml", "overwrite": true}),
    );
    assert_eq!(contents(&project), before);
}

/// A write puts a new file in the place of a name, so another name of the same file stays what it was.
#[test]
fn another_name_of_the_same_file_is_replaced_and_the_policy_stays_as_it_was() {
    let (project, command) = everything_inside();
    let before = contents(&project);
    let mut wire = Wire::connect(command, Era::Modern);
    let link = |wire: &mut Wire| {
        wire.text("run_command", json!({"command": ["ln", "-f", "rules/roles.toml", "src/hard"]}))
    };
    link(&mut wire);
    wire.call("write_file", json!({"path": "src/hard", "content": "x"}));
    assert_eq!(contents(&project), before, "overwritten");
    link(&mut wire);
    wire.call("write_file", json!({"path": "src/hard", "content": "x", "mode": "append"}));
    assert_eq!(contents(&project), before, "appended to");
    link(&mut wire);
    let edits = json!([{"old_string": "version", "new_string": "x"}]);
    wire.call("edit_file", json!({"path": "src/hard", "edits": edits}));
    assert_eq!(contents(&project), before, "edited");
    link(&mut wire);
    wire.call("move_file", json!({"source": "src/a.txt", "destination": "src/hard", "overwrite": true}));
    assert_eq!(contents(&project), before, "moved onto");
}

#[test]
fn a_configuration_may_not_appear_where_the_next_start_would_find_it() {
    let project = Project::with([("sub/a.txt", "a")]);
    let mut wire = Wire::connect(server::<&str>(&project, []), Era::Modern);
    for path in
        ["coretools.toml", "sub/coretools.toml", "./coretools.toml", "new/coretools.toml", "CoreTools.toml"]
    {
        refuse(&mut wire, "write_file", json!({"path": path, "content": "role = \"orchestrator\""}));
        refuse(&mut wire, "move_file", json!({"source": "sub/a.txt", "destination": path}));
        refuse(&mut wire, "create_directory", json!({"path": path}));
        assert!(!project.join(path).exists(), "{path}");
    }
}

#[test]
fn a_policy_that_is_named_by_a_link_is_protected_where_it_lies() {
    let project = Project::with([("conf/a.txt", "a")]);
    let outside = Project::empty();
    let policy = put(&project.join("conf/roles.toml"), crate::tester("allow = [\"*\"]"), 0o600);
    symlink(&policy, outside.join("roles.toml")).unwrap();
    let mut command = server(&project, ["--policy"]);
    command.arg(outside.join("roles.toml"));
    let mut wire = Wire::connect(command, Era::Modern);
    let before = fs::read(&policy).unwrap();
    refuse(&mut wire, "write_file", json!({"path": "conf/roles.toml", "content": "x"}));
    refuse(&mut wire, "delete_file", json!({"path": "conf/roles.toml"}));
    refuse(&mut wire, "move_file", json!({"source": "conf", "destination": "away"}));
    assert_eq!(fs::read(&policy).unwrap(), before);
}

/// A link in the root that leads to the policy is a file that decides what tools may do, as much as the policy.
#[test]
fn the_link_that_names_the_policy_is_protected_too() {
    let project = Project::empty();
    let outside = Project::empty();
    let policy = put(&outside.join("roles.toml"), crate::tester("allow = [\"*\"]"), 0o600);
    symlink(&policy, project.join("roles.toml")).unwrap();
    let mut command = server(&project, ["--policy"]);
    command.arg(project.join("roles.toml"));
    let mut wire = Wire::connect(command, Era::Modern);
    refuse(&mut wire, "write_file", json!({"path": "roles.toml", "content": "x"}));
    refuse(&mut wire, "delete_file", json!({"path": "roles.toml"}));
    refuse(&mut wire, "move_file", json!({"source": "roles.toml", "destination": "away"}));
    assert!(fs::symlink_metadata(project.join("roles.toml")).unwrap().is_symlink());
}

/// Some writes are *not* stopped, so that nobody counts on it: whoever may run any program writes what its user may
/// write, the policy in a writable root included. A policy belongs where the agent's user cannot write.
#[test]
fn a_role_that_may_run_any_program_can_write_a_policy_that_its_user_can_write() {
    let (project, command) = everything_inside();
    let mut wire = Wire::connect(command, Era::Modern);
    let write = json!({"command": ["sh", "-c", "printf '# mine\\n' >> rules/roles.toml"]});
    assert_eq!(wire.call("run_command", write)["isError"], false);
    assert!(project.read("rules/roles.toml").ends_with("# mine\n"));
}

fn git(project: &Project, arguments: &[&str]) {
    let status = Command::new("git").args(arguments).current_dir(project.path()).status().unwrap();
    assert!(status.success(), "git {arguments:?}");
}

/// Files that clients and editors load at their next start.
const LOADED: [&str; 12] = [
    ".claude/settings.json",
    ".claude/commands/new.md",
    ".mcp.json",
    ".vscode/tasks.json",
    ".opencode/plugin/new.js",
    "opencode.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".cursor/mcp.json",
    ".github/hooks/new.json",
    ".devcontainer/devcontainer.json",
    ".envrc",
];

#[test]
fn what_clients_load_at_their_next_start_is_written_by_no_tool_of_a_restricted_role() {
    let project =
        Project::with([("src/a.txt", "a"), (".vscode/tasks.json", "{}"), (".claude/commands/old.md", "old")]);
    let mut wire = Wire::connect(server(&project, ["--role", "worker"]), Era::Modern);
    for path in LOADED {
        refuse(&mut wire, "write_file", json!({"path": path, "content": "{}", "mode": "overwrite"}));
        refuse(
            &mut wire,
            "move_file",
            json!({"source": "src/a.txt", "destination": path, "overwrite": true}),
        );
        let patch = format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n");
        refuse(&mut wire, "apply_patch", json!({ "patch": patch }));
    }
    let edits = json!([{"old_string": "old", "new_string": "new"}]);
    refuse(&mut wire, "edit_file", json!({"path": ".claude/commands/old.md", "edits": edits}));
    refuse(&mut wire, "delete_file", json!({"path": ".claude/commands/old.md"}));
    refuse(&mut wire, "move_file", json!({"source": ".claude", "destination": "elsewhere"}));
    refuse(&mut wire, "create_directory", json!({"path": ".opencode/plugin/deep"}));
    assert_eq!(project.read(".vscode/tasks.json"), "{}");
    assert_eq!(project.read(".claude/commands/old.md"), "old");
    assert_eq!(project.read("src/a.txt"), "a");
    // git is no way around it.
    git(&project, &["init", "-q"]);
    git(&project, &["add", "."]);
    git(&project, &["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "first"]);
    project.write(".vscode/tasks.json", "{\"mine\": 1}");
    refuse(&mut wire, "git_restore", json!({"paths": [".vscode/tasks.json"]}));
    assert_eq!(project.read(".vscode/tasks.json"), "{\"mine\": 1}");
    // The rest of such folders, and reading, are as before.
    let result = wire.call("write_file", json!({"path": ".vscode/extensions.json", "content": "{}"}));
    assert_ne!(result["isError"], true, "{result}");
    assert_ne!(wire.call("read_file", json!({"path": ".claude/commands/old.md"}))["isError"], true);
    // A caller who may do everything may configure the clients.
    let mut wire = Wire::connect(server(&project, [] as [&str; 0]), Era::Modern);
    let result = wire.call("write_file", json!({"path": ".claude/commands/new.md", "content": "new"}));
    assert_ne!(result["isError"], true, "{result}");
}
