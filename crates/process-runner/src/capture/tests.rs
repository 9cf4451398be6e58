use super::collector::{CaptureLimits, OutputCapture};
use super::{CapturedStream, OutputSnapshot};
use crate::secrets::SecretValues;
use crate::spill::SpillOptions;
use proptest::prelude::*;
use std::borrow::Cow;

fn capture(max_bytes: usize, chunks: &[&[u8]]) -> CapturedStream {
    let mut capture = OutputCapture::new(&CaptureLimits::new(max_bytes), &SecretValues::default());
    for chunk in chunks {
        capture.push(chunk);
    }
    capture.finish(true)
}

#[test]
fn a_short_stream_is_kept_whole() {
    let captured = capture(100, &[b"one\n", b"two"]);
    assert_eq!(captured.text(), "one\ntwo");
    assert!(matches!(captured.text(), Cow::Borrowed(_)));
    assert_eq!((captured.head(), captured.tail()), (&b"one\ntwo"[..], &b""[..]));
    assert_eq!((captured.total_bytes, captured.total_lines), (7, 2));
    assert_eq!((captured.omitted_bytes, captured.omitted_lines, captured.truncated()), (0, 0, false));
    assert!(captured.complete && !captured.binary && captured.invalid_sequences == 0);
}

#[test]
fn an_empty_stream_has_no_lines() {
    let captured = capture(100, &[]);
    assert_eq!((captured.total_bytes, captured.total_lines, &*captured.text()), (0, 0, ""));
    assert!(captured.is_empty());
}

#[test]
fn of_a_long_stream_a_quarter_is_head_and_the_rest_is_tail() {
    let lines: String = (0..1000).map(|n| format!("{n:03}\n")).collect();
    let captured = capture(400, &[lines.as_bytes()]);
    assert_eq!(captured.head(), &lines.as_bytes()[..100]);
    assert_eq!(captured.tail(), &lines.as_bytes()[4000 - 300..]);
    assert_eq!((captured.total_bytes, captured.total_lines), (4000, 1000));
    assert_eq!((captured.omitted_bytes, captured.omitted_lines), (3600, 900));
    let text = captured.text();
    assert!(text.contains("\n024\n[... 900 lines, 3.6 kB left out ...]\n925\n"), "{text}");
}

#[test]
fn the_default_keeps_256_kib() {
    let captured = {
        let mut capture = OutputCapture::new(&CaptureLimits::default(), &SecretValues::default());
        capture.push(&[b'x'; 1_000_000]);
        capture.finish(true)
    };
    assert_eq!((captured.head().len(), captured.tail().len()), (64 * 1024, 192 * 1024));
}

#[test]
fn an_omission_within_one_line_names_no_lines_and_one_over_two_lines_names_one() {
    let text = capture(8, &[b"aaaaaaaaaaaaaaaaaaaa"]).text().into_owned();
    assert_eq!(text, "aa\n[... 12 B left out ...]\naaaaaa");
    let text = capture(8, &[b"aaaaaaa\naaaaaaaaaaaa"]).text().into_owned();
    assert_eq!(text, "aa\n[... 1 line, 12 B left out ...]\naaaaaa");
}

#[test]
fn memory_grows_with_the_stream_and_never_past_the_limit() {
    let mut capture = OutputCapture::new(&CaptureLimits::new(100_000), &SecretValues::default());
    assert_eq!(capture.buffer_capacity(), 0);
    capture.push(&[b'x'; 1000]);
    assert!(capture.buffer_capacity() <= 2000);
    for _ in 0..1000 {
        capture.push(&[b'x'; 777]);
        assert!(capture.buffer_capacity() <= 100_000);
    }
    assert!(capture.finish(true).bytes.capacity() <= 100_000);
}

#[test]
fn a_limit_of_nothing_counts_all_the_same() {
    let captured = capture(0, &[b"a\nb\n", b"c"]);
    assert_eq!((captured.total_bytes, captured.total_lines, captured.omitted_bytes), (5, 3, 5));
    assert_eq!(captured.text(), "[... 2 lines, 5 B left out ...]\n");
}

#[test]
fn bytes_that_are_not_text_are_kept_exactly_counted_and_shown_as_replacements() {
    let captured = capture(100, &[b"a\xFF\xFEb\0\xE2\x82"]);
    assert_eq!(captured.bytes(), b"a\xFF\xFEb\0\xE2\x82");
    assert_eq!(captured.text(), "a\u{fffd}\u{fffd}b\0\u{fffd}");
    assert_eq!((captured.invalid_sequences, captured.binary), (3, true));
}

#[test]
fn a_character_over_a_chunk_edge_or_over_the_omission_is_never_split() {
    assert_eq!(capture(100, &[b"a\xF0\x9F", b"\x98\x80b"]).text(), "a😀b");
    for limit in 8..24 {
        let captured = capture(limit, &["😀".repeat(50).as_bytes()]);
        assert_eq!(captured.invalid_sequences, 0);
        assert!(!captured.text().contains('\u{fffd}'), "{limit}: {}", captured.text());
    }
}

#[test]
fn clean_text_of_a_build_log_is_its_last_state() {
    let captured = capture(100, &[b"\x1b[32mok\x1b[0m\r\n 5%\r50%\r100%\n"]);
    assert_eq!(captured.clean(), "ok\n100%\n");
    assert_eq!(captured.total_bytes, 26);
}

#[test]
fn a_reader_with_a_cursor_gets_everything_once() {
    let mut capture = OutputCapture::new(&CaptureLimits::new(1000), &SecretValues::default());
    let (mut cursor, mut read) = (0, Vec::new());
    for n in 0..50 {
        capture.push(format!("line {n}\n").as_bytes());
        let part = capture.snapshot(cursor, 1000);
        assert_eq!(part.lost_bytes, 0);
        read.extend(part.bytes);
        cursor = part.next_cursor;
    }
    let captured = capture.finish(true);
    assert_eq!(read, captured.bytes());
    assert_eq!(
        captured.snapshot(cursor, 10),
        OutputSnapshot { next_cursor: cursor, ..OutputSnapshot::default() }
    );
}

#[test]
fn a_late_reader_gets_the_head_then_the_tail_and_the_number_lost_between() {
    let mut capture = OutputCapture::new(&CaptureLimits::new(8), &SecretValues::default());
    capture.push(b"0123456789abcdefghij");
    let first = capture.snapshot(0, 100);
    assert_eq!((&first.bytes[..], first.next_cursor, first.lost_bytes), (&b"01"[..], 2, 0));
    let second = capture.snapshot(first.next_cursor, 4);
    assert_eq!((&second.bytes[..], second.next_cursor, second.lost_bytes), (&b"efgh"[..], 18, 12));
    let third = capture.finish(true).snapshot(second.next_cursor, 100);
    assert_eq!((&third.bytes[..], third.next_cursor, third.lost_bytes), (&b"ij"[..], 20, 0));
}

#[test]
fn a_cursor_past_the_end_gives_nothing_and_comes_back_to_it() {
    let captured = capture(100, &[b"abc"]);
    assert_eq!(captured.snapshot(99, 10), OutputSnapshot { next_cursor: 3, ..OutputSnapshot::default() });
}

#[test]
fn a_snapshot_waits_for_the_rest_of_a_character_unless_the_stream_has_ended() {
    let mut capture = OutputCapture::new(&CaptureLimits::new(100), &SecretValues::default());
    capture.push(b"ab\xE2\x82");
    assert_eq!(capture.snapshot(0, 100).bytes, b"ab");
    let mut whole = OutputCapture::new(&CaptureLimits::new(100), &SecretValues::default());
    whole.push(b"ab\xE2\x82");
    assert_eq!(whole.finish(true).snapshot(2, 100).bytes, b"\xE2\x82");
    capture.push(b"\xAC!");
    assert_eq!(capture.snapshot(2, 0).bytes, "€!".as_bytes());
}

#[test]
fn secrets_are_hidden_before_anything_is_kept() {
    let secret = "0123456789abcdef0123456789abcdefABCDEFGH";
    for at in 0..40 {
        for limit in [20, 30, 60, 1000] {
            let mut capture = OutputCapture::new(&CaptureLimits::new(limit), &SecretValues::new([secret]));
            for chunk in ["--------", &secret[..at], &secret[at..], "--------------------", &secret[..at]] {
                capture.push(chunk.as_bytes());
            }
            let captured = capture.finish(true);
            for shown in [captured.bytes().to_vec(), format!("{captured:?}").into_bytes()] {
                let seen =
                    secret.as_bytes().windows(8).any(|part| memchr::memmem::find(&shown, part).is_some());
                assert!(!seen, "split at {at}, {limit} kept: {}", String::from_utf8_lossy(&shown));
            }
        }
    }
}

#[test]
fn a_stream_longer_than_memory_keeps_is_spilled_from_its_first_byte_with_secrets_hidden() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let limits = CaptureLimits::new(100).spill(SpillOptions::new(dir.path()));
    let mut capture = OutputCapture::new(&limits, &SecretValues::new(["hunter2-hunter2"]));
    let mut expected = String::new();
    for n in 0..100 {
        capture.push(format!("{n} hunter2-").as_bytes());
        capture.push(b"hunter2\n");
        expected += &format!("{n} [redacted]\n");
    }
    let captured = capture.finish(true);
    let path = captured.spill.clone().expect("a file");
    assert_eq!(captured.spill_error, None);
    #[allow(clippy::disallowed_methods, reason = "the test looks at the file")]
    let written = std::fs::read_to_string(&path).expect("reads");
    assert_eq!(written, expected);
    assert!(captured.text().contains(&format!("left out; full output: {} ...]", path.display())));
}

#[test]
fn a_stream_that_memory_keeps_whole_makes_no_file() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let limits = CaptureLimits::new(100).spill(SpillOptions::new(dir.path()));
    let mut capture = OutputCapture::new(&limits, &SecretValues::default());
    capture.push(&[b'x'; 100]);
    assert_eq!(capture.finish(true).spill, None);
    #[allow(clippy::disallowed_methods, reason = "the test looks at the folder")]
    let files = dir.path().read_dir().expect("reads").count();
    assert_eq!(files, 0);
}

#[test]
fn a_spill_that_fails_leaves_the_capture_whole_and_says_why() {
    let limits = CaptureLimits::new(8).spill(SpillOptions::new("/nonexistent/folder"));
    let mut capture = OutputCapture::new(&limits, &SecretValues::default());
    capture.push(b"0123456789abcdefghij");
    let captured = capture.finish(true);
    assert_eq!((captured.head(), captured.tail()), (&b"01"[..], &b"efghij"[..]));
    let error = captured.spill_error.expect("says why");
    assert!(error.starts_with("no file in /nonexistent/folder: "), "{error}");
}

#[cfg(feature = "serde")]
#[test]
fn json_and_back_is_exact_for_text_and_for_any_bytes() {
    for chunks in [&[&b"text \xc3\xa9"[..]][..], &[b"\xFF\0\xFE"], &[b"0123456789", b"abcdefghij"], &[]] {
        let captured = capture(8, chunks);
        let json = serde_json::to_string(&captured).expect("serializes");
        assert_eq!(serde_json::from_str::<CapturedStream>(&json).expect("deserializes"), captured, "{json}");
    }
    let json = serde_json::to_value(capture(100, &[b"text"])).expect("serializes");
    assert_eq!(json["bytes"], "text");
    let json = serde_json::to_value(capture(100, &[b"\xFF"])).expect("serializes");
    assert_eq!(json["bytes"]["base64"], "/w==");
}

proptest! {
    #[test]
    fn head_tail_counts_and_snapshots_follow_from_the_whole_stream(
        limit in 0..40_usize,
        chunks in prop::collection::vec("[a\n]{0,30}", 0..8),
        cursor in 0..200_u64,
        max in 4..50_usize,
    ) {
        let mut capture = OutputCapture::new(&CaptureLimits::new(limit), &SecretValues::default());
        for chunk in &chunks {
            capture.push(chunk.as_bytes());
        }
        let whole = chunks.concat().into_bytes();
        let live = capture.snapshot(cursor, max);
        let captured = capture.finish(true);
        prop_assert_eq!(&live, &captured.snapshot(cursor, max));

        let (head, tail) = match whole.len() > limit {
            true => (&whole[..limit / 4], &whole[whole.len() - (limit - limit / 4)..]),
            false => (&whole[..], &[][..]),
        };
        prop_assert_eq!(captured.head(), head);
        prop_assert_eq!(captured.tail(), tail);
        prop_assert_eq!(captured.total_bytes, whole.len() as u64);
        prop_assert_eq!(captured.total_lines, String::from_utf8_lossy(&whole).lines().count() as u64);
        prop_assert_eq!(captured.omitted_bytes, (whole.len() - head.len() - tail.len()) as u64);
        let omitted = &whole[head.len()..whole.len() - tail.len()];
        prop_assert_eq!(captured.omitted_lines, omitted.iter().filter(|byte| **byte == b'\n').count() as u64);

        // What a snapshot gives stands in the stream right before its next cursor.
        let end = usize::try_from(live.next_cursor).expect("within the stream");
        prop_assert_eq!(&whole[end - live.bytes.len()..end], &live.bytes[..]);
        let asked = cursor.min(whole.len() as u64);
        prop_assert_eq!(asked + live.lost_bytes + live.bytes.len() as u64, live.next_cursor);
        prop_assert!(live.bytes.len() <= max);
        prop_assert!(!live.bytes.is_empty() || live.next_cursor == whole.len() as u64);
    }
}
