//! Changes by the real git, in every state that a repository can be in, hostile ones among them.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]
#![allow(clippy::disallowed_methods, reason = "tests make the repositories that are asked")]

use context_compiler::cache::ContentCache;
use context_compiler::catalogue::DiffDetail;
use context_compiler::changes::{
    ChangedFile, ChangedLineCounts, FileChangeKind, RepositoryChanges, RepositoryChangesOutcome,
};
use context_compiler::git::{self, ChangesQuery};
use context_compiler::source::FolderTree;
use context_compiler::tokens::EstimatingCounter;
use context_compiler::{Compiler, ContextRequest, ContextRequestField, DocumentFormat, Error};
use process_runner::Runner;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn cache() -> ContentCache {
    ContentCache::new(std::sync::Arc::new(EstimatingCounter))
}

fn run(folder: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git can be run");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn empty() -> tempfile::TempDir {
    let project = tempfile::tempdir().unwrap();
    run(project.path(), &["init", "--quiet", "--initial-branch=main"]);
    run(project.path(), &["config", "user.name", "Ada"]);
    run(project.path(), &["config", "user.email", "ada@example.org"]);
    project
}

/// A repository of one commit: `a.txt` of 40 lines, `b c.txt` of one.
fn repository() -> tempfile::TempDir {
    let project = empty();
    let lines: String = (1..=40).map(|number| format!("line {number}\n")).collect();
    fs::write(project.path().join("a.txt"), lines).unwrap();
    fs::write(project.path().join("b c.txt"), "b\n").unwrap();
    run(project.path(), &["add", "."]);
    run(project.path(), &["commit", "--quiet", "--message=first"]);
    project
}

fn query_changes(folder: &Path, query: &ChangesQuery) -> Result<RepositoryChanges, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let runner = Runner::new();
    runtime.block_on(git::collect_changes(|| git::command(folder), |command| runner.run(command), query))
}

fn changes(folder: &Path) -> RepositoryChanges {
    query_changes(folder, &ChangesQuery::new().time_limit(Duration::from_secs(60))).unwrap()
}

/// Path, kind of change, lines added and removed, number of hunks.
type FileSummary<'a> = (&'a str, FileChangeKind, Option<(u64, u64)>, usize);

fn files(changes: &RepositoryChanges) -> Vec<FileSummary<'_>> {
    let lines = |file: &ChangedFile| file.line_counts.map(|counts| (counts.added, counts.removed));
    let summary = |file| -> FileSummary<'_> {
        let file: &ChangedFile = file;
        (file.path.as_str(), file.kind, lines(file), file.hunks.len())
    };
    changes.files.iter().map(summary).collect()
}

#[test]
fn nothing_changed_is_said_only_where_nothing_changed() {
    let project = repository();
    assert_eq!(changes(project.path()).outcome, RepositoryChangesOutcome::Clean);
    let outside = tempfile::tempdir().unwrap();
    assert_eq!(changes(outside.path()).outcome, RepositoryChangesOutcome::NotARepository);
    let unborn = empty();
    assert_eq!(changes(unborn.path()).outcome, RepositoryChangesOutcome::Unborn);
    let runner = Runner::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let without = || git::command(project.path()).env("PATH", "/nonexistent");
    let query = ChangesQuery::new();
    let missing =
        runtime.block_on(git::collect_changes(without, |command| runner.run(command), &query)).unwrap();
    assert_eq!(missing.outcome, RepositoryChangesOutcome::GitMissing);
    let hasty = ChangesQuery::new().time_limit(Duration::ZERO);
    assert_eq!(query_changes(project.path(), &hasty).unwrap().outcome, RepositoryChangesOutcome::TimedOut);
}

#[test]
fn a_repository_above_the_root_is_not_the_projects() {
    let project = repository();
    fs::create_dir(project.path().join("sub")).unwrap();
    assert_eq!(changes(&project.path().join("sub")).outcome, RepositoryChangesOutcome::NotARepository);
}

#[test]
fn changed_added_deleted_and_untracked_files_are_told_with_their_lines() {
    let project = repository();
    let path = |name: &str| project.path().join(name);
    let text = fs::read_to_string(path("a.txt")).unwrap();
    fs::write(path("a.txt"), text.replace("line 2\n", "LINE 2\n").replace("line 30\n", "")).unwrap();
    fs::remove_file(path("b c.txt")).unwrap();
    fs::write(path("new\n\"é.txt"), "new\n").unwrap();
    run(project.path(), &["add", "--intent-to-add", "."]);
    fs::write(path("binary"), b"\0\x01").unwrap();
    run(project.path(), &["add", "binary"]);
    fs::write(path("un tracked"), "x\n").unwrap();
    let changes = changes(project.path());
    assert_eq!(changes.outcome, RepositoryChangesOutcome::Changed);
    let expected = [
        ("a.txt", FileChangeKind::Modified, Some((1, 2)), 2),
        ("b c.txt", FileChangeKind::Deleted, Some((0, 1)), 1),
        ("binary", FileChangeKind::Added, None, 0),
        ("new\n\"é.txt", FileChangeKind::Added, Some((1, 0)), 1),
        ("un tracked", FileChangeKind::Untracked, None, 0),
    ];
    assert_eq!(files(&changes), expected);
    assert!(!changes.truncated && !changes.filters_disabled);
}

#[test]
fn a_repository_without_commits_tells_what_is_in_its_index() {
    let project = empty();
    fs::write(project.path().join("a"), "a\n").unwrap();
    run(project.path(), &["add", "a"]);
    let changes = changes(project.path());
    assert_eq!(changes.outcome, RepositoryChangesOutcome::Unborn);
    assert_eq!(files(&changes), [("a", FileChangeKind::Added, Some((1, 0)), 1)]);
}

#[test]
fn a_revision_is_one_of_the_repositorys_and_never_an_option() {
    let project = repository();
    fs::write(project.path().join("a.txt"), "all new\n").unwrap();
    run(project.path(), &["commit", "--quiet", "--all", "--message=second"]);
    let since = |revision: &str| query_changes(project.path(), &ChangesQuery::new().since(revision));
    assert_eq!(files(&since("HEAD~1").unwrap()), [("a.txt", FileChangeKind::Modified, Some((1, 40)), 1)]);
    assert_eq!(since("HEAD").unwrap().outcome, RepositoryChangesOutcome::Clean);
    let target = project.path().join("written");
    for bad in ["--output=written", "no-such-branch", "HEAD:a.txt", "HEAD~1..HEAD"] {
        assert!(
            matches!(since(bad), Err(Error::InvalidRequest { field: ContextRequestField::Since, .. })),
            "{bad}"
        );
    }
    assert!(!target.exists());
}

#[test]
fn nothing_that_the_repository_names_is_run_and_its_index_stays() {
    use std::os::unix::fs::PermissionsExt;
    let project = repository();
    let marker = project.path().join("ran");
    let script = project.path().join(".git/evil");
    fs::write(&script, format!("#!/bin/sh\necho ran >> '{}'\ncat\n", marker.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let script = script.to_str().unwrap();
    for key in [
        "diff.external",
        "core.fsmonitor",
        "core.pager",
        "diff.evil.textconv",
        "diff.evil.command",
        "filter.evil.clean",
        "filter.evil.process",
        "filter.other name.clean",
    ] {
        run(project.path(), &["config", key, script]);
    }
    for setting in [
        ["diff.noprefix", "true"],
        ["diff.mnemonicPrefix", "true"],
        ["diff.context", "0"],
        ["diff.orderFile", "order"],
        ["diff.renames", "copies"],
        ["color.ui", "always"],
        ["filter.evil.required", "true"],
    ] {
        run(project.path(), &["config", setting[0], setting[1]]);
    }
    fs::write(project.path().join(".gitattributes"), "*.txt diff=evil filter=evil\n").unwrap();
    fs::write(project.path().join("a.txt"), "changed\n").unwrap();
    let _ = fs::remove_file(&marker);
    let index = fs::read(project.path().join(".git/index")).unwrap();
    let changes = changes(project.path());
    assert!(!marker.exists(), "a program of the repository was run");
    assert_eq!(fs::read(project.path().join(".git/index")).unwrap(), index);
    assert!(changes.filters_disabled);
    let changed = changes.files.iter().find(|file| file.path == "a.txt").unwrap();
    assert_eq!(changed.line_counts, Some(ChangedLineCounts { added: 1, removed: 40 }));
    assert!(changed.hunks.concat().ends_with("-line 40\n+changed\n"));
}

/// Writes a program that creates the file `ran` in `folder`, and returns its path.
fn hostile_program(folder: &Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    let script = folder.join("evil");
    fs::write(&script, format!("#!/bin/sh\necho ran >> '{}'\ncat\n", folder.join("ran").display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script.to_str().unwrap().to_owned()
}

fn append(path: &Path, bytes: &[u8]) {
    let mut content = fs::read(path).unwrap();
    content.extend_from_slice(bytes);
    fs::write(path, content).unwrap();
}

#[test]
fn a_filter_whose_name_is_not_utf_8_is_not_run() {
    let (project, away) = (repository(), tempfile::tempdir().unwrap());
    let script = hostile_program(away.path());
    let section = [b"[filter \"\xff\"]\n\tclean = ", script.as_bytes(), b"\n"].concat();
    append(&project.path().join(".git/config"), &section);
    fs::write(project.path().join(".gitattributes"), b"* filter=\xff\n").unwrap();
    fs::write(project.path().join("a.txt"), "changed\n").unwrap();
    let changes = changes(project.path());
    assert!(!away.path().join("ran").exists(), "a program of the repository was run");
    assert!(changes.filters_disabled);
    assert!(
        changes.files.iter().any(|file| file.path == "a.txt"
            && file.line_counts == Some(ChangedLineCounts { added: 1, removed: 40 }))
    );
}

#[test]
fn more_filters_than_are_read_are_a_reason_to_compare_nothing() {
    let (project, away) = (repository(), tempfile::tempdir().unwrap());
    let script = hostile_program(away.path());
    // One filter with many keys: its name is few bytes of the environment, and many of the list.
    let mut sections = format!("[filter \"{}\"]\n", "x".repeat(60_000)) + &"clean = x\n".repeat(300);
    sections.push_str(&format!("[filter \"zz\"]\nclean = {script}\n"));
    append(&project.path().join(".git/config"), sections.as_bytes());
    fs::write(project.path().join(".gitattributes"), "* filter=zz\n").unwrap();
    fs::write(project.path().join("a.txt"), "changed\n").unwrap();
    let changes = changes(project.path());
    assert!(!away.path().join("ran").exists(), "a program of the repository was run");
    assert!(
        matches!(changes.outcome, RepositoryChangesOutcome::Failed { .. }) && changes.files.is_empty(),
        "{changes:?}"
    );
}

#[test]
fn the_configuration_of_a_submodule_runs_nothing_either() {
    let (project, away) = (repository(), tempfile::tempdir().unwrap());
    let script = hostile_program(away.path());
    let sub = project.path().join("sub");
    fs::create_dir(&sub).unwrap();
    run(&sub, &["init", "--quiet"]);
    fs::write(sub.join("f"), "f\n").unwrap();
    run(&sub, &["add", "."]);
    run(&sub, &["-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "--quiet", "--message=sub"]);
    run(project.path(), &["add", "sub"]);
    run(project.path(), &["commit", "--quiet", "--message=with sub"]);
    run(&sub, &["config", "filter.evil.clean", &script]);
    fs::write(sub.join(".gitattributes"), "* filter=evil\n").unwrap();
    fs::write(sub.join("f"), "g\n").unwrap();
    fs::write(project.path().join(".gitmodules"), "[submodule \"sub\"]\npath=sub\nurl=x\nignore=none\n")
        .unwrap();
    run(project.path(), &["config", "submodule.sub.ignore", "none"]);
    run(project.path(), &["config", "diff.ignoreSubmodules", "none"]);
    let changes = changes(project.path());
    assert!(!away.path().join("ran").exists(), "a program of the submodule was run");
    assert_eq!(files(&changes), [(".gitmodules", FileChangeKind::Untracked, None, 0)]);
}

#[test]
fn a_work_tree_that_the_configuration_names_is_not_looked_at() {
    let (project, away) = (repository(), tempfile::tempdir().unwrap());
    fs::write(away.path().join("a.txt"), "secret\n").unwrap();
    fs::write(away.path().join("other"), "secret\n").unwrap();
    run(project.path(), &["config", "core.worktree", away.path().to_str().unwrap()]);
    assert_eq!(changes(project.path()).outcome, RepositoryChangesOutcome::Clean);
}

#[test]
fn configuration_of_one_copy_does_not_show_in_what_changed() {
    let project = repository();
    let text = |name: &str| format!("fn {name}() {{\n\n    one\n}}\n\n");
    let functions = |names: &[&str]| names.iter().map(|name| text(name)).collect::<String>();
    fs::write(project.path().join("code.rs"), functions(&["a", "b", "c", "d"])).unwrap();
    run(project.path(), &["add", "."]);
    run(project.path(), &["commit", "--quiet", "--message=code"]);
    fs::write(project.path().join("code.rs"), functions(&["a", "b", "new", "c", "d"])).unwrap();
    fs::write(project.path().join(".gitattributes"), "*.rs diff=mine\n").unwrap();
    let plain = changes(project.path());
    assert_eq!(plain.files[1].hunks.len(), 1);
    let lists = project.path().join(".git/lists");
    fs::write(&lists, "* binary\n").unwrap();
    for [key, value] in [
        ["diff.indentHeuristic", "false"],
        ["diff.suppressBlankEmpty", "true"],
        ["core.bigFileThreshold", "1"],
        ["core.attributesFile", lists.to_str().unwrap()],
        ["core.excludesFile", lists.to_str().unwrap()],
        ["diff.mine.xfuncname", "^(.*one.*)$"],
        ["diff.mine.binary", "true"],
        ["diff.mine.algorithm", "patience"],
    ] {
        run(project.path(), &["config", key, value]);
        assert_eq!(changes(project.path()), plain, "{key}");
    }
}

#[test]
fn large_changes_do_not_hide_small_ones() {
    let project = repository();
    for name in ["0-many", "1-long", "z-small"] {
        fs::write(project.path().join(name), "old\n").unwrap();
    }
    run(project.path(), &["add", "."]);
    run(project.path(), &["commit", "--quiet", "--message=more"]);
    fs::write(project.path().join("0-many"), "line\n".repeat(40_000)).unwrap();
    fs::write(project.path().join("1-long"), "x".repeat(200_000) + "\n").unwrap();
    fs::write(project.path().join("z-small"), "new\n").unwrap();
    let query = ChangesQuery::new().max_diff_bytes(100_000).time_limit(Duration::from_secs(60));
    let changes = query_changes(project.path(), &query).unwrap();
    assert_eq!(files(&changes).iter().map(|file| file.3).collect::<Vec<_>>(), [0, 0, 1]);
    assert!(changes.truncated);
}

#[test]
fn head_of_a_repository_without_commits_is_no_error() {
    let project = empty();
    let query = ChangesQuery::new().since("HEAD");
    assert_eq!(query_changes(project.path(), &query).unwrap().outcome, RepositoryChangesOutcome::Unborn);
}

#[test]
fn the_document_has_statistics_first_small_changes_whole_and_untracked_files_as_additions() {
    let project = repository();
    let path = |name: &str| project.path().join(name);
    fs::write(path("a.txt"), "all new\n").unwrap();
    fs::write(path("b c.txt"), "B\n").unwrap();
    fs::write(path("Cargo.lock"), "lock\n").unwrap();
    fs::write(path("note"), "```\nfenced\n").unwrap();
    fs::write(path(".env"), "KEY=value\n").unwrap();
    let tree = FolderTree::open(project.path()).unwrap();
    let request = without_source_files().changes(changes(project.path()));
    let compiled = Compiler::new(&tree).cache(&cache()).compile(&request).unwrap();
    insta::assert_snapshot!(compiled.tail);
    let git = compiled.manifest.git.as_ref().unwrap();
    assert_eq!((git.files, git.insertions, git.deletions), (5, 2, 41));
    // With less, the statistics stay and the large change goes.
    let small = request.clone().budget_tokens(270);
    let small = Compiler::new(&tree).cache(&cache()).compile(&small).unwrap();
    assert!(small.tail.contains("M a.txt +1 -40") && small.tail.contains("+B\n"), "{}", small.tail);
    assert!(!small.tail.contains("-line 40") && small.tail.contains("lines left out"), "{}", small.tail);
    let stat = request.clone().diff_detail(DiffDetail::Stat).format(DocumentFormat::Json);
    let stat = Compiler::new(&tree).cache(&cache()).compile(&stat).unwrap();
    assert!(stat.tail.contains("M a.txt +1 -40") && !stat.tail.contains("all new"));
    let off = request.diff_detail(DiffDetail::Off);
    assert!(!Compiler::new(&tree).cache(&cache()).compile(&off).unwrap().tail.contains("a.txt"));
}

/// Returns a request whose document has the changes as a diff only, and not the changed files as well.
fn without_source_files() -> ContextRequest {
    ContextRequest::new("dev").include(Vec::<String>::new())
}

/// Compiles a request with the changes of the project.
fn document(project: &Path, request: ContextRequest) -> context_compiler::CompiledContext {
    let tree = FolderTree::open(project).unwrap();
    let request = request.changes(changes(project));
    Compiler::new(&tree).cache(&cache()).compile(&request).unwrap()
}

#[test]
fn files_with_names_of_secrets_and_those_of_contextignore_are_statistics_whether_tracked_or_not() {
    let project = repository();
    let path = |name: &str| project.path().join(name);
    fs::create_dir_all(path("private/deep")).unwrap();
    fs::create_dir(path(".docker")).unwrap();
    let tracked = [".env", "server.key", ".docker/config.json", "private/deep/a", ".env.example"];
    for name in tracked {
        fs::write(path(name), "old\n").unwrap();
    }
    run(project.path(), &["add", "--force", "."]);
    run(project.path(), &["commit", "--quiet", "--message=more"]);
    for name in tracked {
        fs::write(path(name), format!("WORD of {name}\n")).unwrap();
    }
    for name in [".htpasswd", "_netrc", "private/b", ".env.sample"] {
        fs::write(path(name), format!("WORD of {name}\n")).unwrap();
    }
    fs::write(path(".contextignore"), "/private/\n").unwrap();
    // As source files, those that are shown are shown a second time, and no other.
    let whole = document(project.path(), ContextRequest::new("dev")).text();
    for line in whole.lines().filter(|line| line.contains("WORD")) {
        assert!(line.ends_with("WORD of .env.example") || line.ends_with("WORD of .env.sample"), "{whole}");
    }
    let tail = document(project.path(), without_source_files()).tail;
    let words: Vec<&str> = tail.lines().filter(|line| line.contains("WORD")).collect();
    assert_eq!(words, ["+WORD of .env.example", "+WORD of .env.sample"], "{tail}");
    assert!(tail.contains("M server.key +1 -1 (not shown: its name says that it holds secrets)\n"), "{tail}");
    assert!(tail.contains("M private/deep/a +1 -1 (not shown: `.contextignore` names it)\n"), "{tail}");
    assert!(tail.contains("? private/b (not shown: `.contextignore` names it)\n"), "{tail}");
    // Those of untracked files that are shown are counted.
    assert!(tail.contains("10 files, 7 lines added, 5 removed\n"), "{tail}");
}

#[test]
fn a_link_to_a_secret_is_neither_an_addition_nor_a_document() {
    use std::os::unix::fs::symlink;
    let project = repository();
    let path = |name: &str| project.path().join(name);
    fs::write(path(".env"), "WORD\n").unwrap();
    fs::write(path(".git/secret.md"), "WORD\n").unwrap();
    symlink(".env", path("notes.txt")).unwrap();
    symlink(".git", path("gitdir")).unwrap();
    symlink(".env", path("CONVENTIONS.md")).unwrap();
    symlink("gitdir/secret.md", path("STACK.md")).unwrap();
    let compiled = document(project.path(), ContextRequest::new("dev"));
    assert!(!compiled.text().contains("WORD"), "{}", compiled.text());
    let why = |path: &str| {
        let left_out = compiled.manifest.left_out.iter().filter(|left_out| left_out.path == path);
        left_out.map(|left_out| left_out.reason.clone()).collect::<Vec<_>>().join("; ")
    };
    assert!(why("notes.txt").contains("a symbolic link"), "{}", why("notes.txt"));
    assert!(
        why("CONVENTIONS.md").contains("its name says that it holds secrets"),
        "{}",
        why("CONVENTIONS.md")
    );
    assert!(why("STACK.md").contains("a part of the repository itself"), "{}", why("STACK.md"));
    let tree = FolderTree::open(project.path()).unwrap();
    for plan in [".env", ".git/config", "CONVENTIONS.md", "gitdir/secret.md"] {
        let request = ContextRequest::new("dev").plan(plan.to_owned());
        let error = Compiler::new(&tree).cache(&cache()).compile(&request).unwrap_err();
        assert!(matches!(error, Error::Plan { .. }), "{plan}: {error}");
    }
}

#[test]
fn lines_of_a_key_are_masked_where_a_hunk_has_only_a_part_of_it() {
    let project = repository();
    let path = project.path().join("config.txt");
    let line = |number: usize| format!("{}{number:02}\n", "Ab9+".repeat(15));
    let body = |from: usize| (from..from + 30).map(line).collect::<String>();
    let file = |body: &str| {
        format!("name\n-----BEGIN PRIVATE KEY-----\n{body}AbC=\n-----END PRIVATE KEY-----\nplain words\n")
    };
    fs::write(&path, file(&body(0))).unwrap();
    run(project.path(), &["add", "."]);
    run(project.path(), &["commit", "--quiet", "--message=key"]);
    fs::write(&path, file(&body(0).replace(&line(14), &line(99)))).unwrap();
    let tail = document(project.path(), without_source_files()).tail;
    assert!(tail.contains("+[redacted: a line of a key]\n") && !tail.contains("Ab9+"), "{tail}");
    // The armour is gone from the work tree, and in the lines that were removed.
    fs::write(&path, "name\n").unwrap();
    let tail = document(project.path(), without_source_files()).tail;
    assert!(tail.contains("-plain words\n") && !tail.contains("Ab9+") && !tail.contains("AbC="), "{tail}");
}

#[test]
fn a_new_file_that_is_whole_is_no_addition_as_well() {
    let project = repository();
    fs::create_dir(project.path().join("src")).unwrap();
    let line = "pub fn only_once() {}\n";
    fs::write(project.path().join("src/new.rs"), line).unwrap();
    let text = document(project.path(), ContextRequest::new("dev")).text();
    assert_eq!(text.matches("pub fn only_once").count(), 1, "{text}");
    assert!(text.contains("? src/new.rs +1 -0"), "the statistics name it: {text}");
    // Without source files the addition is all there is.
    let text = document(project.path(), without_source_files()).text();
    assert!(text.contains("+pub fn only_once"), "{text}");
    // Of a file that has no room in the budget, a part is there.
    let long: String = (0..4_000).map(|index| format!("pub fn number_{index}() {{}}\n")).collect();
    fs::write(project.path().join("src/new.rs"), &long).unwrap();
    let text = document(project.path(), ContextRequest::new("dev")).text();
    assert!(text.contains("pub fn number_0()"), "{text}");
}
