//! Command lines as models write them: nothing makes the parser panic, and what it takes has a program.
#![no_main]

use libfuzzer_sys::fuzz_target;
use process_runner::CommandLine;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(parsed) = CommandLine::parse(&text) {
        assert!(!parsed.program.is_empty() || text.contains(['"', '\'']));
    }
});
