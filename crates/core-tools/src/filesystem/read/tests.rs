use std::time::{Duration, Instant};

use proptest::prelude::*;

use tokio_util::sync::CancellationToken;

use super::*;
use crate::filesystem::limits::MAX_TEXT_BYTES;
use crate::filesystem::testing::{ProjectFixture, chain};
use crate::workspace::Workspace;

#[allow(clippy::needless_pass_by_value, reason = "the calls read better")]
fn read(project: &ProjectFixture, input: ReadFile) -> Result<TextFile, String> {
    read_file(&project.workspace, &input, &project.cancel).map_err(|error| chain(&error))
}

fn whole(path: &str) -> ReadFile {
    ReadFile { path: path.into(), ..ReadFile::default() }
}

fn from(offset: i64, limit: i64) -> ReadFile {
    ReadFile { offset: Some(offset), limit: Some(limit), ..whole("f") }
}

fn numbered(lines: usize) -> String {
    (1..=lines).map(|line| format!("line {line}\n")).collect()
}

#[test]
fn a_small_file_comes_whole_and_without_remarks() {
    let project = ProjectFixture::with(&[("f", "one\ntwo\n")]);
    let file = read(&project, whole("f")).unwrap();
    assert_eq!((file.lines, file.total_lines, file.first_line), (2, Some(2), Some(1)));
    assert_eq!(file.to_text(), "one\ntwo\n");
    assert_eq!(file.notes, Vec::<String>::new());
}

#[test]
fn offset_limit_head_and_tail_choose_lines() {
    let project = ProjectFixture::with(&[("f", numbered(10))]);
    let middle = read(&project, from(4, 2)).unwrap();
    assert_eq!(middle.to_text(), "line 4\nline 5\n[lines 4-5 of 10; continue with offset=6]\n");
    let head = read(&project, ReadFile { head: Some(1), ..whole("f") }).unwrap();
    assert_eq!(head.to_text(), "line 1\n[line 1 of 10; continue with offset=2]\n");
    let tail = read(&project, ReadFile { tail: Some(2), ..whole("f") }).unwrap();
    assert_eq!(tail.to_text(), "line 9\nline 10\n[lines 9-10 of 10]\n");
    let all = read(&project, ReadFile { tail: Some(10), ..whole("f") }).unwrap();
    assert_eq!(all.to_text(), numbered(10));
    let last = read(&project, from(10, 99)).unwrap();
    assert_eq!(last.to_text(), "line 10\n[line 10 of 10]\n");
}

#[test]
fn lines_are_numbered_on_request() {
    let project = ProjectFixture::with(&[("f", "\tone\ntwo")]);
    let numbered = |input| ReadFile { line_numbers: true, ..input };
    let whole_file = read(&project, numbered(whole("f"))).unwrap();
    assert_eq!((whole_file.to_text().as_str(), whole_file.text.as_str()), ("1\t\tone\n2\ttwo", "\tone\ntwo"));
    let part = read(&project, numbered(from(2, 1))).unwrap();
    assert_eq!(part.to_text(), "2\ttwo\n[line 2 of 2]\n");
    let tail = read(&project, numbered(ReadFile { tail: Some(1), ..whole("f") })).unwrap();
    assert_eq!(tail.to_text(), "2\ttwo\n[line 2 of 2]\n");
    // The numbers have their share of the bytes of an answer.
    project.put("f", "some words\n".repeat(9000));
    let long = read(&project, numbered(from(1, 9000))).unwrap();
    assert!(long.to_text().len() <= MAX_TEXT_BYTES + 100, "{}", long.to_text().len());
    assert!(long.to_text().ends_with("[lines 1-2000 of 9000; continue with offset=2001]\n"));
}

#[test]
fn two_thousand_lines_come_by_default_and_the_rest_is_announced() {
    let project = ProjectFixture::with(&[("f", "x\n".repeat(2500))]);
    let file = read(&project, whole("f")).unwrap();
    assert_eq!((file.lines, file.total_lines), (2000, Some(2500)));
    assert!(file.to_text().ends_with("[lines 1-2000 of 2500; continue with offset=2001]\n"));
}

#[test]
fn text_over_the_bound_is_cut_between_lines_and_can_be_continued() {
    let line = format!("{}\n", "y".repeat(999));
    let project = ProjectFixture::with(&[("f", line.repeat(100))]);
    let first = read(&project, whole("f")).unwrap();
    assert_eq!((first.lines, first.total_lines), (40, Some(100)));
    assert_eq!(first.notes, ["cut at 40000 bytes; continue with offset=41"]);
    let next = read(&project, from(41, 2000)).unwrap();
    assert_eq!((next.first_line, next.lines), (Some(41), 40));
    let tail = read(&project, ReadFile { tail: Some(60), ..whole("f") }).unwrap();
    assert_eq!((tail.first_line, tail.lines), (Some(61), 40));
    assert_eq!(tail.notes, ["cut at 40000 bytes: only the last 40 lines are given"]);
}

#[test]
fn one_enormous_line_is_cut_at_a_character_and_the_next_is_reachable() {
    let project = ProjectFixture::with(&[("f", format!("{}\nafter\n", "é".repeat(60_001)))]);
    let file = read(&project, whole("f")).unwrap();
    assert_eq!((file.lines, file.total_lines, file.text.len()), (1, Some(2), MAX_TEXT_BYTES));
    assert!(file.notes[0].starts_with("line 1 is longer than 40000 bytes"), "{:?}", file.notes);
    assert_eq!(read(&project, from(2, 1)).unwrap().text, "after\n");
    // An odd byte before shifts the cut into a character.
    project.put("f", format!("x{}", "é".repeat(60_001)));
    let file = read(&project, whole("f")).unwrap();
    assert_eq!(file.text.len(), MAX_TEXT_BYTES - 1);
    let tail = read(&project, ReadFile { tail: Some(1), ..whole("f") }).unwrap();
    assert!(tail.text.ends_with('é') && tail.text.len() <= MAX_TEXT_BYTES && !tail.text.contains('\u{fffd}'));
    assert!(tail.notes[0].starts_with("the last line is longer"), "{:?}", tail.notes);
}

#[test]
fn wrong_numbers_are_named_with_what_is_allowed() {
    let project = ProjectFixture::with(&[("f", numbered(3))]);
    assert_eq!(read(&project, from(0, 1)).unwrap_err(), "`offset` must be 1 or more; 0 was given");
    assert_eq!(read(&project, from(1, -5)).unwrap_err(), "`limit` must be 1 or more; -5 was given");
    let zero = ReadFile { tail: Some(0), ..whole("f") };
    assert_eq!(read(&project, zero).unwrap_err(), "`tail` must be 1 or more; 0 was given");
    assert_eq!(read(&project, from(4, 1)).unwrap_err(), "`f` has only 3 lines, so there is no line 4");
    assert_eq!(
        read(&project, from(i64::MAX, i64::MAX)).unwrap_err(),
        format!("`f` has only 3 lines, so there is no line {}", i64::MAX)
    );
    let both = ReadFile { head: Some(1), tail: Some(1), ..whole("f") };
    assert!(read(&project, both).unwrap_err().contains("cannot both be given"));
    let mixed = ReadFile { head: Some(1), offset: Some(1), ..whole("f") };
    assert!(read(&project, mixed).unwrap_err().contains("cannot be combined"));
}

#[test]
fn endings_marks_and_odd_bytes_are_kept_or_said() {
    let project = ProjectFixture::with(&[
        ("crlf", b"a\r\nb\r\n".to_vec()),
        ("bom", b"\xef\xbb\xbfa\n".to_vec()),
        ("latin", b"caf\xe9\n".to_vec()),
        ("open", b"a\nb".to_vec()),
        ("empty", Vec::new()),
        ("newline", b"\n".to_vec()),
    ]);
    assert_eq!(read(&project, whole("crlf")).unwrap().text, "a\r\nb\r\n");
    let bom = read(&project, whole("bom")).unwrap();
    assert_eq!((bom.text.as_str(), bom.notes.len()), ("a\n", 1));
    let latin = read(&project, whole("latin")).unwrap();
    assert_eq!(latin.text, "caf\u{fffd}\n");
    assert!(latin.to_text().ends_with("[not valid UTF-8: bytes that are not are shown as U+FFFD]\n"));
    assert_eq!(read(&project, whole("open")).unwrap().total_lines, Some(2));
    let empty = read(&project, whole("empty")).unwrap();
    assert_eq!(
        (empty.total_lines, empty.first_line, empty.to_text().as_str()),
        (Some(0), None, "[no lines, 0 bytes]\n")
    );
    assert_eq!(read(&project, ReadFile { tail: Some(5), ..whole("empty") }).unwrap().lines, 0);
    assert_eq!(read(&project, whole("newline")).unwrap().total_lines, Some(1));
}

#[test]
fn a_binary_file_is_refused_with_kind_size_and_the_right_tool() {
    let project = ProjectFixture::with(&[
        ("x.png", b"\x89PNG\r\n\x1a\n\0\0".to_vec()),
        ("x.bin", b"ab\0cd".to_vec()),
        ("x.txt", b"\xff\xfeh\0i\0".to_vec()),
    ]);
    for (path, message) in [
        ("x.png", "`x.png` is not text but a PNG image of 10 bytes; use read_media_file"),
        ("x.bin", "`x.bin` is not text but a binary file of 5 bytes"),
        ("x.txt", "`x.txt` is not text but UTF-16 text of 6 bytes; convert it to UTF-8 first"),
    ] {
        assert_eq!(read(&project, whole(path)).unwrap_err(), message);
    }
}

#[test]
fn a_missing_file_is_answered_with_the_nearest_name() {
    let project = ProjectFixture::with(&[("src/lib.rs", "x")]);
    assert_eq!(
        read(&project, whole("src/lib.r")).unwrap_err(),
        "`src/lib.r` does not exist; did you mean `src/lib.rs`?"
    );
    assert_eq!(
        read(&project, whole("scr/lib.rs")).unwrap_err(),
        "`scr/lib.rs` does not exist: there is no `scr`; did you mean `src/lib.rs`?"
    );
    assert_eq!(read(&project, whole("src")).unwrap_err(), "`src` is a directory, not a regular file");
}

#[test]
fn a_sparse_gigabyte_is_answered_at_once_with_its_count_given_up() {
    let project = ProjectFixture::with(&[("f", "first\nsecond\n")]);
    // A hole takes no disk, and 1 GiB of NULs after the head is counted as fast as text.
    let mut head = "line\n".repeat(2000);
    head.push_str("end");
    project.put("f", head);
    #[allow(clippy::disallowed_methods, reason = "the test sets up the file")]
    let file = std::fs::OpenOptions::new().append(true).open(project.at("f")).unwrap();
    file.set_len(1 << 30).unwrap();
    let started = Instant::now();
    let head = read(&project, ReadFile { head: Some(3), ..whole("f") }).unwrap();
    assert_eq!((head.lines, head.total_lines), (3, None));
    assert!(head.to_text().contains("[lines 1-3 of many (1073741824 bytes); continue with offset=4]"));
    let tail = read(&project, ReadFile { tail: Some(3), ..whole("f") }).unwrap();
    assert_eq!((tail.first_line, tail.lines), (None, 1));
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn cancelling_ends_a_long_read() {
    let project = ProjectFixture::with(&[("f", numbered(10))]);
    project.cancel.cancel();
    assert_eq!(read(&project, from(5, 1)).unwrap_err(), "cancelled");
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_of_the_kernel_that_knows_no_length_is_read() {
    let workspace = Workspace::new(["/proc/self"]).unwrap();
    let cancel = CancellationToken::new();
    let status = read_file(&workspace, &whole("status"), &cancel).unwrap();
    assert!(status.text.starts_with("Name:"));
    let tail = read_file(&workspace, &ReadFile { tail: Some(1), ..whole("status") }, &cancel).unwrap();
    assert!(status.text.ends_with(&tail.text) || tail.text.starts_with("nonvoluntary"), "{}", tail.text);
}

/// The lines as a reader gives them that simply splits the text.
fn expected(text: &str, first: usize, count: usize) -> String {
    text.split_inclusive('\n').skip(first - 1).take(count).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_slice_is_what_splitting_gives(
        text in "([a-zé]{0,6}\r?\n){0,30}[a-z]{0,3}", skip in 1..35_usize, take in 1..35_usize,
    ) {
        let project = ProjectFixture::with(&[("f", &text)]);
        let total = text.split_inclusive('\n').count();
        let (first, count) = (skip as i64, take as i64);
        match read(&project, from(first, count)) {
            Ok(file) => {
                prop_assert_eq!(&file.text, &expected(&text, skip, take));
                prop_assert_eq!(file.total_lines, Some(total as u64));
            }
            Err(_) => prop_assert!(skip > total),
        }
        let tail = read(&project, ReadFile { tail: Some(count), ..whole("f") }).unwrap();
        prop_assert_eq!(tail.text, expected(&text, total.saturating_sub(take) + 1, take));
        prop_assert_eq!(tail.lines, total.min(take) as u64);
    }

    #[test]
    fn pages_put_together_are_the_file(lines in prop::collection::vec("[a-z]{0,40}", 1..60), bound in 41..200_usize) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let project = ProjectFixture::with(&[("f", &text)]);
        let path = project.workspace.locate("f").unwrap();
        let (mut first, mut pages) = (1, String::new());
        loop {
            let page = ReadLineSelection::From { first, lines: 7 };
            let page = read_lines(&path, page, bound, &project.cancel).unwrap();
            prop_assert!(page.text.len() <= bound && page.lines > 0);
            pages += &page.text;
            first += page.lines;
            if page.notes.is_empty() {
                break;
            }
        }
        prop_assert_eq!(pages, text.clone());
        let tail = read_lines(&path, ReadLineSelection::Last(7), bound, &project.cancel).unwrap();
        prop_assert!(text.ends_with(&tail.text) && tail.text.len() <= bound);
        prop_assert_eq!(tail.first_line, Some(lines.len() as u64 + 1 - tail.lines));
    }
}
