//! The command line.
#![allow(clippy::doc_markdown, reason = "the comments are what --help prints")]

use crate::console_output::DEFAULT_NAME;
use audit_log::OutcomeFilter;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use core_tools::mcp::{CallDecision, Outcome, PRESETS};
use server_setup::config::SettingFlags;
use server_setup::manual::{ManualArguments, Shell};
use server_setup::{Program, help};
use std::path::PathBuf;

/// Tools for coding agents, for many callers on one machine.
///
/// Without a subcommand it serves the Model Context Protocol over HTTP at /mcp. Callers identify themselves by a
/// token (see `token new`), by a JWT or as the user behind a Unix socket; nobody else is served.
#[derive(Debug, Parser)]
#[command(name = "mcp-http", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) options: CliOptions,
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

/// Parses the arguments of this process. Ends the process if they are wrong or ask for help, which calls `program` by its
/// name.
pub(crate) fn parse(program: Program) -> Cli {
    help::parse(std::env::args_os().collect(), Cli::command, || command(program))
}

/// Returns the command line of `program`, with its name in the help texts.
pub(crate) fn command(program: Program) -> clap::Command {
    let toolsets = format!(
        "Tools to offer: presets ({}), toolsets or single tools, separated by commas",
        PRESETS.join(", ")
    );
    let command =
        Cli::command().version(program.version).mut_arg("toolsets", |argument| argument.help(toolsets));
    let command = help::with_short_global_options(command, DEFAULT_NAME);
    // The texts name the program already, and walking through all of them takes time at every start.
    if program.name == DEFAULT_NAME {
        return command;
    }
    let command = help::with_changed_texts(command, &|text| text.replace(DEFAULT_NAME, program.name));
    command.name(program.name).bin_name(program.name)
}

const EXAMPLES: &str = "\
Examples:
  mcp-http --tokens ~/.config/mcp-http/tokens.toml token new --name ci --role worker --expires 30d
  mcp-http --root /srv/projects --tokens ~/.config/mcp-http/tokens.toml
  mcp-http --config coretools.toml
  mcp-http --config coretools.toml audit query --since 1d --path 'src/**'
  mcp-http --listen unix:/run/coretools.sock --peer 1000=dev
  mcp-http --listen 10.0.0.5:8717 --tokens tokens.toml --tls-certificate cert.pem --tls-key key.pem

Signals: SIGTERM and SIGINT end the server, after a time for running calls; SIGHUP reads tokens, policy and
certificates again.";

/// The options of all subcommands.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct CliOptions {
    /// Folder that tools may use; give it several times for several. A token may have fewer
    #[arg(long = "root", value_name = "DIR", global = true)]
    roots: Vec<PathBuf>,

    /// Tools to offer: presets (standard, full, edit, introspect, minimal), toolsets or single tools, separated by commas
    #[arg(long, value_name = "LIST", global = true)]
    toolsets: Option<String>,

    /// Configuration file. Default: coretools.toml in the first root or a folder above; such a file can only narrow
    #[arg(long, value_name = "FILE", env = "CORETOOLS_CONFIG", hide_env_values = true, global = true)]
    config: Option<PathBuf>,

    /// Policy file: what each role may see and call. Default: the built-in roles
    #[arg(long, value_name = "FILE", global = true)]
    policy: Option<PathBuf>,

    /// Record every call and refusal in this file, a line of JSON each
    #[arg(long, value_name = "FILE", global = true)]
    audit: Option<PathBuf>,

    /// File of the tokens
    #[arg(long, value_name = "FILE", global = true)]
    tokens: Option<String>,

    /// Addresses to listen on: ADDRESS:PORT or unix:PATH, separated by commas. Default: 127.0.0.1:8717
    #[arg(long, value_name = "LIST")]
    listen: Option<String>,

    /// Addresses of the proxies in front, separated by commas; nobody else may connect over the network
    #[arg(long, value_name = "LIST")]
    behind_proxy: Option<String>,

    /// Names by which clients call the server, separated by commas
    #[arg(long, value_name = "LIST")]
    hosts: Option<String>,

    /// Origins of web pages that may call the server, separated by commas
    #[arg(long, value_name = "LIST")]
    origins: Option<String>,

    /// Certificate chain (PEM)
    #[arg(long, value_name = "FILE")]
    tls_certificate: Option<String>,

    /// Its key (PEM)
    #[arg(long, value_name = "FILE")]
    tls_key: Option<String>,

    /// Role of users who call through a Unix socket: UID=ROLE or *=ROLE, separated by commas
    #[arg(long = "peer", value_name = "LIST")]
    peers: Option<String>,

    /// Role of callers who say nothing of themselves, on loopback and Unix sockets alone
    #[arg(long, value_name = "ROLE")]
    anonymous_role: Option<String>,

    /// Serve /metrics to everybody here: ADDRESS:PORT on loopback, or unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    metrics_listen: Option<String>,

    /// The log level on standard error: off, error, warn, info, debug, trace. Default: warn
    #[arg(long, value_name = "LEVEL", env = "CORETOOLS_LOG", hide_env_values = true, global = true)]
    pub(crate) log: Option<String>,
}

impl CliOptions {
    /// Returns the configuration that the options set.
    pub(crate) fn flags(&self) -> SettingFlags {
        let http_flags = [
            ("http.tokens", "--tokens", &self.tokens),
            ("http.listen", "--listen", &self.listen),
            ("http.behind_proxy", "--behind-proxy", &self.behind_proxy),
            ("http.hosts", "--hosts", &self.hosts),
            ("http.origins", "--origins", &self.origins),
            ("http.tls_certificate", "--tls-certificate", &self.tls_certificate),
            ("http.tls_key", "--tls-key", &self.tls_key),
            ("http.peers", "--peer", &self.peers),
            ("http.anonymous_role", "--anonymous-role", &self.anonymous_role),
            ("http.metrics_listen", "--metrics-listen", &self.metrics_listen),
        ];
        SettingFlags {
            config: self.config.clone(),
            roots: self.roots.clone(),
            toolsets: self.toolsets.clone(),
            policy: self.policy.clone(),
            audit: self.audit.clone(),
            others: http_flags
                .into_iter()
                .filter_map(|(key, flag, given)| Some((key, flag, given.clone()?)))
                .collect(),
            ..SettingFlags::default()
        }
    }
}

/// A subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Make, list, rotate and revoke tokens
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// Ask the audit who did what, and verify that nothing in it was changed
    Audit {
        #[command(subcommand)]
        command: AuditCommand,
    },
    /// Ask the server that runs with the same options whether it serves: exit code 0, or 1 and the reason
    Health(HealthArgs),
    /// Check what the server needs: files, addresses, TLS, tokens, the database, confinement, the clock and limits
    ///
    /// Run it as the user of the server. The exit code is 1 if something is broken.
    Doctor(DoctorArgs),
    /// Write a configuration, a policy, a first token and a unit for systemd; nothing is overwritten
    ///
    /// The token is printed to standard output, and what to do next to standard error.
    Init(InitArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write the pages of all subcommands to a folder
    Man(ManualArguments),
}

/// A subcommand of `audit`.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Print the calls and refusals that fit all the options, the oldest first
    Query(AuditQueryArgs),
    /// Check the chain of hashes: exit code 1 if a record was changed, removed, inserted or moved
    ///
    /// A checkpoint, kept elsewhere, also shows records that were cut off at the end, a chain that was removed, and one that
    /// was computed anew.
    Verify(AuditVerifyArgs),
}

/// The options of `audit query`.
#[derive(Args, Debug)]
pub(crate) struct AuditQueryArgs {
    /// Name of the caller, as `ada` or `jwt:*`
    #[arg(long, value_name = "NAME")]
    pub(crate) caller: Option<String>,
    /// Name of the tool, as `delete_file` or `git_*`
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Glob of a path that the call names, from any folder on: `*.rs`, `src/**`. Needs the level `targets` or `full`
    #[arg(long, value_name = "GLOB")]
    pub(crate) path: Option<String>,
    /// Text in the command, a path or another target
    #[arg(long, value_name = "TEXT")]
    pub(crate) containing: Option<String>,
    /// How it ended
    #[arg(long, value_name = "OUTCOME")]
    pub(crate) outcome: Option<OutcomeArg>,
    /// From this time on: 2h, 30d, 2026-11-24, 2026-11-24T10:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Print the newest N; 0 prints all
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,
    /// Form of the output; json is a line for each
    #[arg(long, value_name = "FORM", default_value = "table")]
    pub(crate) format: AuditFormat,
    /// Ask the file or the database, where both are configured. Default: the database
    #[arg(long, value_name = "PLACE")]
    pub(crate) from: Option<AuditPlace>,
}

/// The options of `audit verify`.
#[derive(Args, Debug)]
pub(crate) struct AuditVerifyArgs {
    /// Compare with a checkpoint that was written before
    #[arg(long, value_name = "FILE")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Write the present ends of the chains to a file, if nothing was changed
    #[arg(long, value_name = "FILE")]
    pub(crate) save_checkpoint: Option<PathBuf>,
    /// Sign the saved checkpoint with this private key, Ed25519 in PEM
    #[arg(long, value_name = "FILE", requires = "save_checkpoint")]
    pub(crate) sign_key: Option<PathBuf>,
    /// Refuse a checkpoint that the private key of this public key, in PEM, has not signed
    #[arg(long, value_name = "FILE", requires = "checkpoint")]
    pub(crate) public_key: Option<PathBuf>,
    /// Verify the file or the database alone. Default: both, where both are configured
    #[arg(long, value_name = "PLACE")]
    pub(crate) from: Option<AuditPlace>,
}

/// A form of output.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum AuditFormat {
    Table,
    Json,
    Csv,
}

/// A place where the audit is.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum AuditPlace {
    File,
    Database,
}

/// The end of a call, or the decision about one that did not run.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum OutcomeArg {
    Ok,
    Failed,
    NotRun,
    Refused,
    Hidden,
    Unknown,
    Invalid,
}

impl OutcomeArg {
    /// Returns the filter of a query.
    pub(crate) fn filter(self) -> OutcomeFilter {
        match self {
            Self::Ok => OutcomeFilter::Outcome(Outcome::Ok),
            Self::Failed => OutcomeFilter::Outcome(Outcome::Failed),
            Self::NotRun => OutcomeFilter::Outcome(Outcome::NotRun),
            Self::Refused => OutcomeFilter::Decision(CallDecision::Refused),
            Self::Hidden => OutcomeFilter::Decision(CallDecision::Hidden),
            Self::Unknown => OutcomeFilter::Decision(CallDecision::Unknown),
            Self::Invalid => OutcomeFilter::Decision(CallDecision::Invalid),
        }
    }
}

/// The options of `doctor`.
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The options of `init`.
#[derive(Args, Debug)]
pub(crate) struct InitArgs {
    /// Folder of the files, in no root
    #[arg(long, value_name = "DIR", default_value = "/etc/coretools")]
    pub(crate) folder: PathBuf,
    /// User of the server, to whom the files belong. Default: the user who runs this
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Name of the first token
    #[arg(long, default_value = "first")]
    pub(crate) name: String,
    /// Role of the first token
    #[arg(long, default_value = "dev")]
    pub(crate) role: String,
    /// Address to listen on, on this machine
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8717")]
    pub(crate) listen: String,
}

/// The options of `health`.
#[derive(Args, Debug)]
pub(crate) struct HealthArgs {
    /// Ask whether its process lives, rather than whether it takes calls
    #[arg(long)]
    pub(crate) alive: bool,
}

/// A subcommand of `token`.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print it: this once, as only its hash is kept
    New(NewTokenArgs),
    /// Show the tokens there are
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Show also the tokens that were revoked in the last 90 days
        #[arg(long)]
        all: bool,
    },
    /// Give a token a new secret and print it; the one before holds for a while
    ///
    /// Name, role, roots and limits stay. The new secret holds as long as the one before was made for.
    Rotate(RotateTokenArgs),
    /// Take a token away; a running server ends what it was used for
    Revoke {
        /// Name of the token
        name: String,
    },
}

/// The options of `token rotate`.
#[derive(Args, Debug)]
pub(crate) struct RotateTokenArgs {
    /// Name of the token
    pub(crate) name: String,
    /// Time for which the secret before still holds: 15m, 1h, 2d; 0s ends it at once
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub(crate) overlap: String,
    /// Time after which the new secret expires: 12h, 30d, 8w, never. Default: that of the one before
    #[arg(long, value_name = "TIME")]
    pub(crate) expires: Option<String>,
}

/// The options of `token new`.
#[derive(Args, Debug)]
pub(crate) struct NewTokenArgs {
    /// Name of its bearer in the audit: letters, digits, `.`, `_` and `-`, at most 64
    #[arg(long)]
    pub(crate) name: String,
    /// Its role
    #[arg(long)]
    pub(crate) role: String,
    /// Folder that it may use; give it several times for several. Default: all that the server may
    #[arg(long = "only-root", value_name = "DIR")]
    pub(crate) only_roots: Vec<PathBuf>,
    /// Remote on which its tools work: the NAME of a [remotes.NAME] in the configuration. Default: this machine
    #[arg(long, value_name = "NAME", conflicts_with = "only_roots")]
    pub(crate) remote: Option<String>,
    /// Time after which it expires: 12h, 30d, 8w, never
    #[arg(long, value_name = "TIME", default_value = "90d")]
    pub(crate) expires: String,
    /// Requests in a second. Default: the server's
    #[arg(long, value_name = "N")]
    pub(crate) calls_per_second: Option<u64>,
    /// Calls that run at once. Default: the server's
    #[arg(long, value_name = "N")]
    pub(crate) calls_in_flight: Option<u64>,
    /// Programs that run in the background at once. Default: the server's
    #[arg(long, value_name = "N")]
    pub(crate) processes: Option<u64>,
    /// Bytes in a minute, sent and received. Default: the server's
    #[arg(long, value_name = "N")]
    pub(crate) bytes_per_minute: Option<u64>,
}
