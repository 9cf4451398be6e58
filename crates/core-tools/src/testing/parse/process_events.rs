//! The events of several processes in one file, and the reports that others print.

use super::bun_output::BunOutput;
use super::deno_output::DenoOutput;
use super::events::EventsParser;
use super::failure_line::is_failure_line;
use super::go_output::GoOutput;
use super::libtest_output::LibtestOutput;
use super::line_parser::LineParser;
use super::phpunit_output::PhpunitOutput;
use super::printed_summary::printed_summary;
use super::tap_output::TapOutput;
use crate::testing::results::{TestCounts, TestProcessReport, TestResults};
use serde::Deserialize;

/// The number of processes whose reports are kept.
const MAX_PROCESSES: usize = 1_000;

/// The number of printed summaries that are kept.
const MAX_SUMMARIES: usize = 1_000;

/// The number of lines that are kept with which a script says by hand that a test failed.
const MAX_FAILURE_LINES: usize = 10;

/// The parser of a project's own test command: the events of each process that holds a reporter of ours, and
/// TAP and the text of `go test`, libtest, `deno test`, `bun test` and `PHPUnit` wherever they appear on the output.
#[derive(Default)]
pub(crate) struct ProcessEvents {
    processes: Vec<ReportedTestProcess>,
    tap: TapOutput,
    go: GoOutput,
    libtest: LibtestOutput,
    deno: DenoOutput,
    bun: BunOutput,
    phpunit: PhpunitOutput,
}

/// A process that has written events.
struct ReportedTestProcess {
    id: String,
    report: TestProcessReport,
}

/// The part of an event that says whose it is.
#[derive(Deserialize)]
struct ReporterEventOwner {
    #[serde(default)]
    run: String,
    event: String,
}

/// An event about a process itself.
#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum ReporterProcessEvent {
    Process {
        program: String,
        arguments: Vec<String>,
        folder: String,
        script: Option<String>,
        /// The id of the process that started it.
        parent: Option<u64>,
    },
    /// A test runner was found in the process, and reports.
    Runner {
        runner: String,
    },
    /// A test runner was found in the process, and cannot report.
    Uninstrumented {
        why: String,
    },
    Exit {
        code: i64,
    },
}

impl ProcessEvents {
    /// Returns true if a process that has written events has started the one that an event is of.
    fn has_started(&self, event: &str) -> bool {
        let Ok(ReporterProcessEvent::Process { parent: Some(parent), .. }) = serde_json::from_str(event)
        else {
            return false;
        };
        let parent = parent.to_string();
        self.processes.iter().any(|process| process.id.split('-').next() == Some(parent.as_str()))
    }

    fn process(&mut self, id: &str) -> Option<&mut TestProcessReport> {
        // The latest one writes most.
        let known = self.processes.iter().rposition(|process| process.id == id);
        let index = match known {
            Some(index) => index,
            None if self.processes.len() < MAX_PROCESSES => {
                self.processes
                    .push(ReportedTestProcess { id: id.to_owned(), report: TestProcessReport::default() });
                self.processes.len() - 1
            }
            None => return None,
        };
        self.processes.get_mut(index).map(|process| &mut process.report)
    }
}

impl LineParser for ProcessEvents {
    fn line(&mut self, line: &str, results: &mut TestResults) {
        // Every format looks at every line, because a script may run several runners one after the other.
        self.tap.line(line);
        self.go.line(line);
        self.libtest.line(line);
        self.deno.line(line);
        self.bun.line(line);
        self.phpunit.line(line);
        add_summary(line, results);
    }

    fn error_line(&mut self, line: &str, results: &mut TestResults) {
        self.bun.error_line(line);
        add_summary(line, results);
    }

    fn event(&mut self, line: &str, results: &mut TestResults) {
        let Ok(ReporterEventOwner { run, event }) = serde_json::from_str::<ReporterEventOwner>(line) else {
            return EventsParser.line(line, results);
        };
        let is_started_by_another = event == "process" && self.has_started(line);
        let Some(report) = self.process(&run) else {
            results.truncated = true;
            return;
        };
        if !["process", "runner", "uninstrumented", "exit"].contains(&event.as_str()) {
            report.results.limit_reached = results.limit_reached;
            let before = report.results.counts;
            EventsParser.line(line, &mut report.results);
            // For those who watch the run. At its end the processes are judged one by one.
            results.counts += difference(report.results.counts, before);
            return;
        }
        match serde_json::from_str(line) {
            Ok(ReporterProcessEvent::Process { program, arguments, folder, script, .. }) => {
                (report.program, report.arguments, report.folder) = (program, arguments, folder);
                report.script = script;
                report.is_started_by_another = is_started_by_another;
            }
            Ok(ReporterProcessEvent::Runner { runner }) => report.runner = Some(runner),
            Ok(ReporterProcessEvent::Uninstrumented { why }) => report.uninstrumented = Some(why),
            // The system keeps the lowest eight bits of an exit code, and only they can be compared.
            Ok(ReporterProcessEvent::Exit { code }) => report.exit_code = u32::try_from(code & 0xff).ok(),
            // It is told like any other line of a report that cannot be read.
            Err(_) => EventsParser.line(line, results),
        }
    }

    fn finish(&mut self, results: &mut TestResults) {
        // The counts were for the display only. The verdict adds up the processes, and must not count a test twice.
        results.counts = TestCounts::default();
        let processes = std::mem::take(&mut self.processes);
        results.processes.extend(processes.into_iter().map(|process| process.report));
        self.tap.finish(results);
        results.processes.extend(std::mem::take(&mut self.go).report());
        results.processes.extend(std::mem::take(&mut self.libtest).report());
        let has_xml_of = |runner: &str| {
            let is_of = |process: &&TestProcessReport| {
                process.is_printed() && process.runner.as_deref() == Some(runner)
            };
            results.processes.iter().any(|process| is_of(&process))
        };
        let (has_xml_of_deno, has_xml_of_phpunit) = (has_xml_of("deno"), has_xml_of("phpunit"));
        std::mem::take(&mut self.deno).finish(has_xml_of_deno, results);
        std::mem::take(&mut self.phpunit).finish(has_xml_of_phpunit, results);
        std::mem::take(&mut self.bun).finish(results);
    }
}

fn add_summary(line: &str, results: &mut TestResults) {
    if results.summaries.len() < MAX_SUMMARIES {
        results.summaries.extend(printed_summary(line));
    }
    if results.failure_lines.len() < MAX_FAILURE_LINES && is_failure_line(line) {
        results.failure_lines.push(line.trim().to_owned());
    }
}

fn difference(now: TestCounts, before: TestCounts) -> TestCounts {
    TestCounts {
        passed: now.passed.saturating_sub(before.passed),
        failed: now.failed.saturating_sub(before.failed),
        skipped: now.skipped.saturating_sub(before.skipped),
    }
}
