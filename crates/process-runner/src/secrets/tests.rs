use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use proptest::prelude::*;

use super::SecretValues;
use super::redactor::REDACTED;

/// 40 bytes with everything that an encoding changes.
const SECRET: &str = "s3cr3t/+~\"\\ é%&=p4ssw0rd-ABCDEFGHIJKLMN";

fn redact(secrets: &SecretValues, chunks: &[&[u8]]) -> String {
    let mut redactor = secrets.redactor();
    let mut shown = Vec::new();
    for chunk in chunks {
        redactor.push(chunk, |bytes| shown.extend_from_slice(bytes));
    }
    redactor.finish(|bytes| shown.extend_from_slice(bytes));
    String::from_utf8_lossy(&shown).into_owned()
}

/// No 8 bytes in a row of `secret` are in `shown`.
fn shows(shown: &[u8], secret: &[u8]) -> bool {
    secret.windows(8).any(|part| memchr::memmem::find(shown, part).is_some())
}

#[test]
fn the_secret_of_these_tests_has_40_bytes() {
    assert_eq!(SECRET.len(), 40);
}

#[test]
fn a_secret_split_at_any_place_is_hidden_and_what_is_around_it_stays() {
    let secrets = SecretValues::new([SECRET]);
    let text = format!("before {SECRET} after");
    for at in 0..=text.len() {
        let (left, right) = text.as_bytes().split_at(at);
        assert_eq!(redact(&secrets, &[left, right]), "before [redacted] after", "split at {at}");
    }
    let bytes: Vec<_> = text.as_bytes().chunks(1).collect();
    assert_eq!(redact(&secrets, &bytes), "before [redacted] after");
}

#[test]
fn encoded_forms_are_hidden_at_any_split_and_any_offset() {
    let secrets = SecretValues::new([SECRET]);
    let percent = |upper: bool| -> String {
        let each = |byte: &u8| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(*byte).to_string()
            }
            _ if upper => format!("%{byte:02X}"),
            _ => format!("%{byte:02x}"),
        };
        SECRET.as_bytes().iter().map(each).collect()
    };
    let mut forms = vec![
        STANDARD.encode(SECRET),
        URL_SAFE.encode(SECRET),
        STANDARD.encode(SECRET).trim_end_matches('=').to_owned(),
        percent(true),
        percent(false),
        serde_json::to_string(SECRET).expect("a string").trim_matches('"').to_owned(),
    ];
    for before in ["u:", "u", "", "user:"] {
        for after in ["", "x", "xy", "\n"] {
            forms.push(STANDARD.encode(format!("{before}{SECRET}{after}")));
            forms.push(URL_SAFE.encode(format!("{before}{SECRET}{after}")));
        }
    }
    for form in forms {
        for at in 0..=form.len() {
            let (left, right) = form.as_bytes().split_at(at);
            let shown = redact(&secrets, &[b"<", left, right, b">"]);
            assert!(shown.contains(REDACTED), "{form} split at {at}: {shown}");
            // In base64 8 bytes of the secret are at least 10 whole characters.
            let left_over = shown.replace(REDACTED, "");
            assert!(left_over.len() < 2 + 16, "{form} split at {at}: {shown}");
        }
    }
}

#[test]
fn a_stream_that_ends_within_a_secret_does_not_show_8_bytes_of_it() {
    let secrets = SecretValues::new([SECRET]);
    for length in 0..=SECRET.len() {
        let shown = redact(&secrets, &[b"x", &SECRET.as_bytes()[..length]]);
        assert!(!shows(shown.as_bytes(), SECRET.as_bytes()), "{length}: {shown}");
    }
}

#[test]
fn what_cannot_begin_a_secret_is_not_held_back() {
    let mut redactor = SecretValues::new([SECRET]).redactor();
    let mut shown = Vec::new();
    redactor.push(b"Password: ", |bytes| shown.extend_from_slice(bytes));
    assert_eq!(shown, b"Password: ");
}

#[test]
fn many_secrets_are_all_found() {
    let values: Vec<String> =
        (0..500_u64).map(|n| format!("{:016x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect();
    let secrets = SecretValues::new(&values);
    for value in &values {
        assert_eq!(secrets.hide(&format!("<{value}>")), "<[redacted]>");
    }
    assert_eq!(secrets.hide(&values.join(" ")), vec![REDACTED; 500].join(" "));
}

#[test]
fn secrets_that_overlap_are_hidden_together() {
    let secrets = SecretValues::new(["1234567890ab", "67890abXXXXXXXXXXXX"]);
    let text = b"<1234567890abXXXXXXXXXXXX>";
    for at in 0..text.len() {
        assert_eq!(redact(&secrets, &[&text[..at], &text[at..]]), "<[redacted]>");
    }
}

#[test]
fn of_two_secrets_at_one_place_the_longer_is_hidden() {
    let secrets = SecretValues::new(["abcdef", "abcdefghij"]);
    assert_eq!(
        redact(&secrets, &[b"abcdef", b"ghij abcdef", b"gh abcdef"]),
        "[redacted] [redacted]gh [redacted]"
    );
}

#[test]
fn neighbours_are_hidden_one_by_one() {
    let secrets = SecretValues::new(["abcdef"]);
    assert_eq!(redact(&secrets, &[b"abcdefabc", b"def"]), "[redacted][redacted]");
}

#[test]
fn short_values_and_white_space_around_values_are_ignored() {
    assert!(SecretValues::new(["12345", "", "  abc \n"]).is_empty());
    assert_eq!(SecretValues::new([" abcdef\n"]).hide("xabcdefx"), "x[redacted]x");
}

#[test]
fn text_without_a_secret_is_borrowed() {
    assert!(matches!(SecretValues::new([SECRET]).hide("nothing"), Cow::Borrowed("nothing")));
    assert_eq!(SecretValues::new([SECRET]).hide(&format!("{SECRET}.")), "[redacted].");
}

#[test]
fn debug_text_says_nothing() {
    let secrets = SecretValues::new([SECRET]);
    let mut redactor = secrets.redactor();
    redactor.push(&SECRET.as_bytes()[..20], |_| {});
    assert_eq!(format!("{secrets:?} {redactor:?}"), "SecretValues(..) StreamRedactor(..)");
}

#[test]
fn a_stream_that_repeats_a_secret_without_end_holds_no_more_than_its_length() {
    let mut redactor = SecretValues::new(["aaaaaaaa"]).redactor();
    let mut shown = 0;
    for _ in 0..1000 {
        redactor.push(&[b'a'; 100], |bytes| shown += bytes.len());
        assert!(redactor.held_bytes() < 16, "{}", redactor.held_bytes());
    }
    redactor.finish(|bytes| shown += bytes.len());
    assert_eq!(shown, REDACTED.len());
}

proptest! {
    #[test]
    fn what_is_shown_does_not_depend_on_how_the_stream_is_cut(
        values in prop::collection::vec("[ab]{6,9}", 1..4),
        text in "[abc]{0,60}",
        cuts in prop::collection::vec(0..60_usize, 0..8),
    ) {
        let secrets = SecretValues::new(&values);
        let mut cuts: Vec<_> = cuts.into_iter().map(|at| at.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let chunks: Vec<_> = cuts.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]).collect();
        let shown = redact(&secrets, &chunks);
        for value in &values {
            prop_assert!(!shown.contains(value.as_str()), "{} in {}", value, shown);
        }
        prop_assert_eq!(shown, redact(&secrets, &[text.as_bytes()]));
    }

    #[test]
    fn text_without_a_secret_or_its_beginning_passes_unchanged(text in "[^s]{0,60}", at in 0..60_usize) {
        let at = at.min(text.len());
        let secrets = SecretValues::new(["ssssssss"]);
        prop_assert_eq!(redact(&secrets, &[&text.as_bytes()[..at], &text.as_bytes()[at..]]), text);
    }
}
