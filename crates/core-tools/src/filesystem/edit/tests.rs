use proptest::prelude::*;

use super::*;
use crate::filesystem::limits::MAX_TEXT_BYTES;
use crate::filesystem::testing::{ProjectFixture, chain};
use tokio_util::sync::CancellationToken;

fn edit(old: &str, new: &str) -> TextReplacement {
    TextReplacement::new(old, new)
}

fn run(project: &ProjectFixture, edits: Vec<TextReplacement>) -> Result<EditResult, String> {
    run_input(project, &EditFile::new("f", edits))
}

fn run_input(project: &ProjectFixture, input: &EditFile) -> Result<EditResult, String> {
    edit_file(&project.workspace, input).map_err(|error| chain(&error))
}

fn flat(old: Option<&str>, new: Option<&str>, insert_line: Option<i64>) -> EditFile {
    EditFile {
        path: "f".into(),
        old_string: old.map(str::to_owned),
        new_string: new.map(str::to_owned),
        insert_line,
        ..EditFile::default()
    }
}

#[test]
fn one_replacement_needs_no_list() {
    let project = ProjectFixture::with(&[("f", "one\ntwo\ntwo\n")]);
    run_input(&project, &flat(Some("one"), Some("1"), None)).unwrap();
    assert_eq!(project.text("f"), "1\ntwo\ntwo\n");
    let all = EditFile { replace_all: true, ..flat(Some("two"), Some(""), None) };
    assert_eq!(run_input(&project, &all).unwrap().replacements, 2);
    assert_eq!(project.text("f"), "1\n\n\n");
}

#[test]
fn lines_are_inserted_after_a_line_with_the_line_ends_of_the_file() {
    for (before, line, text, after) in [
        ("a\nb\n", 0, "x", "x\na\nb\n"),
        ("a\nb\n", 1, "x\ny\n", "a\nx\ny\nb\n"),
        ("a\nb", 2, "x\n", "a\nb\nx\n"),
        ("a\r\nb\r\n", 1, "x\ny", "a\r\nx\r\ny\r\nb\r\n"),
        ("", 0, "x", "x\n"),
        ("\u{feff}a\n", 0, "x", "\u{feff}x\na\n"),
        ("a\n", 1, "\n", "a\n\n"),
    ] {
        let project = ProjectFixture::with(&[("f", before)]);
        run_input(&project, &EditFile::insertion("f", line, text)).unwrap();
        assert_eq!(project.text("f"), after, "{before:?} {line} {text:?}");
    }
    let project = ProjectFixture::with(&[("f", "a\nb\n")]);
    for line in [3, -1, i64::MIN, i64::MAX] {
        let error = run_input(&project, &EditFile::insertion("f", line, "x")).unwrap_err();
        assert!(error.contains(&format!("no line {line} to insert after; the file has 2 lines")), "{error}");
    }
    assert!(
        run_input(&project, &EditFile::insertion("f", 1, "")).unwrap_err().contains("new_string is empty")
    );
}

#[test]
fn forms_of_input_that_contradict_each_other_are_refused() {
    let project = ProjectFixture::with(&[("f", "a\n")]);
    for (input, message) in [
        (flat(None, None, None), "no change is given"),
        (flat(Some("a"), None, None), "`new_string` is missing"),
        (flat(Some("a"), Some("b"), Some(1)), "not both"),
        (flat(None, None, Some(1)), "`insert_line` needs `new_string`"),
        (flat(Some(""), Some("b"), None), "old_string is empty"),
        (EditFile { edits: vec![edit("a", "b")], ..flat(Some("a"), Some("c"), None) }, "give either `edits`"),
        (EditFile { edits: vec![edit("a", "b")], ..flat(None, Some("c"), Some(0)) }, "give either `edits`"),
    ] {
        let error = run_input(&project, &input).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
    assert_eq!(project.text("f"), "a\n");
    // Clients that fill in every parameter.
    run_input(&project, &EditFile { edits: vec![edit("a", "b")], ..flat(Some(""), Some(""), None) }).unwrap();
    assert_eq!(project.text("f"), "b\n");
}

#[test]
fn text_copied_with_line_numbers_is_refused_and_says_so() {
    let project = ProjectFixture::with(&[("f", "fn main() {\n    run();\n}\n")]);
    for old in ["1\tfn main() {\n2\t    run();", "     1→fn main() {\n     2→    run();\n"] {
        let error = run(&project, vec![edit(old, "x")]).unwrap_err();
        assert!(error.contains("old_string has line numbers in it (1 to 2)"), "{error}");
    }
    // Numbers that are in the file are text like any other.
    project.put("f", "1\tone\n2\ttwo\n");
    run(&project, vec![edit("1\tone\n2\ttwo", "x")]).unwrap();
}

#[test]
fn a_near_miss_by_blanks_within_a_line_is_named_with_its_line() {
    let project =
        ProjectFixture::with(&[("f", "fn a() {\n    let total = sum(&items, offset, limit); // all\n}\n")]);
    let error = run(&project, vec![edit("sum(&items,  offset,limit)", "x")]).unwrap_err();
    assert!(
        error.ends_with(
            "it differs from line 2 only in blanks:\n2:     let total = sum(&items, offset, limit); // all"
        ),
        "{error}"
    );
}

#[test]
fn edits_are_made_in_order_and_answered_with_a_unified_diff() {
    let project = ProjectFixture::with(&[("f", "one\ntwo\nthree\n")]);
    let edited = run(&project, vec![edit("two", "zwei"), edit("zwei\nthree", "zwei\ndrei")]).unwrap();
    assert_eq!(project.text("f"), "one\nzwei\ndrei\n");
    assert_eq!(
        edited.to_text(),
        "changed f (2 replacements)\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n-three\n+zwei\n+drei\n"
    );
}

#[test]
fn a_dry_run_shows_the_diff_and_writes_nothing() {
    let project = ProjectFixture::with(&[("f", "a\n")]);
    let input = EditFile { dry_run: true, ..EditFile::new("f", vec![edit("a", "b")]) };
    let edited = edit_file(&project.workspace, &input).unwrap();
    assert!(edited.dry_run && edited.diff.contains("-a\n+b\n"));
    assert_eq!(project.text("f"), "a\n");
}

#[test]
fn if_one_edit_fails_none_is_made() {
    let project = ProjectFixture::with(&[("f", "a\nb\n")]);
    let error = run(&project, vec![edit("a", "A"), edit("nowhere to be seen", "x")]).unwrap_err();
    assert_eq!(
        error,
        "nothing was changed in `f`: edit 2 of 2: old_string was not found, nor anything like it; read the file again"
    );
    assert_eq!(project.text("f"), "a\nb\n");
}

#[test]
fn what_occurs_more_than_once_is_named_with_its_lines() {
    let project = ProjectFixture::with(&[("f", "x = 1\ny = 2\nx = 1\n")]);
    let error = run(&project, vec![edit("x = 1", "x = 3")]).unwrap_err();
    assert!(error.contains("occurs 2 times, on lines 1, 3; add text around it"), "{error}");
    let all = TextReplacement { replace_all: true, ..edit("x = 1", "x = 3") };
    assert_eq!(run(&project, vec![all]).unwrap().replacements, 2);
    assert_eq!(project.text("f"), "x = 3\ny = 2\nx = 3\n");
    project.put("f", "a\n".repeat(500));
    assert!(run(&project, vec![edit("a", "b")]).unwrap_err().contains("9, 10 and more;"));
}

#[test]
fn a_near_miss_is_shown_with_its_line_numbers() {
    let project =
        ProjectFixture::with(&[("f", "fn main() {\n    let total = sum(&items);\n    print(total);\n}\n")]);
    let error = run(&project, vec![edit("let total = sum(items);\n", "x")]).unwrap_err();
    assert!(error.ends_with("the nearest text stands at\n2:     let total = sum(&items);"), "{error}");
    let error = run(&project, vec![edit("let total = sum(&items);\nprint(total);", "x")]).unwrap_err();
    assert!(
        error.ends_with(
            "it differs only in blanks from the text at line 2:\n2:     let total = sum(&items);\n3:     print(total);"
        ),
        "{error}"
    );
}

#[test]
fn strings_that_make_no_sense_are_refused() {
    let project = ProjectFixture::with(&[("f", "a\n")]);
    assert!(run(&project, vec![edit("", "x")]).unwrap_err().contains("old_string is empty"));
    assert!(run(&project, vec![edit("a", "a")]).unwrap_err().contains("are the same"));
    assert!(run(&project, vec![]).unwrap_err().contains("no change is given"));
    project.put("f", "a\0b");
    assert!(run(&project, vec![edit("a", "b")]).unwrap_err().contains("a binary file of 3 bytes"));
}

#[test]
fn line_endings_are_kept_whatever_the_caller_writes() {
    let project = ProjectFixture::with(&[("f", "a\r\nb\r\nc\r\n")]);
    run(&project, vec![edit("a\nb\n", "a\nx\ny\n")]).unwrap();
    assert_eq!(project.text("f"), "a\r\nx\r\ny\r\nc\r\n");
    run(&project, vec![edit("c", "c\nd")]).unwrap();
    assert_eq!(project.text("f"), "a\r\nx\r\ny\r\nc\r\nd\r\n");
    run(&project, vec![edit("x\r\ny", "z")]).unwrap();
    assert_eq!(project.text("f"), "a\r\nz\r\nc\r\nd\r\n");
    project.put("f", "a\nb\n");
    run(&project, vec![edit("a\r\nb\r\n", "c\r\nd\r\n")]).unwrap();
    assert_eq!(project.text("f"), "c\nd\n");
    // Mixed endings: what is not touched keeps its own, what is takes those it replaces.
    project.put("f", "a\nb\r\nc\nd\n");
    run(&project, vec![edit("b\nc", "B\nC")]).unwrap();
    assert_eq!(project.text("f"), "a\nB\r\nC\nd\n");
}

#[test]
fn bytes_that_are_not_utf_8_are_kept() {
    let project = ProjectFixture::with(&[("f", b"\xef\xbb\xbfcaf\xe9 one\n")]);
    let edited = run(&project, vec![edit("one", "two")]).unwrap();
    assert_eq!(project.get("f"), b"\xef\xbb\xbfcaf\xe9 two\n");
    assert!(edited.notes[0].starts_with("the file is not valid UTF-8"));
}

#[test]
fn masks_are_neither_matched_nor_written() {
    let project = ProjectFixture::with(&[("f", "key = AKIA123\nname = x\n")]);
    let error = run(&project, vec![edit("key = [redacted:aws]", "key = none")]).unwrap_err();
    assert!(error.contains("a mask shown in place of a secret; choose text beside it"), "{error}");
    let error = run(&project, vec![edit("name = x", "name = y\nkey = [redacted:aws]")]).unwrap_err();
    assert!(error.contains("the text contains [redacted:aws]"), "{error}");
    assert_eq!(project.text("f"), "key = AKIA123\nname = x\n");
    // A text about masks is a text like any other.
    project.put("f", "shown as [redacted:aws]\n");
    run(&project, vec![edit("shown as [redacted:aws]", "given as [redacted:aws]")]).unwrap();
}

#[test]
fn edits_of_one_file_at_once_lose_none() {
    const EACH: usize = 25;
    let lines: String = (0..4 * EACH).map(|line| format!("<{line}>\n")).collect();
    let project = ProjectFixture::with(&[("f", lines)]);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let project = &project;
            scope.spawn(move || {
                for line in worker * EACH..(worker + 1) * EACH {
                    run(project, vec![edit(&format!("<{line}>"), &format!("done {line};"))]).unwrap();
                }
            });
        }
    });
    let expected: String = (0..4 * EACH).map(|line| format!("done {line};\n")).collect();
    assert_eq!(project.text("f"), expected);
}

#[cfg(unix)]
#[test]
fn the_mode_stays_and_a_file_that_may_not_be_written_is_left_alone() {
    use std::os::unix::fs::PermissionsExt;
    let project = ProjectFixture::with(&[("f", "a\n")]);
    let mode = |mode| std::fs::set_permissions(project.at("f"), PermissionsExt::from_mode(mode)).unwrap();
    mode(0o755);
    run(&project, vec![edit("a", "b")]).unwrap();
    assert_eq!(std::fs::metadata(project.at("f")).unwrap().permissions().mode() & 0o777, 0o755);
    mode(0o444);
    let result = run(&project, vec![edit("b", "c")]);
    // Nothing is closed to root.
    if rustix::process::geteuid().is_root() {
        assert!(result.is_ok());
    } else {
        assert_eq!(result.unwrap_err(), "cannot write `f`: Permission denied (os error 13)");
    }
}

#[test]
fn a_large_diff_is_cut_between_lines_and_says_so() {
    let project = ProjectFixture::with(&[("f", "abcdefgh\n".repeat(10_000))]);
    let edited =
        run(&project, vec![TextReplacement { replace_all: true, ..edit("abcdefgh", "ABCDEFGH") }]).unwrap();
    assert!(edited.diff.len() <= MAX_TEXT_BYTES && edited.diff.ends_with('\n'));
    assert!(edited.notes[0].contains("bytes of the diff are given"), "{:?}", edited.notes);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_unique_piece_is_replaced_as_str_replace_would(text in "[ab\n]{1,40}", from in 0..40_usize, length in 1..10_usize) {
        let start = from % text.len();
        let piece = &text[start..text.len().min(start + length)];
        let matches = text.match_indices(piece).count();
        let project = ProjectFixture::with(&[("f", &text)]);
        match run(&project, vec![edit(piece, "XY")]) {
            Ok(_) => {
                prop_assert_eq!(matches, 1);
                prop_assert_eq!(project.text("f"), text.replacen(piece, "XY", 1));
            }
            Err(error) => {
                prop_assert!(error.contains(&format!("occurs {matches} times")), "{}", error);
                prop_assert_eq!(project.text("f"), text);
            }
        }
    }
}

/// A caller that sees the file with masks learns nothing of a secret in it: neither by removing its name or a part of it,
/// nor by guessing how it begins.
#[test]
fn no_edit_takes_a_secret_apart_or_shows_one() {
    let token = format!("ghp_{}", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5");
    let text = format!("db_password = \"hunter2\"\nTOKEN={token}\nnext = 1\n");
    let project = ProjectFixture::with(&[("f", text.as_str())]);
    let redactor = crate::redact::Redactor::new(crate::redact::RedactionOptions::default()).unwrap();
    let run = |edits: Vec<TextReplacement>| {
        let input = EditFile { dry_run: true, ..EditFile::new("f", edits) };
        let result = edit_file_with_secrets(&project.workspace, &input, &redactor, &CancellationToken::new());
        let told = result.map(|edited| edited.to_text()).map_err(|error| chain(&error));
        let shown = told.as_ref().unwrap_or_else(|told| told).clone();
        // As it leaves the server.
        (told.is_ok(), redactor.redact(&shown).into_owned())
    };
    let parts = ["hunter2", &token[4..20], &token[20..]];
    for (edits, is_made) in [
        (vec![edit("db_password", "word")], true),
        (vec![edit("TOKEN=ghp_", "x")], false),
        (vec![edit("ghp_", "x")], false),
        (vec![edit("= \"hun", "= \"x")], false),
        (vec![edit("\"h", "\"h")], false),
        (vec![edit("ter2\"\n", "x")], false),
        (vec![edit("db_password", "word"), edit("= \"hun", "x")], false),
        (vec![edit("db_password", "word"), edit("word = \"hunted\"", "x")], false),
        (vec![edit("next = 1", "next = 2")], true),
        (vec![edit(&format!("TOKEN={token}\n"), "")], true),
    ] {
        let described = format!("{edits:?}");
        let (made, shown) = run(edits);
        assert_eq!(made, is_made, "{described}: {shown}");
        assert!(!parts.iter().any(|part| shown.contains(part)), "{described}: {shown}");
    }
    // Right and wrong guesses are told apart by nothing.
    let guesses = ["= \"h", "= \"x"].map(|guess| run(vec![edit(guess, "y")]).1.replace(guess, ""));
    assert_eq!(guesses[0], guesses[1]);
}

fn by_pattern(project: &ProjectFixture, path: &str, pattern: &str, new: &str) -> Result<EditResult, String> {
    run_input(project, &EditFile::by_pattern(path, pattern, new))
}

#[test]
#[allow(clippy::disallowed_methods, reason = "no operation of the workspace creates a folder `.git`")]
fn a_pattern_is_replaced_in_all_files_of_a_folder_with_its_groups() {
    let project = ProjectFixture::with(&[
        ("src/a.rs", "old_name(1); old_name(2);\n"),
        ("src/deep/b.rs", "x.old_name(y)\r\nother\r\n"),
        ("src/c.txt", "old_name(3)\n"),
        ("src/binary", "old_name(\0)\n"),
        ("target/d.rs", "old_name(4)\n"),
        (".gitignore", "target\n"),
    ]);
    std::fs::create_dir(project.at(".git")).unwrap();
    let mut input = EditFile::by_pattern(".", r"old_name\((\w)\)", "new_name(${1}0)");
    input.include = serde_json::from_value(serde_json::json!(["*.rs"])).unwrap();
    let dry = run_input(&project, &EditFile { dry_run: true, ..input.clone() }).unwrap();
    assert_eq!((dry.replacements, project.text("src/a.rs").contains("old")), (3, true));
    let edited = run_input(&project, &input).unwrap();
    assert_eq!(project.text("src/a.rs"), "new_name(10); new_name(20);\n");
    assert_eq!(project.text("src/deep/b.rs"), "x.new_name(y0)\r\nother\r\n");
    assert_eq!(project.text("src/c.txt"), "old_name(3)\n", "not included");
    assert_eq!(project.text("target/d.rs"), "old_name(4)\n", "ignored");
    assert_eq!(edited.replacements, 3);
    assert!(
        edited.notes.iter().any(|note| note == "2 files: src/a.rs (2), src/deep/b.rs (1)"),
        "{:?}",
        edited.notes
    );
    assert!(edited.diff.contains("+new_name(10); new_name(20);"), "{}", edited.diff);
}

#[test]
fn a_pattern_is_matched_line_by_line_unless_it_has_a_line_break() {
    let project = ProjectFixture::with(&[("f", "a  \n\nb \n")]);
    by_pattern(&project, "f", r"\s+$", "").unwrap();
    assert_eq!(project.text("f"), "a\n\nb\n");
    by_pattern(&project, "f", "^", "> ").unwrap();
    assert_eq!(project.text("f"), "> a\n> \n> b\n");
    project.put("f", "a,\r\nb,\r\n");
    by_pattern(&project, "f", r"a,\nb", "c\nd").unwrap();
    assert_eq!(project.text("f"), "c\r\nd,\r\n");
}

#[test]
fn a_pattern_that_changes_nothing_or_is_wrong_is_an_error_and_nothing_is_written() {
    let project = ProjectFixture::with(&[("f", "abc\n"), ("g", "abc\n")]);
    for (pattern, new, expected) in [
        ("x+", "y", "no text at `f` matches `pattern`"),
        ("b", "b", "or the text in its place is the same"),
        ("(", "y", "is no regular expression"),
        ("(b)", "$1x", "refers to the group `1x`"),
        ("(b)", "$2", "refers to the group `2`"),
        ("b", "[redacted:secret]", "the mask shown in place of a secret"),
    ] {
        let error = by_pattern(&project, "f", pattern, new).unwrap_err();
        assert!(error.contains(expected), "{pattern}: {error}");
    }
    let both = EditFile { old_string: Some("a".to_owned()), ..EditFile::by_pattern("f", "b", "c") };
    assert!(run_input(&project, &both).unwrap_err().contains("give either `pattern`"));
    let missing = EditFile { new_string: None, ..EditFile::by_pattern("f", "b", "c") };
    assert!(run_input(&project, &missing).unwrap_err().contains("`new_string` is missing"));
    // One of the files cannot be changed: none is.
    let protecting = workspace::Workspace::new([project.at(".")]).unwrap().protect([project.at("g")]);
    edit_file(&protecting, &EditFile::by_pattern(".", "b", "x")).unwrap_err();
    assert_eq!(project.text("f"), "abc\n");
}

#[test]
fn a_pattern_touches_no_secret() {
    let token = format!("ghp_{}", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5");
    let text = format!("TOKEN={token}\nname = a\n");
    let project = ProjectFixture::with(&[("f", text.as_str())]);
    let redactor = crate::redact::Redactor::new(crate::redact::RedactionOptions::default()).unwrap();
    for (pattern, new) in [("(ghp_)(.*)", "$1 $2"), ("(B3d)", "$1 "), ("ghp", "x"), ("(?:)", " ")] {
        let input = EditFile::by_pattern("f", pattern, new);
        let result = edit_file_with_secrets(&project.workspace, &input, &redactor, &CancellationToken::new());
        assert!(project.text("f").contains(&token), "{pattern}: {result:?}");
        project.put("f", &text);
    }
    let input = EditFile::by_pattern("f", "a$", "b");
    edit_file_with_secrets(&project.workspace, &input, &redactor, &CancellationToken::new()).unwrap();
    assert_eq!(project.text("f"), format!("TOKEN={token}\nname = b\n"));
}

#[test]
fn what_would_become_too_large_is_refused_before_it_takes_memory() {
    let text = "a".repeat(1_000_000);
    let project = ProjectFixture::with(&[("f", text.as_str())]);
    // Each of them would make a terabyte.
    let all =
        EditFile { replace_all: true, dry_run: true, ..flat(Some("a"), Some(&"b".repeat(1_000_000)), None) };
    let error = run_input(&project, &all).unwrap_err();
    assert!(
        error.contains("the file would have more than 67108864 bytes after 1000000 replacements"),
        "{error}"
    );
    let error = by_pattern(&project, "f", "^(.*)$", &"${1}".repeat(1_000_000)).unwrap_err();
    assert!(error.contains("more than the 67108864 this tool takes"), "{error}");
    // Several files together as well.
    let name = |number: usize| format!("g{number}");
    for number in 0..3 {
        project.put(&name(number), "a\n");
    }
    let error = by_pattern(&project, ".", "^a$", &"b".repeat(30 << 20)).unwrap_err();
    assert!(error.contains("more than the 67108864 this tool takes"), "{error}");
    assert_eq!(project.text("f").len(), 1_000_000);
    assert_eq!(project.text("g0"), "a\n");
}
