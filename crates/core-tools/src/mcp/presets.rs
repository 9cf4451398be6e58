//! The presets: named lists of tools for a client to show its model.

/// A preset: a name, and the tools that it lists.
pub(crate) struct Preset {
    pub(crate) name: &'static str,
    /// The tools by name. One that the server is not linked with is no error: it is not there.
    tools: &'static [&'static str],
    /// The tools that are listed only where a supervisor of agents is configured.
    supervised: &'static [&'static str],
    /// The tools that are listed besides.
    others: Others,
}

/// The tools that a preset lists without naming them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    /// None.
    None,
    /// Those that the program brings itself: its author wants them seen.
    Own,
    /// All.
    All,
}

/// The toolsets of the library. Every other one is a program's own.
const LIBRARY: [&str; 8] =
    ["filesystem", "git", "tests", "context", "ci", "introspection", "sessions", "discovery"];

/// The names of the presets, the default first. `all` is another name of `full`.
pub const PRESETS: [&str; 6] = ["standard", "full", "edit", "introspect", "minimal", "all"];

const TABLE: [Preset; 6] = [
    Preset {
        name: "standard",
        tools: &[
            // Files.
            "read_file",
            "read_multiple_files",
            "write_file",
            "edit_file",
            "apply_patch",
            "list_directory",
            "find_files",
            "search_files",
            "file_outline",
            // Git.
            "git_status",
            "git_log",
            "git_diff",
            "git_show",
            "git_commit",
            "git_create_branch",
            "git_checkout",
            "git_merge",
            "git_stash",
            // Commands, builds and tests.
            "run_command",
            "start_command",
            "read_command_output",
            "stop_command",
            "build",
            "run_tests",
            // The roots and what is installed: a role that may call nothing else still has a list.
            "get_diagnostics",
            // The running application.
            "inspect_state",
            "db_bridge",
            "capture_trace",
            "get_logs",
            "find_tools",
            "call_tools",
        ],
        supervised: &["status", "new_session", "send_message", "list_sessions", "logs", "end_session"],
        others: Others::Own,
    },
    Preset { name: "full", tools: &[], supervised: &[], others: Others::All },
    Preset {
        name: "edit",
        tools: &[
            "read_file",
            "read_multiple_files",
            "write_file",
            "edit_file",
            "apply_patch",
            "list_directory",
            "delete_file",
            "move_file",
            "create_directory",
            "find_files",
            "search_files",
            "file_outline",
            "run_command",
            "start_command",
            "read_command_output",
            "write_command_input",
            "stop_command",
            "find_tools",
        ],
        supervised: &[],
        others: Others::None,
    },
    Preset {
        name: "introspect",
        tools: &[
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
            "find_tools",
        ],
        supervised: &[],
        others: Others::None,
    },
    Preset {
        name: "minimal",
        tools: &["read_file", "write_file", "edit_file", "list_directory", "search_files", "run_command"],
        supervised: &[],
        others: Others::None,
    },
    Preset { name: "all", tools: &[], supervised: &[], others: Others::All },
];

/// Returns the preset of this name.
pub(crate) fn preset(name: &str) -> Option<&'static Preset> {
    TABLE.iter().find(|preset| preset.name == name)
}

impl Preset {
    /// Returns true if it lists the tool `tool` of `toolset`, in a server with or without a supervisor.
    pub(crate) fn lists(&self, toolset: &str, tool: &str, supervised: bool) -> bool {
        self.tools.contains(&tool)
            || (supervised && self.supervised.contains(&tool))
            || match self.others {
                Others::None => false,
                Others::Own => !LIBRARY.contains(&toolset),
                Others::All => true,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_names_are_those_of_the_table() {
        assert_eq!(TABLE.each_ref().map(|preset| preset.name), PRESETS);
        for preset in &TABLE {
            let names: BTreeSet<_> = preset.tools.iter().chain(preset.supervised).collect();
            assert_eq!(names.len(), preset.tools.len() + preset.supervised.len(), "{}", preset.name);
        }
    }

    #[test]
    fn a_tool_of_the_programs_own_is_in_the_default_list_and_sessions_with_a_supervisor() {
        let standard = preset("standard").unwrap();
        assert!(standard.lists("project", "find_notes", false));
        assert!(!standard.lists("git", "git_blame", false));
        assert!(
            standard.lists("sessions", "new_session", true)
                && !standard.lists("sessions", "new_session", false)
        );
        assert!(!preset("edit").unwrap().lists("project", "find_notes", false));
        assert!(preset("full").unwrap().lists("filesystem", "directory_exists", false));
    }
}
