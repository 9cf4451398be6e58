//! The audit: the file in which calls are recorded, and what is recorded of their arguments.

use crate::config::AuditDetail;
use crate::error::Error;
use crate::settings::Settings;
use core_tools::mcp::AuditLevel;

/// Returns what is recorded of the arguments of calls: what `settings` say, or `default`.
pub fn level(settings: &Settings, default: AuditLevel) -> AuditLevel {
    match *settings.config.policy.audit_level {
        AuditDetail::Auto => default,
        AuditDetail::Names => AuditLevel::Names,
        AuditDetail::Targets => AuditLevel::Targets,
        AuditDetail::Full => AuditLevel::Full,
    }
}

/// Opens the audit that `settings` name.
///
/// # Errors
/// It cannot be written, or others may write to it.
pub fn open(settings: &Settings) -> Result<Option<core_tools::mcp::Audit>, Error> {
    use crate::config::AuditWhenFull;
    use core_tools::mcp::{Audit, AuditFailureMode};
    let policy = &settings.config.policy;
    let Some(path) = policy.audit.as_ref() else { return Ok(None) };
    let failure_mode = match *policy.audit_when_full {
        AuditWhenFull::Count => AuditFailureMode::CountLost,
        AuditWhenFull::Refuse => AuditFailureMode::RefuseCalls,
    };
    Audit::open(path, failure_mode).map(Some).map_err(|source| Error::Audit { path: path.clone(), source })
}
