//! The arguments of the subcommand `hook`.

use agent_hooks::HookClient;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// The subcommands of `hook`.
#[derive(Debug, Subcommand)]
#[allow(clippy::doc_markdown, reason = "the comments are what --help prints")]
pub(crate) enum HookCommand {
    /// Answer an event of Claude Code, which is read from standard input
    Claude(AnswerArguments),
    /// Answer an event of Codex
    Codex(AnswerArguments),
    /// Answer an event of Gemini CLI
    Gemini(AnswerArguments),
    /// Answer an event of the plugin for opencode
    Opencode(AnswerArguments),
    /// Answer an event of Copilot CLI
    Copilot(AnswerArguments),
    /// Answer an event of Cursor
    Cursor(AnswerArguments),
    /// Have a client ask this program before it runs a tool, with the flags given here
    Install {
        /// The client
        client: ClientArgument,
        #[command(flatten)]
        placement: PlacementArguments,
        #[command(flatten)]
        answer: AnswerArguments,
    },
    /// Take the hook out of a client's settings
    Remove {
        /// The client
        client: ClientArgument,
        #[command(flatten)]
        placement: PlacementArguments,
    },
    /// Print the decision for each event in a file, one JSON object on each line; nothing is run or recorded
    Test {
        /// The client
        client: ClientArgument,
        /// The file; "-" reads standard input
        #[arg(default_value = "-")]
        file: PathBuf,
    },
}

/// The clients whose hooks are known.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ClientArgument {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
    /// opencode
    Opencode,
    /// Copilot CLI
    Copilot,
    /// Cursor
    Cursor,
}

impl From<ClientArgument> for HookClient {
    fn from(client: ClientArgument) -> Self {
        match client {
            ClientArgument::Claude => Self::Claude,
            ClientArgument::Codex => Self::Codex,
            ClientArgument::Gemini => Self::Gemini,
            ClientArgument::Opencode => Self::Opencode,
            ClientArgument::Copilot => Self::Copilot,
            ClientArgument::Cursor => Self::Cursor,
        }
    }
}

/// The options of an answer.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AnswerArguments {
    /// Answer that an allowed tool may run without a question to the user (Claude Code, Copilot CLI). Without it the client asks
    /// as it would without a hook
    #[arg(long)]
    pub(super) approve: bool,
    /// Leave command lines as they are, instead of running them beneath `exec`: without its deadline, its
    /// confinement and the end of what they leave behind
    #[arg(long)]
    pub(super) no_exec: bool,
    /// End a command line after this many seconds. Default: `limits.max_timeout_ms`
    #[arg(long, value_name = "SECONDS")]
    pub(super) exec_timeout: Option<u64>,
}

/// The settings to change.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct PlacementArguments {
    /// The settings of this user, for all projects; the default
    #[arg(long, conflicts_with = "project")]
    pub(super) user: bool,
    /// The settings of the project in the current folder, which an agent's commands can change
    #[arg(long)]
    pub(super) project: bool,
}
