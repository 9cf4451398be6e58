//! The recorded outline of a file of each language, and properties that hold for every text.
#![cfg(feature = "outline")]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use context_compiler::outline::{CodeOutline, outline};
use proptest::prelude::*;
use std::fmt::Write;

const SAMPLES: [(&str, &str); 11] = [
    ("sample.rs", include_str!("outline/sample.rs")),
    ("sample.py", include_str!("outline/sample.py")),
    ("sample.js", include_str!("outline/sample.js")),
    ("sample.ts", include_str!("outline/sample.ts")),
    ("sample.tsx", include_str!("outline/sample.tsx")),
    ("sample.go", include_str!("outline/sample.go")),
    ("Sample.java", include_str!("outline/Sample.java")),
    ("sample.cs", include_str!("outline/sample.cs")),
    ("sample.c", include_str!("outline/sample.c")),
    ("sample.hpp", include_str!("outline/sample.hpp")),
    ("broken.rs", include_str!("outline/broken.rs")),
];

fn report(outline: &CodeOutline) -> String {
    let mut report = outline.text.clone();
    for symbol in &outline.symbols {
        let exported = if symbol.exported { "exported " } else { "" };
        let _ = write!(report, "\n=== {exported}{:?} {} at {}", symbol.kind, symbol.name, symbol.line);
    }
    report
}

#[test]
fn each_language_keeps_its_signatures_and_their_documentation() {
    for (path, text) in SAMPLES {
        insta::with_settings!({ snapshot_suffix => path, omit_expression => true }, {
            insta::assert_snapshot!(report(&outline(path, text).unwrap()));
        });
    }
}

#[test]
fn an_item_that_was_not_understood_keeps_its_text() {
    let (path, text) = SAMPLES[10];
    let short = outline(path, text).unwrap().text;
    assert!(short.contains("let = str![;\n    a\n}"), "{short}");
    assert!(!short.contains("a + 1") && !short.contains('3'), "{short}");
}

#[test]
fn items_in_items_without_end_are_cut_off_and_not_followed_down_the_stack() {
    for (path, open) in [("a.rs", "mod a {"), ("a.js", "(()=>{"), ("a.cpp", "namespace a {"), ("a.py", "((")]
    {
        let text = open.repeat(40_000);
        // Within the parser's budget or not, on the small stack of a test's thread.
        if let Some(outline) = outline(path, &text) {
            assert!(outline.text.len() <= text.len());
        }
    }
}

#[test]
fn what_has_no_outline_says_so() {
    assert_eq!(outline("notes.md", "# Notes"), None);
    assert_eq!(outline("large.rs", &"fn a() {}\n".repeat(200_000)), None);
    assert!(outline("empty.rs", "").unwrap().complete);
}

/// A sample with pieces replaced and removed, as code is while it is edited.
fn damaged() -> impl Strategy<Value = (&'static str, String)> {
    let edits = prop::collection::vec(
        (any::<prop::sample::Index>(), 0..60_usize, prop::option::of("[{}()\\[\\];\"'/*# \n\r\tx🦀]{0,6}")),
        1..12,
    );
    (prop::sample::select(&SAMPLES[..]), edits).prop_map(|((path, text), edits)| {
        let mut text: Vec<char> = text.chars().collect();
        for (at, length, insert) in edits {
            let at = at.index(text.len() + 1);
            let end = (at + length).min(text.len());
            text.splice(at..end, insert.unwrap_or_default().chars());
        }
        (path, text.into_iter().collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn an_outline_of_any_text_is_no_longer_than_it_and_always_the_same((path, text) in damaged()) {
        if let Some(first) = outline(path, &text) {
            prop_assert!(first.text.len() <= text.len());
            prop_assert_eq!(first.complete, first.text == text);
            for symbol in &first.symbols {
                prop_assert!(text.contains(&symbol.name) && symbol.line <= text.lines().count().max(1));
            }
            prop_assert_eq!(outline(path, &text), Some(first));
        }
    }
}
