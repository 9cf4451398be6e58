//! The subcommands of `approvals`.
#![allow(clippy::doc_markdown, reason = "the comments are what --help prints")]

use clap::Subcommand;

pub(super) const EXAMPLES: &str = "\
Examples:
  mcp-stdio approvals                        list the calls that wait
  mcp-stdio approvals show 3f2a              show the whole call
  mcp-stdio approvals allow 3f2a
  mcp-stdio approvals deny 3f2a --reason 'push on Monday'

An ID may be shortened to the characters that tell it from the others.

Exit codes:
  0  done
  1  the call does not wait any more, or no server took the answer
  2  it was not done";

/// The subcommands of `approvals`.
#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List the calls that wait for a person
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one call in full
    Show {
        /// ID of the call, or its first characters
        id: String,
    },
    /// Let one call run
    Allow {
        /// ID of the call, or its first characters
        id: String,
        /// Let the same call with the same arguments run again without asking, until the server ends
        #[arg(long)]
        session: bool,
    },
    /// Refuse one call
    Deny {
        /// ID of the call, or its first characters
        id: String,
        /// Reason, which the agent reads
        #[arg(long)]
        reason: Option<String>,
    },
}
