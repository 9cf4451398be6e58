//! Texts by chance and hostile texts: what holds for every text.

use super::private_keys::key_body;
use super::redactor;
use super::samples::secrets;
use crate::mask::{MARK, mark_end};
use crate::{RedactionOptions, Redactor};
use proptest::prelude::*;

#[test]
fn each_name_in_a_line_of_megabytes_is_judged_without_its_line() {
    // With a look at the line for each name, this would be 10^11 bytes.
    let redactor = redactor();
    for piece in ["password=", "X_PASSWORD=a ", "DB_PASSWORD="] {
        let start = std::time::Instant::now();
        let text = piece.repeat((1 << 20) / piece.len());
        drop(redactor.redact(&text).into_owned());
        assert!(start.elapsed().as_secs() < 60, "{piece:?} took {:?}", start.elapsed());
    }
}

#[test]
fn hostile_text_takes_time_by_its_length() {
    let unit = 1 << 18;
    let hostile = [
        "sk-",
        "eyJ-",
        "://a:b",
        "://a:",
        "PRIVATE KEY",
        "-----BEGIN PRIVATE KEY-----\n",
        "-----END PRIVATE KEY-----\n",
        "password=",
        "X_PASSWORD=a ",
        "password: \"a",
        "secret",
        "AKIA",
        "asic ",
        "Basic aaaa",
        "[redacted:",
        "[redacted:x]",
        "eyJa.",
        "a/",
        "_-",
        "token=",
        "value: name: ",
        "-----BEGIN PRIVATE KEY-----AAAA",
        "\\n",
    ];
    for piece in hostile {
        let text = piece.repeat(unit / piece.len());
        let start = std::time::Instant::now();
        let redacted = redactor().redact(&text).into_owned();
        let took = start.elapsed();
        // Quadratic time would be minutes. On a busy machine, linear time may be some seconds.
        assert!(took.as_secs() < 60, "{piece:?} took {took:?}");
        drop(redacted);
    }
}

/// Texts with pieces of secrets in any order, next to each other and cut.
fn text() -> impl Strategy<Value = String> {
    let mut pieces: Vec<String> =
        secrets().into_iter().flat_map(|secret| [secret.text, secret.secret]).collect();
    pieces.extend(
        [
            "password",
            "=",
            ": \"",
            "\"",
            "\n",
            "://",
            "@",
            "-----BEGIN PRIVATE KEY-----",
            "-----END PRIVATE KEY-----",
            "[redacted:",
            "jwt]",
            "[redacted:jwt]",
            "ä",
            "🦀",
            "-",
            "_",
            ".",
            "token",
            "hunter2-known",
            "eyJ",
            "Basic ",
            "AKIA",
            "\\",
            "x:",
        ]
        .map(String::from),
    );
    pieces.push(key_body().join("\n"));
    let piece = prop_oneof![
        4 => proptest::sample::select(pieces.clone()),
        1 => (proptest::sample::select(pieces), 0usize..40).prop_map(|(piece, cut)| piece.chars().skip(cut).collect()),
        1 => ".{0,12}",
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn redacting_twice_is_redacting_once_and_marks_are_whole(text in text()) {
        let redactor = Redactor::new(RedactionOptions { values: vec!["hunter2-known".to_owned()], ..RedactionOptions::default() }).unwrap();
        let once = redactor.redact(&text).into_owned();
        let twice = redactor.redact(&once).into_owned();
        prop_assert_eq!(&once, &twice);
        prop_assert!(!once.contains("hunter2-known"));
        let whole = |text: &str| memchr::memmem::find_iter(text.as_bytes(), MARK).filter(|at| mark_end(text.as_bytes(), *at).is_none()).count();
        prop_assert!(whole(&once) <= whole(&text), "a broken mark in {}", once);
    }

    #[test]
    fn any_text_is_taken(text in ".{0,200}") {
        let _ = redactor().redact(&text);
    }
}
