//! Reading the audit from the database.

use super::error::AuditStoreError;
use audit_log::{AuditDatabase, AuditEntry, AuditQuery, ChainVerifier};
use std::ops::ControlFlow;

/// Calls `visit` with each entry that `query` finds in the database at `location`, the newest first, until it breaks.
pub(crate) async fn find(
    location: &str,
    query: &AuditQuery,
    visit: impl FnMut(AuditEntry) -> ControlFlow<()>,
) -> Result<(), AuditStoreError> {
    Ok(AuditDatabase::open_to_read(location)?.find(query, visit).await?)
}

/// Gives every record of the database at `location` to `verifier`.
pub(crate) async fn verify(location: &str, verifier: &mut ChainVerifier) -> Result<(), AuditStoreError> {
    Ok(AuditDatabase::open_to_read(location)?.verify(verifier).await?)
}

/// Checks that the database at `location` can be used. Nothing is made in it.
pub(crate) async fn check(location: &str) -> Result<(), AuditStoreError> {
    Ok(AuditDatabase::open_to_read(location)?.check().await?)
}
