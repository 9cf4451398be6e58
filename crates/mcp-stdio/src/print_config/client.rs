//! The clients that `print-config` knows: the files that they read, and the form of these files.
#![allow(clippy::doc_markdown, reason = "the comments are what --help prints")]

use clap::ValueEnum;
use std::path::{Path, PathBuf};

/// The clients that `print-config` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KnownClient {
    /// Claude Code
    Claude,
    /// Claude Desktop
    ClaudeDesktop,
    /// Codex
    Codex,
    /// opencode
    Opencode,
    /// Gemini CLI
    Gemini,
    /// GitHub Copilot CLI
    Copilot,
    /// Cursor
    Cursor,
    /// VS Code
    Vscode,
    /// Windsurf
    Windsurf,
    /// Cline
    Cline,
    /// Junie and AI Assistant of the JetBrains IDEs
    #[value(alias = "junie")]
    Jetbrains,
    /// Zed
    Zed,
}

/// The form of a client's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileFormat {
    /// JSON, in which several clients allow comments.
    Json,
    /// TOML.
    Toml,
}

/// The folders and variables of the user in which clients keep their files.
#[derive(Clone, Debug, Default)]
pub(super) struct UserFolders {
    pub(super) home: PathBuf,
    /// `$XDG_CONFIG_HOME`, or `~/.config`.
    pub(super) xdg_config: PathBuf,
    /// The system's folder for settings of applications.
    pub(super) application_settings: PathBuf,
    /// The places that a client takes from a variable of its own, with the name of the variable.
    pub(super) named: Vec<(&'static str, PathBuf)>,
}

/// The variables by which users move the files of some clients.
const LOCATION_VARIABLES: [&str; 4] =
    ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "CLINE_MCP_SETTINGS_PATH"];

impl UserFolders {
    /// Reads the environment. Returns `None` if the user has no home.
    pub(super) fn from_environment() -> Option<Self> {
        let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
        let home = folder("HOME").or_else(|| folder("USERPROFILE"))?;
        let xdg_config = folder("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let application_settings = if cfg!(target_os = "macos") {
            home.join("Library/Application Support")
        } else if cfg!(windows) {
            folder("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming"))
        } else {
            xdg_config.clone()
        };
        let named = LOCATION_VARIABLES.into_iter().filter_map(|name| Some((name, folder(name)?))).collect();
        Some(Self { home, xdg_config, application_settings, named })
    }

    fn named(&self, variable: &str) -> Option<&Path> {
        self.named.iter().find(|(name, _)| *name == variable).map(|(_, place)| place.as_path())
    }
}

impl KnownClient {
    /// Returns the name of the client as its maker writes it.
    pub(super) fn display_name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Codex => "Codex",
            Self::Opencode => "opencode",
            Self::Gemini => "Gemini CLI",
            Self::Copilot => "GitHub Copilot CLI",
            Self::Cursor => "Cursor",
            Self::Vscode => "VS Code",
            Self::Windsurf => "Windsurf",
            Self::Cline => "Cline",
            Self::Jetbrains => "Junie",
            Self::Zed => "Zed",
        }
    }

    pub(super) fn format(self) -> FileFormat {
        match self {
            Self::Codex => FileFormat::Toml,
            _ => FileFormat::Json,
        }
    }

    /// Returns the key of the servers in the file.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Codex => "mcp_servers",
            Self::Opencode => "mcp",
            Self::Vscode => "servers",
            Self::Zed => "context_servers",
            _ => "mcpServers",
        }
    }

    /// Returns the file for all projects of a user.
    pub(super) fn user_file(self, folders: &UserFolders) -> PathBuf {
        let in_home = |path: &str| folders.home.join(path);
        match self {
            Self::Claude => folders.named("CLAUDE_CONFIG_DIR").unwrap_or(&folders.home).join(".claude.json"),
            Self::ClaudeDesktop => folders.application_settings.join("Claude/claude_desktop_config.json"),
            Self::Codex => folders
                .named("CODEX_HOME")
                .map_or_else(|| in_home(".codex"), Path::to_owned)
                .join("config.toml"),
            Self::Opencode => {
                let with_comments = folders.xdg_config.join("opencode/opencode.jsonc");
                match with_comments.exists() {
                    true => with_comments,
                    false => with_comments.with_extension("json"),
                }
            }
            Self::Gemini => in_home(".gemini/settings.json"),
            Self::Copilot => folders
                .named("COPILOT_HOME")
                .map_or_else(|| in_home(".copilot"), Path::to_owned)
                .join("mcp-config.json"),
            Self::Cursor => in_home(".cursor/mcp.json"),
            Self::Vscode => folders.application_settings.join("Code/User/mcp.json"),
            Self::Windsurf => in_home(".codeium/windsurf/mcp_config.json"),
            Self::Cline => folders
                .named("CLINE_MCP_SETTINGS_PATH")
                .map_or_else(|| in_home(".cline/data/settings/cline_mcp_settings.json"), Path::to_owned),
            Self::Jetbrains => in_home(".junie/mcp/mcp.json"),
            // On macOS too it is this folder, not that of applications.
            Self::Zed if cfg!(windows) => folders.application_settings.join("Zed/settings.json"),
            Self::Zed => folders.xdg_config.join("zed/settings.json"),
        }
    }

    /// Returns the file in a project, if the client reads one there.
    pub(super) fn project_file(self) -> Option<&'static str> {
        match self {
            Self::Claude => Some(".mcp.json"),
            Self::Codex => Some(".codex/config.toml"),
            Self::Opencode => Some("opencode.json"),
            Self::Gemini => Some(".gemini/settings.json"),
            Self::Copilot => Some(".github/mcp.json"),
            Self::Cursor => Some(".cursor/mcp.json"),
            Self::Vscode => Some(".vscode/mcp.json"),
            Self::Jetbrains => Some(".junie/mcp/mcp.json"),
            Self::ClaudeDesktop | Self::Windsurf | Self::Cline | Self::Zed => None,
        }
    }

    /// Returns how to see that the client has connected.
    pub(super) fn check(self) -> &'static str {
        match self {
            Self::Claude => "`claude mcp list` connects to it; a running session has to be started anew",
            Self::ClaudeDesktop => {
                "quit Claude Desktop and start it anew; Settings > Developer shows the server"
            }
            Self::Codex => "`codex mcp list` shows it; `/mcp` in a session connects",
            Self::Opencode => "`opencode mcp list` connects to it",
            Self::Gemini => "`gemini mcp list` connects to it, in a folder that Gemini CLI trusts",
            Self::Copilot => "`/mcp show` in a session shows it",
            Self::Cursor => "Customize > MCPs shows it",
            Self::Vscode => "the command MCP: List Servers shows it",
            Self::Windsurf => "the MCP panel of Cascade shows it, once it is refreshed",
            Self::Cline => "MCP Servers > Configure shows it",
            Self::Jetbrains => {
                "Settings > Tools > Junie > MCP Settings shows it; AI Assistant takes the printed JSON under \
                 Settings > Tools > AI Assistant > Model Context Protocol"
            }
            Self::Zed => "the settings of the agent panel show it",
        }
    }
}
