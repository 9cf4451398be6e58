//! Repositories and users whose settings are out of the ordinary.

use crate::git::{connect, init, repository};
use integration_tests::{Era, Project, Wire};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Settings that could change what git prints, each with a value that is not its default.
const SETTINGS: &str = r#"
[log]
	showRoot = false
	date = relative
	follow = true
	decorate = full
	excludeDecoration = refs/heads/*
	mailmap = true
	abbrevCommit = true
	showSignature = true
	diffMerges = off
[i18n]
	logOutputEncoding = UTF-16
	commitEncoding = ISO-8859-1
[format]
	pretty = oneline
[core]
	quotePath = true
	abbrev = 5
	bigFileThreshold = 1
	pager = false
	commentChar = ";"
[color]
	ui = always
	diff = always
	status = always
	branch = always
	advice = always
[diff]
	noprefix = true
	mnemonicPrefix = true
	renames = false
	renameLimit = 1
	algorithm = patience
	relative = true
	orderFile = ORDER
	ignoreSubmodules = all
	context = 0
	interHunkContext = 50
	suppressBlankEmpty = true
	submodule = log
	indentHeuristic = false
	wordRegex = .
	statGraphWidth = 1
	colorMoved = zebra
	wsErrorHighlight = all
	external = false
[status]
	showUntrackedFiles = no
	renames = false
	branch = false
	short = true
	showStash = false
	relativePaths = false
	aheadBehind = false
	submoduleSummary = true
[column]
	ui = always
[blame]
	showEmail = true
	blankBoundary = true
	showRoot = true
	date = relative
	coloring = repeatedLines
	ignoreRevsFile = IGNORED
	markIgnoredLines = true
[mailmap]
	file = ALIASES
[notes]
	displayRef = refs/notes/*
[branch]
	sort = -committerdate
[tag]
	sort = -creatordate
[stash]
	showPatch = true
	showIncludeUntracked = true
[checkout]
	guess = false
	defaultRemote = nobody
[interactive]
	diffFilter = false
[commit]
	verbose = true
	cleanup = strip
[advice]
	statusHints = true
"#;

/// Every answer of what reads, in a repository with something of everything.
fn answers(wire: &mut Wire) -> Vec<(String, Value)> {
    let calls = [
        ("git_status", json!({})),
        ("git_status", json!({"repository_path": "sub"})),
        ("git_log", json!({"max_count": 100})),
        ("git_log", json!({"paths": ["renamed.txt"]})),
        ("git_diff", json!({})),
        ("git_diff", json!({"repository_path": "sub"})),
        ("git_diff", json!({"staged": true})),
        ("git_diff", json!({"revision": "HEAD~1"})),
        ("git_show", json!({})),
        ("git_show", json!({"revision": "HEAD~1"})),
        ("git_show", json!({"revision": "root"})),
        ("git_show", json!({"revision": "HEAD:long.txt"})),
        // What is not committed is as old as the call.
        ("git_blame", json!({"path": "a.txt"})),
        ("git_blame", json!({"path": "long.txt", "revision": "HEAD"})),
        ("git_blame", json!({"path": "renamed.txt", "revision": "HEAD"})),
        ("git_list_branches", json!({})),
        ("git_current_branch", json!({})),
        ("git_stash", json!({})),
    ];
    calls
        .into_iter()
        .map(|(tool, arguments)| {
            let called = format!("{tool} {arguments}");
            let result = wire.call(tool, arguments);
            assert_eq!(result["isError"], false, "{called}: {result}");
            (called, result)
        })
        .collect()
}

#[test]
fn what_the_user_has_set_for_their_own_eyes_changes_no_answer() {
    let (project, _) = repository();
    let lines = |edit: &[usize]| -> String {
        (1..60)
            .map(|line| if edit.contains(&line) { "changed\n\n".to_owned() } else { format!("{line}\n\n") })
            .collect()
    };
    project.git(&["tag", "root"]);
    project.write("long.txt", &lines(&[]));
    project.write("old.txt", "one\ntwo\nthree\nfour\n");
    project.write("\u{e4}.txt", "\u{e4}\n");
    project.git(&["add", "."]);
    project.git(&["-c", "user.name=J\u{f6}rg", "commit", "--quiet", "--message=zweiter Stand f\u{fc}r alle"]);
    project.write(".mailmap", "Lovelace <other@example.org> <ada@example.org>\n");
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "--message=names"]);
    project.write("IGNORED", &project.git(&["rev-parse", "HEAD~1"]));
    project.write("ALIASES", "Somebody <some@example.org> <other@example.org>\nSomebody <ada@example.org>\n");
    project.write("ORDER", "z*\n\u{e4}*\nsub/*\n");
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "--message=lists"]);
    project.git(&["switch", "--quiet", "--create", "side", "HEAD~1"]);
    project.write("side.txt", "side\n");
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "--message=side"]);
    project.git(&["switch", "--quiet", "main"]);
    project.git(&["merge", "--quiet", "--no-ff", "--message=merged", "side"]);
    project.git(&["mv", "old.txt", "renamed.txt"]);
    project.git(&["commit", "--quiet", "--message=moved"]);
    project.git(&["notes", "add", "--message=a note"]);
    project.write("a.txt", "stashed\n");
    project.git(&["stash", "--quiet"]);
    project.git(&["mv", "side.txt", "moved.txt"]);
    project.write("long.txt", &lines(&[5, 20, 50]));
    project.write("sub/b.txt", "changed\n");
    project.write("\u{e4}.txt", "changed\n");
    project.write("untracked/file", "");
    let plain = answers(&mut connect(&project, &[]));
    let home = Project::with([(".gitconfig", SETTINGS)]);
    let mut command = project.server();
    command.env("HOME", home.path()).env_remove("XDG_CONFIG_HOME");
    let mut wire = Wire::connect(command, Era::Modern);
    for ((called, plain), (_, set)) in plain.into_iter().zip(answers(&mut wire)) {
        assert_eq!(plain, set, "{called}");
    }
    // What the root commit brought is shown, and who wrote what is known.
    assert!(wire.text("git_show", json!({"revision": "root"})).contains("added a.txt"));
    assert!(wire.text("git_blame", json!({"path": "\u{e4}.txt", "revision": "HEAD"})).contains("Lovelace"));
    assert!(wire.text("git_log", json!({})).contains("J\u{f6}rg"));
    // A message is written as it is given.
    wire.text("git_commit", json!({"message": "\u{fc}\n\n; no comment"}));
    assert_eq!(project.git(&["log", "-1", "--format=%B"]), "\u{fc}\n\n; no comment\n\n");
}

#[test]
fn a_sparse_checkout_shows_what_it_has_and_changes_nothing_else() {
    let (project, mut wire) = repository();
    project.git(&["sparse-checkout", "set", "--no-cone", "/a.txt"]);
    assert!(!project.join("sub/b.txt").exists());
    assert!(wire.text("git_status", json!({})).ends_with("clean"));
    project.write("sub/b.txt", "mine\n");
    let text = wire.failure("git_add", json!({"files": ["sub/new.txt"]}));
    assert!(text.contains("sub/new.txt"), "{text}");
    project.write("sub/new.txt", "new\n");
    let text = wire.failure("git_add", json!({"files": ["sub/new.txt"]}));
    assert!(text.contains("outside of your sparse-checkout"), "{text}");
    assert_eq!(project.git(&["diff", "--cached", "--name-only"]), "");
    project.write("a.txt", "changed\n");
    wire.text("git_add", json!({"files": ["a.txt"]}));
    wire.text("git_commit", json!({"message": "sparse"}));
    assert_eq!(project.git(&["show", "--format=", "--name-only"]), "a.txt\n");
    assert_eq!(project.read("sub/b.txt"), "mine\n");
}

#[test]
fn a_repository_of_another_user_is_refused_until_the_user_trusts_it() {
    // Only root can give a file to somebody else.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for part in [".", ".git"] {
        let (project, _) = repository();
        let owner = |user| std::os::unix::fs::chown(project.join(part), Some(user), Some(user)).unwrap();
        owner(65_534);
        let mut wire = connect(&project, &[]);
        for (tool, arguments) in [
            ("git_status", json!({})),
            ("git_log", json!({})),
            ("git_diff", json!({})),
            ("git_show", json!({})),
            ("git_blame", json!({"path": "a.txt"})),
            ("git_list_branches", json!({})),
            ("git_current_branch", json!({})),
            ("git_add", json!({"files": ["."]})),
            ("git_commit", json!({"message": "m"})),
            ("git_create_branch", json!({"name": "new"})),
            ("git_checkout", json!({"branch": "main"})),
            ("git_restore", json!({"paths": ["."]})),
            ("git_stash", json!({})),
        ] {
            let text = wire.failure(tool, arguments);
            assert!(text.contains("another user") && text.contains("safe.directory"), "{tool}: {text}");
        }
        let place = project.path().canonicalize().unwrap();
        let trusted = format!("[safe]\n\tdirectory = {}\n", place.display());
        let home = Project::with([(".gitconfig", &*trusted)]);
        let mut command = project.server();
        command.env("HOME", home.path()).env_remove("XDG_CONFIG_HOME");
        let mut wire = Wire::connect(command, Era::Modern);
        assert!(wire.text("git_status", json!({})).contains("clean"));
        assert!(wire.text("git_log", json!({})).contains("first"));
        // The tests' own git needs it back.
        owner(0);
    }
}

#[test]
fn a_pipe_where_git_reads_a_file_is_refused_and_not_waited_for() {
    for name in [".gitignore", ".gitattributes", ".mailmap", ".git/info/exclude", ".git/packed-refs"] {
        let (project, mut wire) = repository();
        let _ = std::fs::remove_file(project.join(name));
        std::fs::create_dir_all(project.join(name).parent().unwrap()).unwrap();
        let made = std::process::Command::new("mkfifo").arg(project.join(name)).status().unwrap();
        assert!(made.success());
        let started = Instant::now();
        let text = wire.failure("git_status", json!({}));
        assert!(text.contains(name) && text.contains("named pipe"), "{text}");
        assert!(started.elapsed() < Duration::from_secs(20), "{name}");
    }
}

#[test]
fn a_repository_within_another_is_never_put_aside() {
    let (project, mut wire) = repository();
    init(&project, "nested");
    project.git_in("nested", &["commit", "--quiet", "--allow-empty", "--message=nested"]);
    let text = wire.failure("git_stash", json!({"action": "push", "include_untracked": true}));
    assert!(text.contains("nothing to put aside"), "{text}");
    assert_eq!(project.git(&["stash", "list"]), "");
    // Nor is a submodule's other commit.
    project.git(&["add", "nested"]);
    project.git(&["commit", "--quiet", "--message=module"]);
    project.git_in("nested", &["commit", "--quiet", "--allow-empty", "--message=more"]);
    let text = wire.failure("git_stash", json!({"action": "push"}));
    assert!(text.contains("nothing to put aside"), "{text}");
    project.write("new.txt", "new\n");
    let text = wire.text("git_stash", json!({"action": "push", "include_untracked": true}));
    assert!(text.contains("of 2 paths") || text.contains("of 1 path"), "{text}");
    assert!(!project.join("new.txt").exists());
}
