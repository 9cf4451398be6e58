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
}

impl HookClient {
    /// Every client.
    pub const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::Gemini, Self::Opencode];

    /// Returns the word for the client on a command line, such as `claude`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
        }
    }

    /// Returns the name of the client as its maker writes it.
    pub const fn display_name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Opencode => "opencode",
        }
    }

    /// Returns true if a hook of the client can have a person asked.
    pub const fn can_ask(self) -> bool {
        matches!(self, Self::Claude)
    }
}

impl fmt::Display for HookClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
