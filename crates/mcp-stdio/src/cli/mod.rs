//! The command line.

mod approvals;
mod arguments;
mod global_options;
mod help;
mod policy;
#[cfg(all(feature = "sessions", unix))]
mod session;

pub(crate) use approvals::ApprovalsCommand;
pub(crate) use arguments::{Cli, CliCommand};
pub(crate) use global_options::GlobalOptions;
pub(crate) use help::{call_help, command, introduction, parse};
pub(crate) use policy::PolicyCommand;
#[cfg(all(feature = "sessions", unix))]
pub(crate) use session::SessionSubcommand;
