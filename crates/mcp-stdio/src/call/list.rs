//! The subcommand `tools`: the tools that a client is offered.

use crate::output::print;
use crate::terminal::colours;
use serde_json::json;
use server_setup::setup::LocalServer;
use std::fmt::Write as _;
use std::process::ExitCode;

/// Prints the tools that a client would be offered.
pub(crate) fn tools(server: &LocalServer, as_json: bool, as_markdown: bool) -> ExitCode {
    if as_markdown {
        return print(server.host.reference(&server.caller).trim_end());
    }
    let tools = server.host.list(&server.caller);
    if as_json {
        return print(&format!("{:#}", json!({"tools": tools})));
    }
    let colours = colours(&std::io::stdout());
    let toolsets = server.host.toolsets(&server.caller);
    let width = tools.iter().map(|tool| tool.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut last_toolset = "";
    for (tool, toolset) in tools.iter().zip(toolsets) {
        if toolset != last_toolset {
            let heading = colours.bold(&format!("{toolset}:"));
            let _ = writeln!(text, "{}{heading}", if last_toolset.is_empty() { "" } else { "\n" });
            last_toolset = toolset;
        }
        let title = tool.title.as_deref().unwrap_or_default();
        let _ = writeln!(text, "  {:width$}  {title}", tool.name);
    }
    // Each conversation pays for these bytes: a client gives the list to its model.
    let bytes = json!({"tools": tools}).to_string().len();
    let _ = write!(text, "\n{} tools; a client's list of them has {bytes} bytes", tools.len());
    print(&text)
}
