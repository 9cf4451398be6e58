//! The selection of the tools that a server offers: everything, presets, toolsets, single tools.

use super::tool::Tool;
use super::toolset::Toolset;
use did_you_mean::nearest;
use std::collections::HashSet;

/// The tools that a server offers. All of them by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolSelection {
    words: Vec<String>,
}

/// The preset `edit`: what agents use every day when they change code.
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

/// The preset `introspect`: what it takes to start a program, look into it while it runs, and read its source.
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

/// The preset `minimal`: the fewest tools that can do any work.
const MINIMAL: &[&str] =
    &["read_file", "write_file", "edit_file", "list_directory", "search_files", "run_command"];

/// The tools that the preset `full` leaves out, since every conversation pays for a list: another tool does nearly the
/// same, or few ask for it.
const RARELY_USED: &[&str] = &[
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

/// The names of the presets.
pub const PRESETS: [&str; 5] = ["all", "full", "edit", "introspect", "minimal"];

impl ToolSelection {
    /// A selection of presets ([`PRESETS`]), toolsets and tools, by name. What any of the
    /// words names is offered; no words at all is everything.
    pub fn new<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Self {
        Self { words: words.into_iter().map(Into::into).collect() }
    }

    /// Returns the names of the selected tools.
    pub(crate) fn resolve(&self, toolsets: &[Toolset]) -> Result<HashSet<&'static str>, UnknownSelection> {
        let all = || toolsets.iter().flat_map(|toolset| toolset.tools.iter().map(Tool::name));
        if self.words.is_empty() {
            return Ok(all().collect());
        }
        let mut selected = HashSet::new();
        for word in &self.words {
            match word.as_str() {
                "all" => selected.extend(all()),
                "full" => selected.extend(all().filter(|name| !RARELY_USED.contains(name))),
                "edit" => selected.extend(all().filter(|name| EDIT.contains(name))),
                "introspect" => selected.extend(all().filter(|name| INTROSPECT.contains(name))),
                "minimal" => selected.extend(all().filter(|name| MINIMAL.contains(name))),
                word => {
                    // A toolset first: `context` and `git` are no tools, but a tool may be called like its toolset.
                    let named: Vec<_> = match toolsets.iter().find(|toolset| toolset.name == word) {
                        Some(toolset) => toolset.tools.iter().map(Tool::name).collect(),
                        None => all().filter(|name| *name == word).collect(),
                    };
                    if named.is_empty() {
                        return Err(UnknownSelection::new(word, toolsets));
                    }
                    selected.extend(named);
                }
            }
        }
        Ok(selected)
    }
}

/// A selection names something that is no preset, toolset or tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no preset, toolset or tool is called `{word}`{hint} (presets and toolsets: {known})", hint = did_you_mean(.nearest.as_deref()))]
pub struct UnknownSelection {
    word: String,
    nearest: Option<String>,
    known: String,
}

impl UnknownSelection {
    fn new(word: &str, toolsets: &[Toolset]) -> Self {
        let groups = || PRESETS.into_iter().chain(toolsets.iter().map(|toolset| toolset.name));
        let tools = toolsets.iter().flat_map(|toolset| toolset.tools.iter().map(Tool::name));
        Self {
            word: word.to_owned(),
            nearest: nearest(word, groups().chain(tools)).map(str::to_owned),
            known: groups().collect::<Vec<_>>().join(", "),
        }
    }
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}
