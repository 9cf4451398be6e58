//! Finding by name and by content.

use crate::serve;
use serde_json::json;

const FILES: [(&str, &str); 7] = [
    (".gitignore", "target/\n*.log\n"),
    ("src/main.rs", "fn main() {\n    hello();\n}\n"),
    ("src/deep/lib.rs", "pub fn hello() {}\npub fn Hello() {}\n"),
    ("docs/guide.md", "Say hello.\n"),
    ("target/debug/out.rs", "hello from the build\n"),
    ("build.log", "hello from the log\n"),
    (".config/settings.toml", "greeting = \"hello\"\n"),
];

#[test]
fn files_are_found_by_glob_without_what_git_ignores() {
    let (_project, mut wire) = serve(FILES);
    let left_out = "[left out: 1 entry that .gitignore names; `include_ignored` also finds these]\n";
    assert_eq!(
        wire.text("find_files", json!({"pattern": "**/*.rs"})),
        format!("src/deep/lib.rs\nsrc/main.rs\n{left_out}")
    );
    assert_eq!(wire.text("find_files", json!({"pattern": "*.md"})), format!("docs/guide.md\n{left_out}"));
    let all = wire.text("find_files", json!({"pattern": "**/*.rs", "include_ignored": true}));
    assert!(all.contains("target/debug/out.rs"), "{all}");
    assert_eq!(wire.text("find_files", json!({"pattern": "*.rs", "path": "src/deep"})), "src/deep/lib.rs\n");
}

#[test]
fn nothing_found_is_an_answer_and_no_failure() {
    let (_project, mut wire) = serve(FILES);
    wire.text("find_files", json!({"pattern": "*.nothing"}));
    wire.text("search_files", json!({"pattern": "nothing of the kind"}));
}

#[test]
fn content_is_found_with_file_and_line() {
    let (_project, mut wire) = serve(FILES);
    let text = wire.text("search_files", json!({"pattern": "fn hello"}));
    assert!(text.contains("src/deep/lib.rs") && text.contains('1') && !text.contains("main.rs"), "{text}");
    let text = wire.text("search_files", json!({"pattern": "hello"}));
    assert!(text.contains("docs/guide.md") && text.contains("src/main.rs"), "{text}");
    assert!(!text.contains("target/") && !text.contains("build.log"), "{text}");
    let text = wire.text("search_files", json!({"pattern": "hello()", "literal": true}));
    assert!(text.contains("src/main.rs"), "{text}");
}

#[test]
fn a_search_is_narrowed_by_globs_and_bounded() {
    let many: String = (0..5000).map(|number| format!("needle {number}\n")).collect();
    let (project, mut wire) = serve(FILES);
    project.write("many.txt", &many);
    let text = wire.text("search_files", json!({"pattern": "hello", "include": ["*.md"]}));
    assert!(text.contains("guide.md") && !text.contains("main.rs"), "{text}");
    let text = wire.text("search_files", json!({"pattern": "needle"}));
    assert!(text.lines().count() < 300 && text.len() < 50_000, "{} lines", text.lines().count());
    assert!(text.contains("max_results") || text.contains("narrow"), "{}", &text[text.len() - 300..]);
}

#[test]
fn a_pattern_that_is_no_expression_is_refused_with_its_fault() {
    let (_project, mut wire) = serve(FILES);
    for pattern in ["(", "[a-", "a{2,1}", "*"] {
        let text = wire.failure("search_files", json!({"pattern": pattern}));
        assert!(text.len() > 20 && text.len() < 1000, "{text}");
    }
    let text = wire.failure("find_files", json!({"pattern": "[a-"}));
    assert!(text.len() > 20, "{text}");
}

#[test]
fn a_hostile_expression_does_not_keep_the_server_busy() {
    let line = "a".repeat(30_000);
    let (_project, mut wire) = serve([("a.txt", line.as_str())]);
    let started = std::time::Instant::now();
    wire.call("search_files", json!({"pattern": "(a+)+$b"}));
    wire.call("search_files", json!({"pattern": "(a{1,500}){1,500}{1,500}"}));
    assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn a_long_line_and_a_binary_file_do_not_flood_the_answer() {
    let line = format!("{}needle{}\n", "x".repeat(1 << 20), "y".repeat(1 << 20));
    let (project, mut wire) = serve([("min.js", line.as_str())]);
    std::fs::write(project.join("binary"), [b"needle\0".as_slice(), &[0; 1000]].concat()).unwrap();
    let text = wire.text("search_files", json!({"pattern": "needle"}));
    assert!(text.contains("min.js") && text.len() < 10_000, "{} bytes", text.len());
    assert!(text.contains("needle"), "{text}");
}
