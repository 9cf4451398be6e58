//! The text of `bun test` among anything else that a command prints.

use super::text::append_line;
use crate::testing::results::{
    TestCase, TestCounts, TestProcessReport, TestResults, TestRunProblemKind, TestStatus,
};

/// The number of bytes that are kept of what stands before a failed test.
const MAX_MESSAGE_BYTES: usize = 16 << 10;

/// Finds the results that `bun test` prints for people. It prints its version to standard output, and everything else to
/// standard error, to which its tests print as well.
#[derive(Default)]
pub(super) struct BunOutput {
    /// The number of runs that have begun.
    begun: usize,
    /// The runs as each of the streams tells them.
    stdout: BunStream,
    stderr: BunStream,
}

/// One of the output streams.
#[derive(Default)]
struct BunStream {
    tests: Vec<TestCase>,
    file: Option<String>,
    /// The lines since the last result.
    message: String,
    declared: TestCounts,
    complete: Vec<TestResults>,
}

impl BunOutput {
    /// Reads a line of standard output.
    pub(super) fn line(&mut self, line: &str) {
        if line.starts_with("bun test v") && line.ends_with(')') {
            self.begun += 1;
        }
        if self.begun > 0 {
            self.stdout.line(line);
        }
    }

    /// Reads a line of standard error.
    pub(super) fn error_line(&mut self, line: &str) {
        if line.starts_with("bun test v") && line.ends_with(')') {
            self.begun += 1;
        }
        self.stderr.line(line);
    }

    /// Adds the report of each run.
    pub(super) fn finish(self, results: &mut TestResults) {
        let Self { begun, mut stdout, mut stderr } = self;
        if begun == 0 {
            return;
        }
        // Each run has printed its version. A run without a summary on either stream was cut off.
        let mut complete = stderr.complete.split_off(0);
        complete.append(&mut stdout.complete);
        for _ in complete.len()..begun {
            let mut cut_off = TestResults::default();
            for test in stderr.tests.drain(..) {
                cut_off.add_test(test);
            }
            cut_off.add_problem(
                TestRunProblemKind::Crashed,
                "`bun test` ended before it printed what its tests came to",
            );
            complete.push(cut_off);
        }
        results.processes.extend(complete.into_iter().map(|results| TestProcessReport {
            runner: Some("bun".to_owned()),
            results,
            ..TestProcessReport::default()
        }));
    }
}

impl BunStream {
    fn line(&mut self, line: &str) {
        if let Some((status, name)) = result(line) {
            let error = status.is_failure().then(|| std::mem::take(&mut self.message).trim().to_owned());
            self.message.clear();
            self.tests.push(TestCase { error, file: self.file.clone(), ..TestCase::new(name, status) });
            return;
        }
        if let Some((count, word)) = line.strip_prefix(' ').and_then(|line| line.trim_start().split_once(' '))
            && let Ok(count) = count.parse::<u64>()
        {
            match word {
                "pass" => self.declared.passed = count,
                "fail" => self.declared.failed = count,
                "skip" | "todo" => self.declared.skipped += count,
                _ => {}
            }
            return;
        }
        if line.starts_with("Ran ") && line.contains(" across ") && line.ends_with(']') {
            return self.run_ended();
        }
        match line.strip_suffix(':').filter(|file| file.contains('.') && !file.contains(' ')) {
            Some(file) => self.file = Some(file.to_owned()),
            None if self.message.len() < MAX_MESSAGE_BYTES => append_line(&mut self.message, line),
            None => {}
        }
    }

    fn run_ended(&mut self) {
        let mut results = TestResults::default();
        let declared = std::mem::take(&mut self.declared);
        for test in self.tests.drain(..) {
            results.add_test(test);
        }
        // For an agent, and with other reporters, bun names the failed tests alone.
        if results.counts.passed == 0 {
            results.counts.passed = declared.passed;
        }
        if results.counts.skipped == 0 {
            results.counts.skipped = declared.skipped;
        }
        results.add_declared(declared);
        (self.file, self.message) = (None, String::new());
        self.complete.push(results);
    }
}

/// Returns the result of `(pass) suite > name [0.05ms]`.
fn result(line: &str) -> Option<(TestStatus, &str)> {
    let (word, name) = line.strip_prefix('(')?.split_once(") ")?;
    let status = match word {
        "pass" => TestStatus::Passed,
        "fail" => TestStatus::Failed,
        "skip" | "todo" => TestStatus::Skipped,
        _ => return None,
    };
    // A name may itself end in brackets, so that only a time is taken off.
    let time = name.rsplit_once(" [").filter(|(_, time)| time.ends_with("ms]") || time.ends_with("s]"));
    Some((status, time.map_or(name, |(name, _)| name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reports(stdout: &str, stderr: &str) -> Vec<TestResults> {
        let (mut bun, mut results) = (BunOutput::default(), TestResults::default());
        stdout.lines().for_each(|line| bun.line(line));
        stderr.lines().for_each(|line| bun.error_line(line));
        bun.finish(&mut results);
        results.processes.into_iter().map(|process| process.results).collect()
    }

    const VERSION: &str = "bun test v1.4.5 (a7733435c)\n";
    const STDERR: &str = "\na.test.js:\n(pass) d > a [0.05ms]\n(skip) d > s\n(todo) d > t\n3 | expect\nerror: why\n(fail) f [0.87ms]\n\n 1 pass\n 1 skip\n 1 todo\n 1 fail\n 1 expect() calls\nRan 4 tests across 1 file. [48.00ms]\n";

    #[test]
    fn each_run_has_its_tests_and_what_a_test_prints_is_none_of_them() {
        let stdout = format!("{VERSION}(pass) forged [1ms]\n{VERSION}");
        let reports = reports(
            &stdout,
            &format!(
                "{STDERR}\nb.test.js:\n(pass) b\n\n 1 pass\n 0 fail\nRan 1 test across 1 file. [2.00ms]\n"
            ),
        );
        assert_eq!(reports.len(), 2);
        assert_eq!(reports[0].counts, TestCounts { passed: 1, failed: 1, skipped: 2 });
        assert_eq!(reports[0].declared, Some(reports[0].counts));
        let failed = reports[0].tests.iter().find(|test| test.status.is_failure()).unwrap();
        assert_eq!((failed.name.as_str(), failed.file.as_deref()), ("f", Some("a.test.js")));
        assert!(failed.error.as_ref().unwrap().contains("error: why"));
        assert_eq!(reports[1].counts, TestCounts { passed: 1, failed: 0, skipped: 0 });
    }

    #[test]
    fn a_run_that_is_cut_off_is_a_crash_and_one_that_names_no_passed_test_counts_them() {
        let cut_off = &reports(VERSION, "\na.test.js:\n(pass) a [0.05ms]\n")[0];
        assert_eq!((cut_off.counts.passed, cut_off.problems[0].kind), (1, TestRunProblemKind::Crashed));
        let quiet = &reports(VERSION, "\n 3 pass\n 0 fail\nRan 3 tests across 1 file. [2.00ms]\n")[0];
        assert_eq!((quiet.counts.passed, quiet.declared), (3, Some(quiet.counts)));
        assert!(reports("", STDERR).is_empty());
    }
}
