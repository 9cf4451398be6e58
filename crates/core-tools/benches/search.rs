//! Measures finding names and searching content in 50,000 files, beside `find` and `rg`.
//!
//! `cargo bench -p core-tools --bench search [-- FOLDER]`: the files are created in FOLDER, by default in the
//! system's folder for temporary files, and removed at the end. All figures are of a warm cache.

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

use core_tools::filesystem::{FindFiles, SearchFiles, SearchMode, find_files, search_files};
use core_tools::workspace::Workspace;
use tokio_util::sync::CancellationToken;

const FOLDERS: usize = 500;
const FILES_PER_FOLDER: usize = 100;
const ROUNDS: usize = 10;

fn main() {
    let folder = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let tree = match folder {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    }
    .expect("a temporary folder");
    create_tree(tree.path());
    let workspace = Workspace::new([tree.path()]).expect("a workspace");
    let cancel = CancellationToken::new();

    println!(
        "{} files in {FOLDERS} folders, {} threads",
        FOLDERS * FILES_PER_FOLDER,
        std::thread::available_parallelism().map_or(1, usize::from)
    );
    for (what, pattern) in [
        ("one name", "file_77.rs"),
        ("a glob of names", "*7.rs"),
        ("a glob of paths", "dir_1*/**/*.rs"),
        ("everything", "*"),
    ] {
        let input = FindFiles::new(pattern);
        let count = find_files(&workspace, &input, &cancel).expect("found").total;
        let time = shortest(|| drop(find_files(&workspace, &input, &cancel)));
        println!("find_files    {what:<28} {:>8.1} ms  ({count} found)", milliseconds(time));
    }
    for rules in [10, 200] {
        let lines: Vec<String> = (0..rules).map(ignore_rule).collect();
        fs::write(tree.path().join(".gitignore"), lines.join("\n")).expect("a file");
        let input = FindFiles::new("*");
        let count = find_files(&workspace, &input, &cancel).expect("found").total;
        let time = shortest(|| drop(find_files(&workspace, &input, &cancel)));
        let what = format!("everything, {rules} ignore rules");
        println!("find_files    {what:<28} {:>8.1} ms  ({count} found)", milliseconds(time));
    }
    fs::remove_file(tree.path().join(".gitignore")).expect("removed");
    let name = ["-name", "file_77.rs"];
    println!(
        "find          {:<28} {:>8.1} ms",
        "one name",
        milliseconds(shortest(|| run("find", &[".", name[0], name[1]], tree.path())))
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
        let time = shortest(|| drop(search_files(&workspace, &input, &cancel)));
        println!("search_files  {what:<28} {:>8.1} ms  ({count} found)", milliseconds(time));
        let rg = shortest(|| run("rg", &["-uu", "-n", pattern], tree.path()));
        println!("rg -uu        {what:<28} {:>8.1} ms", milliseconds(rg));
    }
}

fn create_tree(tree: &Path) {
    for folder in 0..FOLDERS {
        let path = tree.join(format!("dir_{folder}"));
        fs::create_dir(&path).expect("a folder");
        for file in 0..FILES_PER_FOLDER {
            let mut text =
                format!("// file {file} of {folder}: needle_{}\n", folder * FILES_PER_FOLDER + file);
            for line in 0..24 {
                text.push_str(&format!(
                    "fn function_{line}(value: usize) -> usize {{ return value + {line}; }}\n"
                ));
            }
            fs::write(path.join(format!("file_{file}.rs")), text).expect("a file");
        }
    }
}

/// Returns a rule of each form that ignore files have, in about the shares that they have them in.
fn ignore_rule(number: usize) -> String {
    match number % 10 {
        0 | 1 => format!("name_{number}"),
        2 | 3 => format!("folder_{number}/"),
        4 | 5 => format!("*.ext{number}"),
        6 => format!("/top_{number}"),
        7 => format!("docs/**/part_{number}"),
        8 => format!("[Ff]ile_x{number}*"),
        _ => format!("!*.keep{number}"),
    }
}

fn search(pattern: &str, mode: SearchMode) -> SearchFiles {
    let mut input = SearchFiles::new(pattern);
    input.mode = mode;
    // As `rg -uu`, which it is compared with.
    input.include_ignored = true;
    input
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

/// Returns the shortest time of several runs: other work of the machine only adds to a time.
fn shortest(mut run: impl FnMut()) -> Duration {
    (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .min()
        .unwrap_or_default()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
