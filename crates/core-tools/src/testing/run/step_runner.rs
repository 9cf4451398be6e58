//! Runs one step and reads its results while it runs.

use super::event_file::ReporterEventFile;
use super::xml_reports;
use crate::ci::Commands;
use crate::ci::project::Project;
use crate::testing::error::TestError;
use crate::testing::parse::{IgnoreLines, LineParser};
use crate::testing::plan::{TestResultSource, TestStep};
use crate::testing::results::{TestCase, TestProcessReport, TestResults, TestStatus};
use crate::testing::runner::TestRunner;
use crate::testing::target::TestTarget;
use crate::testing::verdict::{StepVerdict, TestStepRun};
use crate::workspace::Workspace;
use process_runner::{Command, LeftoverPolicy, Limits, Output, Running, Stream, clean};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The longest line of a runner's output, in bytes: nextest puts all that a test printed into one.
const MAX_LINE_BYTES: usize = 4 << 20;
/// The number of bytes of each stream that are captured.
const CAPTURE_BYTES: usize = 256 << 10;
/// A test that fails so long before the time limit, or later, counts as ended by it: runners report the tests
/// that they end themselves when they are asked to stop.
const LIMIT_MARGIN: Duration = Duration::from_millis(30);
/// The time between two looks at a running step.
const INTERVAL: Duration = Duration::from_millis(250);
/// The time by which the times of files lag behind the clock: the kernel takes them from its last tick.
const FILE_TIME_LAG: Duration = Duration::from_millis(20);

/// Runs one step of a run.
pub(super) struct StepRunner<'a> {
    pub(super) commands: &'a Commands,
    pub(super) target: &'a TestTarget,
    /// The variables that the request sets.
    pub(super) env: &'a BTreeMap<String, String>,
    /// The folder of reports.
    pub(super) reports: &'a Workspace,
    /// The time limit of the whole run.
    pub(super) run_limit: Duration,
    /// The rest of that limit.
    pub(super) remaining: Duration,
    pub(super) cancel: &'a CancellationToken,
}

/// The parser of a running step and its results, shared with the callback that reads the lines of its output.
#[derive(Clone)]
struct LiveTestResults(Arc<Mutex<TestStepParse>>);

/// The reader of a running step's output: its parser and the results so far.
struct TestStepParse {
    parser: Box<dyn LineParser>,
    results: TestResults,
}

impl LiveTestResults {
    fn lock(&self) -> MutexGuard<'_, TestStepParse> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes parser and results out, after the last line.
    fn take(&self) -> TestStepParse {
        let live = &mut *self.lock();
        TestStepParse {
            parser: std::mem::replace(&mut live.parser, Box::new(IgnoreLines)),
            results: std::mem::take(&mut live.results),
        }
    }
}

impl StepRunner<'_> {
    /// Runs a step to its end, or to the time limit. `on_progress` sees the results from time to time.
    pub(super) async fn run(
        &self,
        mut step: TestStep,
        on_progress: &impl Fn(&TestResults),
    ) -> Result<StepVerdict, TestError> {
        let live = LiveTestResults(Arc::new(Mutex::new(TestStepParse {
            parser: step.source.take_parser(),
            results: TestResults::of_requested(self.requested_name()),
        })));
        // Known only once the program runs; the callback is needed before.
        let limit_at = Arc::new(OnceLock::new());
        let command = self.command(&step, &live, &limit_at)?;
        let started = SystemTime::now();
        let running = match self.commands.runner().start(command).await {
            Ok(running) => running,
            Err(process_runner::Error::Spawn(error)) => {
                return Ok(StepVerdict::not_started(self.target.runner, error));
            }
            Err(error) => return Err(TestError::Command(error.into())),
        };
        let mut events = step.source.reads_events().then(ReporterEventFile::default);
        let output = self.wait(running, &live, &limit_at, events.as_mut(), on_progress).await?;
        let TestStepParse { mut parser, mut results } = live.take();
        if let Some(events) = &mut events {
            events.read(self.reports, parser.as_mut(), &mut results);
            events.finish(parser.as_mut(), &mut results);
        }
        self.read_xml_reports(&step.source, started, &mut results)?;
        parser.finish(&mut results);
        let folder = self.target.project.folder().to_absolute();
        let run = TestStepRun {
            runner: self.target.runner,
            step: &step,
            folder: &folder,
            run_limit: self.run_limit,
        };
        Ok(StepVerdict::new(&run, results, &output))
    }

    /// Returns the command of a step, whose output is read as far as it has results.
    fn command(
        &self,
        step: &TestStep,
        live: &LiveTestResults,
        limit_at: &Arc<OnceLock<Instant>>,
    ) -> Result<Command, TestError> {
        let command = self.commands.command_in(&step.program, self.target.project.folder())?;
        // A runner that dies cannot end what it has started, and a test must not leave anything behind.
        let limits = Limits::default()
            .timeout(self.remaining)
            .capture(CAPTURE_BYTES)
            .max_line(MAX_LINE_BYTES)
            .leftovers(LeftoverPolicy::KillAll);
        let mut command = command
            .args(step.arguments.iter())
            // Before those of the step, without which there is no report.
            .envs(self.env.iter().map(|(name, value)| (name.as_str(), value.as_str())))
            .envs(step.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())))
            .limits(limits)
            .cancel(self.cancel.clone());
        for addition in &step.additions {
            let requested = self.env.get(addition.name()).map(String::as_str);
            let inherited = requested.or_else(|| self.commands.inherited_variable(addition.name()));
            command = command.env(addition.name(), addition.value(inherited));
        }
        if let Some(environment) = &step.virtual_environment {
            command = self.activate(command, environment);
        }
        if matches!(step.source, TestResultSource::MergedOutput(_)) {
            command = command.merge_stderr();
        }
        if step.source.reads_stdout() {
            let (live, limit_at) = (live.clone(), Arc::clone(limit_at));
            command = command.on_line(move |stream, line| {
                let TestStepParse { parser, results } = &mut *live.lock();
                results.limit_reached |= limit_at.get().is_some_and(|limit| Instant::now() >= *limit);
                match stream {
                    Stream::Stdout => parser.line(&clean(&line.text()), results),
                    Stream::Stderr => parser.error_line(&clean(&line.text()), results),
                }
            });
        }
        Ok(command)
    }

    /// Sets what `activate` of a virtual environment sets, unless the request sets it.
    fn activate(&self, mut command: Command, environment: &Path) -> Command {
        let variable = |name: &str| {
            let requested = self.env.get(name).map(String::as_str);
            requested.or_else(|| self.commands.inherited_variable(name))
        };
        if !self.env.contains_key("VIRTUAL_ENV") {
            command = command.env("VIRTUAL_ENV", environment);
        }
        let programs = environment.join(if cfg!(windows) { "Scripts" } else { "bin" });
        let others = variable("PATH").map(std::env::split_paths);
        let folders = std::iter::once(programs).chain(others.into_iter().flatten());
        // A folder whose name has the separator cannot be in the variable.
        match std::env::join_paths(folders) {
            Ok(path) => command.env("PATH", path),
            Err(_) => command,
        }
    }

    /// Waits for the end of a step, and reads its events meanwhile.
    async fn wait(
        &self,
        mut running: Running,
        live: &LiveTestResults,
        limit_at: &OnceLock<Instant>,
        mut events: Option<&mut ReporterEventFile>,
        on_progress: &impl Fn(&TestResults),
    ) -> Result<Output, TestError> {
        let mut ticks = tokio::time::interval_at(Instant::now() + INTERVAL, INTERVAL);
        // The limit counts from the program's own start, which may be a while ago.
        let remaining = self.remaining.saturating_sub(LIMIT_MARGIN).saturating_sub(running.elapsed());
        let deadline = tokio::time::sleep(remaining);
        let _ = limit_at.set(Instant::now() + remaining);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                () = running.finished() => break,
                () = &mut deadline, if !deadline.is_elapsed() => {
                    let TestStepParse { parser, results } = &mut *live.lock();
                    // What was written before the limit must be read before the results know of it.
                    if let Some(events) = &mut events {
                        events.read(self.reports, parser.as_mut(), results);
                    }
                    results.limit_reached = true;
                }
                // Reporters write their events into a file, and a file does not wake anyone.
                _ = ticks.tick() => {
                    let TestStepParse { parser, results } = &mut *live.lock();
                    if let Some(events) = &mut events {
                        events.read(self.reports, parser.as_mut(), results);
                    }
                    on_progress(results);
                }
            }
        }
        running.wait().await.map_err(|error| TestError::Command(error.into()))
    }

    /// Reads the XML reports that the step has written, if its results are there.
    fn read_xml_reports(
        &self,
        source: &TestResultSource,
        started: SystemTime,
        results: &mut TestResults,
    ) -> Result<(), TestError> {
        match source {
            TestResultSource::Xml => {
                let folder = Project::new(self.reports.locate(".")?);
                let reports = xml_reports::read_folder(&folder, SystemTime::UNIX_EPOCH, results);
                results.report_is_missing = reports == 0 && self.target.runner.always_writes_report();
            }
            TestResultSource::XmlAfterStdout(_) => {
                let folder = Project::new(self.reports.locate(".")?);
                let mut from_xml = TestResults::of_requested(self.requested_name());
                xml_reports::read_folder(&folder, SystemTime::UNIX_EPOCH, &mut from_xml);
                if from_xml.counts.total() > 0 && from_xml.problems.is_empty() {
                    add_limits_and_signals(&results.tests, &mut from_xml.tests);
                    *results = from_xml;
                }
            }
            TestResultSource::ProcessEvents { xml_of: Some(runner) } => {
                let folder = Project::new(self.reports.locate(".")?);
                let mut report = TestProcessReport {
                    runner: Some(runner.name().to_owned()),
                    ..TestProcessReport::default()
                };
                xml_reports::read_folder(&folder, SystemTime::UNIX_EPOCH, &mut report.results);
                if report.results.counts.total() > 0 || !report.results.problems.is_empty() {
                    results.processes.push(report);
                }
            }
            TestResultSource::XmlInProject(folders) => {
                // Reports of earlier runs are in the same folders.
                let since = started.checked_sub(FILE_TIME_LAG).unwrap_or(started);
                for folder in xml_reports::report_folders(&self.target.project, folders) {
                    xml_reports::read_folder(&folder, since, results);
                }
            }
            TestResultSource::Stdout(_)
            | TestResultSource::MergedOutput(_)
            | TestResultSource::Events
            | TestResultSource::ProcessEvents { xml_of: None }
            | TestResultSource::ExitCode => {}
        }
        Ok(())
    }

    /// Returns the name that one of the executed tests must have, where the runner selects by a pattern.
    fn requested_name(&self) -> Option<String> {
        let runner = self.target.runner;
        let name = self.target.filter.name.clone().filter(|_| runner.selects_by_pattern())?;
        // Go writes the names of its subtests so.
        Some(if runner == TestRunner::Go { name.replace(' ', "_") } else { name })
    }
}

/// Adds to `report`, which knows only of failures, what the lines of the output say of a limit or a signal.
fn add_limits_and_signals(printed: &[TestCase], report: &mut [TestCase]) {
    let ended =
        printed.iter().filter(|test| matches!(test.status, TestStatus::TimedOut | TestStatus::Errored));
    let ended: HashMap<_, _> = ended.map(|test| (test.name.as_str(), test)).collect();
    for test in report.iter_mut().filter(|test| test.status == TestStatus::Failed) {
        let Some(end) = ended.get(test.name.as_str()) else { continue };
        test.status = end.status;
        let parts = end.error.iter().chain(&test.error).map(String::as_str);
        test.error = Some(parts.collect::<Vec<_>>().join("\n"));
    }
}
