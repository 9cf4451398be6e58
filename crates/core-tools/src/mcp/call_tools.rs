//! The tool that makes several calls of other tools.

use super::answer::Answer;
use super::call_context::CallContext;
use super::tool::Tool;
use super::tool_error::ToolError;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use tokio::time::Instant;

/// The name of the tool.
const NAME: &str = "call_tools";

/// The most calls in one.
pub(super) const MAX_CALLS: u32 = 20;

/// The longest text of all calls together. Each has an equal share of it.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// The longest name of a tool that is repeated in the answer, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Calls of other tools.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CallTools {
    /// The calls in their order.
    #[schemars(length(min = 1, max = 20), extend("alias" = ["tool_calls", "tool_uses", "tools", "steps"]))]
    calls: Vec<ToolCall>,
    /// Goes on after a failed call; the answer then counts as failed only if all calls failed. Default: false.
    #[schemars(extend("alias" = ["continue_on_error"]))]
    #[serde(default)]
    keep_going: bool,
}

/// A call of another tool.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ToolCall {
    /// The tool's name.
    #[schemars(extend("alias" = ["name", "tool_name", "recipient_name"]))]
    tool: String,
    /// Its arguments, as for a call alone.
    #[schemars(extend("alias" = ["args", "input", "params", "parameters", "tool_input"]))]
    #[serde(default)]
    arguments: Map<String, Value>,
    /// The call is to fail, as a new test does before the fix: one that succeeds counts as failed. Default: false.
    #[schemars(extend("alias" = ["expect_error", "must_fail", "should_fail"]))]
    #[serde(default)]
    expect_failure: bool,
}

impl ToolCall {
    /// Returns the name by which this server has the tool. Several clients show it to their models as `mcp__SERVER__NAME`.
    fn own_name(&self) -> &str {
        // The last separator counts, because the name of a server may contain `__` too.
        let qualified = self.tool.strip_prefix("mcp__").and_then(|rest| rest.rsplit_once("__"));
        qualified.map_or(&self.tool, |(_, name)| name)
    }

    /// Returns the name as the answer repeats it.
    fn shown_name(&self) -> String {
        self.own_name().chars().take(MAX_NAME_CHARS).flat_map(char::escape_debug).collect()
    }
}

/// Returns the tool.
pub(super) fn call_tools() -> Tool {
    Tool::new(
        NAME,
        "Call several tools",
        "Makes up to 20 calls of other tools in their order, in one turn. Prefer it to single calls whenever you can \
         write down two steps or more now: to begin with, `run_tests` and all searches and readings (with \
         `keep_going`); to finish, `apply_patch`, `run_tests`, `git_commit`. Stops after the first that fails (a \
         failed test, an exit code other than 0). Returns the text of each, cut where it is long and without media, \
         and names what was not run. What a call deletes cannot be undone.",
        run,
    )
    .destroys()
    .open_world()
    .calls_tools()
    .unmetered()
}

/// Makes the calls, and returns their texts.
async fn run(input: CallTools, context: CallContext) -> Result<Answer, ToolError> {
    let CallTools { calls, keep_going } = input;
    // A list of calls within a list would get around the limit on their number.
    if let Some(nested) = calls.iter().position(|call| call.own_name() == NAME) {
        return Err(ToolError::new(format!(
            "invalid arguments for `{NAME}`: `calls[{nested}].tool` is \"{NAME}\", which cannot call itself: expected \
             another tool; give all calls in one list. None was run"
        )));
    }
    let caller = context.tool_caller.ok_or_else(|| ToolError::new("no tool can be called here"))?;
    // Each call has an equal share, so that one long answer does not push out the answers of later calls.
    let share = MAX_TEXT_BYTES / calls.len().max(1);
    let names: Vec<String> = (1..)
        .zip(&calls)
        .map(|(number, call): (u32, _)| format!("{number}. {}", call.shown_name()))
        .collect();
    let mut text = String::new();
    let mut failed = Vec::new();
    let mut made = 0;
    for (call, name) in calls.into_iter().zip(&names) {
        if context.cancel.is_cancelled() || (!failed.is_empty() && !keep_going) {
            break;
        }
        context.progress.update(format!("{name}, of {}", names.len()));
        let started = Instant::now();
        let tool = call.own_name().to_owned();
        let answer = caller.call(tool, call.arguments).await;
        let seconds = started.elapsed().as_secs_f64();
        made += 1;
        // A call that was not made says nothing about what was to fail.
        let (verdict, outcome) = match (answer.is_failed(), call.expect_failure && !answer.is_error()) {
            (true, false) => (": failed", Some("failed")),
            (true, true) => (": failed, as expected", None),
            (false, true) => (": succeeded, and was expected to fail", Some("succeeded")),
            (false, false) => ("", None),
        };
        let _ = writeln!(text, "==> {name}{verdict} ({seconds:.1} s)");
        let has_media = answer.has_media();
        failed.extend(outcome.map(|outcome| format!("{name} {outcome}")));
        let answer = answer.into_text_within(share);
        text.push_str(answer.trim_end_matches('\n'));
        text.push('\n');
        if has_media {
            text.push_str(
                "[its picture, sound or document is left out here: call the tool alone to get it]\n",
            );
        }
    }
    let not_run = names.get(made..).unwrap_or_default();
    if !not_run.is_empty() {
        let failure = failed.first().filter(|_| !keep_going);
        let why = failure.map_or("it was cancelled", String::as_str);
        let _ = writeln!(text, "Not run, since {why}: {}", not_run.join(", "));
    }
    // Whoever wants all answers has them, whatever some of them say.
    let has_failed = if keep_going { failed.len() == names.len() } else { !failed.is_empty() };
    Ok(Answer::text(text).failed_if(has_failed || !not_run.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Host, HostLimits, Toolset, discovery};
    use crate::redact::Redactor;
    use role_policy::{Caller, Policy};
    use serde_json::json;
    use std::time::Duration;

    #[derive(Deserialize, JsonSchema)]
    struct NoArguments {}

    #[tokio::test(start_paused = true)]
    async fn each_call_has_the_whole_deadline_of_a_call_and_its_end_is_its_own() {
        let endless = |_: NoArguments, _: CallContext| async {
            std::future::pending::<()>().await;
            Ok(Answer::text(""))
        };
        let tools = [
            Tool::new("endless", "Endless", "Never ends.", endless),
            Tool::new("quick", "Quick", "Ends.", |_: NoArguments, context: CallContext| async move {
                Ok(Answer::text(format!("cancelled: {}", context.cancel.is_cancelled())))
            }),
        ];
        let mut limits = HostLimits::default();
        (limits.call_timeout, limits.max_timeout) = (Duration::from_secs(60), Duration::from_secs(1));
        let host = Host::builder(Policy::allow_all(), Redactor::new(Default::default()).unwrap())
            .limits(limits)
            .toolset(Toolset::new("own", tools))
            .toolset(discovery::toolset())
            .build()
            .unwrap();
        let mut calls = vec![json!({"tool": "endless"}); 19];
        calls.push(json!({"tool": "quick"}));
        let arguments = json!({"calls": calls, "keep_going": true}).as_object().cloned().unwrap();
        let context = CallContext::new(Caller::new("orchestrator"), Default::default());
        let cancel = context.cancel.clone();
        let answer = host.call(NAME, arguments, context).await.unwrap();
        let text = answer.to_text();
        assert_eq!(text.matches("`endless` was ended at the time limit of 60 s").count(), 19, "{text}");
        assert!(text.contains("==> 20. quick (0.0 s)\ncancelled: false\n"), "{text}");
        // One of them succeeded, and the caller wanted all.
        assert!(!answer.is_failed() && !cancel.is_cancelled());
    }
}
