//! Tools whose calls become tasks.

use crate::NoInput;
use crate::client::{ask_text, elicit};
use core_tools::mcp::{Answer, CallContext, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Greet {
    /// Whom to greet.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SlowCompute {
    /// Seconds that the work takes.
    #[schemars(range(max = 600))]
    seconds: u32,
    /// Name of the work.
    label: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConfirmDelete {
    /// File to delete.
    filename: String,
}

/// The schema of a form with a confirmation.
fn confirmation() -> Value {
    json!({"type": "object", "properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]})
}

/// The time after which a call that may take long becomes a task.
const AT_ONCE: Duration = Duration::ZERO;

pub(crate) fn tools() -> Vec<Tool> {
    let mut tools = work();
    tools.extend(asking());
    tools
}

fn work() -> Vec<Tool> {
    vec![
        Tool::new("greet", "Greet", "Greets somebody, at once.", |input: Greet, _| async move {
            Ok(Answer::text(format!("Hello, {}!", input.name)))
        }),
        Tool::new(
            "slow_compute",
            "Slow work",
            "Works for some seconds.",
            |input: SlowCompute, context: CallContext| async move {
                let label = input.label.unwrap_or_else(|| "work".to_owned());
                context.progress.update(format!("{label}: {} s", input.seconds));
                tokio::select! {
                    () = context.cancel.cancelled() => Err(ToolError::new("cancelled")),
                    () = tokio::time::sleep(Duration::from_secs(input.seconds.into())) => {
                        Ok(Answer::text(format!("{label} took {} s", input.seconds)))
                    }
                }
            },
        )
        .long_running(AT_ONCE)
        .own_deadline(),
        Tool::new("failing_job", "Failing work", "Fails after a second.", |_: NoInput, _| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Err(ToolError::new("the work failed, as it always does"))
        })
        .long_running(AT_ONCE)
        .requires_tasks(),
        Tool::new("protocol_error_job", "Defect", "Stops because of a defect.", |_: NoInput, _| async {
            tokio::task::yield_now().await;
            defect()
        })
        .long_running(AT_ONCE),
    ]
}

#[allow(clippy::panic, reason = "shows that a defect of a tool ends its task, and not the server")]
fn defect() -> Result<Answer, ToolError> {
    panic!("a defect, for tests")
}

fn asking() -> Vec<Tool> {
    vec![
        Tool::new(
            "confirm_delete",
            "Delete with confirmation",
            "Asks the user before it deletes. It deletes nothing.",
            |input: ConfirmDelete, context| async move {
                let message = format!("Delete {}?", input.filename);
                let result = elicit(&context, "confirm", &message, confirmation()).await?;
                let confirmed = result.content.as_ref().and_then(|content| content.get("confirm"));
                let done = if confirmed == Some(&Value::Bool(true)) { "deleted" } else { "kept" };
                Ok(Answer::text(format!("{} was {done}", input.filename)))
            },
        )
        .long_running(AT_ONCE),
        Tool::new(
            "multi_input",
            "Two questions",
            "Asks the user two things at once.",
            |_: NoInput, context| async move {
                let (first, second) = tokio::join!(
                    ask_text(&context, "first", "The first name?", "name"),
                    ask_text(&context, "second", "The second name?", "name"),
                );
                Ok(Answer::text(format!("{} and {}", first?, second?)))
            },
        )
        .long_running(AT_ONCE),
        Tool::new(
            "test_tool_with_task",
            "Question and task",
            "Asks the user for a name, and then works as a task.",
            |_: NoInput, context: CallContext| async move {
                let name = ask_text(&context, "user_name", "What is your name?", "name").await?;
                context.begin_task().await;
                tokio::time::sleep(Duration::from_millis(100)).await;
                Ok(Answer::text(format!("Hello, {name}!")))
            },
        )
        .begins_task()
        .requires_tasks(),
    ]
}
