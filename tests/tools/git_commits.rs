//! `git_commit` in one call, and what looks back: `git_log`, `git_diff`, `git_stash`.

use crate::git::{connect, hook, repository};
use integration_tests::Project;
use serde_json::json;
use std::process::Command;

/// Runs git where it may end in conflicts. Returns true if it did not.
pub(crate) fn git_succeeds(project: &Project, arguments: &[&str]) -> bool {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(project.path()).env("GIT_EDITOR", "true");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    command.output().unwrap().status.success()
}

/// Two branches that change the same line of `a.txt`; `main` is checked out.
pub(crate) fn diverge(project: &Project) {
    project.git(&["branch", "other"]);
    project.write("a.txt", "ours\n");
    project.git(&["commit", "--all", "--quiet", "--message=ours"]);
    project.git(&["switch", "--quiet", "other"]);
    project.write("a.txt", "theirs\n");
    project.git(&["commit", "--all", "--quiet", "--message=theirs"]);
    project.git(&["switch", "--quiet", "main"]);
}

fn changed_in_last(project: &Project) -> String {
    project.git(&["show", "--format=", "--name-status", "HEAD"])
}

#[test]
fn files_are_staged_and_committed_in_one_call_and_nothing_else_is_swallowed() {
    let (project, mut wire) = repository();
    project.write("a.txt", "changed\n");
    project.write("new/deep.txt", "new\n");
    project.write("staged.txt", "staged\n");
    project.write("open.txt", "open\n");
    project.git(&["add", "staged.txt"]);
    let text = wire.text("git_commit", json!({"message": "two", "files": ["a.txt", "new"]}));
    assert_eq!(changed_in_last(&project), "M\ta.txt\nA\tnew/deep.txt\n");
    assert!(text.contains("two (2 files, +2 -3)"), "{text}");
    assert!(text.contains("not in this commit: staged.txt (staged: added), open.txt (untracked)"), "{text}");
    assert_eq!(project.git(&["diff", "--cached", "--name-only"]), "staged.txt\n");
    // A file that was deleted, by the alias, from a folder below.
    std::fs::remove_file(project.join("sub/b.txt")).unwrap();
    let arguments = json!({"message": "gone", "paths": "b.txt", "repository_path": "sub"});
    std::fs::create_dir_all(project.join("sub")).unwrap();
    wire.text("git_commit", arguments);
    assert_eq!(changed_in_last(&project), "D\tsub/b.txt\n");
    // Names mean themselves.
    project.write("*", "star\n");
    wire.text("git_commit", json!({"message": "star", "files": ["*"]}));
    assert_eq!(changed_in_last(&project), "A\t*\n");
    let said = wire.failure("git_commit", json!({"message": "m", "files": ["a.txt"]}));
    assert!(said.contains("none of the files that `files` names has changed"), "{said}");
    let said = wire.failure("git_commit", json!({"message": "m", "files": ["no.txt"]}));
    assert!(said.contains("no.txt"), "{said}");
    let said = wire.failure("git_commit", json!({"message": "m", "files": ["a.txt"], "all": true}));
    assert!(said.contains("one of the two"), "{said}");
    // What was staged before is what a commit without names takes.
    wire.text("git_commit", json!({"message": "rest"}));
    assert_eq!(changed_in_last(&project), "A\tstaged.txt\n");
}

#[test]
fn a_first_commit_can_name_its_files() {
    let project = Project::with([("a.txt", "a\n"), ("b.txt", "b\n")]);
    crate::git::init(&project, ".");
    let mut wire = connect(&project, &[]);
    let text = wire.text("git_commit", json!({"message": "first", "files": ["a.txt"]}));
    assert!(text.contains("not in this commit: b.txt (untracked)"), "{text}");
    assert_eq!(project.git(&["ls-files"]), "a.txt\n");
}

#[test]
fn all_takes_what_git_tracks_and_names_what_is_new() {
    let (project, mut wire) = repository();
    let said = wire.failure("git_commit", json!({"message": "m", "all": true}));
    assert!(said.contains("no file that git tracks has changed"), "{said}");
    project.write("a.txt", "changed\n");
    std::fs::remove_file(project.join("sub/b.txt")).unwrap();
    project.write("new.txt", "new\n");
    let text = wire.text("git_commit", json!({"message": "all", "all": true}));
    assert_eq!(changed_in_last(&project), "M\ta.txt\nD\tsub/b.txt\n");
    assert!(text.contains("not in this commit: new.txt (untracked)"), "{text}");
}

#[test]
fn a_commit_is_amended_with_or_without_a_new_message() {
    let (project, mut wire) = repository();
    let said = wire.failure("git_commit", json!({"amend": true}));
    assert!(said.contains("nothing to amend"), "{said}");
    let said = wire.failure("git_commit", json!({}));
    assert!(said.contains("`message` is not usable: it is missing"), "{said}");
    project.write("new.txt", "new\n");
    wire.text("git_commit", json!({"amend": true, "files": ["new.txt"]}));
    let text = wire.text("git_commit", json!({"amend": true, "message": "better\n\nWhy."}));
    assert!(text.contains("better (3 files, +5 -0)") && !text.contains("force_with_lease"), "{text}");
    assert_eq!(project.git(&["log", "--format=%B"]), "better\n\nWhy.\n\n");
    // What others may have already is said to be that.
    project.git(&["clone", "--quiet", "--bare", ".", "remote.git"]);
    project.git(&["remote", "add", "origin", "./remote.git"]);
    project.git(&["fetch", "--quiet", "origin"]);
    let text = wire.text("git_commit", json!({"amend": true, "message": "again"}));
    assert!(text.contains("is on origin/main already") && text.contains("force_with_lease"), "{text}");
}

#[test]
fn a_commit_that_concludes_a_merge_a_pick_or_a_revert_says_so() {
    for (operation, command) in [
        ("merge", &["merge", "other"][..]),
        ("cherry-pick", &["cherry-pick", "other"]),
        ("revert", &["revert", "--no-edit", "HEAD~1"]),
    ] {
        let (project, mut wire) = repository();
        diverge(&project);
        if operation == "revert" {
            project.write("a.txt", "more\n");
            project.git(&["commit", "--all", "--quiet", "--message=more"]);
        }
        assert!(!git_succeeds(&project, command), "{operation}");
        for arguments in [
            json!({"message": "m"}),
            json!({"message": "m", "all": true}),
            json!({"message": "m", "files": ["sub"]}),
        ] {
            let said = wire.failure("git_commit", arguments);
            assert!(said.contains("a.txt (both modified), markers at line 1"), "{operation}: {said}");
        }
        let said = wire.failure("git_commit", json!({"message": "m", "files": ["a.txt"]}));
        assert!(said.contains("still has conflict markers, the first at line 1"), "{said}");
        project.write("a.txt", "resolved\n");
        let said = wire.failure("git_commit", json!({"message": "m", "amend": true, "files": ["a.txt"]}));
        assert!(said.contains(&format!("a {operation} is in progress")), "{said}");
        let text = wire.text("git_commit", json!({"message": "done", "files": ["a.txt"]}));
        assert!(text.contains(&format!("this commit concludes the {operation}")), "{text}");
        assert!(!wire.text("git_status", json!({})).contains("in progress"));
        let parents = if operation == "merge" { 2 } else { 1 };
        assert_eq!(project.git(&["log", "-1", "--format=%P"]).split_whitespace().count(), parents);
    }
}

#[test]
fn hooks_that_change_files_or_fail_are_told_with_their_output() {
    let (project, mut wire) = repository();
    hook(&project, "pre-commit", "echo formatted >> a.txt; echo reformatted a.txt >&2; exit 1");
    project.write("a.txt", "changed\n");
    let said = wire.failure("git_commit", json!({"message": "m", "files": ["a.txt"]}));
    for words in ["nothing was committed", "reformatted a.txt", "hooks changed a.txt"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(project.git(&["log", "--format=%s"]), "first\n");
    assert_eq!(project.git(&["diff", "--cached", "--name-only"]), "a.txt\n");
    hook(&project, "pre-commit", "echo b >> sub/b.txt; echo touched b");
    let text = wire.text("git_commit", json!({"message": "m", "files": ["a.txt"]}));
    for words in ["touched b", "hooks changed, and did not commit: sub/b.txt", "sub/b.txt (modified)"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_log_lists_files_and_every_branch() {
    let (project, mut wire) = repository();
    project.git(&["switch", "--quiet", "--create", "side"]);
    project.git(&["mv", "a.txt", "moved.txt"]);
    project.write("sub/b.txt", "changed\nmore\n");
    project.git(&["commit", "--all", "--quiet", "--message=side\n\nBody."]);
    project.git(&["switch", "--quiet", "main"]);
    assert!(!wire.text("git_log", json!({})).contains("side"));
    let text = wire.text("git_log", json!({"all": true, "stat": true}));
    let stat = "    side\n\n    Body.\n\n    2 files, +2 -1\n    renamed moved.txt from a.txt +0 -0\n    modified sub/b.txt +2 -1";
    assert!(text.contains(stat), "{text}");
    assert!(text.contains("    first\n\n    2 files, +4 -0\n    added a.txt +3 -0"), "{text}");
    let result = wire
        .call("git_log", json!({"all": true, "stat": true, "paths": ["b.txt"], "repository_path": "sub"}));
    let commits = &result["structuredContent"]["commits"];
    assert_eq!(commits[0]["stat"]["files"][0]["path"], "b.txt", "{result}");
    assert_eq!(commits[0]["stat"]["total"], 1);
    let said = wire.failure("git_log", json!({"all": true, "revision": "main"}));
    assert!(said.contains("one of the two"), "{said}");
    // A merge is compared with its first parent, and stashes are no branches.
    project.git(&["merge", "--quiet", "--no-ff", "--message=merged", "side"]);
    project.write("moved.txt", "stashed\n");
    project.git(&["stash", "--quiet"]);
    let result = wire.call("git_log", json!({"all": true, "stat": true}));
    let commits = result["structuredContent"]["commits"].as_array().unwrap().clone();
    assert_eq!(commits.len(), 3, "{result}");
    assert_eq!((&commits[0]["subject"], &commits[0]["stat"]["total"]), (&json!("merged"), &json!(2)));
}

#[test]
fn three_dots_show_what_a_branch_has_changed_since_it_left() {
    let (project, mut wire) = repository();
    diverge(&project);
    let two = wire.text("git_diff", json!({"revision": "main..other"}));
    let three = wire.text("git_diff", json!({"revision": "main...other"}));
    assert!(two.contains("-ours\n+theirs"), "{two}");
    assert!(three.contains("-one\n-two\n-three\n+theirs") && !three.contains("ours"), "{three}");
    let stat = wire.text("git_diff", json!({"revision": "...other", "stat": true}));
    assert_eq!(stat, "1 file, +1 -3\nmodified a.txt +1 -3");
}

#[test]
fn the_changes_of_some_files_are_put_aside_and_brought_back() {
    let (project, mut wire) = repository();
    project.write("a.txt", "the fix\n");
    project.write("sub/b.txt", "the test\n");
    project.write("sub/new.txt", "new\n");
    let text = wire.text("git_stash", json!({"action": "push", "files": ["a.txt"]}));
    assert!(text.contains("of 1 path"), "{text}");
    assert_eq!(project.read("a.txt"), "one\ntwo\nthree\n");
    assert_eq!(project.read("sub/b.txt"), "the test\n");
    let said = wire.failure("git_stash", json!({"action": "pop", "files": ["a.txt"]}));
    assert!(said.contains("as a whole"), "{said}");
    wire.text("git_stash", json!({"action": "pop"}));
    assert_eq!(project.read("a.txt"), "the fix\n");
    // Seen from a folder below, with what is new there.
    let arguments =
        json!({"action": "push", "files": ["."], "include_untracked": true, "repository_path": "sub"});
    let text = wire.text("git_stash", arguments);
    assert!(text.contains("of 2 paths"), "{text}");
    assert_eq!(
        (project.read("a.txt"), project.join("sub/new.txt").exists()),
        ("the fix\n".to_owned(), false)
    );
    wire.text("git_stash", json!({"action": "pop"}));
    assert_eq!(project.read("sub/new.txt"), "new\n");
    let said = wire.failure("git_stash", json!({"action": "push", "files": ["sub/new.txt"]}));
    assert!(said.contains("none of the files that `files` names has changed"), "{said}");
}

#[test]
fn one_commit_is_named_by_its_range_and_a_path_that_is_nowhere_is_refused() {
    let (project, mut wire) = repository();
    project.write("a.txt", "second\n");
    project.git(&["commit", "--all", "--quiet", "--message=second"]);
    diverge(&project);
    project.git(&["merge", "--quiet", "--strategy=ours", "--message=merged", "other"]);
    for (revision, subjects) in
        [("HEAD~1^!", vec!["ours"]), ("HEAD^!", vec!["merged"]), ("HEAD^-", vec!["merged", "theirs"])]
    {
        let result = wire.call("git_log", json!({"revision": revision}));
        let commits = result["structuredContent"]["commits"].as_array().unwrap();
        let found: Vec<&str> = commits.iter().map(|commit| commit["subject"].as_str().unwrap()).collect();
        assert_eq!(found, subjects, "{revision}");
    }
    let text = wire.text("git_diff", json!({"revision": "HEAD~1^!"}));
    assert!(text.contains("-second") && text.contains("+ours"), "{text}");
    let said = wire.failure("git_diff", json!({"revision": "HEAD^@"}));
    assert!(said.contains("all parents"), "{said}");
    let said = wire.failure("git_diff", json!({"paths": ["a.txt", "no/such.txt"]}));
    assert!(said.contains("there is no `no/such.txt`"), "{said}");
    // What is only in a commit, only untracked, or deleted, exists.
    project.write("new.txt", "new\n");
    assert!(wire.text("git_diff", json!({"paths": ["new.txt"]})).contains("no differences"));
    project.git(&["rm", "--quiet", "a.txt"]);
    assert!(wire.text("git_diff", json!({"paths": ["a.txt"]})).contains("no differences"));
    assert!(wire.text("git_diff", json!({"staged": true, "paths": ["a.txt"]})).contains("deleted a.txt"));
}

#[test]
fn a_stash_of_some_files_tells_what_it_holds_besides() {
    let (project, mut wire) = repository();
    project.write("a.txt", "changed\n");
    project.write("sub/b.txt", "staged\n");
    project.git(&["add", "sub/b.txt"]);
    let text = wire.text("git_stash", json!({"action": "push", "files": ["a.txt"]}));
    assert!(text.contains("of 1 path. The stash also holds what is staged of 1 other path"), "{text}");
    assert!(text.contains(": sub/b.txt."), "{text}");
    assert_eq!(project.git(&["stash", "show", "--name-only"]), "a.txt\nsub/b.txt\n");
    assert_eq!(project.git(&["status", "--porcelain"]), "M  sub/b.txt\n");
}

#[test]
fn a_stash_that_cannot_be_applied_tells_which_files_it_has_written() {
    let (project, mut wire) = repository();
    project.write("a.txt", "stashed\n");
    project.write("new.txt", "new\n");
    wire.text("git_stash", json!({"action": "push", "include_untracked": true}));
    project.write("a.txt", "in the way\n");
    let said = wire.failure("git_stash", json!({"action": "pop"}));
    assert!(said.contains("untracked files of the stash were written all the same: new.txt"), "{said}");
    assert_eq!(project.read("new.txt"), "new\n");
    project.git(&["restore", "a.txt"]);
    std::fs::remove_file(project.join("new.txt")).unwrap();
    wire.text("git_stash", json!({"action": "pop"}));
    assert_eq!((project.read("a.txt"), project.read("new.txt")), ("stashed\n".into(), "new\n".into()));
}

#[test]
fn staging_that_fails_tells_what_it_has_staged() {
    let project = Project::with([("in/a.txt", "a\n"), ("out/b.txt", "b\n")]);
    crate::git::init(&project, ".");
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "--message=first"]);
    project.git(&["sparse-checkout", "set", "in"]);
    project.write("in/a.txt", "changed\n");
    project.write("out/new.txt", "new\n");
    let mut wire = connect(&project, &[]);
    let said = wire.failure("git_add", json!({"files": ["."]}));
    assert!(said.contains("out/new.txt") && said.contains("1 path is staged all the same"), "{said}");
    assert_eq!(project.git(&["diff", "--cached", "--name-only"]), "in/a.txt\n");
    // A path outside the repository: git's own message is what counts.
    let said = wire.failure("git_add", json!({"files": ["../elsewhere"]}));
    assert!(said.contains("outside repository"), "{said}");
}

#[test]
fn what_is_restored_is_counted_and_not_what_is_named() {
    let (project, mut wire) = repository();
    project.write("a.txt", "changed\n");
    let text = wire.text("git_restore", json!({"files": ["."]}));
    assert!(text.starts_with("restored 1 of 2 tracked paths"), "{text}");
    let text = wire.text("git_restore", json!({"files": ["a.txt"], "source": "HEAD"}));
    assert!(text.starts_with("restored 0 of 1 tracked path"), "{text}");
    project.git(&["rm", "--quiet", "--cached", "a.txt"]);
    let text = wire.text("git_restore", json!({"files": ["a.txt"], "staged": true}));
    assert_eq!(text, "unstaged changes of 1 tracked path");
}
