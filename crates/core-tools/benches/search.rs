//! How long it takes to find a name and to search content in 50,000 files, beside `find` and `rg`.
//!
//! `cargo bench -p core-tools --bench search [-- FOLDER]`: the tree is made in FOLDER, by default in the
//! system's own folder for temporary files, and removed at the end. All figures are of a warm cache.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::expect_used, reason = "a benchmark ends where it cannot go on")]
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark makes its own files and runs what it compares with"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use core_tools::filesystem::{
    FindFiles, FindKind, GlobList, SearchFiles, SearchMode, find_files, search_files,
};
use core_tools::workspace::Workspace;
use tokio_util::sync::CancellationToken;

const FOLDERS: usize = 500;
const FILES: usize = 100;

fn main() {
    let folder = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let tree = match folder {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    }
    .expect("a temporary folder");
    make(tree.path());
    let workspace = Workspace::new([tree.path()]).expect("a workspace");
    let cancel = CancellationToken::new();

    println!(
        "{} files in {FOLDERS} folders, {} threads",
        FOLDERS * FILES,
        std::thread::available_parallelism().map_or(1, usize::from)
    );
    for (what, pattern) in [
        ("one name", "file_77.rs"),
        ("a glob of names", "*7.rs"),
        ("a glob of paths", "dir_1*/**/*.rs"),
        ("everything", "*"),
    ] {
        let input = find(pattern);
        let count = find_files(&workspace, &input, &cancel).expect("found").total;
        let time = best(|| drop(find_files(&workspace, &input, &cancel)));
        println!("find_files    {what:<28} {:>8.1} ms  ({count} found)", ms(time));
    }
    let name = ["-name", "file_77.rs"];
    println!(
        "find          {:<28} {:>8.1} ms",
        "one name",
        ms(best(|| run("find", &[".", name[0], name[1]], tree.path())))
    );

    for (what, pattern, mode) in [
        ("a rare word", "needle_4242", SearchMode::Lines),
        ("a regular expression", r"needle_\d+7\b", SearchMode::Lines),
        ("a word of every file", "return", SearchMode::Lines),
        ("a word of every file, paths", "return", SearchMode::Files),
        ("case-insensitive", "(?i)NEEDLE_4242", SearchMode::Lines),
    ] {
        let input = search(pattern, mode);
        let count = search_files(&workspace, &input, &cancel).expect("found");
        let count = count.matches.unwrap_or(count.files);
        let time = best(|| drop(search_files(&workspace, &input, &cancel)));
        println!("search_files  {what:<28} {:>8.1} ms  ({count} found)", ms(time));
        let rg = best(|| run("rg", &["-uu", "-n", pattern], tree.path()));
        println!("rg -uu        {what:<28} {:>8.1} ms", ms(rg));
    }
}

fn make(tree: &Path) {
    for folder in 0..FOLDERS {
        let path = tree.join(format!("dir_{folder}"));
        fs::create_dir(&path).expect("a folder");
        for file in 0..FILES {
            let mut text = format!("// file {file} of {folder}: needle_{}\n", folder * FILES + file);
            for line in 0..24 {
                text.push_str(&format!(
                    "fn function_{line}(value: usize) -> usize {{ return value + {line}; }}\n"
                ));
            }
            fs::write(path.join(format!("file_{file}.rs")), text).expect("a file");
        }
    }
}

fn find(pattern: &str) -> FindFiles {
    FindFiles {
        pattern: pattern.to_owned(),
        path: ".".to_owned(),
        kind: FindKind::File,
        include_ignored: false,
        hidden: None,
        max_results: None,
    }
}

fn search(pattern: &str, mode: SearchMode) -> SearchFiles {
    SearchFiles {
        pattern: pattern.to_owned(),
        path: ".".to_owned(),
        literal: false,
        case: core_tools::filesystem::Case::Sensitive,
        include: GlobList::default(),
        exclude: GlobList::default(),
        context: None,
        mode,
        max_results: None,
        include_ignored: true,
    }
}

fn run(program: &str, arguments: &[&str], folder: &Path) {
    let status = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stdin(Stdio::null())
        .status();
    assert!(status.is_ok(), "{program} must be installed to compare with");
}

/// The shortest of several runs: what else the machine does only adds.
fn best(mut run: impl FnMut()) -> Duration {
    (0..10)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .min()
        .unwrap_or_default()
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
