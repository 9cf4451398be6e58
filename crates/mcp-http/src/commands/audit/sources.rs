//! The places in which the audit stands.

use super::error::AuditCommandError;
use crate::audit_source::AuditSource;
use crate::cli::AuditPlace;
use server_setup::settings::Settings;

/// Returns the places that `settings` name, or that of `only`.
pub(super) fn sources(
    settings: &Settings,
    only: Option<AuditPlace>,
) -> Result<Vec<AuditSource>, AuditCommandError> {
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
