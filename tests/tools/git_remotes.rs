//! Fetch, pull and push, with repositories in folders and behind a daemon.

use crate::git::{connect, hook, init, repository};
use integration_tests::{Project, Wire, require};
use serde_json::json;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

/// A repository that follows `remote.git` beside its files, a clone of somebody else's, and a server.
pub(crate) fn with_remote() -> (Project, Wire) {
    let (project, _) = repository();
    project.write(".git/info/exclude", "remote.git\nother\n");
    project.git(&["clone", "--quiet", "--bare", ".", "remote.git"]);
    project.git(&["remote", "add", "origin", "./remote.git"]);
    project.git(&["fetch", "--quiet", "origin"]);
    project.git(&["branch", "--quiet", "--set-upstream-to=origin/main"]);
    project.git(&["clone", "--quiet", "remote.git", "other"]);
    init(&project, "other");
    let wire = connect(&project, &[]);
    (project, wire)
}

/// Somebody else changes a file and pushes it.
fn others_push(project: &Project, file: &str, content: &str) {
    project.write(&format!("other/{file}"), content);
    project.git_in("other", &["add", "."]);
    project.git_in("other", &["commit", "--quiet", &format!("--message=their {file}")]);
    project.git_in("other", &["push", "--quiet"]);
}

fn commit(project: &Project, file: &str, content: &str) {
    project.write(file, content);
    project.git(&["add", file]);
    project.git(&["commit", "--quiet", &format!("--message=our {file}")]);
}

fn remote_log(project: &Project, branch: &str) -> String {
    project.git_in("remote.git", &["log", "--format=%s", branch])
}

#[test]
fn a_branch_is_pushed_and_followed_from_then_on() {
    let (project, mut wire) = with_remote();
    commit(&project, "a.txt", "changed\n");
    let text = wire.text("git_push", json!({"dry_run": true}));
    assert!(text.starts_with("would push to origin (./remote.git)\nmain "), "{text}");
    assert_eq!(remote_log(&project, "main"), "first\n");
    let text = wire.text("git_push", json!({}));
    assert!(text.starts_with("pushed to origin (./remote.git)\nmain "), "{text}");
    assert!(!text.contains("follows"), "{text}");
    assert_eq!(remote_log(&project, "main"), "our a.txt\nfirst\n");
    assert!(wire.text("git_push", json!({})).contains("main is there already"));
    // From a folder below: the address is relative to the top.
    let arguments = json!({"repository_path": "sub", "branch": "topic", "remote_branch": "for/review"});
    wire.text("git_create_branch", json!({"name": "topic"}));
    let text = wire.text("git_push", arguments);
    assert!(text.contains("topic to for/review is new there"), "{text}");
    assert!(text.contains("the branch follows origin/for/review from now on"), "{text}");
    wire.text("git_checkout", json!({"branch": "topic"}));
    commit(&project, "b.txt", "b\n");
    wire.text("git_push", json!({}));
    assert_eq!(remote_log(&project, "for/review"), "our b.txt\nour a.txt\nfirst\n");
    project.git(&["tag", "v1"]);
    let text = wire.text("git_push", json!({"tags": ["v1"]}));
    assert!(text.contains("tag v1 is new there"), "{text}");
    project.git(&["tag", "--force", "v1", "main"]);
    let said = wire.failure("git_push", json!({"tags": ["v1"]}));
    assert!(said.contains("another tag of this name, which is never replaced"), "{said}");
    wire.text("git_checkout", json!({"branch": "HEAD"}));
    project.git(&["checkout", "--quiet", "--detach"]);
    let said = wire.failure("git_push", json!({}));
    assert!(said.contains("no branch is checked out"), "{said}");
}

#[test]
fn a_push_that_is_refused_says_why_and_what_to_do() {
    let (project, mut wire) = with_remote();
    others_push(&project, "theirs.txt", "t\n");
    commit(&project, "ours.txt", "o\n");
    let said = wire.failure("git_push", json!({}));
    assert!(said.contains("main was refused: fetch first: the remote has commits"), "{said}");
    assert_eq!(remote_log(&project, "main"), "their theirs.txt\nfirst\n");
    let said = wire.failure("git_pull", json!({}));
    for words in
        ["main cannot move forward to origin/main: 1 commit here and 1 commit there", "rebase main onto"]
    {
        assert!(said.contains(words), "{said}");
    }
    let said = wire.failure("git_push", json!({}));
    assert!(said.contains("main was refused: non-fast-forward: the remote has commits"), "{said}");
    wire.text("git_rebase", json!({"onto": "origin/main"}));
    hook(&project, "pre-push", "echo the tests fail >&2; exit 1");
    let said = wire.failure("git_push", json!({}));
    assert!(said.contains("the tests fail"), "{said}");
    hook(&project, "pre-push", "echo the tests pass >&2");
    let declining = "#!/bin/sh\necho no pushes on a Friday\nexit 1\n";
    project.write("remote.git/hooks/pre-receive", declining);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(project.join("remote.git/hooks/pre-receive"), mode).unwrap();
    let said = wire.failure("git_push", json!({}));
    for words in ["main was refused: pre-receive hook declined", "no pushes on a Friday"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    std::fs::remove_file(project.join("remote.git/hooks/pre-receive")).unwrap();
    let text = wire.text("git_push", json!({}));
    assert!(text.contains("the tests pass"), "{text}");
    assert_eq!(remote_log(&project, "main"), "our ours.txt\ntheir theirs.txt\nfirst\n");
}

#[test]
fn a_branch_of_the_remote_is_replaced_only_where_nobody_has_pushed_since() {
    let (project, mut wire) = with_remote();
    commit(&project, "a.txt", "one\n");
    wire.text("git_push", json!({}));
    project.git(&["commit", "--quiet", "--amend", "--message=better"]);
    let said = wire.failure("git_push", json!({}));
    assert!(said.contains("non-fast-forward"), "{said}");
    let text = wire.text("git_push", json!({"force_with_lease": true}));
    assert!(text.contains("which replaced what was there"), "{text}");
    assert_eq!(remote_log(&project, "main"), "better\nfirst\n");
    project.git_in("other", &["pull", "--quiet", "--rebase"]);
    others_push(&project, "theirs.txt", "t\n");
    project.git(&["commit", "--quiet", "--amend", "--message=best"]);
    let said = wire.failure("git_push", json!({"force_with_lease": true}));
    assert!(
        said.contains("main was refused: stale info") && said.contains("somebody has pushed since"),
        "{said}"
    );
    assert_eq!(remote_log(&project, "main"), "their theirs.txt\nbetter\nfirst\n");
    // Once that was fetched, it is replaced, and the answer says what was lost.
    wire.text("git_fetch", json!({}));
    let text = wire.text("git_push", json!({"force_with_lease": true, "dry_run": true}));
    assert!(text.contains("no longer on the remote's branch: 2 commits"), "{text}");
    assert!(text.contains(": their theirs.txt"), "{text}");
    let said = wire.failure("git_push", json!({"force_with_lease": true, "remote_branch": "never"}));
    assert!(said.contains("origin/never was never fetched"), "{said}");
}

#[test]
fn a_fetch_lists_what_has_changed_and_changes_no_branch_of_ones_own() {
    let (project, mut wire) = with_remote();
    assert!(wire.text("git_fetch", json!({})).ends_with(": nothing new"));
    project.git_in("other", &["push", "--quiet", "origin", "main:gone", "main:rewritten"]);
    wire.text("git_fetch", json!({}));
    project.git_in("other", &["push", "--quiet", "origin", ":gone"]);
    others_push(&project, "one.txt", "1\n");
    others_push(&project, "two.txt", "2\n");
    project.git_in("other", &["tag", "v1"]);
    project.git_in("other", &["push", "--quiet", "origin", "v1", "main:refs/heads/feature/new"]);
    project.git_in("other", &["switch", "--quiet", "--orphan", "alone"]);
    project.git_in("other", &["commit", "--quiet", "--allow-empty", "--message=alone"]);
    project.git_in("other", &["push", "--quiet", "--force", "origin", "alone:rewritten"]);
    let head = project.git(&["rev-parse", "HEAD"]);
    // One branch alone first.
    let text = wire.text("git_fetch", json!({"branch": "feature/new"}));
    assert!(text.contains("origin/feature/new is new at") && !text.contains("origin/main"), "{text}");
    let text = wire.text("git_fetch", json!({"prune": true}));
    for words in ["origin/gone is gone (was ", "2 commits more", "origin/rewritten was rewritten: "] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(project.git(&["tag"]).contains("v1"));
    assert_eq!(project.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(project.git(&["status", "--porcelain"]), "");
    let said = wire.failure("git_fetch", json!({"branch": "nothing"}));
    assert!(said.contains("origin (./remote.git)") && said.contains("nothing"), "{said}");
    let said = wire.failure("git_fetch", json!({"remote": "upstream"}));
    assert!(said.contains("no remote is called `upstream`; known: origin"), "{said}");
}

#[test]
fn a_pull_moves_forward_and_loses_nothing() {
    let (project, mut wire) = with_remote();
    others_push(&project, "a.txt", "theirs\n");
    others_push(&project, "new.txt", "theirs\n");
    project.write("a.txt", "mine\n");
    let said = wire.failure("git_pull", json!({}));
    assert!(said.contains("a.txt"), "{said}");
    assert_eq!(project.read("a.txt"), "mine\n");
    project.git(&["restore", "a.txt"]);
    // Also what git would take for worthless.
    project.write(".git/info/exclude", "remote.git\nother\nnew.txt\n");
    project.write("new.txt", "mine\n");
    let said = wire.failure("git_pull", json!({}));
    assert!(said.contains("new.txt") && said.contains("does not track"), "{said}");
    assert_eq!(project.read("new.txt"), "mine\n");
    std::fs::remove_file(project.join("new.txt")).unwrap();
    project.write("sub/b.txt", "mine\n");
    hook(&project, "post-merge", "echo ran > .git/marker");
    let text = wire.text("git_pull", json!({}));
    assert!(text.starts_with("main moved forward by 2 commits: "), "{text}");
    assert_eq!((project.read("a.txt"), project.read("sub/b.txt")), ("theirs\n".into(), "mine\n".into()));
    assert!(!project.join(".git/marker").exists());
    let text = wire.text("git_pull", json!({}));
    assert!(text.starts_with("main has everything already\nfetched from origin"), "{text}");
    project.git(&["switch", "--quiet", "--create", "topic"]);
    let said = wire.failure("git_pull", json!({}));
    assert!(said.contains("topic follows no branch of a remote"), "{said}");
    commit(&project, "ours.txt", "o\n");
    let text = wire.text("git_pull", json!({"branch": "main"}));
    assert!(text.starts_with("topic has everything already, and 1 commit that the remote has not"), "{text}");
    project.git(&["checkout", "--quiet", "--detach"]);
    assert!(wire.failure("git_pull", json!({})).contains("no branch with commits is checked out"));
}

/// Serves the repositories in a folder over `git://`, as long as the test runs. Returns the port.
fn daemon(project: &Project) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let base = project.path().canonicalize().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let input = OwnedFd::from(stream.try_clone().unwrap());
            let mut command = Command::new("git");
            command.args(["daemon", "--inetd", "--export-all", "--enable=receive-pack"]);
            command.arg(format!("--base-path={}", base.display())).arg(&base);
            command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
            command.stdin(Stdio::from(input)).stdout(Stdio::from(OwnedFd::from(stream)));
            command.stderr(Stdio::null()).spawn().unwrap().wait().unwrap();
        }
    });
    port
}

#[test]
fn a_remote_over_the_network_is_read_and_written() {
    let (project, mut wire) = with_remote();
    let url = format!("git://127.0.0.1:{}/remote.git", daemon(&project));
    project.git(&["remote", "set-url", "origin", &url]);
    others_push(&project, "theirs.txt", "t\n");
    let text = wire.text("git_pull", json!({}));
    assert!(text.contains("moved forward by 1 commit") && text.contains(&url), "{text}");
    commit(&project, "ours.txt", "o\n");
    let text = wire.text("git_push", json!({}));
    assert!(text.starts_with(&format!("pushed to origin ({url})\nmain ")), "{text}");
    assert_eq!(remote_log(&project, "main"), "our ours.txt\ntheir theirs.txt\nfirst\n");
    // Nobody listens there.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    project.git(&["remote", "set-url", "origin", &format!("git://{closed}/remote.git")]);
    for tool in ["git_fetch", "git_pull", "git_push"] {
        let said = wire.failure(tool, json!({}));
        assert!(said.contains("unable to connect") && said.contains(&closed.to_string()), "{tool}: {said}");
    }
}

#[test]
fn a_role_whose_programs_have_no_network_reaches_no_other_machine() {
    let (project, _) = with_remote();
    let url = format!("git://127.0.0.1:{}/remote.git", daemon(&project));
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(config.path(), "[policy]\nnetwork = false\n").unwrap();
    let arguments = ["--config", config.path().to_str().unwrap(), "--role", "dev"];
    let mut wire = connect(&project, &arguments);
    let confines = wire.text("get_diagnostics", json!({})).contains("TCP");
    if require(confines.then_some(()), "no Landlock of TCP in this kernel").is_none() {
        return;
    }
    // A folder beneath a root is no network.
    assert!(wire.text("git_fetch", json!({})).ends_with(": nothing new"));
    project.git(&["remote", "set-url", "origin", &url]);
    for tool in ["git_fetch", "git_pull", "git_push"] {
        let said = wire.failure(tool, json!({}));
        assert!(
            said.contains("may not connect to other machines") && said.contains("policy.network"),
            "{said}"
        );
    }
    let mut wire = connect(&project, &["--role", "dev"]);
    assert!(wire.text("git_fetch", json!({})).ends_with(": nothing new"));
}

#[test]
fn a_file_address_and_a_remote_without_commits_are_remotes_too() {
    let (project, mut wire) = with_remote();
    project.git(&["init", "--quiet", "--bare", "empty.git"]);
    let place = project.path().canonicalize().unwrap().join("empty.git");
    project.git(&["remote", "add", "empty", &format!("file://{}", place.display())]);
    assert!(wire.text("git_fetch", json!({"remote": "empty"})).ends_with(": nothing new"));
    let text = wire.text("git_push", json!({"remote": "empty"}));
    assert!(text.contains("main is new there"), "{text}");
    assert_eq!(project.git_in("empty.git", &["log", "--format=%s", "main"]), "first\n");
}

#[test]
fn who_may_commit_may_push_and_nobody_else() {
    let (project, _) = with_remote();
    let remote = ["git_fetch", "git_pull", "git_push"];
    let local = ["git_merge", "git_rebase", "git_worktree"];
    for (role, may) in [
        ("orchestrator", true),
        ("lead", true),
        ("senior", true),
        ("dev", true),
        ("worker", true),
        ("qa", false),
        ("architect", false),
        ("readonly", false),
        ("security", false),
        ("minimal", false),
    ] {
        let mut wire = connect(&project, &["--role", role]);
        let tools = wire.request("tools/list", json!({}))["result"]["tools"].clone();
        let names: Vec<_> =
            tools.as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
        for name in remote.iter().chain(&local).chain(&["git_commit"]) {
            assert_eq!(names.contains(name), may, "{role}: {name}");
        }
        if !may {
            let call = json!({"name": "git_push", "arguments": {}});
            assert!(wire.request("tools/call", call)["error"].is_object(), "{role}");
        }
    }
    // A role of one's own without what reaches beyond the machine has none of those that connect.
    let policy = tempfile::NamedTempFile::new().unwrap();
    let rules = "version = 1\n[roles.offline]\nallow = [\"*\"]\ndeny = [\"annotation:open-world\"]\n";
    std::fs::write(policy.path(), rules).unwrap();
    let mut wire = connect(&project, &["--policy", policy.path().to_str().unwrap(), "--role", "offline"]);
    let tools = wire.request("tools/list", json!({}))["result"]["tools"].to_string();
    assert!(
        tools.contains("git_worktree") && remote.iter().all(|name| !tools.contains(&format!("\"{name}\"")))
    );
}
