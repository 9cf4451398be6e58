//! From what was found and how the runner ended to the verdict. The exit code outranks every report.

use super::found::Found;
use super::report::{Problem, ProblemKind, Status, TestCase};
use process_runner::{Output, Termination, signal_name};
use std::time::Duration;

/// How the runner's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Exited(u32),
    Signaled(i32),
    TimedOut(Duration),
    Cancelled,
    Unknown,
}

impl Ending {
    pub(super) fn of(output: &Output) -> Self {
        match output.termination {
            Termination::Exited { code } => Self::Exited(code),
            Termination::Signaled { signal, .. } => Self::Signaled(signal),
            Termination::TimedOut { after, .. } => Self::TimedOut(after),
            Termination::Cancelled { .. } => Self::Cancelled,
            _ => Self::Unknown,
        }
    }
}

/// What one runner's exit codes mean beyond 0 and not 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExitCodes {
    /// No test was selected.
    pub(super) no_tests: Option<u32>,
    /// The exit code is the verdict on all that ran: one not 0 without a failed test is a contradiction.
    pub(super) only: bool,
}

/// What is wrong with the run as a whole, if anything is. Ends the tests that have not ended.
pub(super) fn judge(found: &mut Found, ending: Ending, codes: ExitCodes) -> Option<Problem> {
    use ProblemKind as Kind;
    let unfinished = match ending {
        Ending::TimedOut(_) => Some((Status::TimedOut, "it was running when the time limit ended the run")),
        Ending::Cancelled => Some((Status::Errored, "it was running when the run was cancelled")),
        _ if found.ended == Some(true) => None,
        _ => Some((Status::Errored, "it was running when its process ended")),
    };
    let names: Vec<_> = found.running.drain(..).collect();
    let running = names.len();
    if let Some((status, error)) = unfinished {
        for name in &names {
            found.push(TestCase { error: Some(error.to_owned()), ..TestCase::new(name.as_str(), status) });
        }
    }
    let ended_early = found.ended == Some(false);
    match ending {
        Ending::TimedOut(after) => {
            let message = format!("Test runner timed out after {}s", seconds(after));
            return Some(Problem::new(Kind::TimedOut, message));
        }
        Ending::Cancelled => return Some(Problem::new(Kind::Cancelled, "the run was cancelled")),
        Ending::Signaled(signal) => {
            let name = signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned);
            return Some(Problem::new(Kind::Crashed, format!("the runner was ended by {name}")));
        }
        Ending::Unknown => {
            return Some(Problem::new(Kind::Crashed, "how the runner ended is not known"));
        }
        Ending::Exited(_) => {}
    }
    if let Some(problem) = found.problems.iter().min_by_key(|problem| problem.kind) {
        let same = found.problems.iter().filter(|other| other.kind == problem.kind).count() - 1;
        let mut problem = problem.clone();
        if same > 0 {
            problem.message.push_str(&format!(" (and {same} more)"));
        }
        return Some(problem);
    }
    let Ending::Exited(code) = ending else { return None };
    if found.diagnostics.iter().any(|diagnostic| diagnostic.severity == "error") {
        return Some(Problem::new(
            Kind::CompileError,
            "the project or its tests do not compile; see diagnostics",
        ));
    }
    let counts = found.counts;
    if code != 0 && codes.no_tests == Some(code) && counts.total() == counts.skipped {
        return Some(no_tests(counts.skipped));
    }
    if ended_early || (running > 0 && found.ended != Some(true)) {
        let message = format!("the tests' process ended with exit code {code} before the tests had ended");
        return Some(Problem::new(Kind::Crashed, message));
    }
    if code == 0 && counts.failed > 0 {
        let message =
            format!("the runner's exit code is 0, but its own report has {} failed tests", counts.failed);
        return Some(Problem::new(Kind::Mismatch, message));
    }
    if let Some(declared) = found.declared.filter(|declared| *declared != counts) {
        let message = format!("the runner's summary says {declared}; its report of each test says {counts}");
        return Some(Problem::new(Kind::Mismatch, message));
    }
    if code != 0 && counts.failed == 0 && !codes.only {
        let message = if counts.total() == 0 {
            format!("the runner failed with exit code {code} and reported no test")
        } else {
            format!(
                "the runner's exit code is {code}, though none of the {} tests it reported failed",
                counts.total()
            )
        };
        return Some(Problem::new(Kind::RunnerFailed, message));
    }
    if counts.passed + counts.failed == 0 {
        return Some(no_tests(counts.skipped));
    }
    if code == 0 && counts.failed == 0 {
        let planned = found.expected.filter(|_| found.planned).unwrap_or_default();
        if let Some(name) = names.first() {
            let message = format!("the runner ended with exit code 0 before its test `{name}` had ended");
            return Some(Problem::new(Kind::Crashed, message));
        }
        if planned > counts.total() {
            let message = format!("{planned} tests were planned and {} reported", counts.total());
            return Some(Problem::new(Kind::Crashed, message));
        }
    }
    if let Some(wanted) = found.wanted.as_ref().filter(|_| !found.borne && counts.failed == 0) {
        let message = format!("none of the {} tests that were executed is named `{wanted}`", counts.passed);
        return Some(Problem::new(Kind::NoTests, message));
    }
    None
}

fn no_tests(skipped: u64) -> Problem {
    let message = match skipped {
        0 => "no test was executed: there is none, or none that `test_path` names".to_owned(),
        1 => "no test was executed: the only one is skipped".to_owned(),
        skipped => format!("no test was executed: all {skipped} are skipped"),
    };
    Problem::new(ProblemKind::NoTests, message)
}

/// Whole seconds as such, other times with what is behind the point.
fn seconds(time: Duration) -> String {
    if time.subsec_millis() == 0 { time.as_secs().to_string() } else { time.as_secs_f64().to_string() }
}

#[cfg(test)]
mod tests {
    use super::super::found::Counts;
    use super::*;

    fn kind(found: &mut Found, code: u32) -> Option<ProblemKind> {
        judge(found, Ending::Exited(code), ExitCodes::default()).map(|problem| problem.kind)
    }

    fn found(statuses: &[Status]) -> Found {
        let mut found = Found::default();
        for status in statuses {
            found.push(TestCase::new("test", *status));
        }
        found
    }

    #[test]
    fn no_test_executed_is_never_a_pass() {
        assert_eq!(kind(&mut found(&[]), 0), Some(ProblemKind::NoTests));
        assert_eq!(kind(&mut found(&[Status::Skipped]), 0), Some(ProblemKind::NoTests));
        assert_eq!(kind(&mut found(&[Status::Passed]), 0), None);
    }

    #[test]
    fn the_exit_code_outranks_the_report() {
        assert_eq!(kind(&mut found(&[Status::Passed]), 1), Some(ProblemKind::RunnerFailed));
        assert_eq!(kind(&mut found(&[Status::Failed]), 0), Some(ProblemKind::Mismatch));
        assert_eq!(kind(&mut found(&[Status::Failed]), 1), None);
    }

    #[test]
    fn a_summary_that_disagrees_is_said_aloud() {
        let mut found = found(&[Status::Passed]);
        found.declare(Counts { passed: 2, failed: 0, skipped: 0 });
        assert_eq!(kind(&mut found, 0), Some(ProblemKind::Mismatch));
    }

    #[test]
    fn a_test_without_an_end_is_a_crash_whatever_the_exit_code() {
        let mut found = found(&[Status::Passed]);
        found.ended = Some(false);
        found.start("last");
        assert_eq!(kind(&mut found, 0), Some(ProblemKind::Crashed));
        assert_eq!(found.tests[1].status, Status::Errored);
    }

    #[test]
    fn the_time_limit_is_told_in_seconds_and_names_what_was_running() {
        let mut found = found(&[Status::Passed]);
        found.start("hangs");
        let problem = judge(&mut found, Ending::TimedOut(Duration::from_secs(120)), ExitCodes::default());
        assert_eq!(problem.unwrap().message, "Test runner timed out after 120s");
        assert_eq!((found.tests[1].name.as_str(), found.tests[1].status), ("hangs", Status::TimedOut));
    }
}
