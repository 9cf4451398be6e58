//! The flag by which some agents run a command in the background; here that is a tool of its own.

use super::coerce::as_boolean;
use super::synonyms::snake_case;
use crate::mcp::schema::JsonSchemaObject;
use serde_json::{Map, Value};

/// The names of the flag.
const FLAGS: [&str; 4] = ["background", "run_in_background", "is_background", "detach"];

/// Each tool that waits for its program, and the one that does not.
const BACKGROUND_TOOLS: [(&str, &str); 1] = [("run_command", "start_command")];

/// The parameters that both tools of a pair have. The time limit is none of them: it was for a call that waits.
pub(super) const SHARED_PARAMETERS: [&str; 3] = ["command", "working_directory", "env"];

/// A call that asks a tool which waits for its program to run it in the background.
pub(super) struct WantsBackground {
    /// The flag as it was given.
    pub(super) flag: String,
    /// The tool that does so.
    pub(super) tool: &'static str,
}

/// Takes the flag out of `arguments` where it says what the tool does anyway. Returns the other tool where it does not.
pub(super) fn take_flag(
    tool: &str,
    schema: &JsonSchemaObject,
    arguments: &mut Map<String, Value>,
) -> Option<WantsBackground> {
    let Some(Value::Object(properties)) = schema.get("properties") else { return None };
    if !properties.contains_key("command") || arguments.keys().all(|key| properties.contains_key(key)) {
        return None;
    }
    let (flag, wanted) = arguments.iter().find_map(|(key, value)| {
        let is_flag = FLAGS.contains(&snake_case(key).as_str()) && !properties.contains_key(key);
        is_flag.then(|| as_boolean(value).map(|wanted| (key.clone(), wanted)))?
    })?;
    let other = BACKGROUND_TOOLS.iter().find(|(waiting, _)| *waiting == tool).map(|(_, other)| *other);
    if wanted == other.is_none() {
        arguments.remove(&flag);
        return None;
    }
    if wanted {
        arguments.remove(&flag);
    }
    other.filter(|_| wanted).map(|tool| WantsBackground { flag, tool })
}
