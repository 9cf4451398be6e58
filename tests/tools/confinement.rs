//! No path leads out of the roots, whichever tool takes it and however it is spelt.

use integration_tests::{Era, Project, Wire};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;

const SECRET: &str = "what lies outside";

/// A folder with a secret in it, and a root in that folder with every way out that there is.
fn trap() -> (Project, Wire) {
    let project = Project::with([
        ("secret.txt", SECRET),
        ("outside/secret.txt", SECRET),
        ("root2/secret.txt", SECRET),
        ("root/inside.txt", "inside\n"),
        ("root/folder/x.txt", "x\n"),
    ]);
    for (target, link) in [
        ("../secret.txt", "to_file"),
        ("../outside", "to_folder"),
        ("../outside/new.txt", "dangling"),
        ("to_folder", "chain"),
        ("/", "to_everything"),
        ("loop", "loop"),
        ("/proc/self/root", "proc"),
        ("/proc/self/cwd/..", "cwd"),
    ] {
        symlink(target, project.join("root").join(link)).unwrap();
    }
    let mut command = project.server();
    command.args(["--root", "root"]);
    let wire = Wire::connect(command, Era::Modern);
    (project, wire)
}

fn ways_out(project: &Project) -> Vec<String> {
    let absolute = |path: &str| project.path().canonicalize().unwrap().join(path).display().to_string();
    let mut paths: Vec<String> = [
        "../secret.txt",
        "folder/../../secret.txt",
        "./../secret.txt",
        "..//secret.txt",
        "../root/../secret.txt",
        "../root2/secret.txt",
        "to_file",
        "to_folder/secret.txt",
        "chain/secret.txt",
        "folder/../to_folder/secret.txt",
        "cwd/secret.txt",
        "loop/secret.txt",
        "loop",
        "/etc/passwd",
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        "to_everything/etc/passwd",
        "proc/etc/passwd",
        "~/.bashrc",
        "file:///etc/passwd",
        "..\\secret.txt",
        "%2e%2e/secret.txt",
    ]
    .map(str::to_owned)
    .into();
    paths.extend(["secret.txt", "root2/secret.txt", "root/../secret.txt", "root/to_file"].map(absolute));
    paths.push(format!("{}/secret.txt", "../".repeat(50)));
    paths
}

/// Says of a result that it is a refusal and tells nothing.
fn assert_refused(result: &Value, what: &str) {
    assert_eq!(result["isError"], true, "{what}: {result}");
    let text = result.to_string();
    assert!(!text.contains(SECRET) && !text.contains("root:x:0"), "{what}: {text}");
}

#[test]
fn no_tool_reads_outside() {
    let (project, mut wire) = trap();
    for path in ways_out(&project) {
        for (tool, arguments) in [
            ("read_file", json!({"path": path})),
            ("read_multiple_files", json!({"paths": [path]})),
            ("read_media_file", json!({"path": path})),
            ("list_directory", json!({"path": path})),
            ("directory_tree", json!({"path": path})),
            ("search_files", json!({"pattern": "lies", "path": path})),
            ("find_files", json!({"pattern": "*", "path": path})),
        ] {
            assert_refused(&wire.call(tool, arguments), &format!("{tool} {path}"));
        }
    }
}

#[test]
fn no_tool_changes_anything_outside() {
    let (project, mut wire) = trap();
    for path in ways_out(&project) {
        // Two of these spellings are plain names of files that are not there: creating them is no way out.
        if ["file:///etc/passwd", "..\\secret.txt", "%2e%2e/secret.txt", "~/.bashrc"].contains(&path.as_str())
        {
            continue;
        }
        for (tool, arguments) in [
            ("edit_file", json!({"path": path, "edits": [{"old_string": "what", "new_string": "!"}]})),
            ("write_file", json!({"path": path, "content": "!", "mode": "append"})),
            ("move_file", json!({"source": "inside.txt", "destination": path, "overwrite": true})),
            ("create_directory", json!({"path": format!("{path}/new")})),
        ] {
            if tool == "move_file" && ["to_file", "loop"].iter().any(|link| path.ends_with(link)) {
                continue; // what is moved over a link replaces the link itself
            }
            assert_refused(&wire.call(tool, arguments), &format!("{tool} {path}"));
        }
    }
    wire.failure("write_file", json!({"path": "dangling", "content": "!"}));
    wire.failure("write_file", json!({"path": "to_folder/new.txt", "content": "!"}));
    assert_eq!(project.read("secret.txt"), SECRET);
    assert_eq!(project.read("outside/secret.txt"), SECRET);
    assert_eq!(project.read("root2/secret.txt"), SECRET);
    assert!(!project.join("outside/new.txt").exists() && !project.join("outside/new").exists());
}

#[test]
fn deleting_or_moving_a_link_leaves_what_it_leads_to() {
    let (project, mut wire) = trap();
    wire.call("delete_file", json!({"path": "to_file"}));
    wire.call("move_file", json!({"source": "to_folder", "destination": "moved"}));
    assert_eq!(project.read("secret.txt"), SECRET);
    assert_eq!(project.read("outside/secret.txt"), SECRET);
}

#[test]
fn walks_do_not_follow_links_out() {
    let (_project, mut wire) = trap();
    for (tool, arguments) in [
        ("search_files", json!({"pattern": "lies outside"})),
        ("find_files", json!({"pattern": "**/secret*"})),
        ("directory_tree", json!({"depth": 10})),
        ("list_directory", json!({"depth": 10})),
    ] {
        let text = wire.text(tool, arguments);
        assert!(!text.contains(SECRET) && !text.contains("secret.txt\n"), "{tool}: {text}");
    }
}

#[test]
fn commands_run_inside_only() {
    let (project, mut wire) = trap();
    for path in ["..", "to_folder", "/", "chain", "proc", "folder/../.."] {
        for tool in ["run_command", "start_command"] {
            let result =
                wire.call(tool, json!({"command": ["cat", "secret.txt"], "working_directory": path}));
            assert_refused(&result, &format!("{tool} in {path}"));
        }
    }
    let absolute = project.join("root/folder").display().to_string();
    let result = wire.call("run_command", json!({"command": ["ls"], "working_directory": absolute}));
    assert_eq!(result["structuredContent"]["stdout"], "x.txt\n");
}

#[test]
fn refusals_do_not_tell_whether_something_is_there_outside() {
    let (_project, mut wire) = trap();
    let there = wire.failure("read_file", json!({"path": "../secret.txt"}));
    let not_there = wire.failure("read_file", json!({"path": "../nothing.txt"}));
    assert_eq!(there.replace("secret", "nothing"), not_there);
    let there = wire.failure("read_file", json!({"path": "/etc/passwd"}));
    assert_eq!(there, wire.failure("read_file", json!({"path": "/etc/no_such_file"})));
    assert_eq!(
        wire.failure("read_file", json!({"path": "to_folder/secret.txt"})),
        wire.failure("read_file", json!({"path": "to_folder/nothing.txt"}))
    );
}

#[test]
fn absolute_paths_beneath_a_root_are_as_good_as_relative_ones() {
    let (project, mut wire) = trap();
    for path in ["root/inside.txt", "root/folder/../inside.txt", "root//inside.txt"] {
        let absolute = project.path().canonicalize().unwrap().join(path).display().to_string();
        assert_eq!(wire.text("read_file", json!({"path": absolute})), "inside\n", "{path}");
    }
}

#[test]
fn a_second_root_is_reached_by_its_absolute_path() {
    let project = Project::with([("one/a.txt", "a\n"), ("two/b.txt", "b\n"), ("three/c.txt", "c\n")]);
    let mut command = project.server();
    command.args(["--root", "one", "--root", "two"]);
    let mut wire = Wire::connect(command, Era::Modern);
    let absolute = |path: &str| project.path().canonicalize().unwrap().join(path).display().to_string();
    assert_eq!(wire.text("read_file", json!({"path": "a.txt"})), "a\n");
    assert_eq!(wire.text("read_file", json!({"path": absolute("two/b.txt")})), "b\n");
    wire.failure("read_file", json!({"path": "b.txt"}));
    wire.failure("read_file", json!({"path": absolute("three/c.txt")}));
}

#[test]
fn the_base_path_of_the_original_is_the_root() {
    let project = Project::with([("base/a.txt", "a\n"), ("b.txt", "b\n")]);
    let mut command = project.server();
    command.env("FILESYSTEM_TOOLS_BASE_PATH", project.join("base"));
    let mut wire = Wire::connect(command, Era::Modern);
    assert_eq!(wire.text("read_file", json!({"path": "a.txt"})), "a\n");
    wire.failure("read_file", json!({"path": "../b.txt"}));
}

#[test]
fn a_link_that_is_swapped_while_it_is_read_never_leads_out() {
    let (project, mut wire) = trap();
    let (link, spare) = (project.join("root/swap"), project.join("root/spare"));
    symlink("folder", &link).unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let swapping = std::thread::spawn({
        let stop = stop.clone();
        move || {
            for target in ["../outside", "folder"].into_iter().cycle() {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                symlink(target, &spare).unwrap();
                std::fs::rename(&spare, &link).unwrap();
            }
        }
    });
    for _ in 0..300 {
        for path in ["swap/secret.txt", "swap/x.txt"] {
            let result = wire.call("read_file", json!({"path": path}));
            assert!(!result.to_string().contains(SECRET), "{result}");
        }
        let result = wire.call("run_command", json!({"command": ["ls"], "working_directory": "swap"}));
        assert_ne!(result["structuredContent"]["stdout"], "secret.txt\n");
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    swapping.join().unwrap();
}
