//! The audit: the file in which calls are recorded.

use crate::error::Error;
use crate::settings::Settings;

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
