//! Runs programs beneath the workspace's roots: once and to the end, or in the background.
//!
//! ```no_run
//! use core_tools::ci::{Commands, RunCommand};
//! use core_tools::redact::Redactor;
//! use core_tools::workspace::Workspace;
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let workspace = Arc::new(Workspace::new(["/home/me/project"])?);
//! let commands = Commands::new(process_runner::Runner::new(), workspace, Redactor::new(Default::default())?);
//! let command = RunCommand::new("cargo check");
//! let report = commands.run(&command, Duration::from_secs(600), &Default::default(), |_line| {}).await?;
//! println!("{}", report.to_text());
//! # Ok(())
//! # }
//! ```

mod background;
mod build;
mod command;
mod command_run;
pub(crate) mod command_words;
mod compiler;
mod confinement;
mod ecosystem;
mod egress;
mod environment;
mod error;
mod exit;
mod glob_match;
mod inheritable_variables;
pub(crate) mod node;
mod progress;
pub(crate) mod project;
mod recorded_output;
mod report;
mod screen_emulation;
mod server_diagnostics;
mod server_facts;
mod shell_only;
mod success_output;
mod terminal;
mod terminal_run;
mod terminal_screen;
mod timeout;
mod toolchains;
mod transcript;

pub use background::{
    BackgroundCommands, BackgroundOutput, BackgroundStartContext, BackgroundState, BackgroundStatus,
    CommandList, ListCommands, ReadCommandOutput, StartCommand, StartedCommand, StopCommand,
    WriteCommandInput,
};
pub use build::{BuildError, BuildGoal, BuildReport, BuildRequest, build};
pub use command::{CommandNetwork, Commands};
pub use command_run::RunCommand;
pub use command_words::CommandText;
pub use compiler::{Diagnostic, DiagnosticReader, DiagnosticSeverity};
pub use confinement::{CommandScope, ConfinementPolicy, DeferredConfinement, PrivateTempDir, ToolchainPaths};
pub use ecosystem::Ecosystem;
pub use egress::{CredentialError, EgressError, EgressLog};
pub use egress_proxy::{AllowedHosts, CredentialHeader, CredentialRule, NetworkAccess, SecretSource};
pub use environment::{CommandEnvironment, DeferredEnvironment, EnvironmentPolicy};
pub use error::{CommandError, StdinError};
pub use report::{CommandOutcome, CommandReport};
pub use server_diagnostics::{GetDiagnostics, ServerDiagnostics, diagnose};
pub use server_facts::ServerFacts;
pub use shell_only::NeedsShell;
pub use success_output::SuccessOutput;
pub use terminal_screen::ScreenText;
pub use toolchains::{Toolchain, toolchains};
