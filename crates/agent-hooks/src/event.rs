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
        let names = MemberNames::of(client);
        if let Some(name) = names.event {
            let (found, expected) = (member(&event, name)?, client.event());
            if found != expected {
                return Err(EventError::Event { found, expected });
            }
        }
        let tool = member(&event, names.tool)?;
        let session = member(&event, names.session).ok();
        let input = match event.remove(names.input) {
            Some(Value::Object(input)) => input,
            None | Some(Value::Null) => Map::new(),
            Some(Value::String(text)) => match serde_json::from_str(&text) {
                // Copilot CLI sent the arguments as the text of an object once.
                Ok(Value::Object(input)) if client == HookClient::Copilot => input,
                // A tool of Codex and of Copilot CLI may take plain text.
                _ => Map::from_iter([("input".to_owned(), Value::String(text))]),
            },
            Some(_) => return Err(EventError::Member(names.input)),
        };
        let folder = match client {
            HookClient::Cursor => cursor_folder(&event, &input)?,
            _ => PathBuf::from(member(&event, "cwd")?),
        };
        if !folder.is_absolute() {
            return Err(EventError::Member("cwd"));
        }
        Ok(Self { client, tool, input, folder, session })
    }
}

/// The names of the members of an event.
struct MemberNames {
    /// The member with the name of the event, or `None` for a client whose events do not name themselves.
    event: Option<&'static str>,
    tool: &'static str,
    input: &'static str,
    session: &'static str,
}

impl MemberNames {
    const fn of(client: HookClient) -> Self {
        match client {
            HookClient::Copilot => {
                Self { event: None, tool: "toolName", input: "toolArgs", session: "sessionId" }
            }
            _ => Self {
                event: Some("hook_event_name"),
                tool: "tool_name",
                input: "tool_input",
                session: "session_id",
            },
        }
    }
}

fn member(event: &Map<String, Value>, name: &'static str) -> Result<String, EventError> {
    match event.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        _ => Err(EventError::Member(name)),
    }
}

/// Returns the folder of an event of Cursor, whose `cwd` may be empty: then the first folder of the workspace is meant.
fn cursor_folder(event: &Map<String, Value>, input: &Map<String, Value>) -> Result<PathBuf, EventError> {
    let own = member(event, "cwd").ok();
    let of_tool = || member(input, "working_directory").or_else(|_| member(input, "cwd")).ok();
    let of_workspace = || {
        let roots = event.get("workspace_roots")?.as_array()?;
        roots.first()?.as_str().filter(|root| !root.is_empty()).map(str::to_owned)
    };
    own.or_else(of_tool).or_else(of_workspace).map(PathBuf::from).ok_or(EventError::Member("cwd"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_copilot_has_names_of_its_own_and_arguments_as_an_object_or_its_text() {
        let text = r#"{"sessionId":"98ac51b7","timestamp":1795810228366,"cwd":"/srv/app","toolName":"bash",
            "toolArgs":{"command":"echo hi","description":"say"}}"#;
        let event = HookEvent::parse(HookClient::Copilot, text).unwrap();
        assert_eq!((event.tool.as_str(), event.session.as_deref()), ("bash", Some("98ac51b7")));
        assert_eq!(event.input["command"], "echo hi");
        let older = r#"{"timestamp":1,"cwd":"/srv/app","toolName":"bash","toolArgs":"{\"command\":\"ls\"}"}"#;
        assert_eq!(HookEvent::parse(HookClient::Copilot, older).unwrap().input["command"], "ls");
        let patch =
            r#"{"timestamp":1,"cwd":"/srv/app","toolName":"apply_patch","toolArgs":"*** Begin Patch"}"#;
        assert_eq!(HookEvent::parse(HookClient::Copilot, patch).unwrap().input["input"], "*** Begin Patch");
        for bad in [r#"{"cwd":"/srv","toolArgs":{}}"#, r#"{"cwd":"srv","toolName":"bash","toolArgs":{}}"#] {
            assert!(HookEvent::parse(HookClient::Copilot, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_event_of_cursor_without_a_folder_is_in_the_first_folder_of_the_workspace() {
        let parse = |more: &str| {
            let text = format!(
                r#"{{"hook_event_name":"preToolUse","tool_name":"Shell","conversation_id":"c","session_id":"c",{more}}}"#
            );
            HookEvent::parse(HookClient::Cursor, &text)
        };
        let roots = r#""workspace_roots":["/srv/app","/srv/other"]"#;
        let folder = |more: String| parse(&more).unwrap().folder;
        assert_eq!(folder(format!(r#""cwd":"",{roots}"#)), PathBuf::from("/srv/app"));
        let named = format!(r#""cwd":"","tool_input":{{"command":"ls","cwd":"/srv/other"}},{roots}"#);
        assert_eq!(folder(named), PathBuf::from("/srv/other"));
        assert_eq!(folder(format!(r#""cwd":"/srv/here",{roots}"#)), PathBuf::from("/srv/here"));
        assert!(parse(r#""cwd":"""#).is_err());
    }
}
