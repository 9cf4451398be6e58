//! Run programs beneath the workspace's roots: once and to the end, or in the background.
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
mod compiler;
mod confine;
mod diagnostics;
mod ecosystem;
pub(crate) mod project;
mod run;
mod transcript;

pub use background::{
    Background, BackgroundOutput, BackgroundState, CommandList, ListCommands, ReadCommandOutput,
    StartCommand, StartedCommand, StopCommand, WriteCommandInput,
};
pub use build::{Build, BuildError, BuildReport, Goal, Verdict, build};
pub use command::{CommandError, CommandText, Commands, EnvironmentPolicy};
#[cfg(feature = "testing")]
pub(crate) use command::{quoted, without_ours};
pub use compiler::{Diagnostic, DiagnosticReader};
pub use confine::{Confine, Decide, PrivateTemp, Reach, ToolchainPlaces};
pub use diagnostics::{Diagnostics, GetDiagnostics, ServerFacts, Toolchain, diagnose, toolchains};
pub use ecosystem::Ecosystem;
#[cfg(feature = "testing")]
pub(crate) use ecosystem::package_manager;
pub use run::{CommandReport, RunCommand};
