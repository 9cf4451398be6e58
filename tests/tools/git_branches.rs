//! Merges, rebases and further work trees.

use crate::git::{connect, hook, repository};
use crate::git_commits::diverge;
use integration_tests::{Project, Wire};
use serde_json::{Value, json};

fn failed(wire: &mut Wire, tool: &str, arguments: Value) -> Value {
    let result = wire.call(tool, arguments);
    assert_eq!(result["isError"], true, "{result}");
    result["structuredContent"].clone()
}

/// Two branches in conflict in three ways; `main` is checked out.
fn three_conflicts() -> (Project, Wire) {
    let (project, _) = repository();
    project.git(&["switch", "--quiet", "--create", "topic"]);
    project.write("a.txt", "one\ntheirs\nthree\n");
    project.write("new.txt", "their new\n");
    project.git(&["rm", "--quiet", "sub/b.txt"]);
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "--message=theirs"]);
    project.git(&["switch", "--quiet", "main"]);
    project.write("a.txt", "one\nours\nthree\n");
    project.write("new.txt", "our new\n");
    project.write("sub/b.txt", "changed\n");
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "--message=ours"]);
    let wire = connect(&project, &[]);
    (project, wire)
}

#[test]
fn a_merge_tells_its_conflicts_and_goes_on_when_they_are_resolved() {
    let (project, mut wire) = three_conflicts();
    let result = failed(&mut wire, "git_merge", json!({"revision": "topic"}));
    assert_eq!(
        (&result["outcome"], &result["total_conflicts"]),
        (&json!("conflicts"), &json!(3)),
        "{result}"
    );
    let conflicts: Vec<_> = result["conflicts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|conflict| {
            (conflict["path"].as_str().unwrap(), conflict["kind"].as_str().unwrap(), &conflict["lines"])
        })
        .collect();
    assert_eq!(
        conflicts,
        [
            ("a.txt", "both modified", &json!([2])),
            ("new.txt", "both added", &json!([1])),
            ("sub/b.txt", "deleted by them", &Value::Null),
        ]
    );
    let text = result["conflicts"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("<<<<<<< HEAD\n") && text.contains("\nours\n=======\ntheirs\n>>>>>>> "),
        "{text}"
    );
    assert_eq!(result["conflicts"][2]["text"], Value::Null, "{result}");
    assert!(result["next"].as_str().unwrap().contains("`continue`"), "{result}");
    let said = wire.failure("git_merge", json!({"revision": "topic"}));
    assert!(said.contains("a merge is in progress"), "{said}");
    let said = wire.failure("git_rebase", json!({"action": "abort"}));
    assert!(said.contains("a merge is in progress"), "{said}");
    let said = wire.failure("git_merge", json!({"action": "continue"}));
    assert!(said.contains("conflicts in 3 files") && said.contains("deleted by them"), "{said}");
    let said = wire.failure("git_merge", json!({"action": "continue", "files": ["a.txt"]}));
    assert!(said.contains("still has conflict markers, the first at line 2"), "{said}");
    project.write("a.txt", "one\nboth\nthree\n");
    project.write("new.txt", "both\n");
    std::fs::remove_file(project.join("sub/b.txt")).unwrap();
    let files = json!(["a.txt", "new.txt", "sub/b.txt"]);
    let text = wire.text("git_merge", json!({"action": "continue", "files": files}));
    assert!(text.starts_with("committed the merge: Merge branch 'topic' ("), "{text}");
    assert_eq!(project.git(&["log", "-1", "--format=%B"]), "Merge branch 'topic'\n\n");
    assert_eq!(project.git(&["log", "-1", "--format=%P"]).split_whitespace().count(), 2);
    let said = wire.failure("git_merge", json!({"action": "continue"}));
    assert!(said.contains("no merge is in progress"), "{said}");
}

#[test]
fn a_merge_is_taken_back_as_if_it_had_not_been() {
    let (project, mut wire) = three_conflicts();
    let head = project.git(&["rev-parse", "HEAD"]);
    failed(&mut wire, "git_merge", json!({"revision": "topic"}));
    project.write("a.txt", "half resolved\n");
    let result = wire.call("git_merge", json!({"action": "abort"}));
    assert_eq!(result["structuredContent"]["outcome"], "aborted", "{result}");
    assert_eq!(
        (project.git(&["rev-parse", "HEAD"]), project.read("a.txt")),
        (head, "one\nours\nthree\n".into())
    );
    assert_eq!(project.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_merge_moves_forward_or_makes_a_commit_or_has_nothing_to_do() {
    let (project, mut wire) = repository();
    project.git(&["switch", "--quiet", "--create", "topic"]);
    project.write("new.txt", "new\n");
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "--message=new"]);
    project.git(&["switch", "--quiet", "main"]);
    // What is there and not tracked stays, ignored or not.
    project.write("new.txt", "mine\n");
    for ignored in ["", "new.txt\n"] {
        project.write(".git/info/exclude", ignored);
        let said = wire.failure("git_merge", json!({"revision": "topic"}));
        assert!(said.contains("new.txt"), "{said}");
        assert_eq!(project.read("new.txt"), "mine\n");
    }
    std::fs::remove_file(project.join("new.txt")).unwrap();
    let result =
        wire.call("git_merge", json!({"revision": "topic", "no_ff": true, "message": "-m: why\n\n# kept"}));
    assert_eq!(result["structuredContent"]["outcome"], "merged", "{result}");
    assert_eq!(project.git(&["log", "-1", "--format=%B"]), "-m: why\n\n# kept\n\n");
    let text = wire.text("git_merge", json!({"revision": "topic"}));
    assert!(text.starts_with("topic is merged already"), "{text}");
    project.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    let result = wire.call("git_merge", json!({"revision": "topic"}));
    assert_eq!(result["structuredContent"]["outcome"], "fast_forward", "{result}");
    for (arguments, words) in [
        (json!({}), "`revision` is not usable: it is missing"),
        (json!({"revision": "nothing"}), "no commit, branch or tag is called `nothing`"),
        (json!({"revision": "--abort"}), "begins with `-`"),
        (json!({"action": "abort"}), "no merge is in progress"),
    ] {
        let said = wire.failure("git_merge", arguments);
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn a_merge_runs_hooks_and_no_driver_of_the_repository() {
    let (project, mut wire) = three_conflicts();
    let marker = project.join(".git/marker");
    project.git(&["config", "merge.evil.driver", &format!("touch {}", marker.display())]);
    project.write(".git/info/attributes", "* merge=evil\n");
    for (tool, arguments) in
        [("git_merge", json!({"revision": "topic"})), ("git_rebase", json!({"onto": "topic"}))]
    {
        let said = wire.failure(tool, arguments);
        assert!(said.contains("merge.evil.driver") && !marker.exists(), "{said}");
    }
    project.git(&["config", "--remove-section", "merge.evil"]);
    project.git(&["switch", "--quiet", "--create", "side", "HEAD~1"]);
    project.write("side.txt", "side\n");
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "--message=side"]);
    hook(&project, "pre-merge-commit", "echo not on a Friday >&2; exit 1");
    let result = failed(&mut wire, "git_merge", json!({"revision": "topic"}));
    assert_eq!(result["outcome"], "stopped", "{result}");
    assert!(result["output"].as_str().unwrap().contains("not on a Friday"), "{result}");
    wire.text("git_merge", json!({"action": "abort"}));
    assert_eq!(project.git(&["log", "-1", "--format=%s"]), "side\n");
}

#[test]
fn a_protected_file_is_changed_by_no_merge_and_no_rebase() {
    let (project, _) = repository();
    project.write("coretools.toml", "# strict\n");
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "--message=strict"]);
    project.git(&["switch", "--quiet", "--create", "lax"]);
    project.write("coretools.toml", "# lax\n");
    project.git(&["commit", "--quiet", "--all", "--message=lax"]);
    project.git(&["switch", "--quiet", "main"]);
    let mut wire = connect(&project, &[]);
    for commits in 0..2 {
        for (tool, arguments) in [
            ("git_merge", json!({"revision": "lax"})),
            ("git_rebase", json!({"onto": "lax"})),
            ("git_worktree", json!({"action": "add", "path": "tree", "branch": "lax"})),
        ] {
            let result = wire.call(tool, arguments.clone());
            // A work tree elsewhere has a file of its own.
            if tool == "git_worktree" {
                wire.call(tool, json!({"action": "remove", "path": "tree"}));
            } else {
                assert!(result.to_string().contains("protected"), "{tool} {arguments}: {result}");
            }
            assert_eq!(project.read("coretools.toml"), "# strict\n", "{tool} {commits}");
        }
        project.write("a.txt", &format!("more {commits}\n"));
        project.git(&["commit", "--quiet", "--all", "--message=more"]);
    }
}

#[test]
fn a_rebase_stops_at_conflicts_and_goes_on_skips_or_is_taken_back() {
    let (project, mut wire) = repository();
    diverge(&project);
    project.write("more.txt", "more\n");
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "--message=more\n\nWhy."]);
    let before = project.git(&["rev-parse", "HEAD"]);
    for action in ["continue", "skip", "abort"] {
        project.git(&["reset", "--quiet", "--hard", before.trim()]);
        let result = failed(&mut wire, "git_rebase", json!({"onto": "other"}));
        assert_eq!(result["outcome"], "conflicts", "{result}");
        assert_eq!(
            (&result["progress"]["step"], &result["progress"]["steps"]),
            (&json!(1), &json!(2)),
            "{result}"
        );
        assert_eq!(result["conflicts"][0]["path"], "a.txt");
        let said = wire.failure("git_rebase", json!({"onto": "other"}));
        assert!(said.contains("a rebase is in progress"), "{said}");
        let said = wire.failure("git_rebase", json!({"action": "continue"}));
        assert!(said.contains("conflicts in 1 file"), "{said}");
        project.write("a.txt", "both\n");
        let mut arguments = json!({"action": action});
        if action == "continue" {
            arguments["files"] = json!(["a.txt"]);
        }
        let text = wire.text("git_rebase", arguments);
        let (words, subjects) = match action {
            "continue" => ("2 commits are on top of", "more\nours\ntheirs\nfirst\n"),
            "skip" => ("1 commit is on top of", "more\ntheirs\nfirst\n"),
            _ => ("aborted the rebase", "more\nours\nfirst\n"),
        };
        assert!(text.contains(words), "{text}");
        assert_eq!(project.git(&["log", "--format=%s"]), subjects, "{action}");
        assert_eq!(project.git(&["log", "-1", "--format=%b"]), "Why.\n\n");
        assert!(!wire.text("git_status", json!({})).contains("in progress"), "{action}");
    }
    assert_eq!(project.git(&["rev-parse", "HEAD"]), before);
}

#[test]
fn a_rebase_moves_what_is_asked_for_and_needs_a_clean_work_tree() {
    let (project, mut wire) = repository();
    for name in ["old", "new", "newer"] {
        project.write(&format!("{name}.txt"), name);
        project.git(&["add", "."]);
        project.git(&["commit", "--quiet", &format!("--message={name}")]);
        project.git(&["branch", name]);
    }
    project.git(&["switch", "--quiet", "--create", "base", "HEAD~3"]);
    project.git(&["commit", "--quiet", "--allow-empty", "--message=base"]);
    project.git(&["switch", "--quiet", "main"]);
    project.write("a.txt", "open\n");
    let said = wire.failure("git_rebase", json!({"onto": "base"}));
    assert!(said.contains("unstaged changes"), "{said}");
    assert_eq!(project.read("a.txt"), "open\n");
    project.git(&["restore", "a.txt"]);
    let text = wire.text("git_rebase", json!({"onto": "base", "since": "old"}));
    assert!(text.starts_with("rebased 2 commits onto base; 2 commits are on top of"), "{text}");
    assert_eq!(project.git(&["log", "--format=%s"]), "newer\nnew\nbase\nfirst\n");
    let text = wire.text("git_rebase", json!({"onto": "base"}));
    assert!(text.starts_with("the branch is on top of base already"), "{text}");
    let said = wire.failure("git_rebase", json!({}));
    assert!(said.contains("`onto` is not usable: it is missing"), "{said}");
    let said = wire.failure("git_rebase", json!({"action": "continue"}));
    assert!(said.contains("no rebase is in progress"), "{said}");
}

#[test]
fn steps_that_run_programs_are_not_gone_on_with() {
    let (project, mut wire) = repository();
    diverge(&project);
    failed(&mut wire, "git_rebase", json!({"onto": "other"}));
    let marker = project.join(".git/marker");
    let steps = format!("exec touch {}\n", marker.display());
    project.write(".git/rebase-merge/git-rebase-todo", &steps);
    project.write("a.txt", "both\n");
    for action in ["continue", "skip"] {
        let said = wire.failure("git_rebase", json!({"action": action, "files": ["a.txt"]}));
        assert!(said.contains("exec among its steps"), "{said}");
    }
    wire.text("git_rebase", json!({"action": "abort"}));
    assert!(!marker.exists());
}

#[test]
fn work_trees_are_made_listed_and_removed_beneath_the_roots_alone() {
    let (project, mut wire) = repository();
    project.write(".git/info/exclude", "trees\n");
    let text = wire.text("git_worktree", json!({"action": "add", "path": "trees/x", "branch": "fix/x"}));
    assert!(text.contains("made the work tree trees/x on the new branch fix/x"), "{text}");
    assert!(text.contains("2 work trees") && text.contains("\ntrees/x on branch fix/x at "), "{text}");
    project.write("trees/x/a.txt", "changed\n");
    wire.text("git_commit", json!({"message": "x", "all": true, "repository_path": "trees/x"}));
    assert_eq!(project.git(&["log", "-1", "--format=%s", "fix/x"]), "x\n");
    // From a folder below, of an existing branch and of none.
    let add = |path: &str, more: Value| {
        let mut arguments = json!({"action": "add", "path": path, "repository_path": "sub"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    let said = wire.failure("git_worktree", add("trees/y", json!({"branch": "main"})));
    assert!(said.contains("already"), "{said}");
    wire.text("git_worktree", add("trees/y", json!({"start_point": "fix/x"})));
    assert_eq!(project.read("trees/y/a.txt"), "changed\n");
    let said =
        wire.failure("git_worktree", add("trees/z", json!({"branch": "fix/x", "start_point": "main"})));
    assert!(said.contains("exists already, and is not moved"), "{said}");
    let said = wire.failure("git_worktree", add("trees/y", json!({"branch": "z"})));
    assert!(said.contains("exists already; name a new folder"), "{said}");
    // Neither made nor removed elsewhere.
    let outside = Project::empty();
    let place = outside.join("tree");
    std::os::unix::fs::symlink(outside.path(), project.join("out")).unwrap();
    for path in [place.to_str().unwrap(), "../tree", "out/tree", "/nonexistent/tree"] {
        let said = wire.failure("git_worktree", json!({"action": "add", "path": path, "branch": "z"}));
        assert!(said.contains("outside"), "{path}: {said}");
        assert!(!place.exists() && !project.join("../tree").exists());
    }
    let said =
        wire.failure("git_worktree", json!({"action": "add", "path": "missing/../../tree", "branch": "z"}));
    assert!(said.contains("`..`") && !project.join("missing").exists(), "{said}");
    project.git(&["worktree", "add", "--quiet", place.to_str().unwrap(), "-b", "elsewhere"]);
    let text = wire.text("git_worktree", json!({}));
    assert!(text.contains("(outside the allowed roots) on branch elsewhere"), "{text}");
    wire.failure("git_worktree", json!({"action": "remove", "path": place.to_str().unwrap()}));
    assert!(place.exists());
    for path in [".", "sub", "trees"] {
        let said = wire.failure("git_worktree", json!({"action": "remove", "path": path}));
        assert!(said.contains("no further work tree") && said.contains("trees/x"), "{path}: {said}");
    }
    project.write("trees/x/new.txt", "precious\n");
    let said = wire.failure("git_worktree", json!({"action": "remove", "path": "trees/x"}));
    assert!(said.contains("modified or untracked files"), "{said}");
    assert_eq!(project.read("trees/x/new.txt"), "precious\n");
    wire.text("git_worktree", json!({"action": "remove", "path": "trees/x", "force": true}));
    let text = wire.text("git_worktree", json!({"action": "remove", "path": "trees/y"}));
    assert!(text.starts_with("removed the work tree trees/y; its branch is still there"), "{text}");
    assert!(!project.join("trees/x").exists() && !project.join("trees/y").exists());
    assert!(project.git(&["branch", "--list", "fix/x"]).contains("fix/x"));
}

#[test]
fn a_rebase_counts_the_commits_that_were_there_already() {
    let (project, mut wire) = repository();
    project.git(&["switch", "--quiet", "--create", "topic"]);
    for name in ["one", "two"] {
        project.write(name, "x\n");
        project.git(&["add", name]);
        project.git(&["commit", "--quiet", "--message", name]);
    }
    project.git(&["switch", "--quiet", "main"]);
    project.git(&["commit", "--quiet", "--allow-empty", "--message=main"]);
    project.git(&["cherry-pick", "topic~1"]);
    project.git(&["switch", "--quiet", "topic"]);
    let text = wire.text("git_rebase", json!({"onto": "main"}));
    let words = "rebased 2 commits onto main; 1 commit was left out, since the same changes are there already; 1 commit is on";
    assert!(text.starts_with(words), "{text}");
}

#[test]
fn untracked_files_are_listed_first_and_removed_only_on_request() {
    let (project, _) = repository();
    project.write(".gitignore", "*.log\n");
    project.git(&["add", ".gitignore"]);
    project.git(&["commit", "--quiet", "--message=ignore"]);
    for (path, text) in
        [("new.txt", "12345"), ("out/deep/b.txt", "b"), ("out/c.log", "c"), ("a.log", "a"), ("sub/x", "x")]
    {
        project.write(path, text);
    }
    project.write("a.txt", "changed\n");
    project.git(&["init", "--quiet", "nested"]);
    project.write("nested/file", "other");
    std::os::unix::fs::symlink(project.join("a.txt"), project.join("link")).unwrap();
    let mut wire = connect(&project, &[]);

    let listed = wire.call("git_clean", json!({}));
    let found = &listed["structuredContent"];
    assert_eq!(found["files"], json!(["link", "new.txt", "out/deep/b.txt", "sub/x"]), "{listed}");
    assert_eq!((&found["dry_run"], &found["total"]), (&json!(true), &json!(4)), "{listed}");
    assert_eq!(found["repositories"], json!(["nested/"]), "{listed}");
    assert!(wire.text("git_clean", json!({})).starts_with("dry run: 4 untracked files of "));
    assert!(project.join("new.txt").exists(), "a list removes nothing");

    let text = wire.text("git_clean", json!({"dry_run": false, "files": ["sub", "new.txt"]}));
    assert_eq!(text, "removed 2 untracked files of 6 bytes\nnew.txt\nsub/x");
    assert!(!project.join("new.txt").exists() && project.join("sub/b.txt").exists());
    wire.text("git_clean", json!({"dry_run": false}));
    // The folder keeps its ignored file; the link is gone, and what it led to is not.
    assert!(!project.join("out/deep").exists() && project.join("out/c.log").exists());
    assert!(project.join("link").symlink_metadata().is_err());
    assert_eq!(std::fs::read_to_string(project.join("a.txt")).unwrap(), "changed\n");
    assert!(project.join("nested/file").exists() && project.join("a.log").exists());
    let text = wire.text("git_clean", json!({"dry_run": false, "include_ignored": true}));
    assert!(text.starts_with("removed 2 untracked files of 2 bytes\na.log\nout/c.log"), "{text}");
    assert!(!project.join("out").exists());
    assert!(wire.text("git_clean", json!({})).starts_with("there are no untracked files to remove"));
    assert_eq!(wire.text("git_status", json!({})).lines().nth(1), Some("2 changed paths"));
}

#[test]
fn a_clean_below_a_folder_stays_there_and_leaves_protected_files() {
    let (project, _) = repository();
    project.write("sub/new", "n");
    project.write("other", "o");
    project.write("coretools.toml", "");
    let mut wire = connect(&project, &[]);
    assert_eq!(
        wire.text("git_clean", json!({"repository_path": "sub", "dry_run": false})),
        "removed 1 untracked file of 1 byte\nnew"
    );
    let text = wire.text("git_clean", json!({"dry_run": false}));
    assert_eq!(
        text,
        "removed 1 untracked file of 1 byte\nother\nleft, as they are protected files: coretools.toml"
    );
    assert!(project.join("coretools.toml").exists());
    let mut command = project.server();
    command.args(["--role", "qa"]);
    let mut wire = Wire::connect(command, integration_tests::Era::Modern);
    assert_eq!(
        wire.request("tools/call", json!({"name": "git_clean", "arguments": {}}))["error"]["code"],
        -32602
    );
}
