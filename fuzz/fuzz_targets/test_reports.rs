//! The reports of test runners: nothing makes a parser panic, or take time or memory beyond what it reads.
#![no_main]

use core_tools::testing::{ReportFormat, read_report};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for format in ReportFormat::ALL {
        let tests = read_report(format, bytes).tests;
        assert!(tests.len() <= bytes.len());
        let kept: usize = tests.iter().map(|test| test.name.len()).sum();
        assert!(kept <= 64 * bytes.len() + 2_000, "{format:?}: {kept} bytes of names of {}", bytes.len());
    }
});
