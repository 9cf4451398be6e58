//! Text of any kind: nothing makes the redactor panic, and masking twice is masking once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use redaction::{RedactionOptions, Redactor};
use std::sync::LazyLock;

static REDACTOR: LazyLock<Redactor> =
    LazyLock::new(|| Redactor::new(RedactionOptions::default().values(["plum-orchard-17"])).expect("one value"));

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let once = REDACTOR.redact(&text).into_owned();
    assert_eq!(REDACTOR.redact(&once), once);
    assert!(!once.contains("plum-orchard-17"));
    assert!(REDACTOR.spans(&text).iter().all(|span| text.get(span.clone()).is_some()));
    let _ = REDACTOR.redact_log(&text);
});
