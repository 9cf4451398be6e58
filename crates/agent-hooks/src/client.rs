//! [`HookClient`]: the clients whose hooks are known.

use std::fmt;

/// A client whose hooks are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HookClient {
    /// Claude Code: the event `PreToolUse`.
    Claude,
    /// Codex: the event `PreToolUse`.
    Codex,
    /// Gemini CLI: the event `BeforeTool`.
    Gemini,
    /// opencode: a plugin that calls the hook at `tool.execute.before`.
    Opencode,
    /// Copilot CLI: the event `preToolUse`.
    Copilot,
    /// Cursor: the event `preToolUse`.
    Cursor,
}

impl HookClient {
    /// Every client.
    pub const ALL: [Self; 6] =
        [Self::Claude, Self::Codex, Self::Gemini, Self::Opencode, Self::Copilot, Self::Cursor];

    /// Returns the word for the client on a command line, such as `claude`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Copilot => "copilot",
            Self::Cursor => "cursor",
        }
    }

    /// Returns the name of the client as its maker writes it.
    pub const fn display_name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Opencode => "opencode",
            Self::Copilot => "Copilot CLI",
            Self::Cursor => "Cursor",
        }
    }

    /// Returns the name of the event that the client sends before it uses a tool.
    pub const fn event(self) -> &'static str {
        match self {
            Self::Claude | Self::Codex => "PreToolUse",
            Self::Gemini => "BeforeTool",
            Self::Opencode => "tool.execute.before",
            Self::Copilot | Self::Cursor => "preToolUse",
        }
    }

    /// Returns the variable in which the client names the folder of the project to its hooks.
    pub const fn project_variable(self) -> Option<&'static str> {
        match self {
            Self::Claude => Some("CLAUDE_PROJECT_DIR"),
            Self::Gemini => Some("GEMINI_PROJECT_DIR"),
            Self::Copilot => Some("COPILOT_PROJECT_DIR"),
            Self::Cursor => Some("CURSOR_PROJECT_DIR"),
            Self::Codex | Self::Opencode => None,
        }
    }

    /// Returns true if a hook of the client can have a person asked about a tool whose arguments stay as they are.
    pub const fn can_ask(self) -> bool {
        matches!(self, Self::Claude | Self::Copilot)
    }

    /// Returns true if a hook of the client can have a person asked, and change the arguments in the same answer.
    ///
    /// Copilot CLI drops the changed arguments when it asks, so that an approved line would run without its supervisor.
    pub const fn can_ask_about_changed_arguments(self) -> bool {
        matches!(self, Self::Claude)
    }
}

impl fmt::Display for HookClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
