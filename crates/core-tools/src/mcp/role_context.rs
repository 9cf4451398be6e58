//! The compiled context of a role, as a resource that a person opens and as a prompt that begins work.

use super::answer::Answer;
use super::call_context::CallContext;
use super::completers;
use super::prompt::Prompt;
use super::prompt_message::PromptMessage;
use super::resource::Resource;
use super::tool_error::ToolError;
use role_policy::Effect;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The tool that compiles. A resource or prompt is what the tool returns to its caller.
const TOOL: &str = "compile_context";

/// The variables of the address of a context.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ContextAddress {
    /// The role that the context is for.
    role: String,
}

/// The arguments of the prompt that begins work in a role.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WorkAs {
    /// The role.
    role: String,
    /// The task in a sentence. The code that the sentence names is included first.
    task: Option<String>,
    /// A source file to include, or a glob such as `src/**/*.rs`.
    path: Option<String>,
    /// The branch or revision since which changes are shown. By default, the changes that are not committed.
    since: Option<String>,
}

/// Returns the resources: the context of the caller's own role, and that of each role which the caller may use.
pub(super) fn resources() -> [Resource; 2] {
    let own = Resource::new(
        "coretools://context",
        "context",
        "Context",
        "What one needs to know before working on this project in your role: plans, conventions, changes and code.",
        |context: CallContext| async move { Ok(Answer::text(document(&context, json!({})).await?)) },
    );
    let of_role = Resource::template(
        "coretools://context/{role}",
        "role-context",
        "Context of a role",
        "What one needs to know before working on this project in a role that you may use.",
        |address: ContextAddress, context: CallContext| async move {
            Ok(Answer::text(document(&context, json!({ "role": address.role })).await?))
        },
    );
    let of_role = of_role.effects(&[Effect::Role("role")]).completes("role", completers::roles());
    [own, of_role].map(|resource| resource.mime_type("text/markdown").uses_tools(&[TOOL]))
}

/// Returns the prompt that begins work in a role. It is offered for each role that the caller may use.
pub(super) fn prompt() -> Prompt {
    Prompt::new(
        "work_as",
        "Work as",
        "Begins work in a role, with the compiled context of the project.",
        |input: WorkAs, context: CallContext| async move {
            let request = json!({
                "role": input.role,
                "task": input.task,
                "include": input.path.map(|path| [path]),
                "since": input.since,
            });
            let document = document(&context, request).await?;
            let description =
                context.policy.as_deref().map_or("", |policy| policy.description(&input.role)).to_owned();
            let mut instruction = format!("Work in the role `{}`. {description}", input.role);
            if let Some(task) = &input.task {
                instruction = format!("{}\n\nThe task: {task}", instruction.trim_end());
            }
            Ok(vec![PromptMessage::user(document), PromptMessage::user(instruction.trim_end())])
        },
    )
    .for_each_role()
    .uses_tools(&[TOOL])
    .completes("path", completers::paths())
    .completes("since", completers::branches())
}

/// Compiles the context that a request asks for, in the name of the caller.
async fn document(context: &CallContext, request: Value) -> Result<String, ToolError> {
    let mut arguments: Map<String, Value> = request.as_object().cloned().unwrap_or_default();
    arguments.retain(|_, value| !value.is_null());
    let answer = context.call_tool(TOOL, arguments).await?;
    if answer.is_failed() {
        return Err(ToolError::new(answer.to_text()));
    }
    match answer.texts().collect::<Vec<_>>()[..] {
        // The last block has facts for programs.
        [prefix, tail, _] => Ok(format!("{prefix}{tail}")),
        _ => Ok(answer.to_text()),
    }
}
