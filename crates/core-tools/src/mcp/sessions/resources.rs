//! The resources of sessions, and the notices of their changes.

use crate::mcp::answer::Answer;
use crate::mcp::call_context::CallContext;
use crate::mcp::client_notices::ClientNotices;
use crate::mcp::completion::{Completer, CompletionRequest};
use crate::mcp::log_level::LogLevel;
use crate::mcp::resource::Resource;
use crate::mcp::tool_error::ToolError;
use crate::sessions::{SessionChange, SessionService, SessionStateKind};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The address of the list of sessions. Each session has its own address below it.
const SESSIONS: &str = "coretools://sessions";
/// The tool that lists sessions. Its caller's resources are what it returns.
const LIST_TOOL: &str = "list_sessions";

/// The variables of the address of a session.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SessionAddress {
    /// The id of the session.
    id: String,
}

/// Returns the resources of sessions: their list, and each of them.
pub(super) fn resources() -> [Resource; 2] {
    let list = Resource::new(
        SESSIONS,
        "agent-sessions",
        "Sessions",
        "Your sessions of agents, with those that are over. Subscribers are told of each change of a state.",
        |context: CallContext| async move {
            let sessions = sessions(&context).await?;
            Ok(Answer::text(json!({ "sessions": sessions }).to_string()))
        },
    );
    let one = Resource::template(
        "coretools://sessions/{id}",
        "agent-session",
        "Session",
        "The state of one of your sessions. Subscribers are told of each change of the state.",
        |address: SessionAddress, context: CallContext| async move {
            let sessions = sessions(&context).await?;
            match sessions.iter().find(|session| session["session_id"] == address.id.as_str()) {
                Some(session) => Ok(Answer::text(session.to_string())),
                None => Err(ToolError::not_found("no session of yours has this id")),
            }
        },
    );
    let ids = |request: CompletionRequest, context: CallContext| async move {
        let sessions = sessions(&context).await?;
        let ids = sessions.iter().filter_map(|session| session["session_id"].as_str());
        Ok(ids.filter(|id| id.starts_with(&request.value)).map(str::to_owned).collect())
    };
    let one = one.completes("id", Completer::new(ids));
    [list, one].map(|resource| resource.mime_type("application/json").uses_tools(&[LIST_TOOL]))
}

/// Returns the sessions of the caller, also those that are over.
async fn sessions(context: &CallContext) -> Result<Vec<Value>, ToolError> {
    let all = Map::from_iter([("all".to_owned(), true.into())]);
    let text = context.text_of_tool(LIST_TOOL, all).await?;
    // The first line has their number.
    let sessions = text.lines().skip(1).map(serde_json::from_str).collect::<Result<_, _>>();
    sessions.map_err(|error| ToolError::new(format!("the list of sessions cannot be read: {error}")))
}

/// Tells the clients of the caller of each session when its state changes.
pub(super) fn tell_of_changes(sessions: &SessionService, notices: &ClientNotices) {
    let notices = notices.clone();
    sessions.on_change(move |change| {
        let owner = change.principal.as_deref().unwrap_or_default();
        let address = format!("{SESSIONS}/{}", change.session_id);
        notices.resource_updated_for(owner, SESSIONS);
        notices.resource_updated_for(owner, &address);
        if change.is_over() {
            notices.log_for(owner, level_of_end(change), "sessions", end_message(change, &address));
        }
    });
}

/// Returns the level of the message about the end of a session: a warning if the session failed.
fn level_of_end(change: &SessionChange) -> LogLevel {
    match change.state {
        SessionStateKind::Failed => LogLevel::Warning,
        _ => LogLevel::Info,
    }
}

/// Returns the message about the end of a session.
fn end_message(change: &SessionChange, address: &str) -> Value {
    json!({
        "message": format!("session {} is over: {}", change.session_id, change.reason),
        "resource": address,
        "session": { "session_id": change.session_id, "state": change.state },
    })
}
