use std::fs;
use std::path::Path;

use super::*;

/// A project: paths with a slash at the end are folders.
fn project(paths: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for path in paths {
        write(folder.path(), path, "");
    }
    folder
}

#[allow(clippy::disallowed_methods, reason = "tests make the files that are found")]
fn write(folder: &Path, path: &str, content: &str) {
    let full = folder.join(path);
    if path.ends_with('/') {
        fs::create_dir_all(full).unwrap();
    } else {
        fs::create_dir_all(full.parent().unwrap()).unwrap();
        fs::write(full, content).unwrap();
    }
}

fn input(pattern: &str) -> FindFiles {
    FindFiles::new(pattern)
}

fn find_with(folder: &tempfile::TempDir, input: &FindFiles) -> FoundFiles {
    let workspace = Workspace::new([folder.path()]).unwrap();
    find_files(&workspace, input, &CancellationToken::new()).unwrap()
}

fn find(folder: &tempfile::TempDir, pattern: &str) -> Vec<String> {
    find_with(folder, &input(pattern)).paths
}

#[test]
fn names_are_found_at_any_depth_in_order_of_their_paths() {
    let project = project(&["b.rs", "a/z.rs", "a/b/c.rs", "a-b/x.rs", "a.rs", "a/note.txt", "Z.rs"]);
    assert_eq!(find(&project, "*.rs"), ["Z.rs", "a/b/c.rs", "a/z.rs", "a-b/x.rs", "a.rs", "b.rs"]);
    assert_eq!(find(&project, "a/**/*.rs"), ["a/b/c.rs", "a/z.rs"]);
    assert_eq!(find(&project, "z.rs"), ["a/z.rs"]);
}

#[test]
fn globs_with_a_slash_are_relative_to_the_path_and_results_to_the_root() {
    let project = project(&["web/src/app.ts", "web/src/deep/er.ts", "src/other.ts"]);
    let below = FindFiles { path: "web".into(), ..input("src/*.ts") };
    assert_eq!(find_with(&project, &below).paths, ["web/src/app.ts"]);
    let dotted = FindFiles { path: "./web/".into(), ..input("*.ts") };
    assert_eq!(find_with(&project, &dotted).paths, ["web/src/app.ts", "web/src/deep/er.ts"]);
}

#[test]
fn gitignore_is_honoured_without_a_repository_and_on_request_not() {
    let project = project(&[
        "a.log",
        "target/debug/a.log",
        "src/b.log",
        "src/keep.log",
        "src/deep/keep.log",
        "sub/c.log",
        ".git/d.log",
        ".github/e.log",
    ]);
    write(project.path(), ".gitignore", "target/\n*.log\n!.github/*.log\n");
    write(project.path(), "src/.gitignore", "!keep.log\n");
    assert_eq!(find(&project, "*.log"), [".github/e.log", "src/deep/keep.log", "src/keep.log"]);
    let left_out = |pattern: &str| find_with(&project, &input(pattern)).notes.join("\n");
    insta::assert_snapshot!(left_out("*.log"), @"left out: 4 entries that .gitignore names; `include_ignored` also finds these");
    insta::assert_snapshot!(left_out(".gitignore"), @"left out: 1 entry that .gitignore names; `include_ignored` also finds these");
    let all = FindFiles { include_ignored: true, ..input("*.log") };
    assert_eq!(find_with(&project, &all).notes, [""; 0]);
    let all = find_with(&project, &all).paths;
    assert_eq!(
        all,
        [
            ".github/e.log",
            "a.log",
            "src/b.log",
            "src/deep/keep.log",
            "src/keep.log",
            "sub/c.log",
            "target/debug/a.log"
        ],
        ".git is never entered"
    );
}

#[test]
fn the_gitignore_above_the_path_counts_and_what_was_asked_for_is_searched_though_ignored() {
    let project = project(&["src/a.log", "src/a.txt", "target/b.txt", "target/b.log"]);
    write(project.path(), ".gitignore", "target/\n*.log\n");
    let below = |path: &str| find_with(&project, &FindFiles { path: path.into(), ..input("*") }).paths;
    assert_eq!(below("src"), ["src/a.txt"]);
    assert_eq!(below("target"), ["target/b.txt"]);
}

#[test]
fn names_with_a_dot_can_be_left_out() {
    let project = project(&[".env.example", ".config/a.toml", "b.toml"]);
    assert_eq!(find(&project, "*.toml"), [".config/a.toml", "b.toml"]);
    let visible = FindFiles { hidden: Some(false), ..input("*.toml") };
    assert_eq!(find_with(&project, &visible).paths, ["b.toml"]);
}

#[test]
fn directories_and_everything_are_found_by_kind() {
    let project = project(&["tests/", "a/tests/", "a/tests/tests"]);
    let kind = |kind| find_with(&project, &FindFiles { kind, ..input("tests") }).paths;
    assert_eq!(kind(FindKind::File), ["a/tests/tests"]);
    assert_eq!(kind(FindKind::Directory), ["a/tests", "tests"]);
    assert_eq!(kind(FindKind::Any), ["a/tests", "a/tests/tests", "tests"]);
}

#[test]
fn of_too_many_the_first_in_order_stay_whatever_the_threads_did() {
    let paths: Vec<String> =
        (0..40).flat_map(|d| (0..30).map(move |f| format!("d{d:02}/f{f:02}.txt"))).collect();
    let project = project(&paths.iter().map(String::as_str).collect::<Vec<_>>());
    for _ in 0..5 {
        let found = find_with(&project, &FindFiles { max_results: Some(40), ..input("*.txt") });
        assert_eq!(found.paths, paths[..40]);
        assert_eq!((found.total, found.truncated), (1200, true));
        insta::allow_duplicates! {
            insta::assert_snapshot!(found.notes.join("\n"), @"40 of 1200 paths, the first in order; narrow pattern or path, or raise max_results (to at most 100000)");
        }
    }
    let found = find_with(&project, &input("*.txt"));
    assert_eq!(found.paths, paths[..1000], "the default");
    assert_eq!(find_with(&project, &FindFiles { max_results: Some(100_000), ..input("*.txt") }).paths, paths);
}

#[test]
fn a_large_folder_is_found_whole() {
    let paths: Vec<String> = (0..700).map(|file| format!("f{file:04}")).collect();
    let project = project(&paths.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(find_with(&project, &FindFiles { max_results: Some(5000), ..input("*") }).paths, paths);
}

#[test]
fn nothing_found_says_what_else_to_try() {
    let project = project(&["main.rs"]);
    insta::assert_snapshot!(find_with(&project, &input("main")).to_text(), @"[nothing matches; for a part of a name use `*main*`]");
    insta::assert_snapshot!(find_with(&project, &FindFiles { include_ignored: true, ..input("*.py") }).to_text(), @"[nothing matches]");
}

#[test]
fn what_cannot_be_asked_is_an_error() {
    let project = project(&["file"]);
    let workspace = Workspace::new([project.path()]).unwrap();
    let error =
        |input: &FindFiles| find_files(&workspace, input, &CancellationToken::new()).unwrap_err().to_string();
    insta::assert_snapshot!(error(&FindFiles { max_results: Some(0), ..input("*") }), @"`max_results` must be from 1 to 100000; 0 was given");
    insta::assert_snapshot!(error(&FindFiles { path: "fil".into(), ..input("*") }), @"`fil` does not exist; did you mean `file`?");
    insta::assert_snapshot!(error(&FindFiles { path: "file".into(), ..input("*") }), @"`file` is a regular file, not a directory");
    insta::assert_snapshot!(error(&input("a[")), @"`pattern`: `a[` is no glob: unclosed character class; missing ']'");
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert!(matches!(find_files(&workspace, &input("*"), &cancel), Err(Error::Cancelled)));
}

#[cfg(unix)]
#[test]
fn links_are_not_followed_and_odd_names_do_not_forge_lines() {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    let outside = project(&["secret.txt"]);
    let project = project(&["dir/a.txt", "line\nbreak.txt"]);
    write(project.path(), "raw", "");
    symlink(outside.path(), project.path().join("out")).unwrap();
    symlink(outside.path().join("secret.txt"), project.path().join("link.txt")).unwrap();
    symlink("..", project.path().join("dir/loop")).unwrap();
    let raw = std::ffi::OsStr::from_bytes(b"\xff.txt");
    symlink("raw", project.path().join(raw)).unwrap();
    let any = FindFiles { kind: FindKind::Any, ..input("*.txt") };
    assert_eq!(
        find_with(&project, &any).paths,
        ["dir/a.txt", "line\\nbreak.txt", "link.txt", "\u{fffd}.txt"]
    );
    assert_eq!(find(&project, "*.txt"), ["dir/a.txt", "line\\nbreak.txt"], "a link is no file");
}

#[cfg(unix)]
#[test]
fn a_folder_swapped_for_a_link_during_the_walk_leads_nowhere() {
    use std::sync::atomic::{AtomicBool, Ordering};

    let outside = project(&["deep/secret.txt", "secret.txt"]);
    let paths: Vec<String> = (0..200).map(|n| format!("d{n:03}/x/f.txt")).collect();
    let project = project(&paths.iter().map(String::as_str).collect::<Vec<_>>());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (victim, aside) = (project.path().join("d100"), project.path().join("aside"));
            while !done.load(Ordering::Relaxed) {
                #[allow(clippy::disallowed_methods, reason = "the attacker's part")]
                {
                    fs::rename(&victim, &aside).unwrap();
                    std::os::unix::fs::symlink(outside.path(), &victim).unwrap();
                    fs::remove_file(&victim).unwrap();
                    fs::rename(&aside, &victim).unwrap();
                }
            }
        });
        for _ in 0..30 {
            let found = find_with(&project, &FindFiles { max_results: Some(5000), ..input("*") });
            assert!(!found.paths.iter().any(|path| path.contains("secret")), "{:?}", found.paths);
        }
        done.store(true, Ordering::Relaxed);
    });
}
