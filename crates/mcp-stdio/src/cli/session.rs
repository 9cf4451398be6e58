//! The subcommands of `session`.
#![allow(clippy::doc_markdown, reason = "the comments are what --help prints")]

use clap::Subcommand;

pub(super) const EXAMPLES: &str = "\
Examples:
  mcp-stdio session daemon &                              supervise until it is ended
  mcp-stdio session new --prompt 'Fix the tests' -- claude
  mcp-stdio session status --json
  mcp-stdio session logs --follow

All commands but daemon talk to the supervisor: the daemon, or the server that hosts the sessions.

Exit codes:
  0  done
  1  no supervisor is running
  2  it was not done";

/// The subcommands of `session`.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionSubcommand {
    /// Supervise sessions until SIGTERM, SIGINT or SIGHUP, which ends them
    Daemon,
    /// Show the supervisor and its sessions
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Stop resuming and restarting sessions automatically, also after a restart of the daemon
    Pause {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// End a pause
    Resume {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Start a session, and return once its process runs
    New {
        /// Task for the agent
        #[arg(long)]
        prompt: Option<String>,
        /// Role of the session, which may do at most what the caller may
        #[arg(long = "as", value_name = "ROLE")]
        session_role: Option<String>,
        /// Folder to run in. Default: the first root
        #[arg(long, value_name = "DIR")]
        cwd: Option<String>,
        /// Agent to start if no command is given: claude, codex, opencode, gemini
        #[arg(long)]
        agent: Option<String>,
        /// Run it in a terminal
        #[arg(long)]
        pty: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Program and arguments. Default: sessions.command of the configuration
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// Show the supervisor's log, or what a session printed
    Logs {
        /// Number of lines, counted from the end
        #[arg(long, default_value_t = 20, visible_alias = "tail", value_parser = clap::value_parser!(u32).range(1..=1000))]
        lines: u32,
        /// Only lines since then: 90s, 10m, 2h, 1d ago, or a time such as 2026-11-22T08:00:00Z
        #[arg(long)]
        since: Option<String>,
        /// Only lines of at least this level: debug, info, warn, error
        #[arg(long)]
        level: Option<String>,
        /// Session whose output to show
        #[arg(long)]
        session: Option<String>,
        /// Keep printing new lines as they come
        #[arg(long)]
        follow: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the sessions
    List {
        /// Include sessions that are over
        #[arg(long)]
        all: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Send a message to a session
    Send {
        /// Session
        session: String,
        /// Message
        text: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// End a session and every process of it
    End {
        /// Session
        session: String,
        /// Seconds before it is killed
        #[arg(long, default_value_t = 5)]
        grace: u64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
