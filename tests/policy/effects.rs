//! Rules judge what a call does, however it is said.

use crate::PolicyFixture;
use integration_tests::{Era, Wire};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

const FILES: [(&str, &str); 6] = [
    ("docs/a.md", "in docs: needle\n"),
    ("src/main.rs", "in src: needle\n"),
    ("secrets/key.txt", "in secrets: needle\n"),
    ("docsx/a.md", "beside docs: needle\n"),
    ("docs/deep/er/b.md", "deep\n"),
    ("README.md", "readme needle\n"),
];

fn with_rule(rule: &str) -> PolicyFixture {
    let lines = format!("allow = [\"*\"]\n[[roles.tester.require]]\nid = \"rule\"\n{rule}");
    PolicyFixture::by(&crate::tester(&lines), FILES)
}

fn refused(wire: &mut Wire, tool: &str, arguments: Value) {
    let result = wire.call(tool, arguments.clone());
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    assert!(
        result["isError"] == true && text.starts_with("refused by policy"),
        "{tool} {arguments} was not refused by policy: {result}"
    );
}

fn allowed(wire: &mut Wire, tool: &str, arguments: Value) -> String {
    let result = wire.call(tool, arguments.clone());
    assert_eq!(result["isError"], false, "{tool} {arguments}: {result}");
    result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_writer_of_one_folder_writes_nowhere_else_however_the_path_is_spelt() {
    let tools = r#"tools = ["write_file", "edit_file", "move_file", "delete_file", "create_directory"]"#;
    let judged = with_rule(&format!("{tools}\nwrite_within = [\"docs\"]"));
    let root = judged.project.path().display().to_string();
    symlink("../src", judged.project.join("docs/out")).unwrap();
    symlink("../src/new.rs", judged.project.join("docs/dangling")).unwrap();
    symlink(judged.project.join("src"), judged.project.join("docs/absolute")).unwrap();
    symlink("docs", judged.project.join("into")).unwrap();
    let mut wire = judged.connect(Era::Modern);
    for path in [
        "src/new.rs",
        "./src/new.rs",
        "docs/../src/new.rs",
        "docs/./../src/new.rs",
        "docs/deep/../../src/new.rs",
        "docs/out/new.rs",
        "docs/out/../src/new.rs",
        "docs/out/../new.rs",
        "docs/dangling",
        "docs/absolute/new.rs",
        "docsx/new.md",
        "docs.md",
        "DOCS/new.md",
        "docs\\..\\src\\new.rs",
        "docs ",
        "new.md",
        ".",
        "",
        "~/new.md",
        "docs/../../outside",
        "/etc/new",
        "docs:../src/new.rs",
        &format!("{root}/src/new.rs"),
        &format!("{root}/docs/../src/new.rs"),
        &format!("{root}x/docs/new.md"),
        &format!("file://{root}/docs/new.md"),
        "missing/../src/new.rs",
        "docs/missing/../../src/new.rs",
    ] {
        refused(&mut wire, "write_file", json!({"path": path, "content": "x"}));
        refused(&mut wire, "create_directory", json!({"path": path}));
        // The link itself lies in docs, and is what a move would replace.
        if path != "docs/dangling" {
            refused(&mut wire, "move_file", json!({"source": "docs/a.md", "destination": path}));
        }
    }
    refused(&mut wire, "move_file", json!({"source": "src/main.rs", "destination": "docs/main.rs"}));
    refused(&mut wire, "move_file", json!({"source": "src", "destination": "docs/src"}));
    assert!(!judged.project.join("src/new.rs").exists());
    assert_eq!(judged.project.read("src/main.rs"), FILES[1].1);
    for path in
        ["docs/1", "./docs/2", "docs//3", "docs/new/4", "docs/deep/../5", "into/6", &format!("{root}/docs/7")]
    {
        allowed(&mut wire, "write_file", json!({"path": path, "content": "x"}));
    }
}

#[test]
fn a_reader_of_one_folder_reads_nothing_else_by_any_tool() {
    let judged = with_rule("tools = [\"annotation:read-only\"]\nread_within = [\"docs\"]");
    symlink("../src", judged.project.join("docs/out")).unwrap();
    symlink("../src/main.rs", judged.project.join("docs/link.md")).unwrap();
    let mut wire = judged.connect(Era::Modern);
    for path in
        ["src/main.rs", "docs/../src/main.rs", "docs/out/main.rs", "docs/link.md", "docsx/a.md", "README.md"]
    {
        for tool in [
            "read_file",
            "read_media_file",
            "get_file_info",
            "file_exists",
            "directory_exists",
            "list_directory",
        ] {
            refused(&mut wire, tool, json!({"path": path}));
        }
        refused(&mut wire, "read_multiple_files", json!({"paths": ["docs/a.md", path]}));
    }
    for path in [json!("."), json!("src"), json!(null), json!("docs/out"), json!("docs/..")] {
        refused(&mut wire, "list_directory", json!({"path": path}));
        refused(&mut wire, "directory_tree", json!({"path": path}));
        refused(&mut wire, "find_files", json!({"path": path, "pattern": "**"}));
        refused(&mut wire, "search_files", json!({"path": path, "pattern": "needle"}));
    }
    refused(&mut wire, "search_files", json!({"pattern": "needle"}));
    // Patterns climb out of no folder, and walks follow no link out of it.
    for pattern in ["../src/*", "**/*", "**/../../src/*", "/**", "out/*", "{../src,.}/*"] {
        let result = wire.call("find_files", json!({"path": "docs", "pattern": pattern})).to_string();
        assert!(!result.contains("main.rs"), "{pattern}: {result}");
    }
    for include in ["../src/*", "**", "../**"] {
        let search = json!({"path": "docs", "pattern": "in src", "include": [include]});
        let result = wire.call("search_files", search).to_string();
        assert!(!result.contains("in src: needle"), "{include}: {result}");
    }
    assert!(!allowed(&mut wire, "list_directory", json!({"path": "docs", "depth": 5})).contains("main.rs"));
    assert!(!allowed(&mut wire, "directory_tree", json!({"path": "docs", "depth": 5})).contains("main.rs"));
    assert!(
        allowed(&mut wire, "search_files", json!({"path": "docs", "pattern": "needle"})).contains("in docs")
    );
}

/// A folder that may not be reached is not reached from above either.
#[test]
fn a_folder_that_may_not_be_reached_is_not_walked_from_above() {
    let judged = with_rule("tools = [\"toolset:filesystem\"]\nnot_within = [\"secrets\"]");
    let mut wire = judged.connect(Era::Modern);
    refused(&mut wire, "read_file", json!({"path": "secrets/key.txt"}));
    refused(&mut wire, "list_directory", json!({"path": "secrets"}));
    for path in
        [json!("."), json!(null), json!(""), json!("docs/.."), json!("secrets"), json!("secrets/key.txt")]
    {
        for (tool, arguments) in [
            ("search_files", json!({"path": path, "pattern": "needle"})),
            ("find_files", json!({"path": path, "pattern": "**/*.txt"})),
            ("directory_tree", json!({"path": path, "depth": 3})),
        ] {
            let result = wire.call(tool, arguments).to_string();
            assert!(
                !result.contains("in secrets") && !result.contains("key.txt:"),
                "{tool} {path}: {result}"
            );
            assert!(path == "secrets/key.txt" || !result.contains("key.txt"), "{tool} {path}: {result}");
        }
    }
    assert!(
        allowed(&mut wire, "search_files", json!({"path": "src", "pattern": "needle"})).contains("in src")
    );
    assert!(allowed(&mut wire, "list_directory", json!({"path": "."})).contains("src"));
}

#[test]
fn the_names_in_a_folder_that_may_not_be_reached_are_not_listed_from_above() {
    let judged = with_rule("tools = [\"toolset:filesystem\"]\nnot_within = [\"secrets\"]");
    let mut wire = judged.connect(Era::Modern);
    let result = wire.call("list_directory", json!({"depth": 3})).to_string();
    assert!(!result.contains("key.txt"), "{result}");
}

/// Nor is it moved to where it may be reached.
#[test]
fn a_folder_that_holds_one_that_may_not_be_reached_cannot_be_moved() {
    let lines = "allow = [\"*\"]\n[[roles.tester.require]]\nid = \"rule\"\ntools = [\"toolset:filesystem\"]\nnot_within = [\"a/secrets\"]";
    let judged = PolicyFixture::by(&crate::tester(lines), [("a/secrets/key.txt", "needle\n")]);
    let mut wire = judged.connect(Era::Modern);
    refused(&mut wire, "read_file", json!({"path": "a/secrets/key.txt"}));
    wire.call("move_file", json!({"source": "a", "destination": "b"}));
    let read = wire.call("read_file", json!({"path": "b/secrets/key.txt"}));
    assert_eq!(read["isError"], true, "moved into reach: {read}");
}

#[test]
fn a_name_with_a_colon_is_no_way_around_a_folder_that_may_not_be_reached() {
    let judged = with_rule("tools = [\"toolset:filesystem\"]\nnot_within = [\"secrets\"]");
    judged.project.write("secrets/a:b.txt", "needle");
    judged.project.write("secrets/c:d/e.txt", "needle");
    let mut wire = judged.connect(Era::Modern);
    for path in ["secrets/a:b.txt", "./secrets/a:b.txt", "secrets/c:d/e.txt"] {
        refused(&mut wire, "read_file", json!({"path": path}));
        refused(&mut wire, "write_file", json!({"path": path, "content": "x"}));
    }
}

/// `lib:x` is a path of the root `lib`; `./lib:x` is a file of the first root that has a strange name.
#[test]
fn a_file_that_is_called_as_a_path_of_another_root_is_not_in_that_root() {
    let judged = with_rule("tools = [\"write_file\"]\nwrite_within = [\"lib:.\"]");
    let library = judged.outside.join("lib");
    fs::create_dir(&library).unwrap();
    let mut command = judged.server();
    command.arg("--root").arg(judged.project.path()).arg("--root").arg(&library);
    let mut wire = Wire::connect(command, Era::Modern);
    allowed(&mut wire, "write_file", json!({"path": "lib:a.txt", "content": "x"}));
    assert!(library.join("a.txt").is_file());
    refused(&mut wire, "write_file", json!({"path": "a.txt", "content": "x"}));
    refused(&mut wire, "write_file", json!({"path": "./lib:b.txt", "content": "x"}));
    refused(&mut wire, "write_file", json!({"path": judged.project.join("lib:c.txt"), "content": "x"}));
    judged.project.write("lib:d/e.txt", "kept");
    refused(&mut wire, "write_file", json!({"path": "./lib:d/e.txt", "content": "x"}));
}

/// Nor is what may not be read moved to where it may be.
#[test]
fn what_may_not_be_read_cannot_be_moved_to_where_it_may() {
    let judged = with_rule("tools = [\"toolset:filesystem\"]\nread_within = [\"docs\"]");
    let mut wire = judged.connect(Era::Modern);
    refused(&mut wire, "move_file", json!({"source": "src/main.rs", "destination": "docs/main.rs"}));
    refused(&mut wire, "move_file", json!({"source": "src", "destination": "docs/src"}));
    let edits = json!([{"old_string": "needle", "new_string": "x"}]);
    refused(&mut wire, "edit_file", json!({"path": "src/main.rs", "edits": edits, "dry_run": true}));
}

/// A tool that removes or replaces a name does that where the name stands, and not where it leads.
#[test]
fn a_link_elsewhere_that_leads_into_the_folder_cannot_be_removed_or_replaced() {
    let tools = r#"tools = ["write_file", "move_file", "delete_file"]"#;
    let judged = with_rule(&format!("{tools}\nwrite_within = [\"docs\"]"));
    for link in ["src/removed", "src/moved", "src/replaced"] {
        symlink("../docs/a.md", judged.project.join(link)).unwrap();
    }
    judged.project.write("docs/evil.md", "evil");
    let mut wire = judged.connect(Era::Modern);
    wire.call("delete_file", json!({"path": "src/removed"}));
    wire.call("move_file", json!({"source": "src/moved", "destination": "docs/moved"}));
    wire.call(
        "move_file",
        json!({"source": "docs/evil.md", "destination": "src/replaced", "overwrite": true}),
    );
    for link in ["src/removed", "src/moved", "src/replaced"] {
        let metadata = fs::symlink_metadata(judged.project.join(link));
        assert!(metadata.is_ok_and(|metadata| metadata.is_symlink()), "{link}, outside of docs, was changed");
    }
}

fn runner(commands: &str) -> PolicyFixture {
    let tools = r#"tools = ["run_command", "start_command"]"#;
    with_rule(&format!("{tools}\ncommands = {commands}"))
}

fn executable(judged: &PolicyFixture, path: &str) {
    let path = judged.project.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // In the project, which a confined program may write.
    let script = format!("#!/bin/sh\ntouch '{}'\n", judged.project.join("ran").display());
    crate::put(&path, script, 0o755);
}

#[test]
fn a_program_is_the_file_that_starts_and_not_the_word_that_was_typed() {
    let judged = runner(r#"["echo hello", ["git", "status"]]"#);
    for place in ["echo", "bin/echo", "git", "docs/git", "echo hello"] {
        executable(&judged, place);
    }
    let root = judged.project.path().display().to_string();
    let mut wire = Wire::connect(judged.server(), Era::Modern);
    for command in [
        json!("./echo hello"),
        json!("bin/echo hello"),
        json!(["./echo", "hello"]),
        json!(["../echo", "hello"]),
        json!([format!("{root}/echo"), "hello"]),
        json!([format!("{root}/../../bin/sh"), "-c", "echo hello"]),
        json!(["/bin/sh", "-c", "echo hello"]),
        json!(["env", "echo", "hello"]),
        json!(["nohup", "echo", "hello"]),
        json!(["ECHO", "hello"]),
        json!(["echo ", "hello"]),
        json!(["echo hell"]),
        json!(["./echo hello"]),
        json!([format!("{root}/echo hello")]),
        json!(["echo", "hell"]),
        json!(["echo", "hello2"]),
        json!(["echo"]),
        json!(["echo", "-n", "hello"]),
        json!("echo  'hello world'"),
        json!(["", "hello"]),
        json!([]),
        json!("FOO=1 echo hello"),
        json!("sh -c 'echo hello'"),
        json!("echo; sh"),
        json!(["git", "-c", "core.pager=sh", "status"]),
        json!(["git", "--exec-path=.", "status"]),
        json!(["git", "-C", "/", "status"]),
        json!(["git", "push"]),
        json!(["~/echo", "hello"]),
        json!(["$SHELL", "hello"]),
    ] {
        let result = wire.call("run_command", json!({"command": command}));
        assert_eq!(result["isError"], true, "{command}: {result}");
        assert!(result.get("structuredContent").is_none(), "{command} was started: {result}");
        let result = wire.call("start_command", json!({"command": command}));
        assert_eq!(result["isError"], true, "{command}: {result}");
    }
    // Shell syntax in a line is refused or a word, and no second program starts.
    for line in [
        "echo hello; touch x",
        "echo hello && touch x",
        "echo hello `touch x`",
        "echo hello $(touch x)",
        "echo hello\ntouch x",
        "echo hello > x",
    ] {
        wire.call("run_command", json!({"command": line}));
        assert!(!judged.project.join("x").exists(), "{line}");
    }
    for command in [
        json!("echo hello"),
        json!(["echo", "hello", "world"]),
        json!("  echo   hello"),
        // The words that run are those that were judged; nothing looks into the folder for a program of that name.
        json!(["echo hello"]),
        json!("[\"echo\", \"hello\"]"),
    ] {
        assert!(
            allowed(&mut wire, "run_command", json!({"command": command})).contains("hello"),
            "{command}"
        );
    }
    let where_ = json!({"command": "echo hello", "working_directory": "bin"});
    allowed(&mut wire, "run_command", where_);
}

#[test]
fn a_line_of_a_shell_is_the_shell_and_no_way_around_a_rule() {
    let judged = runner(r#"["echo", "touch"]"#);
    let mut wire = judged.connect(Era::Modern);
    for command in [json!("echo hello"), json!("touch x"), json!(["echo", "hello"]), json!(["touch x"])] {
        for tool in ["run_command", "start_command"] {
            refused(&mut wire, tool, json!({"command": command, "shell": true}));
        }
        assert!(!judged.project.join("x").exists(), "{command}");
    }
    allowed(&mut wire, "run_command", json!({"command": "echo hello", "shell": false}));
    let judged = runner(r#"["bash", "sh"]"#);
    let mut wire = judged.connect(Era::Modern);
    let text = allowed(&mut wire, "run_command", json!({"command": "echo hel''lo | cat", "shell": true}));
    assert!(text.contains("hello"), "{text}");
}

#[test]
fn a_limited_command_takes_no_environment_and_no_path_of_the_callers() {
    let judged = runner(r#"["echo hello"]"#);
    executable(&judged, "bin/echo");
    let mut wire = judged.connect(Era::Modern);
    let bin = judged.project.join("bin").display().to_string();
    for env in [json!({"PATH": bin}), json!({"LD_PRELOAD": "x.so"}), json!({"A": "1"}), json!({"": ""})] {
        refused(&mut wire, "run_command", json!({"command": "echo hello", "env": env}));
        refused(&mut wire, "start_command", json!({"command": "echo hello", "env": env}));
    }
    allowed(&mut wire, "run_command", json!({"command": "echo hello", "env": {}}));
}

#[test]
fn where_path_has_a_relative_folder_no_name_is_a_program() {
    let judged = runner(r#"["echo hello"]"#);
    for path in
        [".:/usr/bin:/bin", "/usr/bin:/bin:", ":/usr/bin:/bin", "bin:/usr/bin:/bin", "~/bin:/usr/bin:/bin"]
    {
        let mut command = judged.server();
        command.env("PATH", path);
        let mut wire = Wire::connect(command, Era::Modern);
        refused(&mut wire, "run_command", json!({"command": "echo hello"}));
    }
}

/// A folder of the project in PATH, as virtual environments and `node_modules` have: whoever may write there
/// decides what a name starts.
#[test]
fn a_program_that_lies_where_the_role_may_write_is_not_the_one_that_was_allowed() {
    let judged = runner(r#"["echo hello"]"#);
    fs::create_dir_all(judged.project.join(".venv/bin")).unwrap();
    let mut command = judged.server();
    command.env("PATH", format!("{}:/usr/bin:/bin", judged.project.join(".venv/bin").display()));
    let mut wire = Wire::connect(command, Era::Modern);
    allowed(&mut wire, "run_command", json!({"command": "echo hello"}));
    executable(&judged, ".venv/bin/echo");
    wire.call("run_command", json!({"command": "echo hello"}));
    assert!(
        !judged.project.join("ran").exists(),
        "a program from the writable root was run in the name of echo"
    );
}

#[test]
fn a_patch_is_judged_file_by_file_and_changes_nothing_if_one_is_refused() {
    let judged =
        with_rule("tools = [\"*\"]\nread_within = [\"docs\", \"README.md\"]\nwrite_within = [\"docs\"]");
    symlink("../src/main.rs", judged.project.join("docs/link.rs")).unwrap();
    let mut wire = judged.connect(Era::Modern);
    let own = "*** Update File: docs/a.md\n@@\n-in docs: needle\n+changed\n";
    for part in [
        "*** Add File: src/new.rs\n+x\n",
        "*** Add File: docs/../src/new.rs\n+x\n",
        "*** Update File: src/main.rs\n@@\n-in src: needle\n+x\n",
        "*** Update File: docs/link.rs\n@@\n-in src: needle\n+x\n",
        "*** Update File: README.md\n@@\n-readme needle\n+x\n",
        "*** Delete File: secrets/key.txt\n",
        "*** Update File: docs/deep/er/b.md\n*** Move to: src/b.md\n",
        "*** Update File: src/main.rs\n*** Move to: docs/main.rs\n",
        "*** Update File: README.md\n*** Move to: docs/README.md\n",
    ] {
        let patch = format!("*** Begin Patch\n{own}{part}*** End Patch");
        refused(&mut wire, "apply_patch", json!({"patch": patch, "dry_run": true}));
        refused(&mut wire, "apply_patch", json!({"patch": patch}));
    }
    for diff in [
        "--- a/src/main.rs\n+++ b/src/main.rs\n@@ -1 +1 @@\n-in src: needle\n+x\n",
        "diff --git a/src/main.rs b/docs/x\nsimilarity index 100%\nrename from src/main.rs\nrename to docs/x\n",
        "--- /dev/null\n+++ b/src/new.rs\n@@ -0,0 +1 @@\n+x\n",
        "--- a/secrets/key.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-in secrets: needle\n",
    ] {
        refused(&mut wire, "apply_patch", json!({"patch": diff}));
    }
    assert_eq!(judged.project.read("docs/a.md"), "in docs: needle\n");
    let patch = format!("*** Begin Patch\n{own}*** Delete File: docs/deep/er/b.md\n*** End Patch");
    allowed(&mut wire, "apply_patch", json!({"patch": patch}));
    assert_eq!(judged.project.read("docs/a.md"), "changed\n");
    assert!(!judged.project.join("docs/deep/er/b.md").exists());
    for (path, content) in FILES.iter().filter(|(path, _)| !path.starts_with("docs/")) {
        assert_eq!(judged.project.read(path), *content, "{path}");
    }
}

/// Policies of before there was `apply_patch` name the tools that change one file each.
#[test]
fn a_patch_does_nothing_that_the_tools_for_single_files_may_not() {
    let lines = "allow = [\"*\"]\ndeny = [\"delete_file\", \"move_file\"]\n\
                 [[roles.tester.require]]\nid = \"rule\"\ntools = [\"edit_file\"]\nwrite_within = [\"docs\"]";
    let judged = PolicyFixture::by(&crate::tester(lines), FILES);
    let mut wire = judged.connect(Era::Modern);
    for part in [
        "*** Delete File: docs/a.md\n",
        "*** Update File: docs/a.md\n*** Move to: docs/c.md\n",
        "*** Update File: src/main.rs\n@@\n-in src: needle\n+x\n",
    ] {
        let patch = format!("*** Begin Patch\n*** Add File: docs/new.md\n+x\n{part}*** End Patch");
        refused(&mut wire, "apply_patch", json!({"patch": patch}));
        assert!(!judged.project.join("docs/new.md").exists(), "{part}");
    }
    for (path, content) in FILES {
        assert_eq!(judged.project.read(path), *content, "{path}");
    }
    let own = "*** Begin Patch\n*** Update File: docs/a.md\n@@\n-in docs: needle\n+changed\n*** Add File: docs/new.md\n+x\n*** End Patch";
    allowed(&mut wire, "apply_patch", json!({"patch": own}));
    assert_eq!(judged.project.read("docs/a.md"), "changed\n");
}

#[test]
fn ranges_and_outlines_are_judged_as_the_files_they_are_of() {
    let judged = with_rule("tools = [\"*\"]\nread_within = [\"docs\"]");
    let mut wire = judged.connect(Era::Modern);
    allowed(
        &mut wire,
        "read_multiple_files",
        json!({"paths": ["docs/a.md", {"path": "docs/a.md", "offset": 1}]}),
    );
    for paths in
        [json!([{"path": "src/main.rs", "offset": 1}]), json!(["docs/a.md", {"path": "docs/../src/main.rs"}])]
    {
        refused(&mut wire, "read_multiple_files", json!({"paths": paths}));
    }
    refused(&mut wire, "file_outline", json!({"paths": ["src"]}));
    refused(&mut wire, "file_outline", json!({"paths": ["docs", "src/main.rs"]}));
}
