//! The errors of `mcp-http audit`.

use super::signature::SignatureError;
use crate::audit_source::AuditSourceError;
use crate::console_output::OutputError;
use crate::server::audit_database::UnsetVariableError;
use std::path::PathBuf;

/// The error of a command that could not read the audit.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuditCommandError {
    #[error("no audit is configured: set policy.audit or http.audit_database, or give --audit FILE")]
    NoAudit,
    #[error("no file of the audit is configured: set policy.audit, or give --audit FILE")]
    NoFile,
    #[error("no database of the audit is configured: set http.audit_database")]
    NoDatabase,
    #[error(transparent)]
    Location(#[from] UnsetVariableError),
    #[error(transparent)]
    Source(#[from] AuditSourceError),
    #[error(transparent)]
    Pattern(#[from] audit_log::PatternError),
    #[error("{flag}")]
    Time { flag: &'static str, source: audit_log::TimeError },
    #[error("cannot read the checkpoint {}", .path.display())]
    CheckpointFile { path: PathBuf, source: std::io::Error },
    #[error("{}", .path.display())]
    Checkpoint { path: PathBuf, source: audit_log::CheckpointError },
    #[error("cannot write the checkpoint {}", .path.display())]
    SaveCheckpoint { path: PathBuf, source: std::io::Error },
    #[error("{}", .path.display())]
    Signature { path: PathBuf, source: SignatureError },
    #[error("cannot write an entry as JSON")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Output(#[from] OutputError),
}
