//! `hook test`: the decisions for a list of events.

use super::answer::host;
use crate::cli::GlobalOptions;
use crate::error::Error;
use crate::output::print;
use agent_hooks::{HookClient, HookEvent, HookVerdict};
use error_causes::chain;
use serde_json::{Map, Value, json};
use server_setup::Program;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

/// Prints the decision for each line of `file`: an event, or only `{"tool_name": …, "tool_input": …}`.
#[allow(clippy::disallowed_methods, reason = "the user names the file")]
pub(super) fn test(
    program: Program,
    options: &GlobalOptions,
    client: HookClient,
    file: &Path,
) -> Result<ExitCode, Error> {
    let mut text = String::new();
    if file == Path::new("-") {
        std::io::stdin()
            .lock()
            .read_to_string(&mut text)
            .map_err(Error::system("cannot read standard input"))?;
    } else {
        text = std::fs::read_to_string(file)
            .map_err(Error::system(format!("cannot read {}", file.display())))?;
    }
    let folder = std::env::current_dir().map_err(Error::system("cannot find the current folder"))?;
    let host = host(program, options, client)?;
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let invalid = |problem: String| Error::Argument(format!("line {}: {problem}", number + 1));
        let mut event: Map<String, Value> =
            serde_json::from_str(line).map_err(|error| invalid(error.to_string()))?;
        for (key, value) in
            [("hook_event_name", json!(client.event())), ("cwd", json!(folder.to_string_lossy()))]
        {
            event.entry(key).or_insert(value);
        }
        // One form of a list serves for every client.
        if client == HookClient::Copilot {
            for (key, own) in [("tool_name", "toolName"), ("tool_input", "toolArgs")] {
                if let Some(value) = event.remove(key) {
                    event.entry(own).or_insert(value);
                }
            }
        }
        let event = HookEvent::parse(client, &Value::Object(event).to_string())
            .map_err(|error| invalid(chain(&error)))?;
        let decision = host.explain(&event);
        let word = match decision.verdict {
            HookVerdict::Allow => "allow",
            HookVerdict::Ask => "ask",
            _ => "deny",
        };
        let reason = if decision.reason.is_empty() { &decision.rule } else { &decision.reason };
        lines.push(format!("{word:5}  {}  {}: {reason}", event.tool, decision.tool));
    }
    Ok(print(&lines.join("\n")))
}
