//! The subcommand `index`: writes `.agent/index.agent.md`, an overview of the tools for agents and people who look before
//! they connect. The same tools give the same bytes; the whole file is written each time.
#![allow(clippy::disallowed_methods, reason = "the file belongs to the user who runs the command")]

use crate::atomic_file;
use crate::configured_server;
use crate::error::Error;
use crate::output::{name, print, print_error};
use clap::Args;
use serde_json::{Map, Value};
use server_setup::settings::Settings;
use server_setup::setup::LocalServer;
use server_setup::toolsets;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The arguments of `index`.
#[derive(Args, Clone, Debug)]
pub(crate) struct IndexArguments {
    /// File to write; "-" prints. Default: .agent/index.agent.md in the first root
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write nothing; fail if the file is not up to date
    #[arg(long)]
    check: bool,
}

pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  written, or up to date
  1  --check: the file is stale, was changed by hand, or is missing
  2  it could not be read or written";

/// The default file, in the first root.
const DEFAULT_PATH: &str = ".agent/index.agent.md";

/// The introspection points: a tool of the library, the thing that it looks into, and its tags.
const INTROSPECTION_POINTS: [(&str, &str, &str); 10] = [
    ("inspect_state", "process state", "introspection_point"),
    ("run_tests", "test runner", "introspection_point"),
    ("run_test_suite", "test runner", "introspection_point"),
    ("run_test_task", "test runner", "introspection_point"),
    ("db_bridge", "database", "introspection_point"),
    ("capture_trace", "profiler", "introspection_point, profiling"),
    ("get_logs", "logs", "introspection_point"),
    ("status", "agents' sessions", "introspection_point"),
    ("logs", "agents' sessions", "introspection_point"),
    ("get_diagnostics", "the server itself", "introspection_point"),
];

/// The entry of one tool, as a client gets it.
pub(crate) struct ToolIndexEntry {
    name: String,
    toolset: &'static str,
    title: String,
    description: String,
    parameters: String,
    answers: String,
    hints: Vec<&'static str>,
}

/// Writes the index, prints it, or checks that the file is up to date.
pub(crate) fn index(settings: Settings, arguments: &IndexArguments) -> Result<ExitCode, Error> {
    let program = settings.program;
    let root = settings.roots.first().cloned().unwrap_or_default();
    let path = arguments.out.clone().unwrap_or_else(|| program.home(root).join(DEFAULT_PATH));
    let project_tools = toolsets::own(&settings)?;
    let server = configured_server::server(settings)?;
    let entries = entries(&server);
    let text = document(program.name, &entries, &project_tools);
    if arguments.check {
        return check(&path, &text);
    }
    if path == Path::new("-") {
        return Ok(print(text.trim_end()));
    }
    match std::fs::read_to_string(&path) {
        // An unchanged file keeps its time, so that nothing that watches it runs.
        Ok(current) if current == text => return Ok(print(&format!("{} is up to date", path.display()))),
        _ => {}
    }
    atomic_file::replace(&path, &text, None)
        .map_err(Error::system(format!("cannot write {}", path.display())))?;
    Ok(print(&format!("wrote {}: {} tools", path.display(), entries.len())))
}

/// Checks that the file is what would be written, and prints the lines that differ.
fn check(path: &Path, text: &str) -> Result<ExitCode, Error> {
    let shown = path.display();
    let remedy = format!("`{} index` writes it", name());
    let current = match std::fs::read_to_string(path) {
        Ok(current) => current,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            print_error(&format!("{shown} is missing; {remedy}"));
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return Err(Error::system(format!("cannot read {shown}"))(error)),
    };
    if current == text {
        return Ok(print(&format!("{shown} is up to date")));
    }
    // The checksum tells a file that another set of tools gave from one that somebody edited.
    let why = match current
        .rsplit_once("\n\n")
        .is_some_and(|(body, last)| last == checksum(&format!("{body}\n")))
    {
        true => "is stale",
        false => "is stale or was changed by hand",
    };
    print_error(&format!("{shown} {why}; {remedy}\n{}", difference(&current, text)));
    Ok(ExitCode::FAILURE)
}

/// Lists the lines that only one of the texts has, a few of each.
fn difference(old: &str, new: &str) -> String {
    const MAX_LINES: usize = 5;
    // The checksum, which ends both, always differs.
    let above = |text: &str| text.trim_end().rfind('\n').unwrap_or(0);
    let (old, new) = (&old[..above(old)], &new[..above(new)]);
    let mut lines = Vec::new();
    for (mark, text, other_text) in [('-', old, new), ('+', new, old)] {
        let other_lines: HashSet<&str> = other_text.lines().collect();
        let only: Vec<&str> = text.lines().filter(|line| !other_lines.contains(line)).collect();
        lines.extend(only.iter().take(MAX_LINES).map(|line| format!("{mark} {line}")));
        if only.len() > MAX_LINES {
            lines.push(format!("{mark} … {} more lines", only.len() - MAX_LINES));
        }
    }
    match lines.is_empty() {
        true => "the same lines, in another order or another number, or another checksum".to_owned(),
        false => lines.join("\n"),
    }
}

/// Writes the file whole or not at all: a reader never sees half of it.
/// Returns an entry for each tool that the server's caller sees.
pub(crate) fn entries(server: &LocalServer) -> Vec<ToolIndexEntry> {
    let toolsets = server.host.toolsets(&server.caller);
    let tools = server.host.list(&server.caller);
    tools.iter().zip(toolsets).map(|(tool, toolset)| entry(&serde_json::json!(tool), toolset)).collect()
}

impl ToolIndexEntry {
    /// Returns the name of the tool.
    #[cfg(feature = "new")]
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if the tool belongs to `toolset`.
    #[cfg(feature = "new")]
    pub(crate) fn is_in(&self, toolset: &str) -> bool {
        self.toolset == toolset
    }
}

/// Writes the document for the server `name` with these tools, of which `project_tools` are the project's own.
pub(crate) fn document(name: &str, entries: &[ToolIndexEntry], project_tools: &[&str]) -> String {
    let mut text = format!(
        "# {name}\n\n\
         An MCP server. This file is generated from its tools by `{name} index`; change the tools, not the file.\n\n\
         ## Tools\n\n| Tool | Parameters | Return Type | Description |\n|---|---|---|---|\n"
    );
    for entry in entries {
        let ToolIndexEntry { name, parameters, answers, description, .. } = entry;
        // A bar would begin the next cell, even within backticks.
        let cells = [parameters, answers, description].map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(text, "| `{name}` | {} |", cells.join(" | "));
    }
    text.push_str(
        "\nA parameter with `?` may be left out; `= value` is its default. `tools --json` prints the whole schemas.\n\n\
         ## Modules\n\n| Tool | Title | Module | Tags |\n|---|---|---|---|\n",
    );
    for entry in entries {
        let mut tags = entry.hints.clone();
        tags.extend(
            INTROSPECTION_POINTS.iter().filter(|(tool, ..)| *tool == entry.name).map(|(_, _, tags)| *tags),
        );
        if project_tools.contains(&entry.name.as_str()) {
            tags.push("project");
        }
        let ToolIndexEntry { name, title, toolset, .. } = entry;
        let _ = writeln!(text, "| `{name}` | {title} | {toolset} | {} |", tags.join(", "));
    }
    text.push_str("\n## Introspection Points\n\n");
    let mut points = 0;
    for (tool, what, _) in INTROSPECTION_POINTS {
        if entries.iter().any(|entry| entry.name == tool) {
            points += 1;
            let _ = writeln!(text, "- `{tool}`: {what}");
        }
    }
    for entry in entries.iter().filter(|entry| project_tools.contains(&entry.name.as_str())) {
        points += 1;
        let _ = writeln!(text, "- `{}`: the project's own: {}", entry.name, entry.title);
    }
    if points == 0 {
        text.push_str("None: no tool here looks into a running project.\n");
    }
    let _ = write!(
        text,
        "\n## Lifecycle\n\n\
         - Start: the client runs `{name}` in the project's folder; MCP goes over standard input and output, the log to \
           standard error.\n\
         - Ready: when `initialize` (or `server/discover`, since 2026-07-28) is answered.\n\
         - Bounds: each call has a deadline and a largest answer; cancelling a call ends what it started.\n\
         - End: standard input closes, or SIGTERM, SIGINT or SIGHUP comes; within a second the server is gone, and with \
           it every process it started. The exit code is 0.\n\
         \n## Extension\n\n\
         - A tool is a name, a typed input whose comments are the schema, what it reaches (`effects`), and a function.\n\
         - A server of one's own is `mcp_stdio::main(Program::new(…).toolset(…).roles(…))`; `mcp-stdio new` writes one.\n\
         - A tool with the name of one above takes its place, and is judged by the same roles.\n\
         - Then run `{name} index` again; `{name} index --check` fails while this file is stale.\n\n"
    );
    let sum = checksum(&text[..text.len() - 1]);
    text + &sum
}

/// Returns the last line, the checksum of all lines above it.
fn checksum(body: &str) -> String {
    let mut hash = String::new();
    for byte in Sha256::digest(body.as_bytes()) {
        let _ = write!(hash, "{byte:02x}");
    }
    format!("<!-- sha256 of the lines above: {hash} -->\n")
}

fn entry(tool: &Value, toolset: &'static str) -> ToolIndexEntry {
    let text = |name: &str| tool[name].as_str().unwrap_or_default().to_owned();
    let hint = |name: &str| tool["annotations"][name].as_bool() == Some(true);
    let hints = [
        ("readOnlyHint", "read-only"),
        ("destructiveHint", "destructive"),
        ("idempotentHint", "idempotent"),
        ("openWorldHint", "open-world"),
    ];
    ToolIndexEntry {
        name: text("name"),
        toolset,
        title: text("title"),
        description: text("description"),
        parameters: parameters(&tool["inputSchema"]),
        answers: answers(&tool["outputSchema"]),
        hints: hints.into_iter().filter(|(name, _)| hint(name)).map(|(_, tag)| tag).collect(),
    }
}

/// Writes the parameters of a schema: `path: string, depth?: integer 1..10 = 3`.
fn parameters(schema: &Value) -> String {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let parameters: Vec<String> = members(schema)
        .map(|(name, schema)| {
            let mut text = format!(
                "{name}{}: {}",
                if required.contains(&name.as_str()) { "" } else { "?" },
                kind(schema)
            );
            if schema.get("minimum").is_some() || schema.get("maximum").is_some() {
                let bound = |name: &str| schema.get(name).map(Value::to_string).unwrap_or_default();
                let _ = write!(text, " {}..{}", bound("minimum"), bound("maximum"));
            }
            if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
                let _ = write!(text, " = {default}");
            }
            text
        })
        .collect();
    match parameters.is_empty() {
        true => "none".to_owned(),
        false => format!("`{}`", parameters.join(", ")),
    }
}

fn members(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flat_map(Map::iter)
}

/// Describes a schema in a word or two.
fn kind(schema: &Value) -> String {
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|");
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        return choices.iter().map(kind).collect::<Vec<_>>().join("|");
    }
    match &schema["type"] {
        Value::String(name) if name == "array" && schema["items"].is_object() => {
            format!("{}[]", kind(&schema["items"]))
        }
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|"),
        _ => "any".to_owned(),
    }
}

fn answers(schema: &Value) -> String {
    if schema.is_null() {
        return "text".to_owned();
    }
    let names: Vec<&str> = members(schema).map(|(name, _)| name.as_str()).collect();
    match names.is_empty() {
        true => "object".to_owned(),
        false => format!("`{{{}, …}}`", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_parameter_is_told_with_its_type_range_default_and_whether_it_is_needed() {
        let schema = json!({
            "required": ["path"],
            "properties": {
                "path": {"type": "string"},
                "depth": {"type": "integer", "minimum": 1, "maximum": 10, "default": 3},
                "level": {"enum": ["info", "error"]},
                "files": {"type": "array", "items": {"type": "string"}},
            }
        });
        assert_eq!(
            parameters(&schema),
            "`path: string, depth?: integer 1..10 = 3, level?: info|error, files?: string[]`"
        );
        assert_eq!(parameters(&json!({})), "none");
    }

    #[test]
    fn a_difference_is_what_only_one_has_and_not_the_checksum() {
        assert_eq!(difference("a\nb\nc\nsum 1\n", "a\nB\nb2\nc\nsum 2\n"), "- b\n+ B\n+ b2");
        assert_eq!(difference("", "a\nsum\n"), "+ a");
        assert!(difference("a\nb\nsum\n", "b\na\nsum\n").starts_with("the same lines"));
    }
}
