//! The build without databases: the types have no values, so that nothing is left of what uses them.

use super::error::AuditStoreError;
use audit_log::{AuditEntry, AuditQuery, ChainVerifier};
use core_tools::mcp::CallRecord;
use std::ops::ControlFlow;

#[allow(clippy::unused_async, reason = "the one with databases waits")]
pub(crate) async fn find(
    _location: &str,
    _query: &AuditQuery,
    _visit: impl FnMut(AuditEntry) -> ControlFlow<()>,
) -> Result<(), AuditStoreError> {
    Err(AuditStoreError::NotBuilt)
}

#[allow(clippy::unused_async, reason = "the one with databases waits")]
pub(crate) async fn verify(_location: &str, _verifier: &mut ChainVerifier) -> Result<(), AuditStoreError> {
    Err(AuditStoreError::NotBuilt)
}

/// The queue for the database, of which this build has none.
#[derive(Clone, Debug)]
pub(crate) enum AuditStore {}

/// The task that writes, of which this build has none.
#[derive(Debug)]
pub(crate) enum AuditWriter {}

impl AuditStore {
    #[allow(clippy::unused_async, reason = "the one with databases waits")]
    pub(crate) async fn open(_location: &str) -> Result<(Self, AuditWriter), AuditStoreError> {
        Err(AuditStoreError::NotBuilt)
    }

    pub(crate) fn record(&self, _record: &CallRecord<'_>) {
        match *self {}
    }

    pub(crate) fn end(&self) {
        match *self {}
    }

    pub(crate) fn counts(&self) -> (u64, u64) {
        match *self {}
    }
}

impl AuditWriter {
    #[allow(clippy::unused_async, reason = "the one with databases waits")]
    pub(crate) async fn close(self) {
        match self {}
    }
}

#[allow(clippy::unused_async, reason = "the one with databases waits")]
pub(crate) async fn check(_location: &str) -> Result<(), AuditStoreError> {
    Err(AuditStoreError::NotBuilt)
}
