//! The resources of background commands, and the notices of their starts and ends.

use super::answer::Answer;
use super::call_context::CallContext;
use super::client_notices::ClientNotices;
use super::completion::{Completer, CompletionRequest};
use super::log_level::LogLevel;
use super::resource::Resource;
use super::tool_error::ToolError;
use crate::ci::{BackgroundCommands, BackgroundState, BackgroundStatus};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The address of the list of background commands. Each command has its own address below it.
const COMMANDS: &str = "coretools://commands";
/// The tool that lists background commands. Its caller's resources are what it returns.
const LIST_TOOL: &str = "list_commands";

/// The variables of the address of a command.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CommandAddress {
    /// The number of the command.
    id: String,
}

/// Returns the resources of background commands: their list, and each of them.
pub(super) fn resources() -> [Resource; 2] {
    let list = Resource::new(
        COMMANDS,
        "background-commands",
        "Background commands",
        "Your background commands: which run, and how the others ended. Subscribers are told when one starts or ends.",
        |context: CallContext| async move { Ok(Answer::text(context.text_of_tool(LIST_TOOL, Map::new()).await?)) },
    );
    let one = Resource::template(
        "coretools://commands/{id}",
        "background-command",
        "Background command",
        "The state of one of your background commands. Subscribers are told when it ends.",
        |address: CommandAddress, context: CallContext| async move {
            let commands = commands(&context).await?;
            match commands.iter().find(|command| command["id"].as_u64() == address.id.parse().ok()) {
                Some(command) => Ok(Answer::text(command.to_string())),
                None => Err(ToolError::not_found("no background command of yours has this number")),
            }
        },
    );
    let ids = |request: CompletionRequest, context: CallContext| async move {
        let ids = commands(&context).await?.into_iter().map(|command| command["id"].to_string());
        Ok(ids.filter(|id| id.starts_with(&request.value)).collect())
    };
    let one = one.completes("id", Completer::new(ids));
    [list, one].map(|resource| resource.mime_type("application/json").uses_tools(&[LIST_TOOL]))
}

/// Returns the background commands of the caller.
async fn commands(context: &CallContext) -> Result<Vec<Value>, ToolError> {
    let text = context.text_of_tool(LIST_TOOL, Map::new()).await?;
    let mut list: Value = serde_json::from_str(&text)
        .map_err(|error| ToolError::new(format!("the list of commands cannot be read: {error}")))?;
    match list["commands"].take() {
        Value::Array(commands) => Ok(commands),
        _ => Err(ToolError::new("the list of commands has no commands")),
    }
}

/// Tells the clients of the owner of each command when it starts and when it ends.
pub(super) fn tell_of_changes(background: &BackgroundCommands, notices: &ClientNotices) {
    let notices = notices.clone();
    background.on_change(move |owner, state| {
        let address = format!("{COMMANDS}/{}", state.id);
        notices.resource_updated_for(owner, COMMANDS);
        notices.resource_updated_for(owner, &address);
        if state.state != BackgroundStatus::Running {
            notices.log_for(owner, level_of_end(state), "commands", end_message(state, &address));
        }
    });
}

/// Returns the level of the message about the end of a command: a warning if it did not end well.
fn level_of_end(state: &BackgroundState) -> LogLevel {
    match (state.state, state.exit_code) {
        (BackgroundStatus::Exited, Some(0)) | (BackgroundStatus::Stopped, _) => LogLevel::Info,
        _ => LogLevel::Warning,
    }
}

/// Returns the message about the end of a command.
fn end_message(state: &BackgroundState, address: &str) -> Value {
    let ended = match (state.exit_code, &state.signal) {
        (Some(code), _) => format!("{} with exit code {code}", state.state.name()),
        (None, Some(signal)) => format!("{} by {signal}", state.state.name()),
        (None, None) => state.state.name().to_owned(),
    };
    json!({
        "message": format!("background command {} ended: {ended}", state.id),
        "resource": address,
        "command": state,
    })
}
