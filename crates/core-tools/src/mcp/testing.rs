//! The toolset `tests`: one engine behind three tools.

use super::answer::Answer;
use super::call_context::CallContext;
use super::ci::command_scope;
use super::fix_test;
use super::last_test_runs::{LastTestRuns, TestRunKey};
use super::task_use::TASK_AFTER;
use super::tool::Tool;
use super::tool_error::ToolError;
use super::toolset::Toolset;
use crate::ci::Commands;
use crate::testing::{RunTests, TestError, TestReport, run_tests};
use role_policy::Effect;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

impl From<TestError> for ToolError {
    fn from(error: TestError) -> Self {
        Self::from_error(&error)
    }
}

/// The time limit of `run_tests` and `run_test_suite`, where a caller names none.
const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(600);
/// The time limit of `run_test_task`.
const TASK_TIME_LIMIT: Duration = Duration::from_secs(120);

/// A run of tests. All three tools take the same.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunTestsInput {
    /// The project: its folder, or a file in it. Default: the first root.
    project_path: Option<String>,
    /// The tests to run: a file, a folder, `FILE::NAME`, or a test's name or part of it. Default: all, by the project's
    /// own test command.
    test_path: Option<String>,
    /// A pattern of test names as the runner's own option takes it: pytest -k, go -run, jest -t, mocha --grep.
    filter: Option<String>,
    /// Further arguments for the runner, such as ["--doctest-modules"] or ["--features", "tls"]. Under nextest the doctests
    /// are then left out, which take other arguments.
    #[serde(default)]
    args: Vec<String>,
    /// Environment variables to set for the run, such as `{"RUST_BACKTRACE": "1"}`.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Runs only the tests that failed in your last run of this project. Default: false.
    #[serde(default)]
    failed_only: bool,
    /// The runner, such as pytest, cargo, nextest or jest. Default: found from the project's files.
    runner: Option<String>,
    /// The time limit of the whole run in milliseconds. Default: 600000, or the maximum where that is less.
    #[schemars(range(min = 1, max = 86_400_000))]
    timeout_ms: Option<u64>,
    /// The form of the answer. Default: json.
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    reporter: TestReporter,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum TestReporter {
    #[default]
    Json,
    Tap,
}

const RUN_TESTS: &str = "Runs a project's tests; prefer it to a shell command for tests. Without a selection it runs \
    the project's own test command (npm test, cargo, pytest, go test, make test ...); `test_path`, `filter`, `args` or \
    `failed_only` run a part directly. Returns the counts, all failed tests by name and place, the message of each, the \
    commands that ran and the files that they left. No test executed is never a success. Tests may write and delete files.";
const RUN_TEST_SUITE: &str = "Runs the tests that test_path names, for the loop of changing code and running one file \
    again; without it, all tests of the first root, as the project itself runs them. The answer has the counts, all \
    failed tests by name and place, and the message of each. It has no time limit below ten minutes unless timeout_ms \
    sets one.";
const RUN_TEST_TASK: &str = "Runs tests and ends them after 120 seconds at the latest, with the results until then: for \
    a check that must answer in time. The tests that were running at the limit are reported as timed out. With \
    reporter tap the answer is TAP 14, otherwise the counts, all failed tests and their messages.";

/// The part of a report that the output schema promises.
#[derive(Debug, Serialize, JsonSchema)]
struct VerdictOutput {
    /// Holds null where nothing was verified. Not every client can read a union of types, so that none is listed.
    #[schemars(schema_with = "any_value")]
    success: Option<bool>,
}

fn any_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({})
}

/// Creates the toolset `tests`. `commands` run the test runners. `max_timeout` is
/// [`HostLimits::max_timeout`](super::HostLimits) of the host, which the input schemas give as the maximum.
pub fn toolset(commands: &Commands, max_timeout: Duration) -> Toolset {
    let max_ms = u64::try_from(max_timeout.as_millis()).unwrap_or(u64::MAX);
    let last_runs = Arc::new(LastTestRuns::default());
    let released = Arc::clone(&last_runs);
    let tool = |name, title, description, limit| {
        let max_ms = limit_ms(limit).map_or(max_ms, |limit| limit.min(max_ms));
        test_tool(name, title, description, limit, commands, &last_runs).maximum("timeout_ms", max_ms)
    };
    let tools = vec![
        tool("run_tests", "Run tests", RUN_TESTS, None)
            .effects(&[Effect::Reads("project_path")])
            .on_release_caller(move |owner| released.forget(owner)),
        tool("run_test_suite", "Run one test file or all", RUN_TEST_SUITE, None)
            .effects(&[Effect::Reads("project_path"), Effect::Reads("test_path")]),
        tool("run_test_task", "Run tests within 120 s", RUN_TEST_TASK, Some(TASK_TIME_LIMIT))
            .effects(&[Effect::Reads("project_path"), Effect::Reads("test_path")]),
    ];
    Toolset::new("tests", tools).prompts([fix_test::prompt(commands, &last_runs)])
}

fn limit_ms(limit: Option<Duration>) -> Option<u64> {
    limit.and_then(|limit| u64::try_from(limit.as_millis()).ok())
}

/// Returns one of the tools, which differ in their names and in `limit`: the longest that a run may take.
fn test_tool(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    limit: Option<Duration>,
    commands: &Commands,
    last_runs: &Arc<LastTestRuns>,
) -> Tool {
    let (commands, last_runs) = (commands.clone(), Arc::clone(last_runs));
    let tool = Tool::new(name, title, description, move |input: RunTestsInput, context: CallContext| {
        let (commands, last_runs) = (commands.clone(), Arc::clone(&last_runs));
        async move {
            let max_timeout = limit.map_or(context.max_timeout, |limit| limit.min(context.max_timeout));
            let commands = commands.narrowed(&command_scope(&commands, &context)?);
            let run = TestRunKey::new(&commands, &context, input.project_path.as_deref());
            let mut request = RunTests::new().args(input.args);
            request.time_limit = time_limit(input.timeout_ms, max_timeout)?;
            (request.project_path, request.test_path) = (input.project_path, input.test_path);
            (request.filter, request.runner, request.env) = (input.filter, input.runner, input.env);
            if input.failed_only {
                request.failed_tests = Some(last_runs.failed_tests(run.as_ref())?);
            }
            let progress = context.progress.clone();
            let report =
                run_tests(&commands, &request, &context.cancel, |line| progress.update(line)).await?;
            last_runs.record(run, &report);
            answer(&report, input.reporter)
        }
    });
    runs_programs(tool)
}

fn runs_programs(tool: Tool) -> Tool {
    tool.destroys()
        .open_world()
        .own_deadline()
        .long_running(TASK_AFTER)
        .runs_programs()
        .answers::<VerdictOutput>()
}

fn answer(report: &TestReport, style: TestReporter) -> Result<Answer, ToolError> {
    match style {
        TestReporter::Json => {
            // It begins with the names of all failed tests.
            let answer = Answer::report(report, report.to_text())?.keeping_beginning();
            Ok(answer.failed_if(report.is_failure()))
        }
        TestReporter::Tap => {
            let tap = report.to_tap();
            let TestReport { success, passed, failed, skipped, .. } = report;
            let summary = json!({
                "success": success, "passed": passed, "failed": failed, "skipped": skipped, "tap": tap
            });
            Ok(Answer::report(&summary, tap)?.failed_if(report.is_failure()))
        }
    }
}

fn time_limit(requested_ms: Option<u64>, max: Duration) -> Result<Duration, ToolError> {
    let requested = requested_ms.map(Duration::from_millis);
    if let Some(requested) = requested.filter(|requested| *requested > max) {
        let (requested, max) = (requested.as_millis(), max.as_millis());
        return Err(ToolError::new(format!("`timeout_ms` is {requested}: this server allows at most {max}")));
    }
    Ok(requested.unwrap_or(DEFAULT_TIME_LIMIT.min(max)))
}
