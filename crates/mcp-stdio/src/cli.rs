//! The command line.
#![allow(clippy::doc_markdown, reason = "the comments are what --help prints")]

use crate::PLAIN_NAME;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use core_tools::config::Flags;
use server_setup::Program;
use server_setup::manual::{Man, Shell};
use std::path::PathBuf;

/// Tools for a coding agent: files, search, commands that cannot hang it.
///
/// Without a subcommand it serves the Model Context Protocol on standard input and output, to the folder it
/// is started in. It needs no configuration.
#[derive(Debug, Parser)]
#[command(
    name = PLAIN_NAME,
    version,
    max_term_width = 100,
    args_conflicts_with_subcommands = false,
    after_help = EXAMPLES
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) options: Options,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// The command line of `program`, which its help calls by its name.
pub(crate) fn command(program: Program) -> clap::Command {
    let command = Cli::command().version(program.version);
    if program.name == PLAIN_NAME {
        return command;
    }
    fn named(mut command: clap::Command, name: &'static str) -> clap::Command {
        if let Some(help) = command.get_after_help() {
            let help = help.to_string().replace(PLAIN_NAME, name);
            command = command.after_help(help);
        }
        let subcommands: Vec<String> =
            command.get_subcommands().map(|subcommand| subcommand.get_name().to_owned()).collect();
        subcommands.into_iter().fold(command, |command, subcommand| {
            command.mut_subcommand(subcommand, |subcommand| named(subcommand, name))
        })
    }
    named(command, program.name).name(program.name).bin_name(program.name)
}

/// What the arguments of this process ask of `program`. Ends the process where they cannot be understood, or ask for
/// help.
pub(crate) fn parse(program: Program) -> Cli {
    let mut matches = command(program).get_matches();
    Cli::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.exit())
}

const EXAMPLES: &str = "\
Examples:
  mcp-stdio                                   serve the current folder
  mcp-stdio --root ~/app --root ~/lib         serve two folders; relative paths start at the first
  mcp-stdio --toolsets minimal                offer six tools only
  mcp-stdio print-config claude               how to connect a client
  mcp-stdio tools                             what a client will see
  mcp-stdio call read_file '{\"path\": \"README.md\", \"head\": 5}'
  mcp-stdio call run_command '{\"command\": \"cargo check\"}'
  mcp-stdio doctor                            is everything in place?";

const CALL_EXIT_CODES: &str = "\
Exit codes:
  0  the tool did its work
  1  it failed, or the arguments do not fit it, or its answer could not be written
  2  it could not be called: no such tool, arguments that are no JSON object, a bad configuration";

/// What holds for every subcommand.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Options {
    /// Folder that tools may use; give it several times for several. Default: $CORETOOLS_ROOTS, else
    /// $FILESYSTEM_TOOLS_BASE_PATH, else what the configuration names, else the current folder
    #[arg(long = "root", value_name = "DIR", global = true)]
    pub(crate) roots: Vec<PathBuf>,

    /// Tools to offer: presets (all, full, edit, introspect, minimal), toolsets or single tools, separated by commas
    #[arg(long, value_name = "LIST", global = true)]
    pub(crate) toolsets: Option<String>,

    /// Configuration file. Default: coretools.toml in the first root that a flag or variable names (else in
    /// the current folder) or in a folder above it; such a file can only narrow
    #[arg(long, value_name = "FILE", env = "CORETOOLS_CONFIG", hide_env_values = true, global = true)]
    pub(crate) config: Option<PathBuf>,

    /// Role of whoever calls; with a role from elsewhere (environment, marker) both must allow a call.
    /// Default: the missing_role of the policy
    #[arg(long, value_name = "ROLE", global = true)]
    pub(crate) role: Option<String>,

    /// Policy file: what each role may see and call. Default: the built-in roles (see `policy init`)
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) policy: Option<PathBuf>,

    /// Record every call and refusal in this file, a line of JSON each
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) audit: Option<PathBuf>,

    /// The command that the agent was started with; the policy may derive a role from it
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

    /// What to log to standard error: off, error, warn, info, debug, trace. Default: warn
    #[arg(long, value_name = "LEVEL", env = "CORETOOLS_LOG", hide_env_values = true, global = true)]
    pub(crate) log: Option<String>,
}

impl Options {
    /// What they say of the configuration.
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

/// What to do instead of serving.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the tools that a client would be offered
    Tools {
        /// The list as a client gets it
        #[arg(long)]
        json: bool,
        /// As a page of Markdown, with every parameter, also those that the list leaves out
        #[arg(long, conflicts_with = "json")]
        markdown: bool,
    },
    /// Call one tool and print its answer
    #[command(after_help = CALL_EXIT_CODES)]
    Call {
        /// The tool's name
        tool: String,
        /// Its arguments, as a JSON object; "-" reads them from standard input
        #[arg(default_value = "{}")]
        arguments: String,
        /// Print the answer as JSON, as a client gets it: content, structuredContent, isError
        #[arg(long)]
        json: bool,
    },
    /// Write .agent/index.agent.md: what a client will see, for agents and people to read
    #[command(after_help = INDEX_EXIT_CODES)]
    Index(Index),
    /// Start a server of one's own: a small Cargo project with an example tool, roles and a test
    #[cfg(feature = "new")]
    #[command(after_help = crate::new::EXAMPLES)]
    New(crate::new::New),
    /// Print the documents and code that --role needs, in one document under a token budget
    #[cfg(feature = "context")]
    #[command(after_help = crate::context::EXAMPLES)]
    Context(Box<crate::context::Arguments>),
    /// Check roots, configuration, git and toolchains; the exit code is 1 if something is broken
    Doctor {
        /// Print the findings as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the configuration that connects a client to this server, with the flags given here
    PrintConfig {
        /// The client
        client: Client,
        /// Instead of starting this server, connect to the mcp-http at this address, with the token in
        /// $CORETOOLS_TOKEN
        #[arg(long, value_name = "URL")]
        url: Option<String>,
    },
    /// Ask and test a policy: what may a role do, and why?
    #[command(after_help = POLICY_EXAMPLES)]
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Put a role in front of another MCP server: it sees and calls what its policy allows, and no more
    #[cfg(all(feature = "wrap", unix))]
    #[command(after_help = crate::wrap::EXAMPLES)]
    Wrap(Box<crate::wrap::Wrap>),
    /// Start, watch and end sessions of agents
    #[cfg(all(feature = "sessions", unix))]
    #[command(after_help = SESSION_EXAMPLES)]
    Session {
        #[command(subcommand)]
        command: SessionCommand,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write the pages of all subcommands to a folder
    Man(Man),
}

/// Where the index goes, or what it is held against.
#[derive(Args, Clone, Debug)]
pub(crate) struct Index {
    /// File to write; "-" prints. Default: .agent/index.agent.md in the first root
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write nothing: fail where the file is not what would be written
    #[arg(long)]
    pub(crate) check: bool,
}

const INDEX_EXIT_CODES: &str = "\
Exit codes:
  0  written, or as it would be written
  1  --check: the file is stale, was changed by hand, or is missing
  2  it could not be read or written";

const POLICY_EXAMPLES: &str = "\
Examples:
  mcp-stdio policy init > roles.toml                  start from the built-in roles
  mcp-stdio policy lint --policy roles.toml           is anything in it not meant?
  mcp-stdio policy check --role worker --tool run_command --args '{\"command\": \"cargo test\"}'
  mcp-stdio policy matrix --markdown                  who may call what
  mcp-stdio policy diff old.toml roles.toml           what changes for whom

Exit codes:
  0  allowed, or nothing wrong
  1  lint found something wrong
  2  the question cannot be answered: a bad policy, a role that is not declared, a bad argument
  3  check and explain: hidden or refused";

/// What to ask of a policy.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Say whether --role may make a call, and by which rule; of several roles, separated by commas, all must
    /// allow it. Without --role: whom a server would take the caller for
    Check {
        /// Tool to call
        #[arg(long)]
        tool: String,
        /// Its arguments, as a JSON object
        #[arg(long, default_value = "{}", value_name = "JSON")]
        args: String,
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
    },
    /// Name every entry and rule that was looked at, and what it says
    Explain {
        /// Tool to call
        #[arg(long)]
        tool: String,
        /// Its arguments, as a JSON object
        #[arg(long, default_value = "{}", value_name = "JSON")]
        args: String,
    },
    /// Print a table of roles and tools
    Matrix {
        /// As a Markdown table
        #[arg(long, conflicts_with = "json")]
        markdown: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Say what is wrong with the policy, or may not be meant
    Lint {
        /// Fail on warnings too
        #[arg(long)]
        strict: bool,
    },
    /// Judge the examples in the policy
    Test,
    /// Print the built-in policy, to start one's own from
    Init,
    /// Say what changes for whom
    Diff {
        /// The policy before
        old: PathBuf,
        /// The policy after
        new: PathBuf,
    },
    /// Write the marker that puts an agent in --role; to be done before the agent starts
    Marker {
        /// Session of the agent; only with a key
        #[arg(long)]
        session: Option<String>,
        /// Key to sign it with; without one anybody of the same user can write another
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
        /// Seconds for which a signed marker is good
        #[arg(long, default_value_t = 3600)]
        ttl: u64,
        /// The session's own folder, which is its $TMPDIR
        folder: PathBuf,
    },
}

#[cfg(all(feature = "sessions", unix))]
const SESSION_EXAMPLES: &str = "\
Examples:
  mcp-stdio session daemon &                              supervise, until it is ended
  mcp-stdio session new --prompt 'Fix the tests' -- claude
  mcp-stdio session status --json
  mcp-stdio session logs --follow

All but daemon ask whoever supervises: the daemon, or the server that hosts the sessions.

Exit codes:
  0  done
  1  nobody supervises
  2  not done";

/// What to do with sessions.
#[cfg(all(feature = "sessions", unix))]
#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// Supervise sessions until SIGTERM, SIGINT or SIGHUP, which ends them
    Daemon,
    /// Show how it goes
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Resume and restart nothing by itself, also after a restart of the daemon
    Pause {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// End pause
    Resume {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Start a session, and answer once its process runs
    New {
        /// What the agent is told
        #[arg(long)]
        prompt: Option<String>,
        /// Role of the session; never more than the caller's
        #[arg(long = "as", value_name = "ROLE")]
        session_role: Option<String>,
        /// Folder to run in. Default: the first root
        #[arg(long, value_name = "DIR")]
        cwd: Option<String>,
        /// Agent to start where no command is given: claude, codex, opencode
        #[arg(long)]
        agent: Option<String>,
        /// Give it a terminal
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
        /// The last so many lines
        #[arg(long, default_value_t = 20, visible_alias = "tail", value_parser = clap::value_parser!(u32).range(1..=1000))]
        lines: u32,
        /// Not before this: 90s, 10m, 2h, 1d ago, or a time such as 2026-11-22T08:00:00Z
        #[arg(long)]
        since: Option<String>,
        /// Of at least this level: debug, info, warn, error
        #[arg(long)]
        level: Option<String>,
        /// Log of this session
        #[arg(long)]
        session: Option<String>,
        /// Go on with new lines as they come
        #[arg(long)]
        follow: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the sessions
    List {
        /// Also those that are over
        #[arg(long)]
        all: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Tell a session something
    Send {
        /// Session
        session: String,
        /// What to tell it
        text: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// End a session and every process of it
    End {
        /// Session
        session: String,
        /// Seconds before the kill
        #[arg(long, default_value_t = 5)]
        grace: u64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Clients that `print-config` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
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
