use std::fs;

use tokio_util::sync::CancellationToken;

use super::*;
use crate::filesystem::error::Error;
use crate::filesystem::glob::GlobList;
use crate::filesystem::limits::MAX_TEXT_BYTES;
use crate::workspace::Workspace;

#[allow(clippy::disallowed_methods, reason = "tests make the files that are searched")]
fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let full = folder.path().join(path);
        fs::create_dir_all(full.parent().unwrap()).unwrap();
        fs::write(full, content).unwrap();
    }
    folder
}

fn input(pattern: &str) -> SearchFiles {
    SearchFiles::new(pattern)
}

fn search_with(folder: &tempfile::TempDir, input: &SearchFiles) -> SearchResult {
    let workspace = Workspace::new([folder.path()]).unwrap();
    search_files(&workspace, input, &CancellationToken::new()).unwrap()
}

fn search(folder: &tempfile::TempDir, pattern: &str) -> String {
    search_with(folder, &input(pattern)).text
}

fn small() -> tempfile::TempDir {
    project(&[
        ("src/main.rs", "fn main() {\n    run();\n}\n"),
        ("src/lib.rs", "//! Docs.\n\npub fn run() {\n    println!(\"Run\");\n}\n"),
        ("docs/run.md", "# run\r\nhow to run it\r\n"),
    ])
}

#[test]
fn matching_lines_are_shown_by_path_and_line() {
    insta::assert_snapshot!(search_with(&small(), &input("run")).to_text(), @r"
    docs/run.md:1:# run
    docs/run.md:2:how to run it
    src/lib.rs:3:pub fn run() {
    src/main.rs:2:    run();
    [4 matching lines in 3 files]
    ");
}

#[test]
fn context_is_grouped_as_grep_does() {
    let project = project(&[("a.txt", "1\n2\nhit\n4\n5\n6\n7\nhit\nhit\n10\n"), ("b.txt", "hit\n")]);
    let input = SearchFiles { context: Some(1), ..input("hit") };
    insta::assert_snapshot!(search_with(&project, &input).text, @r"
    a.txt-2-2
    a.txt:3:hit
    a.txt-4-4
    --
    a.txt-7-7
    a.txt:8:hit
    a.txt:9:hit
    a.txt-10-10
    --
    b.txt:1:hit
    ");
}

#[test]
fn paths_alone_and_counts_are_other_modes() {
    let project = small();
    let files = search_with(&project, &SearchFiles { mode: SearchMode::Files, ..input("run") });
    insta::assert_snapshot!(files.to_text(), @r"
    docs/run.md
    src/lib.rs
    src/main.rs
    [3 files]
    ");
    let counts = search_with(&project, &SearchFiles { mode: SearchMode::Count, ..input("run") });
    insta::assert_snapshot!(counts.to_text(), @r"
    docs/run.md:2
    src/lib.rs:1
    src/main.rs:1
    [4 matching lines in 3 files]
    ");
}

#[test]
fn case_counts_unless_told_otherwise() {
    let project = project(&[("a", "Run\nrun\nRUN\n")]);
    let count =
        |pattern: &str, case| search_with(&project, &SearchFiles { case, ..input(pattern) }).matches.unwrap();
    assert_eq!(count("run", CaseMode::Sensitive), 1);
    assert_eq!(count("run", CaseMode::Insensitive), 3);
    assert_eq!(count("run", CaseMode::Smart), 3);
    assert_eq!(count("Run", CaseMode::Smart), 1);
    assert_eq!(input("x").case, CaseMode::Sensitive, "the default");
}

#[test]
fn a_literal_pattern_has_no_special_characters() {
    let project = project(&[("a", "f(x) = [1]\nfx\n")]);
    assert_eq!(search_with(&project, &SearchFiles { literal: true, ..input("f(x) = [") }).matches, Some(1));
    assert_eq!(search(&project, "f(x)"), "a:2:fx\n");
}

#[test]
fn a_bad_pattern_shows_where_and_suggests_literal() {
    let project = small();
    let workspace = Workspace::new([project.path()]).unwrap();
    let error = |input: &SearchFiles| {
        search_files(&workspace, input, &CancellationToken::new()).unwrap_err().to_string()
    };
    insta::assert_snapshot!(error(&input("fn main(")), @r"
    `pattern` is no regular expression: regex parse error:
        fn main(
               ^
    error: unclosed group
    To look for this text as it stands, set literal to true
    ");
    insta::assert_snapshot!(error(&input(r"a\x0Ab")), @"`pattern` matches a line break, and lines are matched one by one; set multiline to true");
    insta::assert_snapshot!(error(&input("(?=look)")), @r"
    `pattern` is no regular expression: regex parse error:
        (?=look)
        ^^^
    error: look-around, including look-ahead and look-behind, is not supported
    To look for this text as it stands, set literal to true
    ");
    insta::assert_snapshot!(error(&input("")), @"`pattern` is empty, which every line matches; use read_file to see a file");
    insta::assert_snapshot!(error(&SearchFiles { include: GlobList(vec!["{a".into()]), ..input("x") }), @"`include`: `{a` is no glob: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)");
    insta::assert_snapshot!(error(&SearchFiles { context: Some(21), ..input("x") }), @"`context` must be from 0 to 20; 21 was given");
    insta::assert_snapshot!(error(&SearchFiles { max_results: Some(0), ..input("x") }), @"`max_results` must be from 1 to 10000; 0 was given");
}

#[test]
fn globs_choose_files_and_leave_out_folders() {
    let project = project(&[
        ("a.rs", "x\n"),
        ("a.ts", "x\n"),
        ("gen/b.rs", "x\n"),
        ("src/gen/c.rs", "x\n"),
        ("src/d.tsx", "x\n"),
    ]);
    let files = |include: &[&str], exclude: &[&str]| {
        let list = |globs: &[&str]| GlobList(globs.iter().map(|glob| (*glob).to_owned()).collect());
        let input = SearchFiles {
            include: list(include),
            exclude: list(exclude),
            mode: SearchMode::Files,
            ..input("x")
        };
        search_with(&project, &input).text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(files(&["*.rs"], &[]), ["a.rs", "gen/b.rs", "src/gen/c.rs"]);
    assert_eq!(files(&["*.{ts,tsx}"], &[]), ["a.ts", "src/d.tsx"]);
    assert_eq!(files(&["src/**/*.rs"], &[]), ["src/gen/c.rs"]);
    assert_eq!(files(&["*.rs"], &["gen"]), ["a.rs"]);
    assert_eq!(files(&["*.rs", "*.ts"], &["gen/"]), ["a.rs", "a.ts"]);
    assert_eq!(files(&[], &["src/**"]), ["a.rs", "a.ts", "gen/b.rs"]);
}

#[test]
fn one_glob_may_stand_for_a_list() {
    let input: SearchFiles =
        serde_json::from_value(serde_json::json!({ "pattern": "x", "include": "*.rs" })).unwrap();
    assert_eq!(input.include.0, ["*.rs"]);
}

#[test]
fn binary_files_are_left_out_and_said_so() {
    let project = project(&[("bin", "hit\0hit\n"), ("text", "hit\n"), ("other.bin", "\0none\n")]);
    let result = search_with(&project, &input("hit"));
    assert_eq!(result.text, "text:1:hit\n");
    insta::assert_snapshot!(result.notes.join("\n"), @"1 matching file left out for being binary");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "tests make the files that are searched")]
fn text_in_utf_16_is_searched() {
    let project = project(&[]);
    let bytes: Vec<u8> = "\u{feff}one\nhit two\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(project.path().join("windows.txt"), bytes).unwrap();
    assert_eq!(search(&project, "hit"), "windows.txt:2:hit two\n");
}

#[test]
fn one_file_can_be_searched_though_it_is_ignored() {
    let project = project(&[(".gitignore", "*.log\n"), ("logs/a.log", "x\nhit\n")]);
    assert_eq!(search(&project, "hit"), "");
    assert_eq!(
        search_with(&project, &SearchFiles { path: "logs/a.log".into(), ..input("hit") }).text,
        "logs/a.log:2:hit\n"
    );
    assert_eq!(
        search_with(&project, &SearchFiles { include_ignored: true, ..input("hit") }).text,
        "logs/a.log:2:hit\n"
    );
}

#[test]
fn of_too_many_matches_the_first_in_order_are_shown_and_all_are_counted() {
    let names: Vec<String> = (0..300).map(|file| format!("d{:02}/f{file:03}", file % 20)).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "hit\nmiss\nhit\n")).collect();
    let project = project(&files);
    let mut sorted = names.clone();
    sorted.sort();
    let expected: String =
        sorted.iter().take(5).flat_map(|name| [1, 3].map(|line| format!("{name}:{line}:hit\n"))).collect();
    for _ in 0..5 {
        let result = search_with(&project, &SearchFiles { max_results: Some(10), ..input("hit") });
        assert_eq!(result.text, expected);
        assert_eq!((result.matches, result.files, result.truncated), (Some(600), 300, true));
        insta::allow_duplicates! {
            insta::assert_snapshot!(result.notes.join("\n"), @"10 of 600 matching lines shown, the first in order; narrow pattern, path or include, or raise max_results (to at most 10000)");
        }
    }
    let odd = search_with(&project, &SearchFiles { max_results: Some(3), ..input("hit") });
    assert_eq!(odd.text.lines().count(), 3, "a limit may fall within a file");
    assert!(odd.truncated);
}

#[test]
fn the_answer_is_bounded_in_bytes_and_says_how_to_go_on() {
    let line = format!("hit {}\n", "x".repeat(300));
    let content = line.repeat(100);
    let project = project(&[("a", &content), ("b", &content), ("c", &content)]);
    let result = search_with(&project, &SearchFiles { max_results: Some(10_000), ..input("hit") });
    assert!(result.text.len() <= MAX_TEXT_BYTES, "{}", result.text.len());
    assert!(result.text.len() > MAX_TEXT_BYTES / 2);
    assert_eq!(result.matches, Some(300));
    insta::assert_snapshot!(result.notes.join("\n"), @"129 of 300 matching lines shown, the first in order; the answer is full: narrow pattern, path or include, or ask for mode files or count");
}

#[test]
fn a_long_line_is_cut_around_the_match_and_not_through_a_word() {
    let token = format!("tok_{}", "a1".repeat(40));
    let long = format!("{} {token} {}", "word ".repeat(2000), "more ".repeat(2000));
    let project = project(&[("min.js", &long)]);
    let text = search(&project, "tok_");
    assert!(text.contains(&token), "{text}");
    assert!(text.len() < 650, "{}", text.len());
    insta::assert_snapshot!(text.replace(&token, "TOKEN"), @"min.js:1:… word word word word word word word word word word word word word word word word word word word word word word word word  TOKEN more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more more … [line of 20086 bytes]");
    let text = search(&project, "^word");
    assert!(text.starts_with("min.js:1:word word"), "{text}");
}

#[test]
fn a_file_larger_than_the_buffer_is_searched_to_its_end() {
    let content = format!("{}hit at the end\n", "some line of text\n".repeat(200_000));
    let project = project(&[("large.txt", &content)]);
    assert_eq!(search(&project, "hit"), "large.txt:200001:hit at the end\n");
}

#[test]
fn nothing_found_says_what_else_to_try() {
    let project = small();
    insta::assert_snapshot!(search_with(&project, &input("nowhere(x)")).to_text(), @"[nothing matches; the pattern is a regular expression (literal: true takes it as it stands); what .gitignore names was left out (include_ignored)]");
    insta::assert_snapshot!(search_with(&project, &SearchFiles { literal: true, include_ignored: true, ..input("nowhere") }).to_text(), @"[nothing matches]");
}

#[test]
fn a_cancelled_search_is_an_error() {
    let project = small();
    let workspace = Workspace::new([project.path()]).unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert!(matches!(search_files(&workspace, &input("run"), &cancel), Err(Error::Cancelled)));
}

#[cfg(unix)]
#[test]
fn neither_links_nor_pipes_are_opened() {
    let outside = project(&[("secret.txt", "hit\n")]);
    let project = project(&[("a.txt", "hit\n")]);
    std::os::unix::fs::symlink(outside.path(), project.path().join("out")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret.txt"), project.path().join("link.txt")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        project.path().join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    assert_eq!(search(&project, "hit"), "a.txt:1:hit\n");
}

#[cfg(unix)]
#[test]
#[allow(clippy::disallowed_methods, reason = "the attacker's part")]
fn a_file_swapped_for_a_link_during_the_search_shows_nothing_from_outside() {
    use std::sync::atomic::{AtomicBool, Ordering};

    let outside = project(&[("secret.txt", "hit outside\n")]);
    let names: Vec<String> = (0..300).map(|file| format!("f{file:03}")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "hit\n")).collect();
    let project = project(&files);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (victim, link) = (project.path().join("f150"), project.path().join("swap"));
            while !done.load(Ordering::Relaxed) {
                std::os::unix::fs::symlink(outside.path().join("secret.txt"), &link).unwrap();
                fs::rename(&link, &victim).unwrap();
                fs::write(&link, "hit\n").unwrap();
                fs::rename(&link, &victim).unwrap();
            }
        });
        for _ in 0..30 {
            let result = search_with(&project, &SearchFiles { max_results: Some(1000), ..input("hit") });
            assert!(!result.text.contains("outside"), "{}", result.text);
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_pattern_may_match_across_lines() {
    let project =
        project(&[("a.rs", "fn a(\n    x: u8,\n) {}\nfn b() {}\n"), ("w.txt", "one\r\ntwo\r\nthree\r\n")]);
    // A line break in the pattern, as such or escaped, is enough.
    for pattern in ["one\ntwo", r"one\ntwo", r"one\r\ntwo"] {
        assert_eq!(search(&project, pattern), "w.txt:1:one\nw.txt:2:two\n", "{pattern:?}");
    }
    let literal = SearchFiles { literal: true, ..input("fn a(\n    x") };
    assert_eq!(search_with(&project, &literal).text, "a.rs:1:fn a(\na.rs:2:    x: u8,\n");
    assert_eq!(search(&project, r"fn \w+\([^)]*u8"), "");
    let multiline = SearchFiles { multiline: true, ..input(r"fn \w+\([^)]*u8") };
    let found = search_with(&project, &multiline);
    assert_eq!((found.text.as_str(), found.matches), ("a.rs:1:fn a(\na.rs:2:    x: u8,\n", Some(2)));
    // `^`, `$` and `.` keep to lines.
    let anchored = SearchFiles { multiline: true, ..input(r"^\) .*$") };
    assert_eq!(search_with(&project, &anchored).text, "a.rs:3:) {}\n");
    let one = SearchFiles { max_results: Some(1), context: Some(1), ..multiline };
    let cut = search_with(&project, &one);
    assert!(cut.truncated && cut.text.starts_with("a.rs:1:fn a(\n"), "{}", cut.text);
    assert_eq!(search(&project, r"\\n"), "", "an escaped backslash is no line break");
}

#[test]
fn a_folder_can_be_included_by_its_name() {
    let project = project(&[("src/a/b.rs", "hit\n"), ("docs/c.md", "hit\n"), ("d.rs", "hit\n")]);
    let including = |globs: &[&str]| {
        let include = GlobList(globs.iter().map(|glob| (*glob).to_owned()).collect());
        search_with(&project, &SearchFiles { include, mode: SearchMode::Files, ..input("hit") }).to_text()
    };
    assert_eq!(including(&["src"]), "src/a/b.rs\n[1 file]\n");
    assert_eq!(including(&["src/", "docs"]), "docs/c.md\nsrc/a/b.rs\n[2 files]\n");
    insta::assert_snapshot!(including(&["source", "*.py"]), @"[no file below `.` fits include (source, *.py), so nothing was searched; a glob is on names (`*.rs`) or on paths below that folder (`src/**`)]");
}

#[cfg(feature = "context")]
#[test]
fn matches_are_shown_with_the_definition_that_they_stand_in() {
    let project = project(&[
        (
            "a.rs",
            "impl Shop {\n    fn total(&self) -> u8 {\n        let hit = 1;\n        hit\n    }\n    fn hit() {}\n}\n// hit\n",
        ),
        ("b.txt", "hit\n"),
    ]);
    let input = SearchFiles { symbol: true, ..input("hit") };
    insta::assert_snapshot!(search_with(&project, &input).text, @r"
    a.rs=2=impl Shop > fn total(&self) -> u8
    a.rs:3:        let hit = 1;
    a.rs:4:        hit
    a.rs:6:    fn hit() {}
    a.rs:8:// hit
    b.txt:1:hit
    ");
}
