//! The files of a project that a client loads by itself when it starts: what stands in them runs, or tells the client what to
//! run, without a tool that a hook could judge.

use crate::client::HookClient;
use crate::installation::HookInstallation;

/// The folders of a project from which a client loads plug-ins, commands, agents or settings.
const FOLDERS: [&str; 46] = [
    ".agents/skills",
    ".claude-plugin",
    ".claude/agents",
    ".claude/commands",
    ".claude/hooks",
    ".claude/output-styles",
    ".claude/plugins",
    ".claude/skills",
    ".codex/agents",
    ".codex/hooks",
    ".codex/plugins",
    ".codex/prompts",
    ".codex/rules",
    ".codex/skills",
    ".continue/agents",
    ".continue/mcpServers",
    ".continue/prompts",
    ".cursor/agents",
    ".cursor/commands",
    ".cursor/hooks",
    ".cursor/rules",
    ".cursor/skills",
    ".gemini/agents",
    ".gemini/commands",
    ".gemini/extensions",
    ".gemini/hooks",
    ".gemini/policies",
    ".gemini/skills",
    ".github/agents",
    ".github/extensions",
    ".github/hooks",
    ".github/skills",
    ".opencode/agent",
    ".opencode/agents",
    ".opencode/command",
    ".opencode/commands",
    ".opencode/mode",
    ".opencode/modes",
    ".opencode/plugin",
    ".opencode/plugins",
    ".opencode/skill",
    ".opencode/skills",
    ".opencode/tool",
    ".opencode/tools",
    ".roo/commands",
    ".windsurf/workflows",
];

/// The files of a project that editors and clients without a hook of ours load.
const FILES: [&str; 13] = [
    ".codex/requirements.toml",
    ".cursor/environment.json",
    ".devcontainer.json",
    ".devcontainer/devcontainer.json",
    ".envrc",
    ".mcp.json",
    ".opencode/package.json",
    ".roo/mcp.json",
    ".vscode/launch.json",
    ".vscode/mcp.json",
    ".vscode/settings.json",
    ".vscode/tasks.json",
    ".windsurf/hooks.json",
];

/// The folders beneath a client's folder of the user from which it loads plug-ins, commands and agents.
const fn user_folders(client: HookClient) -> &'static [&'static str] {
    match client {
        HookClient::Claude => &["agents", "commands", "hooks", "output-styles", "plugins", "skills"],
        HookClient::Codex => &["prompts", "rules", "skills"],
        HookClient::Gemini => &["agents", "commands", "extensions", "hooks", "policies", "skills"],
        HookClient::Opencode => &[
            "agent", "agents", "command", "commands", "mode", "modes", "plugin", "plugins", "skill",
            "skills", "tool", "tools",
        ],
        HookClient::Copilot => &["agents", "extensions", "hooks", "installed-plugins", "skills"],
        HookClient::Cursor => &["agents", "commands", "extensions", "hooks", "rules", "skills"],
    }
}

impl HookInstallation {
    /// Returns the folders of a project from which some client loads what it runs. They are protected with everything
    /// beneath them.
    ///
    /// Those of every client are meant: the next one that opens the project need not be the one with the hook.
    pub const fn loaded_folders() -> &'static [&'static str] {
        &FOLDERS
    }

    /// Returns the files of a project that some client loads by itself, beside
    /// [its settings](HookInstallation::project_settings).
    pub const fn loaded_files() -> &'static [&'static str] {
        &FILES
    }

    /// Returns the folders beneath a client's folder of the user from which it loads what it runs.
    pub const fn loaded_user_folders(client: HookClient) -> &'static [&'static str] {
        user_folders(client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plug_in_that_asks_the_hook_lies_in_a_protected_folder() {
        let plugin = HookInstallation::path(HookClient::Opencode, crate::HookPlacement::Project);
        let is_in = |folder: &&str| plugin.starts_with(&format!("{folder}/"));
        assert!(HookInstallation::loaded_folders().iter().any(is_in));
    }

    #[test]
    fn what_hooks_are_read_from_is_protected_as_settings_or_as_a_folder() {
        for client in HookClient::ALL {
            let path = HookInstallation::path(client, crate::HookPlacement::Project);
            let is_in = |folder: &&str| path.starts_with(&format!("{folder}/"));
            let is_settings = HookInstallation::project_settings(client).contains(&path);
            assert!(is_settings || HookInstallation::loaded_folders().iter().any(is_in), "{path}");
        }
    }

    #[test]
    fn paths_are_relative_and_named_once() {
        let mut paths: Vec<&str> = FOLDERS.iter().chain(&FILES).copied().collect();
        assert!(paths.iter().all(|path| !path.starts_with('/') && !path.ends_with('/')));
        let count = paths.len();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), count);
    }
}
