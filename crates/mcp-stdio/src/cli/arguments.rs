//! The arguments of the process: subcommands and their options.
#![allow(clippy::doc_markdown, reason = "the comments are what --help prints")]

use super::approvals::{self, ApprovalsCommand};
use super::global_options::GlobalOptions;
use super::policy::{self, PolicyCommand};
#[cfg(all(feature = "sessions", unix))]
use super::session::{self, SessionSubcommand};
use crate::index::IndexArguments;
use crate::output::DEFAULT_NAME;
use crate::print_config::PrintConfigArguments;
use clap::{Parser, Subcommand};
use server_setup::manual::{ManualArguments, Shell};

/// Tools for a coding agent: files, search, commands that cannot hang it.
///
/// Without a subcommand it serves the Model Context Protocol on standard input and output, to the folder it
/// is started in. It needs no configuration.
#[derive(Debug, Parser)]
#[command(
    name = DEFAULT_NAME,
    version,
    max_term_width = 100,
    args_conflicts_with_subcommands = false
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) options: GlobalOptions,
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

const COMPLETION_EXAMPLES: &str = "\
Examples:
  mcp-stdio completions bash > ~/.local/share/bash-completion/completions/mcp-stdio
  mcp-stdio completions zsh > ~/.zfunc/_mcp-stdio
  mcp-stdio completions fish > ~/.config/fish/completions/mcp-stdio.fish

Run it again when tools or roles have changed.";

const CALL_EXIT_CODES: &str = "\
Examples:
  mcp-stdio call search_files --help                     print what a tool takes
  mcp-stdio call read_file '{\"path\": \"README.md\", \"head\": 5}'
  mcp-stdio call run_tests > report.txt                  also where tests fail

Exit codes:
  0  the tool did its work
  1  it failed, or the arguments do not fit it (the answer says why), or its answer could not be written
  2  it could not be called: no such tool, arguments that are not a JSON object, a bad configuration";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// List the tools that a client gets
    Tools {
        /// Print the list as JSON, as a client gets it
        #[arg(long)]
        json: bool,
        /// Print a page of Markdown with every parameter, also those that the list leaves out
        #[arg(long, conflicts_with = "json")]
        markdown: bool,
    },
    /// Call one tool and print its answer; with --help, print what the tool takes
    #[command(after_help = CALL_EXIT_CODES, disable_help_flag = true)]
    Call {
        /// Name of the tool
        #[arg(required_unless_present = "help")]
        tool: Option<String>,
        /// Arguments, as a JSON object; "-" reads them from standard input
        #[arg(default_value = "{}")]
        arguments: String,
        /// Print the answer as JSON, as a client gets it: content, structuredContent, isError
        #[arg(long)]
        json: bool,
        /// Print help; behind the name of a tool, print its parameters
        #[arg(short, long)]
        help: bool,
    },
    /// Write .agent/index.agent.md, an overview of the tools for agents and people
    #[command(after_help = crate::index::EXIT_CODES)]
    Index(IndexArguments),
    /// Create a server of your own: a small Cargo project with an example tool, roles and a test
    #[cfg(feature = "new")]
    #[command(after_help = crate::new::EXAMPLES)]
    New(crate::new::NewArguments),
    /// Print one document with the plans, rules and code that --role needs, within a token budget
    #[cfg(feature = "context")]
    #[command(after_help = crate::context::EXAMPLES)]
    Context(Box<crate::context::ContextArguments>),
    /// Check roots, configuration, git and toolchains; the exit code is 1 if something is broken
    Doctor {
        /// Print the findings as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the configuration that connects a client to this server, with the flags given here, or write it into the
    /// client's file
    #[command(after_help = crate::print_config::EXAMPLES)]
    PrintConfig(PrintConfigArguments),
    /// Query and test a policy: what may a role do, and why?
    #[command(after_help = policy::EXAMPLES)]
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Answer the questions about calls that a role may make only with a person's approval
    #[command(after_help = approvals::EXAMPLES)]
    Approvals {
        #[command(subcommand)]
        command: Option<ApprovalsCommand>,
    },
    /// Run another MCP server behind a policy: its client sees and calls only what the role may
    #[cfg(all(feature = "wrap", unix))]
    #[command(after_help = crate::wrap::EXAMPLES)]
    Wrap(Box<crate::wrap::WrapArguments>),
    /// Be the far end of a remote: the server that the one in front starts there, by --remote
    #[cfg(all(feature = "remotes", unix))]
    #[command(after_help = crate::remote_server::EXAMPLES)]
    RemoteServer,
    /// List the kinds of remotes, those of the configuration, and what was created for them
    #[cfg(all(feature = "remotes", unix))]
    #[command(after_help = crate::remotes::EXAMPLES)]
    Remotes {
        #[command(subcommand)]
        command: Option<crate::remotes::RemotesCommand>,
    },
    /// Judge what an agent does with its own tools: the hook of its client
    #[cfg(feature = "hooks")]
    #[command(after_help = crate::hook::EXAMPLES)]
    Hook {
        #[command(subcommand)]
        command: crate::hook::HookCommand,
    },
    /// Run a command in the foreground, with the role's rules and confinement, a time limit, and the end of all that it starts
    #[cfg(all(feature = "hooks", target_os = "linux"))]
    #[command(after_help = crate::exec::EXAMPLES)]
    Exec(crate::exec::ExecArguments),
    /// Become `exec` in the place of a process that waits, as the process of a session
    #[cfg(all(feature = "hooks", feature = "sessions", target_os = "linux"))]
    #[command(hide = true)]
    ExecHolder(crate::exec::background::HolderArguments),
    /// Run a line of bash as `exec` runs a command, for programs that take a shell
    #[cfg(all(feature = "hooks", target_os = "linux"))]
    #[command(after_help = crate::exec::SHELL_EXAMPLES)]
    Shell(crate::exec::ShellArguments),
    /// Run the commands of Codex and reach its files, as the role may: the executor that Codex is given
    #[cfg(all(feature = "hooks", unix))]
    #[command(after_help = crate::codex_environment::EXAMPLES)]
    CodexEnvironment(crate::codex_environment::CodexEnvironmentArguments),
    /// Start, watch and end sessions of agents
    #[cfg(all(feature = "sessions", unix))]
    #[command(after_help = session::EXAMPLES)]
    Session {
        #[command(subcommand)]
        command: SessionSubcommand,
    },
    /// Print a completion script for a shell; it knows the tools and roles of the configuration here
    #[command(after_help = COMPLETION_EXAMPLES)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write the pages of all subcommands to a folder
    Man(ManualArguments),
}
