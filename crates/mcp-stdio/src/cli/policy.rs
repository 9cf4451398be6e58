//! The subcommands of `policy`.
#![allow(clippy::doc_markdown, reason = "the comments are what --help prints")]

use clap::Subcommand;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  mcp-stdio policy init > roles.toml                  start from the built-in roles
  mcp-stdio policy lint --policy roles.toml           find mistakes in it
  mcp-stdio policy check --role worker --tool run_command --args '{\"command\": \"cargo test\"}'
  mcp-stdio policy explain --role worker --tool read_file -- npx -y @modelcontextprotocol/server-filesystem ~/app
  mcp-stdio policy matrix --markdown                  print who may call what
  mcp-stdio policy diff old.toml roles.toml           print what changes for each role

Exit codes:
  0  allowed, or nothing wrong
  1  lint found something wrong
  2  the question cannot be answered: a bad policy, a role that is not declared, a bad argument
  3  check and explain: hidden or refused";

/// The subcommands of `policy`.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Say whether --role may make a call, and by which rule. Of several roles, separated by commas, all must
    /// allow it. Default role: the one that a server would give the caller
    Check {
        /// Tool to call
        #[arg(long)]
        tool: String,
        /// Arguments of the call, as a JSON object
        #[arg(long, default_value = "{}", value_name = "JSON")]
        args: String,
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
        #[cfg(all(feature = "wrap", unix))]
        #[command(flatten)]
        server: crate::policy::ServerArguments,
    },
    /// List every entry and rule that was evaluated, with its result
    Explain {
        /// Tool to call
        #[arg(long)]
        tool: String,
        /// Arguments of the call, as a JSON object
        #[arg(long, default_value = "{}", value_name = "JSON")]
        args: String,
        #[cfg(all(feature = "wrap", unix))]
        #[command(flatten)]
        server: crate::policy::ServerArguments,
    },
    /// Print a table of roles and tools
    Matrix {
        /// Print a Markdown table
        #[arg(long, conflicts_with = "json")]
        markdown: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Report errors in the policy, and entries that are probably mistakes
    Lint {
        /// Fail on warnings too
        #[arg(long)]
        strict: bool,
    },
    /// Check the examples in the policy
    Test,
    /// Print the built-in policy, as a start for your own
    Init,
    /// Print what changes for each role
    Diff {
        /// The policy before
        old: PathBuf,
        /// The policy after
        new: PathBuf,
    },
    /// Write the marker file that gives an agent --role; do so before the agent starts
    Marker {
        /// Session that the marker is valid for; only with --key
        #[arg(long)]
        session: Option<String>,
        /// File with the key to sign it with; any process of the same user can replace an unsigned marker
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
        /// Seconds for which a signed marker is valid
        #[arg(long, default_value_t = 3600)]
        ttl: u64,
        /// Private folder of the session, its $TMPDIR
        folder: PathBuf,
    },
}
