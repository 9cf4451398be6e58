//! The git tools, against the real git, in every state a repository can be in.

use integration_tests::{Era, Project, Wire};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// A repository of one commit, and a server for it.
pub(crate) fn repository() -> (Project, Wire) {
    let project = Project::with([("a.txt", "one\ntwo\nthree\n"), ("sub/b.txt", "b\n")]);
    init(&project, ".");
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "--message=first"]);
    let wire = connect(&project, &[]);
    (project, wire)
}

pub(crate) fn init(project: &Project, folder: &str) {
    std::fs::create_dir_all(project.join(folder)).unwrap();
    project.git_in(folder, &["init", "--quiet", "--initial-branch=main"]);
    for setting in [["user.name", "Ada"], ["user.email", "ada@example.org"]] {
        project.git_in(folder, &["config", setting[0], setting[1]]);
    }
}

/// A server whose user has no configuration of git's.
pub(crate) fn connect(project: &Project, arguments: &[&str]) -> Wire {
    let mut command = project.server();
    command.args(arguments).env("HOME", "/nonexistent").env_remove("XDG_CONFIG_HOME");
    Wire::connect(command, Era::Modern)
}

fn structured(wire: &mut Wire, tool: &str, arguments: Value) -> Value {
    let result = wire.call(tool, arguments);
    assert_eq!(result["isError"], false, "{result}");
    result["structuredContent"].clone()
}

fn status(wire: &mut Wire) -> Value {
    structured(wire, "git_status", json!({}))
}

#[test]
fn the_names_and_parameters_of_the_original_tools_are_taken() {
    let (project, mut wire) = repository();
    project.write("a.txt", "changed\n");
    let path = project.path().to_str().unwrap();
    assert!(wire.text("get_status", json!({"repositoryPath": path})).contains("a.txt (modified)"));
    assert!(wire.text("get_log", json!({"maxCount": 1})).contains("first"));
    assert!(wire.text("get_diff", json!({})).contains("+changed"));
    assert!(wire.text("list_branches", json!({})).contains("* main"));
    assert!(wire.text("get_current_branch", json!({})).starts_with("main at "));
    wire.text("add", json!({"files": "a.txt"}));
    assert!(wire.text("commit", json!({"message": "second"})).contains("second (1 file, +1 -3)"));
    assert_eq!(project.git(&["log", "--format=%s %an"]), "second Ada\nfirst Ada\n");
}

#[test]
fn a_repository_without_commits_is_reported_as_that_and_takes_its_first() {
    let project = Project::with([("a.txt", "a\n")]);
    init(&project, ".");
    let mut wire = connect(&project, &[]);
    let found = status(&mut wire);
    assert_eq!(found["head"], json!({"branch": "main"}));
    assert_eq!(found["changes"], json!([{"path": "a.txt", "unstaged": "untracked"}]));
    assert_eq!(structured(&mut wire, "git_log", json!({})), json!({"commits": [], "total": 0}));
    assert_eq!(structured(&mut wire, "git_current_branch", json!({})), json!({"branch": "main"}));
    assert_eq!(structured(&mut wire, "git_list_branches", json!({}))["total"], 0);
    assert!(wire.failure("git_show", json!({})).contains("there are no commits yet"));
    assert!(wire.failure("git_stash", json!({"action": "push"})).contains("no commits yet"));
    assert!(wire.failure("git_commit", json!({"message": "m"})).contains("nothing is staged"));
    wire.text("git_add", json!({"files": ["."]}));
    assert!(wire.text("git_diff", json!({"staged": true})).contains("added a.txt +1 -0"));
    wire.text("git_restore", json!({"paths": ["a.txt"], "staged": true}));
    assert_eq!(status(&mut wire)["changes"][0]["unstaged"], "untracked");
    wire.text("git_add", json!({"files": ["."]}));
    wire.text("git_commit", json!({"message": "m"}));
    assert_eq!(status(&mut wire)["total"], 0);
}

#[test]
fn a_detached_head_has_no_branch() {
    let (project, mut wire) = repository();
    let commit = project.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let text = wire.text("git_checkout", json!({"branch": commit}));
    assert!(text.contains("detached"), "{text}");
    assert_eq!(status(&mut wire)["head"], json!({"commit": commit}));
    assert_eq!(structured(&mut wire, "git_current_branch", json!({})), json!({"commit": commit}));
}

#[test]
fn conflicts_and_the_operation_they_come_from_are_reported() {
    for (operation, command) in [
        ("merge", &["merge", "other"][..]),
        ("rebase", &["rebase", "other"]),
        ("cherry-pick", &["cherry-pick", "other"]),
    ] {
        let (project, mut wire) = repository();
        project.git(&["branch", "other"]);
        project.write("a.txt", "ours\n");
        project.git(&["commit", "--all", "--quiet", "--message=ours"]);
        project.git(&["switch", "--quiet", "other"]);
        project.write("a.txt", "theirs\n");
        project.git(&["commit", "--all", "--quiet", "--message=theirs"]);
        project.git(&["switch", "--quiet", "main"]);
        let git =
            std::process::Command::new("git").args(command).current_dir(project.path()).output().unwrap();
        assert!(!git.status.success(), "{operation}");
        let found = status(&mut wire);
        assert_eq!(found["operation"], operation, "{found}");
        assert_eq!(found["changes"], json!([{"path": "a.txt", "conflict": "both modified"}]), "{operation}");
        let text = wire.text("git_diff", json!({}));
        assert!(text.contains("unmerged a.txt"), "{text}");
        assert!(wire.failure("git_commit", json!({"message": "m"})).contains("conflicts"));
        if operation == "merge" {
            // A result that is as ours is a merge all the same.
            project.write("a.txt", "ours\n");
            wire.text("git_add", json!({"files": ["a.txt"]}));
            wire.text("git_commit", json!({"message": "merged"}));
            assert_eq!(status(&mut wire).get("operation"), None);
            let log = structured(&mut wire, "git_log", json!({"max_count": 1}));
            assert_eq!(log["commits"][0]["parents"].as_array().unwrap().len(), 2);
        }
    }
}

#[test]
fn a_folder_below_the_top_sees_paths_from_where_it_is() {
    let (project, mut wire) = repository();
    project.write("a.txt", "changed\n");
    project.write("sub/b.txt", "changed\n");
    let found = structured(&mut wire, "git_status", json!({"repository_path": "sub"}));
    let paths: Vec<_> = found["changes"].as_array().unwrap().iter().map(|change| &change["path"]).collect();
    assert_eq!(paths, ["../a.txt", "b.txt"]);
    wire.text("git_add", json!({"repository_path": "sub", "files": ["b.txt"]}));
    assert_eq!(project.git(&["diff", "--cached", "--name-only"]), "sub/b.txt\n");
    wire.text("git_restore", json!({"repository_path": "sub", "paths": ["../a.txt"]}));
    assert_eq!(project.read("a.txt"), "one\ntwo\nthree\n");
    assert!(
        wire.text("git_blame", json!({"repository_path": "sub", "path": "b.txt"})).contains("Not Committed")
    );
}

#[test]
fn worktrees_and_submodules_are_repositories_of_their_own() {
    let (project, _) = repository();
    init(&project, "library");
    project.write("library/l.txt", "l\n");
    project.git_in("library", &["add", "."]);
    project.git_in("library", &["commit", "--quiet", "--message=library"]);
    project.git(&["worktree", "add", "--quiet", "tree", "-b", "tree"]);
    project.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "./library", "module"]);
    let mut wire = connect(&project, &[]);
    let found = structured(&mut wire, "git_status", json!({"repository_path": "tree"}));
    assert_eq!(found["head"]["branch"], "tree", "{found}");
    project.write("tree/new.txt", "n\n");
    wire.text("git_add", json!({"repository_path": "tree", "files": ["new.txt"]}));
    wire.text("git_commit", json!({"repository_path": "tree", "message": "in the tree"}));
    assert_eq!(project.git(&["log", "--format=%s", "-1", "tree", "--"]), "in the tree\n");
    let log = wire.text("git_log", json!({"repository_path": "module"}));
    assert!(log.contains("library"), "{log}");
    project.write("module/l.txt", "changed\n");
    let found = structured(&mut wire, "git_status", json!({"repository_path": "module"}));
    assert_eq!(found["changes"], json!([{"path": "l.txt", "unstaged": "modified"}]));
}

#[test]
fn a_root_below_the_top_of_a_repository_says_which_root_is_missing() {
    let (project, _) = repository();
    let serve_in = |folder: &str| {
        let mut command = project.server();
        command.args(["--root", folder]).env("HOME", "/nonexistent").env_remove("XDG_CONFIG_HOME");
        Wire::connect(command, Era::Modern)
    };
    std::fs::create_dir_all(project.join("sub/deep")).unwrap();
    let said = serve_in("sub").failure("git_status", json!({}));
    assert!(
        said.contains("top folder is .., above the allowed root") && said.contains("--root .."),
        "{said}"
    );
    let said = serve_in("sub").failure("git_log", json!({"repository_path": "deep"}));
    assert!(
        said.contains("deep") && said.contains("is in a git repository") && said.contains("--root .."),
        "{said}"
    );
    let said = serve_in("sub/deep").failure("git_status", json!({}));
    assert!(said.contains("--root ../.."), "{said}");

    let outside = Project::empty();
    let tree = outside.join("tree");
    project.git(&["worktree", "add", "--quiet", tree.to_str().unwrap(), "-b", "tree"]);
    let mut command = outside.server();
    command.args(["--root", "tree"]).env("HOME", "/nonexistent");
    let said = Wire::connect(command, Era::Modern).failure("git_status", json!({}));
    let top = project.path().canonicalize().unwrap();
    assert!(said.contains("is a linked work tree or a submodule"), "{said}");
    assert!(said.contains(&format!("--root {}", top.display())), "{said}");
    let mut command = outside.server();
    command.args(["--root", "tree", "--root"]).arg(&top).env("HOME", "/nonexistent");
    let found = structured(&mut Wire::connect(command, Era::Modern), "git_status", json!({}));
    assert_eq!(found["head"]["branch"], "tree", "{found}");
}

#[test]
fn a_rebase_tells_its_branch_and_step_and_a_message_keeps_its_blank_line() {
    let (project, mut wire) = repository();
    let onto = project.git(&["rev-parse", "HEAD"]).trim().to_owned();
    project.git(&["checkout", "--quiet", "-b", "topic"]);
    for (name, message) in [("b.txt", "second\n\nWhy it is so.\nAnd more."), ("c.txt", "third")] {
        project.write(name, "x\n");
        project.git(&["add", "."]);
        project.git(&["commit", "--quiet", "--message", message]);
    }
    let text = wire.text("git_log", json!({"paths": ["b.txt"]}));
    assert!(text.ends_with("    second\n\n    Why it is so.\n    And more."), "{text}");
    assert_eq!(wire.text("git_log", json!({"files": "b.txt"})), text);
    // It stops before the second of two commits.
    let stop = [
        "-c",
        "sequence.editor=sed -i '2s/^pick/edit/'",
        "rebase",
        "--quiet",
        "--interactive",
        "--force-rebase",
        "main",
    ];
    project.git(&stop);
    let found = status(&mut wire);
    assert_eq!(found["operation"], "rebase", "{found}");
    assert_eq!(found["progress"], json!({"branch": "topic", "onto": onto, "step": 2, "steps": 2}));
    let text = wire.text("git_status", json!({}));
    let words = format!("rebase in progress of topic onto {}, step 2 of 2", &onto[..10]);
    assert!(text.contains(&words), "{text}");
    project.write("b.txt", "y\n");
    wire.text("git_add", json!({"paths": ["b.txt"]}));
    project.write("b.txt", "z\n");
    wire.text("git_add", json!({"files": ["b.txt"]}));
    assert_eq!(project.git(&["show", ":b.txt"]), "z\n");
    let said = wire.failure("git_add", json!({"paths": ["b.txt"], "files": ["c.txt"]}));
    assert!(said.contains("`files` is given twice"), "{said}");
}

#[test]
fn a_bare_repository_has_history_and_no_files() {
    let (project, mut wire) = repository();
    project.git(&["clone", "--quiet", "--bare", ".", "bare.git"]);
    let bare = |more: Value| {
        let mut arguments = json!({"repository_path": "bare.git"});
        for (key, value) in more.as_object().unwrap() {
            arguments[key] = value.clone();
        }
        arguments
    };
    assert!(wire.text("git_log", bare(json!({}))).contains("first"));
    assert!(wire.text("git_show", bare(json!({"revision": "HEAD:a.txt"}))).starts_with("one\n"));
    assert!(wire.text("git_blame", bare(json!({"path": "a.txt"}))).contains("Ada"));
    assert_eq!(wire.text("git_diff", bare(json!({"revision": "HEAD..HEAD"}))), "no differences");
    assert_eq!(wire.text("git_stash", bare(json!({}))), "0 stashes");
    wire.text("git_create_branch", bare(json!({"name": "new"})));
    for (tool, arguments) in [
        ("git_status", json!({})),
        ("git_diff", json!({})),
        ("git_add", json!({"files": ["."]})),
        ("git_commit", json!({"message": "m"})),
        ("git_checkout", json!({"branch": "new"})),
        ("git_restore", json!({"paths": ["."]})),
        ("git_stash", json!({"action": "push"})),
    ] {
        let text = wire.failure(tool, bare(arguments));
        assert!(text.contains("bare repository"), "{tool}: {text}");
    }
}

#[test]
fn names_of_any_bytes_are_staged_committed_and_listed() {
    let names: [&[u8]; 9] = [
        b"with space",
        b"line\nend",
        b"quote\"s'",
        b"-rf",
        b"--output=x",
        b"tab\there",
        b":(exclude)a.txt",
        b"*",
        b"\xff\xfe",
    ];
    let (project, mut wire) = repository();
    for name in names {
        std::fs::write(project.path().join(OsStr::from_bytes(name)), "content\n").unwrap();
    }
    let text: Vec<_> = names.iter().filter_map(|name| std::str::from_utf8(name).ok()).collect();
    let found = status(&mut wire);
    let listed: Vec<_> =
        found["changes"].as_array().unwrap().iter().filter_map(|change| change["path"].as_str()).collect();
    assert!(text.iter().all(|name| listed.contains(name)), "{listed:?}");
    assert!(listed.contains(&"\\xff\\xfe"), "{listed:?}");
    // One by one, and `*` names only itself.
    wire.text("git_add", json!({"files": text}));
    assert_eq!(project.git(&["diff", "--cached", "--name-only", "-z"]).matches('\0').count(), text.len());
    wire.text("git_commit", json!({"message": "names"}));
    for name in &text {
        assert!(wire.text("git_blame", json!({"path": name})).contains("content"), "{name}");
    }
    let shown = wire.text("git_show", json!({}));
    assert!(shown.contains("added line\\nend +1 -0") && shown.contains("added -rf +1 -0"), "{shown}");
    wire.text("git_add", json!({"files": ["."]}));
    assert!(wire.text("git_status", json!({})).contains("staged: added"));
}

#[test]
fn a_rename_is_one_change() {
    let (project, mut wire) = repository();
    project.git(&["mv", "a.txt", "new name.txt"]);
    let expected = json!([{"path": "new name.txt", "from": "a.txt", "staged": "renamed"}]);
    assert_eq!(status(&mut wire)["changes"], expected);
    let text = wire.text("git_diff", json!({"staged": true, "stat": true}));
    assert_eq!(text, "1 file, +0 -0\nrenamed new name.txt from a.txt +0 -0");
}

#[test]
fn a_list_that_is_cut_says_how_much_there_is() {
    let (project, mut wire) = repository();
    for number in 0..5 {
        project.write(&format!("new{number}.txt"), "n\n");
        project.git(&["commit", "--quiet", "--allow-empty", &format!("--message=c{number}")]);
    }
    let found = structured(&mut wire, "git_status", json!({"limit": 2}));
    assert_eq!((found["changes"].as_array().unwrap().len(), &found["total"]), (2, &json!(5)));
    assert!(wire.text("git_status", json!({"limit": 2})).contains("3 more"));
    let log = structured(&mut wire, "git_log", json!({"max_count": 2}));
    assert_eq!((log["commits"].as_array().unwrap().len(), &log["total"]), (2, &json!(6)));
    let all = structured(&mut wire, "git_log", json!({}));
    assert_eq!(all["commits"].as_array().unwrap().len(), 6);
    let range = structured(&mut wire, "git_log", json!({"revision": "HEAD~2..HEAD"}));
    assert_eq!(range["total"], 2);
    let of_file = structured(&mut wire, "git_log", json!({"paths": ["sub"]}));
    assert_eq!(of_file["total"], 1);
}

#[test]
fn a_big_diff_has_all_its_statistics_and_says_how_to_get_the_rest() {
    let (project, mut wire) = repository();
    for number in 0..8 {
        project.write(&format!("big{number}.txt"), &"a line of text\n".repeat(2_000));
    }
    project.write("small.txt", "small\n");
    wire.text("git_add", json!({"files": ["."]}));
    let text = wire.text("git_diff", json!({"staged": true}));
    assert!(text.starts_with("9 files, +16001 -0\n"), "{}", &text[..200]);
    assert!(text.contains("big7.txt") && text.len() < 40_000, "{}", text.len());
    assert!(text.contains("left out; git_diff"), "{text}");
    let alone = wire.text("git_diff", json!({"staged": true, "paths": ["big7.txt"]}));
    assert!(alone.matches("+a line of text").count() == 2_000 && !alone.contains("left out"));
}

#[test]
fn a_hook_that_refuses_a_commit_is_quoted() {
    let (project, mut wire) = repository();
    hook(&project, "pre-commit", "echo the tests fail >&2; exit 1");
    project.write("a.txt", "changed\n");
    wire.text("git_add", json!({"files": ["a.txt"]}));
    let text = wire.failure("git_commit", json!({"message": "m"}));
    assert!(text.contains("the tests fail"), "{text}");
    hook(&project, "pre-commit", "echo looks good");
    let text = wire.text("git_commit", json!({"message": "m"}));
    assert!(text.contains("looks good"), "{text}");
    assert_eq!(project.git(&["log", "--format=%s", "-1"]), "m\n");
}

pub(crate) fn hook(project: &Project, name: &str, script: &str) {
    let path = project.join(".git/hooks").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(path, mode).unwrap();
}

#[test]
fn a_message_is_kept_as_it_is_and_a_blank_one_refused() {
    let (project, mut wire) = repository();
    for blank in ["", " \n\t"] {
        assert!(wire.failure("git_commit", json!({"message": blank})).contains("blank"));
    }
    project.write("a.txt", "changed\n");
    assert!(wire.failure("git_commit", json!({"message": "m"})).contains("nothing is staged"));
    wire.text("git_add", json!({"files": ["a.txt"]}));
    wire.text("git_commit", json!({"message": "-m subject\n\n# no comment\n--amend"}));
    assert_eq!(project.git(&["log", "-1", "--format=%B"]), "-m subject\n\n# no comment\n--amend\n\n");
}

#[test]
fn a_checkout_never_loses_a_change() {
    let (project, mut wire) = repository();
    wire.text("git_create_branch", json!({"name": "topic"}));
    project.write("a.txt", "committed\n");
    project.write("ignored.txt", "tracked\n");
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "--message=second"]);
    wire.text("git_checkout", json!({"branch": "topic"}));
    assert_eq!(project.read("a.txt"), "one\ntwo\nthree\n");
    project.write("a.txt", "precious\n");
    let text = wire.failure("git_checkout", json!({"branch": "main"}));
    assert!(text.contains("a.txt") && text.contains("overwritten"), "{text}");
    assert_eq!(project.read("a.txt"), "precious\n");
    wire.text("git_stash", json!({"action": "push", "message": "later"}));
    // Ignored, and there before: git overwrites such a file unless it is told not to.
    project.write(".git/info/exclude", "ignored.txt\n");
    project.write("ignored.txt", "precious\n");
    wire.failure("git_checkout", json!({"branch": "main"}));
    assert_eq!(project.read("ignored.txt"), "precious\n");
    wire.text("git_stash", json!({"action": "pop"}));
    assert_eq!(project.read("a.txt"), "precious\n");
}

#[test]
fn a_branch_that_one_remote_has_is_checked_out_as_git_would() {
    let (project, _) = repository();
    project.git(&["branch", "topic"]);
    project.git(&["clone", "--quiet", ".", "clone"]);
    let mut wire = connect(&project, &[]);
    let text = wire.text("git_checkout", json!({"repository_path": "clone", "branch": "topic"}));
    assert!(text.starts_with("on branch topic"), "{text}");
    let found = structured(&mut wire, "git_status", json!({"repository_path": "clone"}));
    assert_eq!(found["head"]["upstream"], "origin/topic");
    assert_eq!((&found["head"]["ahead"], &found["head"]["behind"]), (&json!(0), &json!(0)));
}

#[test]
fn a_stash_that_conflicts_is_kept_and_reported() {
    let (project, mut wire) = repository();
    project.write("a.txt", "stashed\n");
    project.write("new.txt", "untracked\n");
    let text = wire.text("git_stash", json!({"action": "push", "include_untracked": true}));
    assert!(text.contains("2 paths"), "{text}");
    assert!(!project.join("new.txt").exists());
    project.write("a.txt", "other\n");
    project.git(&["commit", "--all", "--quiet", "--message=other"]);
    let text = wire.failure("git_stash", json!({"action": "pop"}));
    assert!(text.contains("conflict") && text.contains("1 stash"), "{text}");
    assert_eq!(status(&mut wire)["changes"][0]["conflict"], "both modified");
}

#[test]
fn restore_takes_back_what_is_named_and_nothing_else() {
    let (project, mut wire) = repository();
    project.write("a.txt", "changed\n");
    project.write("sub/b.txt", "changed\n");
    wire.text("git_restore", json!({"paths": ["sub"]}));
    assert_eq!((project.read("a.txt"), project.read("sub/b.txt")), ("changed\n".into(), "b\n".into()));
    wire.text("git_add", json!({"files": ["a.txt"]}));
    wire.text("git_restore", json!({"paths": ["a.txt"], "staged": true}));
    assert_eq!(project.read("a.txt"), "changed\n");
    assert_eq!(status(&mut wire)["changes"], json!([{"path": "a.txt", "unstaged": "modified"}]));
    wire.text("git_restore", json!({"paths": ["a.txt"], "source": "HEAD"}));
    assert_eq!(project.read("a.txt"), "one\ntwo\nthree\n");
}

#[test]
fn an_untracked_folder_seen_from_within_is_itself() {
    let (project, mut wire) = repository();
    project.write("new/deep/x.txt", "x\n");
    for (folder, path) in [("new", "./"), ("new/deep", "../"), (".", "new/")] {
        let found = structured(&mut wire, "git_status", json!({"repository_path": folder}));
        assert_eq!(found["changes"], json!([{"path": path, "unstaged": "untracked"}]), "{folder}");
    }
    wire.text("git_add", json!({"repository_path": "new", "files": ["./"]}));
    assert_eq!(project.git(&["diff", "--cached", "--name-only"]), "new/deep/x.txt\n");
}

#[test]
fn a_bare_repository_tells_what_is_stashed_in_it() {
    let (project, mut wire) = repository();
    project.write("a.txt", "changed\n");
    project.git(&["stash", "--quiet"]);
    std::fs::rename(project.join(".git"), project.join("bare.git")).unwrap();
    project.git_in("bare.git", &["config", "core.bare", "true"]);
    let found = wire.text("git_stash", json!({"repository_path": "bare.git"}));
    assert!(found.starts_with("1 stash\nstash@{0} ") && found.contains("WIP on main"), "{found}");
}

#[test]
fn a_commit_can_be_named_by_its_message_everywhere() {
    let (project, mut wire) = repository();
    project.write("a.txt", "changed\n");
    project.git(&["commit", "--all", "--quiet", "--message=second"]);
    for (tool, arguments) in [
        ("git_show", json!({"revision": ":/first"})),
        ("git_log", json!({"revision": ":/first"})),
        ("git_diff", json!({"revision": ":/first"})),
        ("git_blame", json!({"path": "a.txt", "revision": ":/first"})),
        ("git_create_branch", json!({"name": "new", "start_point": ":/first"})),
        ("git_restore", json!({"paths": ["a.txt"], "source": ":/first"})),
    ] {
        let text = wire.text(tool, arguments);
        assert!(!text.contains("second") && text != "no differences", "{tool}: {text}");
    }
    assert_eq!(project.read("a.txt"), "one\ntwo\nthree\n");
    project.git(&["restore", "a.txt"]);
    assert!(wire.text("git_checkout", json!({"branch": ":/first"})).contains("detached"));
    assert!(wire.failure("git_log", json!({"revision": ":/no such text"})).contains("no such text"));
}

/// Everything beneath a folder but `.git`, with what it holds.
fn tree(project: &Project) -> String {
    let list = "find . -path ./.git -prune -o -printf '%p %y %l\\n' -type f -exec cat {} +";
    let output =
        std::process::Command::new("sh").args(["-c", list]).current_dir(project.path()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_git_does_not_track_is_not_overwritten_by_a_way_back() {
    let shapes: [(&str, &[&str]); 4] = [
        ("rm a.txt; mkdir a.txt; echo precious > a.txt/in", &["a.txt/in"]),
        ("rm a.txt; mkdir a.txt; echo precious > a.txt/x.ignored", &["a.txt/x.ignored"]),
        ("rm -r sub; echo precious > sub", &["sub"]),
        ("rm -r sub; ln -s elsewhere sub", &["sub"]),
    ];
    for (shape, named) in shapes {
        let (project, mut wire) = repository();
        project.write(".git/info/exclude", "*.ignored\n");
        let done = std::process::Command::new("sh")
            .args(["-c", shape])
            .current_dir(project.path())
            .status()
            .unwrap();
        assert!(done.success());
        let before = tree(&project);
        for (tool, arguments) in [
            ("git_stash", json!({"action": "push"})),
            ("git_stash", json!({"action": "push", "include_untracked": true})),
            ("git_restore", json!({"paths": ["."]})),
            ("git_restore", json!({"paths": ["."], "source": "HEAD"})),
        ] {
            let text = wire.failure(tool, arguments.clone());
            assert!(named.iter().all(|name| text.contains(name)), "{shape}, {tool} {arguments}: {text}");
            assert_eq!(tree(&project), before, "{shape}, {tool} {arguments}");
        }
        assert_eq!(project.git(&["stash", "list"]), "");
    }
    // What stands there and is tracked is in the stash.
    let (project, mut wire) = repository();
    std::fs::remove_file(project.join("a.txt")).unwrap();
    project.write("a.txt/in", "staged\n");
    project.git(&["add", "--all"]);
    wire.text("git_stash", json!({"action": "push"}));
    assert_eq!(project.read("a.txt"), "one\ntwo\nthree\n");
    wire.text("git_stash", json!({"action": "pop"}));
    assert_eq!(project.read("a.txt/in"), "staged\n");
}

#[test]
fn a_stash_that_is_taken_out_replaces_nothing_that_is_not_tracked() {
    for (include_untracked, shape, named) in [
        (false, "echo precious > new.txt", "new.txt"),
        (true, "echo precious > new.txt", "new.txt"),
        (false, "mkdir new.txt; echo precious > new.txt/in", "new.txt/in"),
    ] {
        let (project, mut wire) = repository();
        project.write("new.txt", "stashed\n");
        if !include_untracked {
            project.git(&["add", "new.txt"]);
        }
        wire.text("git_stash", json!({"action": "push", "include_untracked": include_untracked}));
        // git spares what is untracked, and takes what is ignored for worthless.
        project.write(".git/info/exclude", "new.txt\nin\n");
        let done = std::process::Command::new("sh")
            .args(["-c", shape])
            .current_dir(project.path())
            .status()
            .unwrap();
        assert!(done.success());
        let before = tree(&project);
        for action in ["apply", "pop"] {
            let text = wire.failure("git_stash", json!({"action": action}));
            assert!(text.contains(named) && text.contains("does not track"), "{shape}: {text}");
            assert_eq!(tree(&project), before, "{shape}");
        }
        std::fs::rename(project.join("new.txt"), project.join("moved")).unwrap();
        wire.text("git_stash", json!({"action": "pop"}));
        assert_eq!(project.read("new.txt"), "stashed\n");
    }
}

#[test]
fn a_file_that_is_not_tracked_is_not_replaced_by_that_of_another_branch() {
    let (project, mut wire) = repository();
    project.git(&["switch", "--quiet", "--create", "other"]);
    project.write("precious", "theirs\n");
    project.write("sub/deep/file", "theirs\n");
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "--message=other"]);
    project.git(&["switch", "--quiet", "main"]);
    project.write("precious", "mine\n");
    for arguments in [
        json!({"paths": ["precious"], "source": "other"}),
        json!({"paths": ["."], "source": "other"}),
        json!({"paths": ["../precious"], "source": "other", "repository_path": "sub"}),
    ] {
        let text = wire.failure("git_restore", arguments);
        assert!(text.contains("precious") && text.contains("does not track"), "{text}");
        assert_eq!(project.read("precious"), "mine\n");
    }
    let text = wire.failure("git_checkout", json!({"branch": "other"}));
    assert!(text.contains("precious"), "{text}");
    assert_eq!(project.read("precious"), "mine\n");
    // The index has it then, and the file stays.
    wire.text("git_restore", json!({"paths": ["precious"], "source": "other", "staged": true}));
    assert_eq!(project.read("precious"), "mine\n");
    wire.text("git_restore", json!({"paths": ["sub"], "source": "other"}));
    assert_eq!(project.read("sub/deep/file"), "theirs\n");
}

#[test]
fn a_folder_without_a_repository_is_said_to_be_one() {
    let project = Project::with([("x/y", "")]);
    let mut wire = connect(&project, &[]);
    let text = wire.failure("git_status", json!({"repository_path": "x"}));
    assert!(text.contains("`x` is in no git repository"), "{text}");
}

/// The answer of no tool may say that there is nothing where something is lost.
#[test]
fn a_commit_or_branch_that_cannot_be_read_is_damage_and_not_the_lack_of_commits() {
    let (missing, mut of_missing) = repository();
    std::fs::remove_dir_all(missing.join(".git/objects")).unwrap();
    std::fs::create_dir_all(missing.join(".git/objects")).unwrap();
    let (empty, mut of_empty) = repository();
    // What a machine that lost its power leaves.
    empty.write(".git/refs/heads/main", "");
    for wire in [&mut of_missing, &mut of_empty] {
        for (tool, arguments) in [
            ("git_log", json!({})),
            ("git_log", json!({"all": true})),
            ("git_current_branch", json!({})),
            ("git_diff", json!({"revision": "HEAD"})),
            ("git_create_branch", json!({"name": "new"})),
            ("git_stash", json!({"action": "push"})),
            ("git_restore", json!({"files": ["a.txt"], "staged": true})),
        ] {
            let said = wire.failure(tool, arguments);
            assert!(said.contains("this repository is damaged"), "{tool}: {said}");
        }
    }
    assert!(of_missing.failure("git_log", json!({"revision": "main"})).contains("`main` names the object"));
    for tool in ["git_status", "git_list_branches"] {
        assert!(of_empty.failure(tool, json!({})).contains("this repository is damaged"), "{tool}");
    }
    // A name of an object that never was here is no damage.
    let said = of_missing.failure("git_log", json!({"revision": "1234567890123456789012345678901234567890"}));
    assert!(said.contains("no commit, branch or tag is called"), "{said}");
}

#[test]
fn a_shallow_clone_is_told_where_its_history_ends() {
    let (project, _) = repository();
    project.write("sub/b.txt", "second\n");
    project.git(&["commit", "--all", "--quiet", "--message=second"]);
    let source = format!("file://{}", project.path().canonicalize().unwrap().display());
    project.git(&["clone", "--quiet", "--depth=1", &source, "clone"]);
    let mut wire = connect(&project, &[]);
    let text = wire.text("git_blame", json!({"path": "a.txt", "repository_path": "clone"}));
    assert!(text.starts_with("or before: ") && text.contains("this clone is shallow"), "{text}");
    let log = structured(&mut wire, "git_log", json!({"repository_path": "clone"}));
    assert_eq!((&log["total"], &log["shallow"]), (&json!(1), &json!(true)));
    assert_eq!(log["commits"][0]["grafted"], true, "{log}");
    let text = wire.text("git_show", json!({"repository_path": "clone"}));
    assert!(
        text.contains("its parents are not in this shallow clone") && !text.contains("grafted"),
        "{text}"
    );
    let said = wire.failure("git_diff", json!({"revision": "HEAD~1", "repository_path": "clone"}));
    assert!(said.contains("this clone is shallow"), "{said}");
    // The first commit of a whole history is what it seems.
    let text = wire.text("git_blame", json!({"path": "a.txt"}));
    assert!(!text.contains("before") && !text.contains("shallow"), "{text}");
    assert!(!wire.text("git_log", json!({})).contains("shallow"));
    project.git_in("clone", &["fetch", "--quiet", "--unshallow"]);
    let text = wire.text("git_blame", json!({"path": "a.txt", "repository_path": "clone"}));
    assert!(!text.contains("before") && !text.contains("shallow"), "{text}");
}

#[test]
fn a_status_says_that_it_has_not_looked_into_submodules() {
    let (project, mut wire) = repository();
    assert!(wire.text("git_status", json!({})).ends_with("\nclean"));
    init(&project, "library");
    project.write("library/c.txt", "c\n");
    project.git_in("library", &["add", "."]);
    project.git_in("library", &["commit", "--quiet", "--message=library"]);
    project.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "./library", "module"]);
    project.write(".git/info/exclude", "library\n");
    project.git(&["commit", "--quiet", "--message=module"]);
    project.write("module/c.txt", "changed\n");
    let result = wire.call("git_status", json!({}));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.ends_with("clean, except that changes inside submodules were not looked at"), "{text}");
    assert_eq!(result["structuredContent"]["has_submodules"], true, "{result}");
    let text = wire.text("git_diff", json!({}));
    assert_eq!(text, "no differences; changes inside submodules were not looked at");
    assert_eq!(wire.text("git_diff", json!({"staged": true})), "no differences");
    project.write("a.txt", "changed\n");
    assert!(wire.text("git_status", json!({})).ends_with("[changes inside submodules were not looked at]"));
}
