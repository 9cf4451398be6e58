//! Private keys in PEM: whole, cut, and in other formats.

use super::{BASE64, random, redactor};
use serde_json::Value;
use std::borrow::Cow;

pub(super) fn key_body() -> Vec<String> {
    (0..8)
        .map(|line| random(100 + line, BASE64, 64))
        .chain([format!("{}==", random(99, BASE64, 10))])
        .collect()
}

fn assert_no_body(redacted: &str) {
    for line in key_body() {
        assert!(!redacted.contains(&line), "{line} is in\n{redacted}");
    }
}

#[test]
fn a_private_key_keeps_its_frame_and_its_number_of_lines() {
    for label in [
        "PRIVATE KEY",
        "RSA PRIVATE KEY",
        "EC PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ] {
        let text = format!(
            "before\n-----BEGIN {label}-----\n{}\n-----END {label}-----\nafter\n",
            key_body().join("\n")
        );
        let redacted = redactor().redact(&text).into_owned();
        assert_no_body(&redacted);
        assert_eq!(redacted.lines().count(), text.lines().count());
        assert!(
            redacted.starts_with(&format!("before\n-----BEGIN {label}-----\n[redacted:private-key]\n")),
            "{redacted}"
        );
        assert!(
            redacted.ends_with(&format!("[redacted:private-key]\n-----END {label}-----\nafter\n")),
            "{redacted}"
        );
    }
}

#[test]
fn half_a_private_key_is_masked_from_the_end_that_is_there() {
    let body = key_body();
    let first = format!("key:\n-----BEGIN PRIVATE KEY-----\n{}", body[..5].join("\n"));
    let cut = &first[..first.len() - 20];
    let last = format!("{}\n-----END PRIVATE KEY-----\nthen text", body[3..].join("\n"));
    for text in [first.as_str(), cut, &last] {
        let redacted = redactor().redact(text).into_owned();
        assert_no_body(&redacted);
        assert!(!redacted.contains(&body[4][..40]), "{redacted}");
    }
    assert!(redactor().redact(&last).ends_with("-----END PRIVATE KEY-----\nthen text"));
}

#[test]
fn a_page_from_the_middle_of_a_private_key_is_masked_line_by_line() {
    for width in [64, 70] {
        let lines: Vec<_> = (0..5).map(|line| random(200 + line, BASE64, width)).collect();
        for (line_end, last) in [("\n", ""), ("\n", "\n"), ("\r\n", "\r\n"), ("\n", "\n[lines 5-9 of 28]\n")]
        {
            let text = lines.join(line_end) + last;
            let masked = ["[redacted:private-key]"; 5].join(line_end) + last;
            assert_eq!(redactor().redact(&text), masked);
        }
    }
}

#[test]
fn long_lines_of_base64_are_no_key_where_anything_else_is_there() {
    let lines: Vec<_> = (0..5).map(|line| random(200 + line, BASE64, 64)).collect();
    let body = lines.join("\n");
    for text in [
        format!("-----BEGIN CERTIFICATE-----\n{body}\n"),
        format!("{body}\n-----END CERTIFICATE-----\n"),
        format!("{body}\nAQAB\n"),
        format!("{body}\n\n{body}\n"),
        format!("image: |\n{body}\n"),
        lines[..2].join("\n"),
        lines.iter().map(|line| format!("  {line}\n")).collect(),
        lines.concat(),
        (0..5).map(|line| random(300 + line, BASE64, 76) + "\n").collect(),
        (0..50).map(|line| random(400 + line, "0123456789abcdef", 64) + "\n").collect(),
        format!("{}\n", "A".repeat(64)).repeat(9),
    ] {
        assert!(matches!(redactor().redact(&text), Cow::Borrowed(_)), "{text}");
    }
}

#[test]
fn a_private_key_is_masked_in_json_in_a_diff_and_in_search_results() {
    let block =
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", key_body().join("\n"));
    let json = serde_json::to_string(&serde_json::json!({ "private_key": block, "n": 1 })).unwrap();
    let redacted = redactor().redact(&json).into_owned();
    assert_no_body(&redacted);
    serde_json::from_str::<Value>(&redacted).expect("still JSON");
    for prefix in ["+", "- ", "src/keys/server.pem:12:", "   12\t", "    "] {
        let text: String = block.lines().map(|line| format!("{prefix}{line}\n")).collect();
        assert_no_body(&redactor().redact(&text));
    }
}

#[test]
fn text_after_the_beginning_of_a_key_that_has_no_end_is_kept() {
    let text = format!(
        "-----BEGIN PRIVATE KEY-----\n{}\nfn main() {{}}\n// and so on\n",
        key_body()[..3].join("\n")
    );
    assert!(redactor().redact(&text).ends_with("\nfn main() {}\n// and so on\n"));
}
