//! Which tools are offered: everything, a preset, toolsets, single tools.

use super::tool::Toolset;
use crate::nearest::nearest;
use std::collections::HashSet;

/// Which tools are offered. All of them by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    words: Vec<String>,
}

/// What agents use every day when they change code.
const EDIT: &[&str] = &[
    "read_file",
    "read_multiple_files",
    "write_file",
    "edit_file",
    "list_directory",
    "delete_file",
    "move_file",
    "create_directory",
    "find_files",
    "search_files",
    "run_command",
    "start_command",
    "read_command_output",
    "write_command_input",
    "stop_command",
];

/// What it takes to start a program, look into it while it runs, and read its source.
const INTROSPECT: &[&str] = &[
    "read_file",
    "list_directory",
    "search_files",
    "start_command",
    "read_command_output",
    "stop_command",
    "list_commands",
    "inspect_state",
    "db_bridge",
    "capture_trace",
    "get_logs",
];

/// The fewest tools that can do any work.
const MINIMAL: &[&str] =
    &["read_file", "write_file", "edit_file", "list_directory", "search_files", "run_command"];

/// What `full` leaves out, since every conversation pays for a list: another tool does nearly the same, or few ask
/// for it.
const SELDOM: &[&str] = &[
    "read_media_file",
    "directory_tree",
    "get_file_info",
    "git_blame",
    "git_restore",
    "git_stash",
    "send_message",
    "run_agent_command",
    "list_sessions",
];

/// The presets, by name.
pub const PRESETS: [&str; 5] = ["all", "full", "edit", "introspect", "minimal"];

impl Selection {
    /// A selection of presets ([`PRESETS`]), toolsets and tools, by name. What any of the
    /// words names is offered; no words at all is everything.
    pub fn new<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Self {
        Self { words: words.into_iter().map(Into::into).collect() }
    }

    /// The names of the chosen tools.
    pub(crate) fn resolve(&self, toolsets: &[Toolset]) -> Result<HashSet<&'static str>, String> {
        let all = || toolsets.iter().flat_map(|toolset| toolset.tools.iter().map(super::Tool::name));
        if self.words.is_empty() {
            return Ok(all().collect());
        }
        let mut chosen = HashSet::new();
        for word in &self.words {
            match word.as_str() {
                "all" => chosen.extend(all()),
                "full" => chosen.extend(all().filter(|name| !SELDOM.contains(name))),
                "edit" => chosen.extend(all().filter(|name| EDIT.contains(name))),
                "introspect" => chosen.extend(all().filter(|name| INTROSPECT.contains(name))),
                "minimal" => chosen.extend(all().filter(|name| MINIMAL.contains(name))),
                word => {
                    let toolset = toolsets.iter().find(|toolset| toolset.name == word);
                    let tools: Vec<_> = match toolset {
                        Some(toolset) => toolset.tools.iter().map(super::Tool::name).collect(),
                        None => all().filter(|name| *name == word).collect(),
                    };
                    if tools.is_empty() {
                        let known = PRESETS.into_iter().chain(toolsets.iter().map(|toolset| toolset.name));
                        let names: Vec<_> = known.clone().collect();
                        let meant = nearest(word, known.chain(all()))
                            .map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
                        return Err(format!(
                            "no preset, toolset or tool is called `{word}`{meant} (presets and toolsets: {})",
                            names.join(", ")
                        ));
                    }
                    chosen.extend(tools);
                }
            }
        }
        Ok(chosen)
    }
}
