//! Runs the steps of a plan, and makes a report of what they say.

use super::environment::as_in_a_terminal;
use super::found::{Counts, Found, shortened};
use super::parse::{Lines, junit};
use super::plan::{self, REPORTERS};
use super::report::{Problem, ProblemKind, Status, TestCase, TestReport};
use super::runner::Runner;
use super::select::{Choice, TestError, choose};
use super::step::{Reads, Step};
use super::verdict::{Ending, judge};
use crate::ci::project::Project;
use crate::ci::{Commands, Diagnostic};
use crate::workspace::{Kind, Workspace};
use process_runner::{Leftovers, Limits, Output, Stream};
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The longest line of a runner's output, in bytes: nextest puts all that a test printed into one.
const MAX_LINE: usize = 4 << 20;
/// What is kept of what a runner printed, in bytes of each stream.
const KEPT_OUTPUT: usize = 256 << 10;
/// What is shown of it.
const SHOWN_OUTPUT: usize = 8_000;
/// What is shown of one message.
const SHOWN_MESSAGE: usize = 4_000;
/// The longest XML report that is read, in bytes.
const MAX_XML: u64 = 64 << 20;
/// So long before the limit a test that fails is taken to be ended by it: runners report what they end
/// themselves when they are asked to stop.
const BEFORE_LIMIT: Duration = Duration::from_millis(30);
/// How often a running runner is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// Which tests to run, and how long they may take.
#[derive(Clone, Debug)]
pub struct RunTests {
    /// The project's folder, or a file in it. The first root if absent.
    pub project_path: Option<String>,
    /// What to run: a file, a folder, `file::name`, or a test's name or part of it. Everything if absent.
    pub test_path: Option<String>,
    /// The runner, by its name. Found from the project's files if absent.
    pub runner: Option<String>,
    /// The time limit of the whole run.
    pub time_limit: Duration,
    /// Bytes of tests that the report holds; passing ones are left out first.
    pub max_bytes: usize,
}

impl Default for RunTests {
    /// Everything in the first root, within ten minutes, in 40,000 bytes.
    fn default() -> Self {
        Self {
            project_path: None,
            test_path: None,
            runner: None,
            time_limit: Duration::from_secs(600),
            max_bytes: 40_000,
        }
    }
}

/// What one step came to.
struct Ran {
    found: Found,
    problem: Option<Problem>,
    exit_code: Option<u32>,
    output: String,
    /// There is no point in what would follow.
    over: bool,
}

/// Finds the runner, runs it in `commands`' environment and fence, and reports. `said` gets a word on how it
/// goes from time to time.
///
/// Whatever became of the tests is a report, also where the runner is missing, dies or is ended by the time
/// limit; see [`TestReport::success`].
///
/// # Errors
///
/// Nothing could be run: there is no such path, no runner was found, or it cannot select what was asked for.
pub async fn run_tests(
    commands: &Commands,
    request: &RunTests,
    cancel: &CancellationToken,
    said: impl Fn(&str),
) -> Result<TestReport, TestError> {
    let mut choice = choose(
        commands.workspace(),
        request.project_path.as_deref(),
        request.test_path.as_deref(),
        request.runner.as_deref(),
    )?;
    let mut notes = Vec::new();
    if request.runner.is_none()
        && choice.runner == Runner::Cargo
        && has_nextest(commands, &choice, cancel).await
    {
        choice.runner = Runner::Nextest;
        choice.also.insert(0, Runner::Cargo);
    }
    if !choice.also.is_empty() && request.runner.is_none() {
        let names: Vec<_> = choice.also.iter().map(|runner| runner.name()).collect();
        notes.push(format!("the project also fits {}; `runner` chooses", names.join(", ")));
    }
    if choice.runner.only_exit_code() {
        notes.push(format!("of {} only the exit code is known: it is told as one test", choice.runner));
    }
    let temp = commands.report_folder()?;
    let reports = Workspace::new([temp.path()])?;
    for (name, text) in REPORTERS {
        reports.locate(name)?.write(text.as_bytes())?;
    }
    let steps = plan::steps(&choice, temp.path())?;
    let command = steps.iter().map(|step| step.shown.as_str()).collect::<Vec<_>>().join(" && ");
    let started = Instant::now();
    let mut ran: Vec<Ran> = Vec::new();
    for step in steps {
        let rest = request.time_limit.saturating_sub(started.elapsed());
        let before = ran.iter().fold(Counts::default(), |mut sum, ran| {
            sum += ran.found.counts;
            sum
        });
        let say = |found: &Found| said(&progress(before, found));
        let run =
            Run { commands, choice: &choice, reports: &reports, limit: request.time_limit, rest, cancel };
        let one = run.step(step, &say).await?;
        let over = one.over;
        ran.push(one);
        if over {
            break;
        }
    }
    let elapsed = started.elapsed();
    let mut report = combine(choice.runner, ran);
    report.command = commands.mask(&command);
    report.folder = choice.project.0.shown();
    report.duration_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    report.notes.extend(notes);
    let folder = choice.project.0.to_absolute();
    present(&mut report, &folder.to_string_lossy(), |text| commands.mask(text), request.max_bytes);
    Ok(report)
}

async fn has_nextest(commands: &Commands, choice: &Choice, cancel: &CancellationToken) -> bool {
    let Ok(command) = commands.at("cargo", &choice.project.0) else { return false };
    let limits = Limits::default().timeout(Duration::from_secs(10));
    let command = as_in_a_terminal(command, commands.runner())
        .args(["nextest", "--version"])
        .limits(limits)
        .cancel(cancel.clone());
    commands.runner().run(command).await.is_ok_and(|output| output.success())
}

fn progress(mut before: Counts, found: &Found) -> String {
    before += found.counts;
    let of = found.expected.map_or_else(String::new, |expected| format!(" of {expected}"));
    let running = found.running.back().map_or_else(String::new, |name| format!("; running {name}"));
    format!("{}{of} tests done, {} failed{running}", before.total(), before.failed)
}

/// One step, to be run.
struct Run<'a> {
    commands: &'a Commands,
    choice: &'a Choice,
    reports: &'a Workspace,
    limit: Duration,
    rest: Duration,
    cancel: &'a CancellationToken,
}

impl Run<'_> {
    async fn step(&self, mut step: Step, said: &impl Fn(&Found)) -> Result<Ran, TestError> {
        let command = self.commands.at(&step.program, &self.choice.project.0)?;
        let command = as_in_a_terminal(command, self.commands.runner());
        // A runner that dies cannot end what it has started, and a test must not leave anything behind.
        let limits = Limits::default()
            .timeout(self.rest)
            .capture(KEPT_OUTPUT)
            .max_line(MAX_LINE)
            .leftovers(Leftovers::KillAll);
        let mut command = command
            .args(step.arguments.iter())
            .envs(step.environment.iter().map(|(name, value)| (*name, value.as_str())))
            .limits(limits)
            .cancel(self.cancel.clone());
        let live: Arc<Mutex<(Box<dyn Lines>, Found)>> =
            Arc::new(Mutex::new((step.reads.lines(), Found::wanting(self.wanted()))));
        let limit_at: Arc<OnceLock<Instant>> = Arc::default();
        if matches!(step.reads, Reads::Both(_)) {
            command = command.merge_stderr();
        }
        if matches!(step.reads, Reads::Both(_) | Reads::Stdout(_) | Reads::XmlAfter(_)) {
            let (live, limit) = (Arc::clone(&live), Arc::clone(&limit_at));
            command = command.on_line(move |stream, line| {
                if stream == Stream::Stdout {
                    let (lines, found) = &mut *live.lock().unwrap_or_else(PoisonError::into_inner);
                    found.limit_reached |= limit.get().is_some_and(|limit| Instant::now() >= *limit);
                    lines.line(&line.text(), found);
                }
            });
        }
        let begun = SystemTime::now();
        let mut running = match self.commands.runner().start(command).await {
            Ok(running) => running,
            Err(process_runner::Error::Spawn(error)) => return Ok(self.missing(error)),
            Err(error) => return Err(TestError::Command(error.into())),
        };
        let mut tail = Tail::default();
        let mut looks = tokio::time::interval_at(Instant::now() + LOOK, LOOK);
        // The limit counts from the program's own start, which may be a while ago.
        let rest = self.rest.saturating_sub(BEFORE_LIMIT).saturating_sub(running.elapsed());
        let deadline = tokio::time::sleep(rest);
        let _ = limit_at.set(Instant::now() + rest);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                () = running.finished() => break,
                () = &mut deadline, if !deadline.is_elapsed() => {
                    let (lines, found) = &mut *live.lock().unwrap_or_else(PoisonError::into_inner);
                    if matches!(step.reads, Reads::Events) {
                        tail.read(self.reports, lines.as_mut(), found);
                    }
                    found.limit_reached = true;
                }
                _ = looks.tick() => {
                    let (lines, found) = &mut *live.lock().unwrap_or_else(PoisonError::into_inner);
                    if matches!(step.reads, Reads::Events) {
                        tail.read(self.reports, lines.as_mut(), found);
                    }
                    said(found);
                }
            }
        }
        let output = running.wait().await.map_err(|error| TestError::Command(error.into()))?;
        let (mut lines, mut found) = {
            let live = &mut *live.lock().unwrap_or_else(PoisonError::into_inner);
            (std::mem::replace(&mut live.0, Box::new(super::parse::Nothing)), std::mem::take(&mut live.1))
        };
        match &step.reads {
            Reads::Events => {
                tail.read(self.reports, lines.as_mut(), &mut found);
                tail.finish(lines.as_mut(), &mut found);
            }
            Reads::Xml => {
                read_xml_files(&Project(self.reports.locate(".")?), SystemTime::UNIX_EPOCH, &mut found);
            }
            Reads::XmlAfter(_) => {
                let mut whole = Found::wanting(self.wanted());
                read_xml_files(&Project(self.reports.locate(".")?), SystemTime::UNIX_EPOCH, &mut whole);
                if whole.counts.total() > 0 && whole.problems.is_empty() {
                    why_they_ended(&found.tests, &mut whole.tests);
                    found = whole;
                }
            }
            Reads::XmlIn(folders) => {
                // File times lag behind the clock by up to a tick.
                let since = begun.checked_sub(Duration::from_millis(20)).unwrap_or(begun);
                for folder in report_folders(&self.choice.project, folders) {
                    read_xml_files(&folder, since, &mut found);
                }
            }
            _ => {}
        }
        lines.end(&mut found);
        Ok(self.ran(&step, found, &output))
    }

    /// The name that one of the reported tests must bear.
    fn wanted(&self) -> Option<String> {
        let Choice { runner, part, .. } = self.choice;
        let name = part.name.clone().filter(|_| runner.selects_by_pattern())?;
        // Go writes the names of its subtests so.
        Some(if *runner == Runner::Go { name.replace(' ', "_") } else { name })
    }

    fn ran(&self, step: &Step, mut found: Found, output: &Output) -> Ran {
        let text = printed(output);
        let ending = match Ending::of(output) {
            Ending::TimedOut(_) => Ending::TimedOut(self.limit),
            ending => ending,
        };
        let runner = self.choice.runner;
        let failed = !output.success();
        if failed && found.diagnostics.is_empty() && found.counts.total() == 0 {
            for diagnostic in Diagnostic::from_text(&text) {
                found.diagnostic(diagnostic);
            }
        }
        if let (true, Some(problem)) = (failed, explain(runner, &text, &found)) {
            found.problems.push(problem);
        }
        let problem = if step.prepares {
            match (ending, failed) {
                (_, false) => None,
                (Ending::Exited(code), true) => {
                    let message = format!("`{}` failed with exit code {code}", step.shown);
                    Some(Problem::new(ProblemKind::CompileError, message))
                }
                (ending, true) => judge(&mut found, ending, runner.exit_codes()),
            }
        } else if runner == Runner::Make && ending == Ending::Exited(0) && made_nothing(&text) {
            Some(Problem::new(ProblemKind::NoTests, "no test was executed: make had nothing to do"))
        } else if runner.only_exit_code() {
            only_exit_code(step, &mut found, ending)
        } else if step.documentation
            && failed
            && found.counts.total() == 0
            && text.lines().any(|line| line.starts_with("error: no library targets found"))
        {
            Some(Problem::new(ProblemKind::NoTests, "there is no library, and so no documentation to test"))
        } else {
            judge(&mut found, ending, runner.exit_codes())
        };
        let over = match ending {
            Ending::Exited(_) => {
                let blocks = |problem: &Problem| {
                    problem.kind != ProblemKind::NoTests && problem.kind != ProblemKind::Mismatch
                };
                found.counts.total() == 0 && problem.as_ref().is_some_and(blocks)
            }
            _ => true,
        };
        Ran { found, problem, exit_code: output.code(), output: text, over }
    }

    /// The runner did not start.
    fn missing(&self, error: process_runner::SpawnError) -> Ran {
        use process_runner::SpawnErrorKind as Kind;
        let installation = self.choice.runner.installation();
        let kind = match error.kind {
            Kind::NotFound { .. } | Kind::BadInterpreter { .. } => ProblemKind::RunnerMissing,
            _ => ProblemKind::RunnerFailed,
        };
        let text = crate::ci::CommandError::from(process_runner::Error::Spawn(error)).to_string();
        let message = if kind == ProblemKind::RunnerMissing {
            format!("{text} It is usually installed so: {installation}")
        } else {
            text
        };
        let problem = Some(Problem::new(kind, message));
        Ran { found: Found::default(), problem, exit_code: None, output: String::new(), over: true }
    }
}

/// Tells in `report`, which knows only of failures, what `printed` knows of a limit or a signal.
fn why_they_ended(printed: &[TestCase], report: &mut [TestCase]) {
    let ended = printed.iter().filter(|test| matches!(test.status, Status::TimedOut | Status::Errored));
    let ended: HashMap<_, _> = ended.map(|test| (test.name.as_str(), test)).collect();
    for test in report.iter_mut().filter(|test| test.status == Status::Failed) {
        let Some(why) = ended.get(test.name.as_str()) else { continue };
        test.status = why.status;
        let parts = why.error.iter().chain(&test.error).map(String::as_str);
        test.error = Some(parts.collect::<Vec<_>>().join("\n"));
    }
}

/// Whether all that make said is that there is nothing to make. It says it in the user's language; what it runs
/// is printed, or prints something itself, or is silent, but never says `make: `.
fn made_nothing(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    lines.peek().is_some() && lines.all(|line| line.starts_with("make: ") || line.starts_with("gmake: "))
}

/// A runner of which only the exit code is known.
fn only_exit_code(step: &Step, found: &mut Found, ending: Ending) -> Option<Problem> {
    let status = match ending {
        Ending::Exited(0) => Status::Passed,
        Ending::Exited(_) => Status::Failed,
        Ending::TimedOut(_) => Status::TimedOut,
        _ => Status::Errored,
    };
    found.push(TestCase::new(step.shown.clone(), status));
    match ending {
        Ending::Exited(_) => None,
        ending => judge(found, ending, Default::default()),
    }
}

/// What a runner says in prose where it fails without a report.
fn explain(runner: Runner, text: &str, found: &Found) -> Option<Problem> {
    use ProblemKind as Kind;
    let says = |what: &[&str]| text.lines().find(|line| what.iter().any(|what| line.contains(what)));
    let none = found.counts.total() == 0;
    let (kind, line) = match runner {
        Runner::Cargo | Runner::Nextest => {
            match says(&["error: no such command: `nextest`", "error: no such subcommand"]) {
                Some(line) => (Kind::RunnerMissing, line),
                None if none => (
                    Kind::CompileError,
                    says(&["error: could not compile", "error: failed to parse manifest"])?,
                ),
                None => return None,
            }
        }
        Runner::Vitest | Runner::Jest | Runner::Mocha | Runner::Ava | Runner::Playwright
            if says(&["MODULE_NOT_FOUND"]).is_some()
                && says(&["node_modules"]).is_some()
                && found.ended != Some(true) =>
        {
            let line = says(&["Cannot find module"])?;
            // The runner itself, or something that a test file imports.
            let own = [
                "vitest/vitest.mjs",
                "jest/bin/jest.js",
                "mocha/bin/mocha.js",
                "ava/entrypoints/cli.mjs",
                "@playwright/test/cli.js",
            ];
            let kind = if own.iter().any(|own| line.contains(own)) {
                Kind::RunnerMissing
            } else {
                Kind::CollectionError
            };
            (kind, line)
        }
        Runner::Vitest | Runner::Jest | Runner::Mocha | Runner::Ava | Runner::Node if none => {
            let nothing = says(&[
                "No test files found",
                "No tests found",
                "Could not find '",
                "Couldn’t find any files to test",
                "Couldn’t find any matching tests",
            ]);
            match nothing {
                Some(line) => (Kind::NoTests, line),
                None if runner == Runner::Ava && found.expected == Some(0) && found.problems.is_empty() => {
                    (Kind::NoTests, "no test was executed: no test file matches")
                }
                // Which vitest leaves to its own reporter to say.
                None if runner == Runner::Vitest
                    && found.ended == Some(true)
                    && found.problems.is_empty() =>
                {
                    (Kind::NoTests, "no test was executed: no test file matches")
                }
                None => (
                    Kind::CollectionError,
                    says(&["SyntaxError", "ReferenceError", "Cannot find module", "Error: "])?,
                ),
            }
        }
        Runner::Pytest if none => (Kind::CollectionError, says(&["ERROR: "])?),
        Runner::Bats if none => (Kind::CollectionError, says(&["syntax error", "does not exist", "ERROR"])?),
        Runner::Maven if text.contains("The forked VM terminated without") => {
            (Kind::Crashed, says(&["The forked VM terminated without"])?)
        }
        Runner::Maven if none && text.contains("COMPILATION ERROR") => {
            (Kind::CompileError, says(&["COMPILATION ERROR"])?)
        }
        Runner::Maven if none && text.contains("Could not resolve") => {
            (Kind::RunnerMissing, says(&["Could not resolve"])?)
        }
        Runner::Maven if none => (Kind::RunnerFailed, says(&["[ERROR]"])?),
        Runner::Mix if none => match says(&["There are no tests to run", "no tests to run", "did not match"])
        {
            Some(line) => (Kind::NoTests, line),
            None => (
                Kind::CompileError,
                says(&["Compilation error", "SyntaxError", "TokenMissingError", "** ("])?,
            ),
        },
        Runner::Ctest if none => (Kind::NoTests, says(&["No tests were found"])?),
        _ => return None,
    };
    let line = line.trim().trim_start_matches("[ERROR] ");
    Some(match kind {
        Kind::RunnerMissing => {
            Problem::new(kind, format!("{line}. It is usually installed so: {}", runner.installation()))
        }
        kind => Problem::new(kind, line),
    })
}

/// What the runner printed: standard error, and the end of standard output before it.
fn printed(output: &Output) -> String {
    let (stdout, stderr) = (output.stdout.clean(), output.stderr.clean());
    let text = stdout.lines().filter(|line| !line.starts_with('{')).chain(stderr.lines());
    text.collect::<Vec<_>>().join("\n")
}

/// Reads a file that grows, from where it stopped.
#[derive(Default)]
struct Tail {
    /// Kept open: a test may remove what it finds in the folder for temporary files.
    file: Option<File>,
    offset: u64,
    rest: Vec<u8>,
}

impl Tail {
    fn read(&mut self, reports: &Workspace, lines: &mut dyn Lines, found: &mut Found) {
        if self.file.is_none() {
            let opened = reports.locate("events").and_then(|path| path.open_read());
            self.file = opened.ok().map(|(file, _)| file);
        }
        let Some(file) = &mut self.file else { return };
        if file.seek(SeekFrom::Start(self.offset)).is_err() {
            return;
        }
        let mut chunk = vec![0; 64 << 10];
        while let Ok(read @ 1..) = file.read(&mut chunk) {
            self.offset += read as u64;
            for &byte in chunk.iter().take(read) {
                if byte == b'\n' {
                    lines.line(&String::from_utf8_lossy(&self.rest), found);
                    self.rest.clear();
                } else if self.rest.len() < MAX_LINE {
                    self.rest.push(byte);
                }
            }
        }
    }

    fn finish(&mut self, lines: &mut dyn Lines, found: &mut Found) {
        // The last line of a runner that was killed may have no end.
        let whole = serde_json::from_slice::<serde::de::IgnoredAny>(&self.rest).is_ok();
        found.truncated |= !whole && !self.rest.is_empty();
        if whole {
            lines.line(&String::from_utf8_lossy(&self.rest), found);
        }
    }
}

/// Reads the XML files of a folder that were written since.
fn read_xml_files(folder: &Project, since: SystemTime, found: &mut Found) {
    for name in folder.names(".") {
        if !name.ends_with(".xml") && !name.ends_with(".trx") {
            continue;
        }
        let Some((file, metadata)) = folder.0.join(&name).ok().and_then(|path| path.open_read().ok()) else {
            continue;
        };
        if metadata.modified.is_some_and(|modified| modified < since) {
            continue;
        }
        let mut document = Vec::new();
        if file.take(MAX_XML).read_to_end(&mut document).is_ok() && !document.is_empty() {
            junit(&document, found);
        }
    }
}

/// The folders of reports in a project and its modules.
fn report_folders(project: &Project, folders: &[&str]) -> Vec<Project> {
    const DEEPEST: usize = 4;
    const MOST: usize = 2_000;
    let mut found = Vec::new();
    let mut waiting = vec![(project.clone(), 0)];
    let mut looked = 0;
    while let Some((module, depth)) = waiting.pop() {
        looked += 1;
        if looked > MOST {
            break;
        }
        let there = folders.iter().filter_map(|folder| module.0.join(folder).ok().map(Project));
        found.extend(there.filter(Project::is_folder));
        if depth == DEEPEST {
            continue;
        }
        // What a build writes is no module; of a folder that only has such a name the module may be.
        let manifests = ["pom.xml", "build.gradle", "build.gradle.kts"];
        let is_module = |path: &Project| path.has_any(&manifests);
        for name in module.names(".") {
            let Ok(path) = module.0.join(&name) else { continue };
            let built = ["src", "target", "build"].contains(&name.as_str()) && !is_module(&Project(path));
            let passed_over = name.starts_with('.') || name == "node_modules" || built;
            let Ok(path) = module.0.join(&name) else { continue };
            if !passed_over
                && matches!(path.link_metadata().map(|metadata| metadata.kind), Ok(Kind::Directory))
            {
                waiting.push((Project(path), depth + 1));
            }
        }
    }
    found
}

/// One report of all steps.
fn combine(runner: Runner, ran: Vec<Ran>) -> TestReport {
    let mut report = TestReport::empty(runner.name());
    // In one step at least what was to run did.
    let executed = ran.iter().any(|ran| {
        ran.found.counts.passed + ran.found.counts.failed > 0
            && !matches!(&ran.problem, Some(problem) if problem.kind == ProblemKind::NoTests)
    });
    let mut output = Vec::new();
    let mut counts = Counts::default();
    for one in ran {
        counts += one.found.counts;
        report.truncated |= one.found.truncated;
        report.tests.extend(one.found.tests);
        report.diagnostics.extend(one.found.diagnostics);
        if report.exit_code.is_none_or(|code| code == 0) && (one.exit_code != Some(4) || !executed) {
            let no_library =
                matches!(&one.problem, Some(problem) if problem.kind == ProblemKind::NoTests) && executed;
            if !no_library {
                report.exit_code = one.exit_code;
            }
        }
        let problem = one.problem.filter(|problem| problem.kind != ProblemKind::NoTests || !executed);
        let explains = problem.is_some() || (runner.only_exit_code() && counts.failed > 0);
        if explains && !one.output.trim().is_empty() {
            output.push(one.output);
        }
        report.error = match (report.error.take(), problem) {
            (Some(before), Some(after)) if after.kind < before.kind => Some(after),
            (before, after) => before.or(after),
        };
    }
    (report.passed, report.failed, report.skipped) = (counts.passed, counts.failed, counts.skipped);
    report.success = report.error.is_none() && report.failed == 0 && executed;
    report.output = Some(output.join("\n")).filter(|output| !output.is_empty());
    report
}

/// Failures first, masked, shortened, and within so many bytes.
fn present(report: &mut TestReport, folder: &str, mask: impl Fn(&str) -> String, max_bytes: usize) {
    report.tests.sort_by_key(|test| match test.status {
        status if status.is_failure() => 0,
        Status::Skipped => 1,
        _ => 2,
    });
    let prefix = format!("{}/", folder.trim_end_matches('/'));
    let (tests, mut left) = (std::mem::take(&mut report.tests), max_bytes);
    let (mut failures, mut others) = (0_u64, 0_u64);
    for mut test in tests {
        test.name = mask(&test.name.replace(&prefix, ""));
        test.file = test.file.map(|file| {
            let file = file.strip_prefix("file://").unwrap_or(&file);
            file.strip_prefix(&prefix).unwrap_or(file).to_owned()
        });
        if let Some(error) = test.error.take() {
            // Masked before it is cut: half a secret is not recognised.
            let (error, cut) = shortened(mask(&error.replace(&prefix, "")).trim_matches('\n'), SHOWN_MESSAGE);
            report.truncated |= cut;
            test.error = Some(error).filter(|error| !error.is_empty());
        }
        let size = 48
            + test.name.len()
            + test.error.as_ref().map_or(0, String::len)
            + test.file.as_ref().map_or(0, String::len);
        match left.checked_sub(size) {
            Some(rest) => {
                left = rest;
                report.tests.push(test);
            }
            None if test.status.is_failure() => failures += 1,
            None => others += 1,
        }
    }
    if failures + others > 0 {
        report.truncated = true;
        report.notes.push(format!(
            "left out of `tests`: {failures} failed, {others} others; run a part of them with `test_path` to see them"
        ));
    }
    if let Some(error) = &mut report.error {
        error.message = shortened(&mask(&error.message.replace(&prefix, "")), SHOWN_MESSAGE).0;
    }
    for diagnostic in &mut report.diagnostics {
        diagnostic.message = mask(&diagnostic.message);
        diagnostic.relative_to(&prefix);
    }
    if let Some(output) = &mut report.output {
        let masked = mask(output);
        let mut start = masked.len().saturating_sub(SHOWN_OUTPUT);
        while !masked.is_char_boundary(start) {
            start += 1;
        }
        report.truncated |= start > 0;
        *output = masked[start..].to_owned();
    }
}

impl TestReport {
    pub(super) fn empty(runner: &'static str) -> Self {
        Self {
            success: false,
            passed: 0,
            failed: 0,
            skipped: 0,
            error: None,
            tests: Vec::new(),
            diagnostics: Vec::new(),
            runner,
            command: String::new(),
            folder: String::new(),
            exit_code: None,
            duration_ms: 0,
            truncated: false,
            notes: Vec::new(),
            output: None,
        }
    }
}
