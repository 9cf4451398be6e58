//! The command line.
#![allow(clippy::doc_markdown, reason = "the comments are what --help prints")]

use crate::index::IndexArguments;
use crate::output::DEFAULT_NAME;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use server_setup::Program;
use server_setup::config::Flags;
use server_setup::manual::{ManualArguments, Shell};
use std::path::PathBuf;

/// Tools for a coding agent: files, search, commands that cannot hang it.
///
/// Without a subcommand it serves the Model Context Protocol on standard input and output, to the folder it
/// is started in. It needs no configuration.
#[derive(Debug, Parser)]
#[command(
    name = DEFAULT_NAME,
    version,
    max_term_width = 100,
    args_conflicts_with_subcommands = false,
    after_help = EXAMPLES
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) options: GlobalOptions,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Returns the command line of `program`, with its name in the help texts.
pub(crate) fn command(program: Program) -> clap::Command {
    let command = Cli::command().version(program.version);
    if program.name == DEFAULT_NAME {
        return command;
    }
    // The help texts are constants with the name `mcp-stdio` in them, so it is replaced in each, those of subcommands
    // included.
    fn rename_in_help(mut command: clap::Command, name: &'static str) -> clap::Command {
        if let Some(help) = command.get_after_help() {
            let help = help.to_string().replace(DEFAULT_NAME, name);
            command = command.after_help(help);
        }
        let subcommands: Vec<String> =
            command.get_subcommands().map(|subcommand| subcommand.get_name().to_owned()).collect();
        subcommands.into_iter().fold(command, |command, subcommand| {
            command.mut_subcommand(subcommand, |subcommand| rename_in_help(subcommand, name))
        })
    }
    rename_in_help(command, program.name).name(program.name).bin_name(program.name)
}

/// Parses the arguments of this process. Ends the process if they cannot be understood, or ask for help.
pub(crate) fn parse(program: Program) -> Cli {
    let mut matches = command(program).get_matches();
    Cli::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.exit())
}

const EXAMPLES: &str = "\
Examples:
  mcp-stdio                                   serve the current folder
  mcp-stdio --root ~/app --root ~/lib         serve two folders; relative paths start at the first
  mcp-stdio --toolsets minimal                offer six tools only
  mcp-stdio print-config claude               print how to connect a client
  mcp-stdio tools                             list the tools that a client gets
  mcp-stdio call read_file '{\"path\": \"README.md\", \"head\": 5}'
  mcp-stdio call run_command '{\"command\": \"cargo check\"}'
  mcp-stdio doctor                            check that everything is in place";

const CALL_EXIT_CODES: &str = "\
Exit codes:
  0  the tool did its work
  1  it failed, or the arguments do not fit it, or its answer could not be written
  2  it could not be called: no such tool, arguments that are not a JSON object, a bad configuration";

/// The options of every subcommand.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct GlobalOptions {
    /// Folder that tools may use; repeat it for several folders. Default: $CORETOOLS_ROOTS, else
    /// $FILESYSTEM_TOOLS_BASE_PATH, else the roots in the configuration, else the current folder
    #[arg(long = "root", value_name = "DIR", global = true)]
    pub(crate) roots: Vec<PathBuf>,

    /// Tools to offer: presets (all, full, edit, introspect, minimal), toolsets or single tools, separated by commas
    #[arg(long, value_name = "LIST", global = true)]
    pub(crate) toolsets: Option<String>,

    /// Configuration file. Default: the nearest coretools.toml, from the first root given by flag or variable
    /// (else the current folder) upwards; a file found this way can only tighten limits
    #[arg(long, value_name = "FILE", env = "CORETOOLS_CONFIG", hide_env_values = true, global = true)]
    pub(crate) config: Option<PathBuf>,

    /// Role of the caller. If the environment or a marker names a role too, both must allow a call.
    /// Default: the policy's missing_role
    #[arg(long, value_name = "ROLE", global = true)]
    pub(crate) role: Option<String>,

    /// Policy file, which says what each role may see and call. Default: the built-in roles (see `policy init`)
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) policy: Option<PathBuf>,

    /// File to record every call and refusal in, one line of JSON each
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) audit: Option<PathBuf>,

    /// Command that the agent was started with; the policy may derive a role from it
    #[arg(
        long,
        value_name = "COMMAND",
        env = "CORETOOLS_AGENT_COMMAND",
        hide_env_values = true,
        global = true
    )]
    pub(crate) agent_command: Option<String>,

    /// Answer with text alone, for clients that do not show structured content
    #[arg(long, global = true)]
    pub(crate) text_only: bool,

    /// Level of the log on standard error: off, error, warn, info, debug, trace. Default: warn
    #[arg(long, value_name = "LEVEL", env = "CORETOOLS_LOG", hide_env_values = true, global = true)]
    pub(crate) log: Option<String>,
}

impl GlobalOptions {
    /// Returns the options that override the configuration.
    pub(crate) fn flags(&self) -> Flags {
        Flags {
            config: self.config.clone(),
            roots: self.roots.clone(),
            toolsets: self.toolsets.clone(),
            results: self.text_only.then(|| "text".to_owned()),
            role: self.role.clone(),
            policy: self.policy.clone(),
            audit: self.audit.clone(),
            others: Vec::new(),
        }
    }
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the tools that a client gets
    Tools {
        /// Print the list as JSON, as a client gets it
        #[arg(long)]
        json: bool,
        /// Print a page of Markdown with every parameter, also those that the list leaves out
        #[arg(long, conflicts_with = "json")]
        markdown: bool,
    },
    /// Call one tool and print its answer
    #[command(after_help = CALL_EXIT_CODES)]
    Call {
        /// Name of the tool
        tool: String,
        /// Arguments, as a JSON object; "-" reads them from standard input
        #[arg(default_value = "{}")]
        arguments: String,
        /// Print the answer as JSON, as a client gets it: content, structuredContent, isError
        #[arg(long)]
        json: bool,
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
    /// Print the configuration that connects a client to this server, with the flags given here
    PrintConfig {
        /// The client
        client: KnownClient,
        /// Address of an mcp-http server to connect to, instead of starting this one; its token is in
        /// $CORETOOLS_TOKEN
        #[arg(long, value_name = "URL")]
        url: Option<String>,
    },
    /// Query and test a policy: what may a role do, and why?
    #[command(after_help = POLICY_EXAMPLES)]
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Run another MCP server behind a policy: its client sees and calls only what the role may
    #[cfg(all(feature = "wrap", unix))]
    #[command(after_help = crate::wrap::EXAMPLES)]
    Wrap(Box<crate::wrap::WrapArguments>),
    /// Start, watch and end sessions of agents
    #[cfg(all(feature = "sessions", unix))]
    #[command(after_help = SESSION_EXAMPLES)]
    Session {
        #[command(subcommand)]
        command: SessionSubcommand,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write the pages of all subcommands to a folder
    Man(ManualArguments),
}

const POLICY_EXAMPLES: &str = "\
Examples:
  mcp-stdio policy init > roles.toml                  start from the built-in roles
  mcp-stdio policy lint --policy roles.toml           find mistakes in it
  mcp-stdio policy check --role worker --tool run_command --args '{\"command\": \"cargo test\"}'
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
    },
    /// List every entry and rule that was evaluated, with its result
    Explain {
        /// Tool to call
        #[arg(long)]
        tool: String,
        /// Arguments of the call, as a JSON object
        #[arg(long, default_value = "{}", value_name = "JSON")]
        args: String,
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

#[cfg(all(feature = "sessions", unix))]
const SESSION_EXAMPLES: &str = "\
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
#[cfg(all(feature = "sessions", unix))]
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

/// The clients that `print-config` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KnownClient {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// opencode
    Opencode,
    /// Gemini CLI
    Gemini,
    /// Cursor
    Cursor,
    /// VS Code
    Vscode,
    /// Zed
    Zed,
}
