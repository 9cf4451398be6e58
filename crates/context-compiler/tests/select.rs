//! The files that are selected, compared with those that the real git does not ignore.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test makes the project that is walked, and asks git"
)]

use context_compiler::code::{
    MatchedFiles, SourceSelectError, SourceSelectOptions, SourceSkipReason, select,
};
use context_compiler::source::{
    FolderTree, SourceFileContent, SourceFileState, SourceReadError, SourceTree, SourceTreeEntry,
};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

fn write(root: &Path, path: &str, content: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, content) in files {
        write(root.path(), path, content);
    }
    root
}

fn owned(patterns: &[&str]) -> Vec<String> {
    patterns.iter().map(|&pattern| pattern.to_owned()).collect()
}

fn selected(root: &Path, include: &[&str], exclude: &[&str]) -> MatchedFiles {
    let tree = FolderTree::open(root).unwrap();
    select(&tree, &owned(include), &owned(exclude), &SourceSelectOptions::default()).unwrap()
}

fn git(root: &Path, arguments: &[&str]) -> Command {
    let mut git = Command::new("git");
    git.current_dir(root)
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    git
}

#[test]
fn globs_match_whole_paths_and_a_plain_path_is_a_file_or_a_folder() {
    let root = project(&[
        ("a.rs", ""),
        ("src/b.rs", ""),
        ("src/deep/c.rs", ""),
        ("src/deep/d.txt", ""),
        ("srcs/e.rs", ""),
    ]);
    let cases: [(&[&str], &[&str], &[&str]); 8] = [
        (&[], &[], &["a.rs", "src/b.rs", "src/deep/c.rs", "src/deep/d.txt", "srcs/e.rs"]),
        (&["*.rs"], &[], &["a.rs"]),
        (&["**/*.rs"], &["src/deep/**"], &["a.rs", "src/b.rs", "srcs/e.rs"]),
        (&["src"], &[], &["src/b.rs", "src/deep/c.rs", "src/deep/d.txt"]),
        (&["src/deep/", "src/*.rs", "src/deep/c.rs"], &[], &["src/b.rs", "src/deep/c.rs", "src/deep/d.txt"]),
        (&["{a,src/b}.rs"], &[], &["a.rs", "src/b.rs"]),
        (&["."], &["src", "*.rs"], &["srcs/e.rs"]),
        (&["a.rs"], &["a.*"], &[]),
    ];
    for (include, exclude, expected) in cases {
        let include: Vec<&str> = include.iter().map(|&glob| if glob == "." { "./" } else { glob }).collect();
        assert_eq!(selected(root.path(), &include, exclude).files, expected, "{include:?} {exclude:?}");
    }
    assert_eq!(selected(root.path(), &["none.rs", "src/b.rs"], &[]).missing, ["none.rs"]);
}

#[test]
fn only_the_plain_start_of_a_glob_is_walked() {
    struct OnlyBeneathSrc(FolderTree);
    impl SourceTree for OnlyBeneathSrc {
        fn read(&self, path: &str, max_bytes: u64) -> Result<SourceFileContent, SourceReadError> {
            self.0.read(path, max_bytes)
        }
        fn list(&self, path: &str) -> Result<Vec<SourceTreeEntry>, SourceReadError> {
            assert!(path.starts_with("src/deep"), "{path}");
            self.0.list(path)
        }
        fn state(&self, path: &str) -> Result<SourceFileState, SourceReadError> {
            self.0.state(path)
        }
    }
    let root =
        project(&[(".gitignore", "*.log"), ("a.rs", ""), ("src/deep/c.rs", ""), ("src/deep/c.log", "")]);
    let tree = OnlyBeneathSrc(FolderTree::open(root.path()).unwrap());
    let selection = select(&tree, &owned(&["src/deep/**"]), &[], &SourceSelectOptions::default()).unwrap();
    assert_eq!(selection.files, ["src/deep/c.rs"]);
}

#[test]
fn a_pattern_that_leaves_the_root_or_is_no_glob_is_an_error_that_names_it() {
    let root = project(&[]);
    let tree = FolderTree::open(root.path()).unwrap();
    for pattern in ["/etc/passwd", "../x", "a/../../b", "C:/x", "a[", "", "a\0", "a//b"] {
        for (include, exclude) in [(owned(&[pattern]), vec![]), (vec![], owned(&[pattern]))] {
            let error = select(&tree, &include, &exclude, &SourceSelectOptions::default()).unwrap_err();
            assert!(
                matches!(error, SourceSelectError::InvalidGlob { glob, .. } if glob == pattern),
                "{pattern}"
            );
        }
    }
}

#[test]
fn secrets_links_and_version_control_are_left_out_unless_named_exactly() {
    let secrets = [
        ".env",
        ".env.local",
        "key.pem",
        "id_rsa",
        "credentials",
        ".aws/credentials",
        "credentials.json",
        ".netrc",
    ];
    let plain = ["id_map.rs", "credentials.rs", "id_rsa.pub", "environment.ts", "monkey.rs"];
    let root = project(&[(".git/config", ""), ("lib/.hg/x", "")]);
    for path in secrets.iter().chain(&plain) {
        write(root.path(), path, "");
    }
    std::os::unix::fs::symlink("id_map.rs", root.path().join("link.rs")).unwrap();
    let selection = selected(root.path(), &[], &[]);
    assert_eq!(selection.files.iter().map(String::as_str).collect::<BTreeSet<_>>(), plain.into());
    let skipped = |reason| -> BTreeSet<&str> {
        selection
            .skipped
            .iter()
            .filter(|skipped| skipped.reason == reason)
            .map(|skipped| skipped.path.as_str())
            .collect()
    };
    assert_eq!(skipped(SourceSkipReason::SensitiveName), secrets.into());
    assert_eq!(skipped(SourceSkipReason::Link), ["link.rs"].into());
    assert_eq!(selected(root.path(), &[".env", "link.rs", "*.pem"], &[]).files, [".env", "link.rs"]);
}

#[test]
fn the_ignore_files_of_the_project_count_before_those_of_git() {
    let root = project(&[
        (".git/info/exclude", "private\n"),
        (".gitignore", "*.gen\n*.log\n"),
        (".ignore", "!keep.gen\ndocs/\n"),
        (".contextignore", "!docs/\nkeep.log\n"),
        ("sub/.gitignore", "!here.log\n"),
        ("a.gen", ""),
        ("keep.gen", ""),
        ("docs/d.md", ""),
        ("keep.log", ""),
        ("sub/here.log", ""),
        ("sub/other.log", ""),
        ("sub/private", ""),
    ]);
    let expected = [
        ".contextignore",
        ".gitignore",
        ".ignore",
        "docs/d.md",
        "keep.gen",
        "sub/.gitignore",
        "sub/here.log",
    ];
    assert_eq!(selected(root.path(), &[], &[]).files, expected);
    // Beneath a folder, with the rules of those above it; and by its exact name what is ignored.
    assert_eq!(
        selected(root.path(), &["sub", "a.gen"], &[]).files,
        ["a.gen", "sub/.gitignore", "sub/here.log"]
    );
    let all = SourceSelectOptions::default().ignore_files(false);
    let all = select(&FolderTree::open(root.path()).unwrap(), &[], &[], &all).unwrap();
    assert_eq!((all.files.len(), all.ignored), (11, 0));
}

#[test]
fn more_files_than_the_limit_are_an_error_and_not_a_part_of_them() {
    let root = project(&[("a", ""), ("b", ""), ("c/d", "")]);
    let tree = FolderTree::open(root.path()).unwrap();
    let limit = |max_files| select(&tree, &[], &[], &SourceSelectOptions::default().max_files(max_files));
    assert_eq!(limit(2), Err(SourceSelectError::TooManyFiles { limit: 2 }));
    assert_eq!(limit(3).unwrap().files, ["a", "b", "c/d"]);
}

/// Lines of ignore files, made of pieces that mean something in them.
fn lines() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(
        &[
            "a",
            "b",
            "ab",
            "c.x",
            "d",
            "*",
            "?",
            "*.x",
            "a*",
            "[ab]",
            "[!a]",
            "[^b-z]",
            "[[:alpha:]]",
            "[]-]",
            "[a",
            "{a,b}",
            "\\a",
            "\\*",
            " ",
            "\\ ",
            "é",
            ".",
            "a b",
            "*b*",
            "#",
            "!",
        ][..],
    );
    let part = prop::collection::vec(piece, 1..3).prop_map(|pieces| pieces.concat());
    // `**` beside other characters in a part has meant different things to different versions of git.
    let part = prop_oneof![6 => part.prop_filter("no double star", |part| !part.contains("**")), 1 => Just("**".to_owned())];
    let pattern = (
        prop::sample::select(&["", "/", "!", "!/", "#", "\\!", "\\#"][..]),
        prop::collection::vec(part, 1..4),
        prop::sample::select(&["", "", "/", " ", "  ", "\\ ", "\r"][..]),
    )
        .prop_map(|(start, parts, end)| format!("{start}{}{end}", parts.join("/")));
    prop::collection::vec(pattern, 0..5).prop_map(|lines| lines.join("\n"))
}

fn paths() -> impl Strategy<Value = BTreeSet<String>> {
    let name = prop::sample::select(
        &["a", "b", "ab", "c.x", "d", "{a,b}", "a b", "é", "#a", "!b", "-", "]", "*", "b ", "A"][..],
    );
    let path = prop::collection::vec(name, 1..4).prop_map(|parts| parts.join("/"));
    prop::collection::btree_set(path, 1..14)
}

/// A tree that lists every folder backwards.
struct BackwardsTree(FolderTree);

impl SourceTree for BackwardsTree {
    fn read(&self, path: &str, max_bytes: u64) -> Result<SourceFileContent, SourceReadError> {
        self.0.read(path, max_bytes)
    }
    fn list(&self, path: &str) -> Result<Vec<SourceTreeEntry>, SourceReadError> {
        self.0.list(path).map(|mut entries| {
            entries.reverse();
            entries
        })
    }
    fn state(&self, path: &str) -> Result<SourceFileState, SourceReadError> {
        self.0.state(path)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn what_is_ignored_is_what_git_ignores(
        root_lines in lines(), inner_lines in lines(), info_lines in lines(), paths in paths(),
    ) {
        let root = tempfile::tempdir().unwrap();
        assert!(git(root.path(), &["init", "-q"]).status().expect("git is needed").success());
        write(root.path(), ".gitignore", &root_lines);
        write(root.path(), "a/.gitignore", &inner_lines);
        write(root.path(), ".git/info/exclude", &info_lines);
        for path in &paths {
            // What is a folder in one path may be a file in another.
            let path = root.path().join(path);
            if path.parent().is_some_and(|parent| fs::create_dir_all(parent).is_ok()) && !path.is_dir() {
                fs::write(path, "").unwrap();
            }
        }
        let listed = git(root.path(), &["ls-files", "-z", "--others", "--exclude-standard"]).output().unwrap();
        let git: Vec<String> = String::from_utf8(listed.stdout).unwrap().split_terminator('\0').map(str::to_owned).collect();
        let git: BTreeSet<String> = git.into_iter().collect();

        let tree = FolderTree::open(root.path()).unwrap();
        let ours = select(&tree, &[], &[], &SourceSelectOptions::default()).unwrap();
        prop_assert_eq!(ours.files.iter().cloned().collect::<BTreeSet<_>>(), git);
        // Nor does the order of a listing, or the number of threads, change anything.
        let one = SourceSelectOptions::default().threads(1);
        prop_assert_eq!(&select(&BackwardsTree(tree), &[], &[], &one).unwrap(), &ours);
    }
}
