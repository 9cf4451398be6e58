//! The toolset `tests`: one engine behind three tools.

use super::answer::{Answer, ToolError};
use super::call_context::CallContext;
use super::ci::command_scope;
use super::tool::Tool;
use super::toolset::Toolset;
use crate::ci::Commands;
use crate::testing::{RunTests, TestError, TestReport, run_tests};
use role_policy::Effect;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;
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

/// The whole project's tests.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunTestsInput {
    /// Default: the first root
    project_path: Option<String>,
    /// Default: found
    runner: Option<String>,
    /// Default 600000
    #[schemars(range(min = 1, max = 86_400_000))]
    timeout_ms: Option<u64>,
}

/// A part of them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunTestSuiteInput {
    /// File, folder, `file::name`, name; default: all
    test_path: Option<String>,
    /// Default: found
    runner: Option<String>,
    /// Default 600000
    #[schemars(range(min = 1, max = 86_400_000))]
    timeout_ms: Option<u64>,
}

/// One quick run.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunTestTaskInput {
    /// As in `run_test_suite`
    test_path: String,
    /// Default json
    #[serde(default)]
    reporter: ReportStyle,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum ReportStyle {
    #[default]
    Json,
    Tap,
}

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

/// Creates the toolset `tests`. `commands` run the test runners. `max_timeout` is that of the host
/// ([`HostLimits::max_timeout`](super::HostLimits)); the input schemas give it as the maximum.
pub fn toolset(commands: &Commands, max_timeout: Duration) -> Toolset {
    let max_ms = u64::try_from(max_timeout.as_millis()).unwrap_or(u64::MAX);
    let tools = vec![
        run_tests_tool(commands.clone()).maximum("timeout_ms", max_ms),
        run_test_suite(commands.clone()).maximum("timeout_ms", max_ms),
        run_test_task(commands.clone()),
    ];
    Toolset { name: "tests", tools }
}

fn run_tests_tool(commands: Commands) -> Tool {
    let tool = Tool::new(
        "run_tests",
        "Run all tests",
        "Runs the project's test command.",
        move |input: RunTestsInput, context: CallContext| {
            let commands = commands.clone();
            async move {
                let mut request = RunTests::new();
                (request.project_path, request.runner) = (input.project_path, input.runner);
                request.time_limit = time_limit(input.timeout_ms, context.max_timeout)?;
                answer(&run(&commands, &context, &request).await?)
            }
        },
    );
    runs_programs(tool).effects(&[Effect::Reads("project_path")])
}

fn run_test_suite(commands: Commands) -> Tool {
    let tool = Tool::new(
        "run_test_suite",
        "Run some tests",
        "Runs a file, folder or test by name.",
        move |input: RunTestSuiteInput, context: CallContext| {
            let commands = commands.clone();
            async move {
                let mut request = RunTests::new();
                (request.test_path, request.runner) = (input.test_path, input.runner);
                request.time_limit = time_limit(input.timeout_ms, context.max_timeout)?;
                answer(&run(&commands, &context, &request).await?)
            }
        },
    );
    runs_programs(tool).effects(&[Effect::Reads("test_path")])
}

fn run_test_task(commands: Commands) -> Tool {
    let tool = Tool::new(
        "run_test_task",
        "Run tests within 120 s",
        "Like run_test_suite, ended at 120 s.",
        move |input: RunTestTaskInput, context: CallContext| {
            let commands = commands.clone();
            async move {
                let time_limit = TASK_TIME_LIMIT.min(context.max_timeout);
                let request = RunTests::new().test_path(input.test_path).time_limit(time_limit);
                let report = run(&commands, &context, &request).await?;
                match input.reporter {
                    ReportStyle::Json => answer(&report),
                    ReportStyle::Tap => {
                        let tap = report.to_tap();
                        let TestReport { success, passed, failed, skipped, .. } = report;
                        let summary = json!({
                            "success": success, "passed": passed, "failed": failed, "skipped": skipped, "tap": tap
                        });
                        Ok(Answer::report(&summary, tap)?.failed_if(success == Some(false)))
                    }
                }
            }
        },
    );
    runs_programs(tool).effects(&[Effect::Reads("test_path")])
}

fn runs_programs(tool: Tool) -> Tool {
    tool.destroys().open_world().own_deadline().runs_programs().answers::<VerdictOutput>()
}

async fn run(
    commands: &Commands,
    context: &CallContext,
    request: &RunTests,
) -> Result<TestReport, ToolError> {
    let commands = commands.narrowed(&command_scope(commands, context)?);
    let progress = context.progress.clone();
    Ok(run_tests(&commands, request, &context.cancel, |line| progress.update(line)).await?)
}

fn answer(report: &TestReport) -> Result<Answer, ToolError> {
    Ok(Answer::report(report, report.to_text())?.failed_if(report.is_failure()))
}

fn time_limit(requested_ms: Option<u64>, max: Duration) -> Result<Duration, ToolError> {
    let requested = requested_ms.map(Duration::from_millis);
    if let Some(requested) = requested.filter(|requested| *requested > max) {
        let (requested, max) = (requested.as_millis(), max.as_millis());
        return Err(ToolError::new(format!("`timeout_ms` is {requested}: this server allows at most {max}")));
    }
    Ok(requested.unwrap_or(DEFAULT_TIME_LIMIT.min(max)))
}
