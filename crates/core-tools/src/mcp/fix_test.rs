//! The prompt that begins work on a failing test, with suggestions of the tests that failed last.

use super::call_context::CallContext;
use super::completers;
use super::completion::{Completer, CompletionRequest};
use super::last_test_runs::{LastTestRuns, TestRunKey};
use super::prompt::Prompt;
use super::prompt_message::PromptMessage;
use crate::ci::Commands;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::future::ready;
use std::sync::Arc;

/// The arguments of the prompt.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FixTest {
    /// The name of the test, or a part of the name.
    test: String,
    /// The folder of the project. The first root by default.
    project_path: Option<String>,
}

/// Returns the prompt. It suggests the tests that failed in the last run of its caller, which `last_runs` knows.
pub(super) fn prompt(commands: &Commands, last_runs: &Arc<LastTestRuns>) -> Prompt {
    let (commands, last_runs) = (commands.clone(), Arc::clone(last_runs));
    let failed = move |request: CompletionRequest, context: CallContext| {
        let project = request.arguments.get("project_path").map(String::as_str);
        let run = TestRunKey::new(&commands, &context, project);
        // Without a run before, or without a failure, there is nothing to suggest.
        let failed = last_runs.failed_tests(run.as_ref()).map(|failed| failed.names).unwrap_or_default();
        ready(Ok(failed.into_iter().filter(|name| name.contains(&request.value)).collect()))
    };
    Prompt::new(
        "fix_test",
        "Fix a test",
        "Begins work on a failing test: it is run, its cause is found and mended, and it is run again.",
        |input: FixTest, _: CallContext| {
            let mut run = json!({ "filter": input.test });
            if let Some(project) = &input.project_path {
                run["project_path"] = json!(project);
            }
            let text = format!(
                "Make the test `{}` pass. Run it with `run_tests` {run} and read the failure. Find the cause, and say what \
                 it is. Mend the cause in the code; change the test only if the test itself is wrong, and then say why. Run \
                 the test again, and then all tests of the project.",
                input.test
            );
            ready(Ok(vec![PromptMessage::user(text)]))
        },
    )
    .offered_with(&["run_tests"])
    .completes("test", Completer::new(failed))
    .completes("project_path", completers::paths())
}
