//! Reading reports that a runner wrote in another run.

use super::parse::{EventsParser, GoParser, LibtestParser, LineParser, NextestParser, TapParser, read_xml};
use super::results::{TestCase, TestResults, TestRunProblem};

/// A format that test runners write for machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReportFormat {
    /// `JUnit`'s XML in any of its dialects, and Visual Studio's TRX.
    Junit,
    /// The Test Anything Protocol, 12 to 14.
    Tap,
    /// `go test -json`.
    GoJson,
    /// The output of `cargo test`, with or without `--message-format=json`.
    Libtest,
    /// `cargo nextest run --message-format libtest-json-plus`.
    NextestJson,
    /// The events that the reporters of this crate write: a JSON object a line.
    Events,
}

impl ReportFormat {
    /// All formats.
    pub const ALL: [Self; 6] =
        [Self::Junit, Self::Tap, Self::GoJson, Self::Libtest, Self::NextestJson, Self::Events];
}

/// The content of a report that a runner wrote.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ParsedReport {
    /// The tests, in the order of the report.
    pub tests: Vec<TestCase>,
    /// The problems of the report: it breaks off, or contradicts itself.
    pub problems: Vec<TestRunProblem>,
}

/// Reads a report that a runner wrote.
///
/// At most 20,000 tests and 8 MiB of their messages are kept, failures before successes. No report makes this
/// fail: what cannot be read is a problem, or is left out.
///
/// ```
/// use core_tools::testing::{ReportFormat, TestStatus, read_report};
///
/// let report = read_report(ReportFormat::Tap, b"1..2\nok 1 - adds\nnot ok 2 - divides\n");
/// assert_eq!((report.tests[1].name.as_str(), report.tests[1].status), ("divides", TestStatus::Failed));
/// assert!(report.problems.is_empty());
/// ```
pub fn read_report(format: ReportFormat, report: &[u8]) -> ParsedReport {
    let mut results = TestResults::default();
    let mut parser: Box<dyn LineParser> = match format {
        ReportFormat::Junit => {
            read_xml(report, &mut results);
            return results.into();
        }
        ReportFormat::Tap => Box::new(TapParser::default()),
        ReportFormat::GoJson => Box::new(GoParser::default()),
        ReportFormat::Libtest => Box::new(LibtestParser::default()),
        ReportFormat::NextestJson => Box::new(NextestParser::default()),
        ReportFormat::Events => Box::new(EventsParser),
    };
    // A report of another program may have any encoding, and a wrong byte must not hide the other lines.
    for line in String::from_utf8_lossy(report).lines() {
        parser.line(line, &mut results);
    }
    parser.finish(&mut results);
    results.into()
}

impl From<TestResults> for ParsedReport {
    fn from(results: TestResults) -> Self {
        Self { tests: results.tests, problems: results.problems }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Pieces of every format, in any order and beside anything else.
    fn report() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("ok 1 - a\n".to_owned()),
            Just("not ok 2 # SKIP\n  ---\n  duration_ms: 1\n  ...\n".to_owned()),
            Just("1..18446744073709551615\n".to_owned()),
            Just("running 18446744073709551615 tests\ntest a::b ... ".to_owned()),
            Just("FAILED\nfailures:\n---- a::b stdout ----\n".to_owned()),
            Just("test result: FAILED. 18446744073709551615 passed; 1 failed; 2 ignored; 0\n".to_owned()),
            Just("{\"Action\":\"fail\",\"Package\":\"p\",\"Test\":\"A/b\",\"Elapsed\":1e308}\n".to_owned()),
            Just(
                "{\"type\":\"suite\",\"event\":\"started\",\"test_count\":18446744073709551615}\n".to_owned()
            ),
            Just(
                "{\"type\":\"test\",\"event\":\"failed\",\"name\":\"a$b\",\"stdout\":\"panicked at x:1\"}\n"
                    .to_owned()
            ),
            Just(
                "<testsuite tests=\"18446744073709551615\" failures=\"18446744073709551615\" errors=\"1\">"
                    .to_owned()
            ),
            Just("<testcase name=\"a\" time=\"1e999\"><failure message=\"m\">&#x1F600;<![CDATA[".to_owned()),
            Just("]]></failure><skipped message=\"Unable to find\"/></testcase></testsuite>".to_owned()),
            "\\PC{0,20}",
            "[<>&;\"{}:,#\n 0-9a-z]{0,20}",
        ];
        proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn no_report_makes_it_panic_or_find_more_than_there_can_be(report in report()) {
            for format in ReportFormat::ALL {
                let parsed = read_report(format, report.as_bytes());
                prop_assert!(parsed.tests.len() <= report.len());
            }
        }

        #[test]
        fn what_breaks_off_anywhere_is_read_up_to_there(report in report(), at in 0_usize..500) {
            let bytes = report.as_bytes();
            for format in ReportFormat::ALL {
                let _ = read_report(format, &bytes[..at.min(bytes.len())]);
            }
        }
    }
}
