//! `mcp-http audit`: asks who did what, and verifies that nothing was changed.

mod error;
mod output;
mod query;
mod signature;
mod verify;

pub(crate) use error::AuditCommandError;

use crate::audit_source::AuditSource;
use crate::cli::{AuditCommand, AuditPlace};
use server_setup::settings::Settings;
use std::process::ExitCode;

/// Runs `mcp-http audit COMMAND`.
pub(crate) fn run(settings: &Settings, command: &AuditCommand) -> Result<ExitCode, AuditCommandError> {
    match command {
        AuditCommand::Query(arguments) => query::run(settings, arguments),
        AuditCommand::Verify(arguments) => verify::run(settings, arguments),
    }
}

/// Returns the places that `settings` name, or that of `only`.
fn sources(settings: &Settings, only: Option<AuditPlace>) -> Result<Vec<AuditSource>, AuditCommandError> {
    let file = AuditSource::file(&settings.config);
    let database = || AuditSource::database(&settings.config);
    match only {
        Some(AuditPlace::File) => Ok(vec![file.ok_or(AuditCommandError::NoFile)?]),
        Some(AuditPlace::Database) => Ok(vec![database()?.ok_or(AuditCommandError::NoDatabase)?]),
        None => {
            let both: Vec<_> = file.into_iter().chain(database()?).collect();
            if both.is_empty() { Err(AuditCommandError::NoAudit) } else { Ok(both) }
        }
    }
}
