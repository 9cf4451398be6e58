//! Measures MCP servers by what their clients wait for: any server by command or URL, one client, one run.
//!
//! `docs/benchmarks/peers.md` says how to run it and how to read what it finds.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports to whoever started it")]
#![allow(clippy::cast_precision_loss, reason = "figures for people, far below 2^52")]

mod client;
mod fixture;
mod install;
mod machine;
mod peers;
mod processes;
mod remotes;
mod report;
mod results;
mod run;
mod scenarios;
mod soak;
mod stats;
mod targets;

use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The error that ends the program, as a sentence.
type BenchmarkError = Box<dyn std::error::Error>;

/// Measure MCP servers side by side.
#[derive(Debug, Parser)]
#[command(name = "benchmarks", version)]
struct Arguments {
    #[command(subcommand)]
    what: BenchmarkCommand,
}

#[derive(Debug, Subcommand)]
enum BenchmarkCommand {
    /// Measure, and write peers.json and the report.
    Run(run::RunOptions),
    /// Write the tables and plots of results that are there.
    Report {
        /// Folder of peers.json.
        dir: PathBuf,
        /// Folder for peers.md, targets.md and peers/*.svg. Default: the same.
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
    },
    /// Install the servers of peers.toml that npm, `PyPI` and crates.io have, into benchmarks/.peers.
    Install {
        /// Another peers.toml.
        #[arg(long, value_name = "FILE")]
        peers: Option<PathBuf>,
        /// Only these.
        #[arg(long, value_name = "NAME", value_delimiter = ',')]
        server: Vec<String>,
    },
    /// Measure the kinds of remotes beside a local server and beside the engine alone. Needs root, and the engines.
    Remotes(remotes::RemotesOptions),
    /// Mixed work on mcp-stdio and mcp-http at once: memory and descriptors must stay flat, nothing may fail, and
    /// nothing may be left.
    Soak {
        /// How long, in seconds.
        #[arg(default_value_t = 120)]
        seconds: u64,
    },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().what {
        BenchmarkCommand::Run(options) => run::run(&options),
        BenchmarkCommand::Report { dir, to } => report::write(&dir, to.as_deref().unwrap_or(&dir)),
        BenchmarkCommand::Install { peers, server } => install::install(peers.as_deref(), &server),
        BenchmarkCommand::Remotes(options) => remotes::remotes(&options),
        BenchmarkCommand::Soak { seconds } => soak::soak(seconds),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("benchmarks: {failure}");
            let mut source = failure.source();
            while let Some(cause) = source {
                eprintln!("  {cause}");
                source = cause.source();
            }
            ExitCode::FAILURE
        }
    }
}

/// The folder of this package: peers.toml, targets.toml, and what is installed.
fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
