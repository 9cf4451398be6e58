//! Output of compilers: nothing makes the reader panic or keep more than it may.
#![no_main]

use core_tools::ci::Diagnostic;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let found = Diagnostic::from_text(&text);
    assert!(found.len() <= 300);
    assert!(found.iter().all(|diagnostic| diagnostic.message.len() <= 8_000));
});
