//! The files that the tools leave out, compared with those that the real git ignores.
#![cfg(target_os = "linux")] // Other systems refuse names that are not UTF-8.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test makes the project that is walked, and asks git"
)]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use context_compiler::code::{SourceSelectOptions, select};
use context_compiler::source::FolderTree;
use core_tools::filesystem::{
    DirectoryTree, FindFiles, SearchFiles, SearchMode, directory_tree, find_files, search_files,
};
use core_tools::workspace::{Workspace, printable};
use proptest::prelude::*;
use tokio_util::sync::CancellationToken;

/// Names of files and folders that some pattern below is about.
const NAMES: [&[u8]; 24] = [
    b"a",
    b"b",
    b"ab",
    b"A",
    b"c.x",
    b"d",
    b"{a,b}",
    b"a b",
    b"b ",
    "é".as_bytes(),
    "e\u{301}".as_bytes(),
    b"\xff",
    b"a\xe9.x",
    b"#a",
    b"!b",
    b"-",
    b"]",
    b"[a",
    b"*",
    b"?",
    b"\\",
    b"a\r",
    b"a\tb",
    b".x",
];

/// Ignore files, each with a meaning that readers of them disagree about.
const HOSTILE: [&[u8]; 51] = [
    b"{a,b}",
    b"*.{x,y}",
    b"\\{a,b\\}",
    b"[ab]",
    b"[!a]",
    b"[^a]",
    b"[a",
    b"[]-]",
    b"[]",
    b"[a-]",
    b"[--a]",
    b"[[:alpha:]]",
    b"[[:nothing:]]",
    b"[[:alpha:",
    b"[\\]]",
    b"[z-a]",
    b"?",
    b"\xff",
    b"[\xff]",
    b"a?.x",
    b"[\x80-\xff]",
    "é".as_bytes(),
    "?".as_bytes(),
    "[é]".as_bytes(),
    b"a\\",
    b"\\",
    b"\\\\",
    b"\\a",
    b"\\*",
    b"\\#a\n\\!b",
    b"#a\n!b",
    b"b ",
    b"b\\ ",
    b"b \\ ",
    b"a\r\nb\r",
    b"a\r",
    b"\xef\xbb\xbfa",
    b"a\tb",
    b"/",
    b"!",
    b"**",
    b"/**",
    b"**/",
    b"**/a",
    b"a/**",
    b"a/**/b",
    b"**/a/**",
    b"a/*\n!a/b",
    b"/*\n!/a",
    b"*/\n!*/a/",
    b"!a\na\n!a",
];

fn git(root: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("git")
        .current_dir(root)
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git is needed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn write(root: &Path, path: &[u8], content: &[u8]) {
    let path = root.join(OsStr::from_bytes(path));
    // What is a folder in one path may be a file in another.
    if path.parent().is_some_and(|parent| fs::create_dir_all(parent).is_ok()) && !path.is_dir() {
        fs::write(path, content).unwrap();
    }
}

/// Compares what each tool finds with what git does. Every file has to contain a line.
fn compare(root: &Path) -> Result<(), TestCaseError> {
    let listed = git(root, &["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let paths = listed.split(|&byte| byte == 0).filter(|path| !path.is_empty());
    let utf8: BTreeSet<String> =
        paths.clone().filter_map(|path| String::from_utf8(path.to_vec()).ok()).collect();
    let shown: BTreeSet<String> = paths
        .clone()
        .map(|path| printable(OsStr::new(&*String::from_utf8_lossy(path))).to_string())
        .collect();
    let number = paths.count() as u64;

    let workspace = Workspace::new([root]).unwrap();
    let cancel = CancellationToken::new();
    let mut find = FindFiles::new("*");
    find.max_results = Some(10_000);
    let found = find_files(&workspace, &find, &cancel).unwrap();
    prop_assert_eq!(found.paths.iter().cloned().collect::<BTreeSet<_>>(), shown);
    prop_assert_eq!(found.total, number);

    let mut search = SearchFiles::new("[x#]");
    search.mode = SearchMode::Files;
    prop_assert_eq!(search_files(&workspace, &search, &cancel).unwrap().files, number);

    let mut tree = DirectoryTree::default();
    (tree.hidden, tree.depth, tree.max_results) = (true, Some(20), Some(10_000));
    // A tree shows `.git`, closed.
    let dot_git = u64::from(root.join(".git").is_file());
    prop_assert_eq!(directory_tree(&workspace, &tree, &cancel).unwrap().files, number + dot_git);

    let tree = FolderTree::open(root).unwrap();
    let selected = select(&tree, &[], &[], &SourceSelectOptions::default()).unwrap();
    prop_assert_eq!(selected.files.into_iter().collect::<BTreeSet<_>>(), utf8);
    Ok(())
}

#[test]
fn hostile_ignore_files_mean_to_every_tool_what_they_mean_to_git() {
    let root = tempfile::tempdir().unwrap();
    git(root.path(), &["init", "-q"]);
    for name in NAMES {
        write(root.path(), name, b"x\n");
        write(root.path(), &[b"sub/", name].concat(), b"x\n");
        write(root.path(), &[b"deep/", name, b"/b"].concat(), b"x\n");
        write(root.path(), &[b"deep/", name, b"/a/c.x"].concat(), b"x\n");
    }
    for lines in HOSTILE {
        for file in ["/.gitignore", "/deep/.gitignore", "/.git/info/exclude"] {
            let file = &file.as_bytes()[1..];
            // A line that means nothing, so that every file is found by the search.
            write(root.path(), file, &[lines, b"\n#\n"].concat());
            let result = compare(root.path());
            assert!(result.is_ok(), "{:?} in {:?}: {result:?}", lines.escape_ascii(), file.escape_ascii());
            write(root.path(), file, b"#\n");
        }
    }
}

#[test]
fn a_git_that_is_a_file_is_no_content() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("work");
    fs::create_dir(&root).unwrap();
    git(&root, &["init", "-q", "--separate-git-dir", "../elsewhere"]);
    assert!(root.join(".git").is_file());
    for path in [b"a".as_slice(), b"b", b"sub/a", b"sub/b"] {
        write(&root, path, b"x\n");
    }
    write(&root, b".gitignore", b"a\n#\n");
    compare(&root).unwrap();
    assert_eq!(git(&root, &["ls-files", "--others", "--exclude-standard"]), b".gitignore\nb\nsub/b\n");
}

/// Parts of patterns.
const PIECES: &[&[u8]] = &[
    b"a",
    b"b",
    b"c.x",
    b"d",
    b"*",
    b"?",
    b"*.x",
    b"[ab]",
    b"[!a]",
    b"[^b-z]",
    b"[]-]",
    b"[a",
    b"[[:alpha:]]",
    b"{a,b}",
    b"\\a",
    b"\\*",
    b" ",
    b"\\ ",
    b"\xff",
    b"\xc3\xa9",
    b".",
    b"#",
    b"!",
    b"\r",
    b"-",
];

/// Lines of ignore files, made of pieces that mean something in them.
fn lines() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(PIECES);
    let part = prop::collection::vec(piece, 1..3).prop_map(|pieces| pieces.concat());
    // `**` beside other characters in a part has meant different things to different versions of git.
    let part = part.prop_filter("no double star", |part| !part.windows(2).any(|pair| pair == b"**"));
    let part = prop_oneof![6 => part, 1 => Just(b"**".to_vec())];
    let start = prop::sample::select(&["", "", "/", "!", "!/", "#", "\\!"][..]);
    let end = prop::sample::select(&["", "", "/", " ", "\\ ", "\r"][..]);
    let line = (start, prop::collection::vec(part, 1..4), end)
        .prop_map(|(start, parts, end)| [start.as_bytes(), &parts.join(&b'/'), end.as_bytes()].concat());
    // More than a few, so that plain rules are looked up.
    prop_oneof![3 => prop::collection::vec(line.clone(), 0..5), 1 => prop::collection::vec(line, 20..40)]
        .prop_map(|lines| lines.join(&b'\n'))
}

fn paths() -> impl Strategy<Value = BTreeSet<Vec<u8>>> {
    let path =
        prop::collection::vec(prop::sample::select(&NAMES[..]), 1..4).prop_map(|parts| parts.join(&b'/'));
    prop::collection::btree_set(path, 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn what_tools_leave_out_is_what_git_ignores(
        root_lines in lines(), inner_lines in lines(), info_lines in lines(), paths in paths(),
    ) {
        let root = tempfile::tempdir().unwrap();
        git(root.path(), &["init", "-q"]);
        for (file, lines) in [
            (".gitignore", &root_lines), ("a/.gitignore", &inner_lines), (".git/info/exclude", &info_lines),
        ] {
            write(root.path(), file.as_bytes(), &[lines.as_slice(), b"\n#\n"].concat());
        }
        for path in &paths {
            write(root.path(), path, b"x\n");
        }
        compare(root.path())?;
    }
}
