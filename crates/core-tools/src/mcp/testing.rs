//! Tests as tools.

use super::answer::{Answer, ToolError};
use super::ci::reach;
use super::host::Context;
use super::tool::{Tool, Toolset};
use crate::ci::{Commands, Verdict};
use crate::testing::{RunTests, TestError, TestReport, run_tests};
use role_policy::Effect;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;

impl From<TestError> for ToolError {
    fn from(error: TestError) -> Self {
        Self::from_error(&error)
    }
}

/// The limit of `run_tests` and `run_test_suite`, where a caller names none.
const DEFAULT_LIMIT: Duration = Duration::from_secs(600);
/// The limit of `run_test_task`.
const TASK_LIMIT: Duration = Duration::from_secs(120);

/// The whole project's tests.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Project {
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
struct Suite {
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
struct Task {
    /// As in `run_test_suite`
    test_path: String,
    /// Default json
    #[serde(default)]
    reporter: Reporter,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Reporter {
    #[default]
    Json,
    Tap,
}

/// The toolset `tests`. `commands` run the runners; `max_timeout` is the host's
/// ([`Limits::max_timeout`](super::Limits)), for the list to tell.
pub fn toolset(commands: &Commands, max_timeout: Duration) -> Toolset {
    let most = u64::try_from(max_timeout.as_millis()).unwrap_or(u64::MAX);
    let tools = vec![
        whole_project(commands.clone()).maximum("timeout_ms", most),
        suite(commands.clone()).maximum("timeout_ms", most),
        task(commands.clone()),
    ];
    Toolset { name: "tests", tools }
}

fn whole_project(commands: Commands) -> Tool {
    let tool = Tool::new(
        "run_tests",
        "Run all tests",
        "Finds the runner, reports each test.",
        move |input: Project, context: Context| {
            let commands = commands.clone();
            async move {
                let request = RunTests {
                    project_path: input.project_path,
                    runner: input.runner,
                    time_limit: limit(input.timeout_ms, context.max_timeout)?,
                    ..RunTests::default()
                };
                answer(&run(&commands, &context, &request).await?)
            }
        },
    );
    runs_programs(tool).effects(&[Effect::Reads("project_path")])
}

fn suite(commands: Commands) -> Tool {
    let tool = Tool::new(
        "run_test_suite",
        "Run some tests",
        "Runs a file, folder or test by name.",
        move |input: Suite, context: Context| {
            let commands = commands.clone();
            async move {
                let request = RunTests {
                    test_path: input.test_path,
                    runner: input.runner,
                    time_limit: limit(input.timeout_ms, context.max_timeout)?,
                    ..RunTests::default()
                };
                answer(&run(&commands, &context, &request).await?)
            }
        },
    );
    runs_programs(tool).effects(&[Effect::Reads("test_path")])
}

fn task(commands: Commands) -> Tool {
    let tool = Tool::new(
        "run_test_task",
        "Run tests within 120 s",
        "Like run_test_suite, ended at 120 s.",
        move |input: Task, context: Context| {
            let commands = commands.clone();
            async move {
                let request = RunTests {
                    test_path: Some(input.test_path),
                    time_limit: TASK_LIMIT.min(context.max_timeout),
                    ..RunTests::default()
                };
                let report = run(&commands, &context, &request).await?;
                match input.reporter {
                    Reporter::Json => answer(&report),
                    Reporter::Tap => {
                        let tap = report.to_tap();
                        let TestReport { success, passed, failed, skipped, .. } = report;
                        let told = json!({
                            "success": success, "passed": passed, "failed": failed, "skipped": skipped, "tap": tap
                        });
                        Ok(Answer::report(&told, tap)?.failed_if(!success))
                    }
                }
            }
        },
    );
    runs_programs(tool).effects(&[Effect::Reads("test_path")])
}

fn runs_programs(tool: Tool) -> Tool {
    tool.destroys().open_world().own_deadline().runs_programs().answers::<Verdict>()
}

async fn run(commands: &Commands, context: &Context, request: &RunTests) -> Result<TestReport, ToolError> {
    let commands = commands.narrowed(&reach(commands, context)?);
    let progress = context.progress.clone();
    Ok(run_tests(&commands, request, &context.cancel, |word| progress.say(word)).await?)
}

fn answer(report: &TestReport) -> Result<Answer, ToolError> {
    Ok(Answer::report(report, report.to_text())?.failed_if(!report.success))
}

fn limit(asked: Option<u64>, most: Duration) -> Result<Duration, ToolError> {
    let asked = asked.map(Duration::from_millis);
    if let Some(asked) = asked.filter(|asked| *asked > most) {
        let (asked, most) = (asked.as_millis(), most.as_millis());
        return Err(ToolError::new(format!("`timeout_ms` is {asked}: this server allows at most {most}")));
    }
    Ok(asked.unwrap_or(DEFAULT_LIMIT.min(most)))
}
