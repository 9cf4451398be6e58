//! `mcp-http audit`: asks who did what, and verifies that nothing was changed.

mod error;
mod output;
mod query;
mod signature;
mod sources;
mod verify;

pub(crate) use error::AuditCommandError;

use crate::cli::AuditCommand;
use server_setup::settings::Settings;
use std::process::ExitCode;

/// Runs `mcp-http audit COMMAND`.
pub(crate) fn run(settings: &Settings, command: &AuditCommand) -> Result<ExitCode, AuditCommandError> {
    match command {
        AuditCommand::Query(arguments) => query::run(settings, arguments),
        AuditCommand::Verify(arguments) => verify::run(settings, arguments),
    }
}
