//! [`HookEvent`]: the question that a client asks before it runs a tool.

use crate::client::HookClient;
use crate::error::EventError;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// The question of a client, before it runs one of its tools.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HookEvent {
    /// The client.
    pub client: HookClient,
    /// The tool, by the client's name for it.
    pub tool: String,
    /// The arguments of the tool, in the client's form.
    pub input: Map<String, Value>,
    /// The folder that the session is in.
    pub folder: PathBuf,
    /// The client's id of the session.
    pub session: Option<String>,
}

impl HookEvent {
    /// Creates the event of a tool that a client uses in `folder`, where the client asks in another way than by a hook.
    pub fn new(client: HookClient, tool: impl Into<String>, folder: impl Into<PathBuf>) -> Self {
        Self { client, tool: tool.into(), input: Map::new(), folder: folder.into(), session: None }
    }

    /// Reads the event that `client` writes to the standard input of its hooks.
    ///
    /// # Errors
    /// It is not such an event. The tool must not run then.
    pub fn parse(client: HookClient, text: &str) -> Result<Self, EventError> {
        let mut event: Map<String, Value> = serde_json::from_str(text).map_err(EventError::Json)?;
        let expected = match client {
            HookClient::Claude | HookClient::Codex => "PreToolUse",
            HookClient::Gemini => "BeforeTool",
            HookClient::Opencode => "tool.execute.before",
        };
        let member = |event: &Map<String, Value>, name: &'static str| match event.get(name) {
            Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
            _ => Err(EventError::Member(name)),
        };
        let found = member(&event, "hook_event_name")?;
        if found != expected {
            return Err(EventError::Event { found, expected });
        }
        let tool = member(&event, "tool_name")?;
        let folder = PathBuf::from(member(&event, "cwd")?);
        if !folder.is_absolute() {
            return Err(EventError::Member("cwd"));
        }
        let session = member(&event, "session_id").ok();
        let input = match event.remove("tool_input") {
            Some(Value::Object(input)) => input,
            None | Some(Value::Null) => Map::new(),
            // A tool of Codex may take plain text.
            Some(Value::String(text)) => Map::from_iter([("input".to_owned(), Value::String(text))]),
            Some(_) => return Err(EventError::Member("tool_input")),
        };
        Ok(Self { client, tool, input, folder, session })
    }
}
