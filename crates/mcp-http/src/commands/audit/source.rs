//! The places where the audit is: the file, the database, or both.

use super::error::AuditCommandError;
use crate::audit_store::{self, AuditStoreError};
use crate::cli::AuditPlace;
use crate::server::audit_database;
use audit_log::{AuditEntry, AuditQuery, ChainVerifier, read_files};
use server_setup::settings::Settings;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// One place where the audit is.
#[derive(Debug)]
pub(super) enum AuditSource {
    File(PathBuf),
    Database(String),
}

/// The name of the chain in the file, of which there is one.
pub(super) const FILE_CHAIN: &str = "file";

/// The entries that a query found.
#[derive(Debug, Default)]
pub(super) struct FoundEntries {
    /// The oldest first.
    pub(super) entries: VecDeque<AuditEntry>,
    /// There are older ones, which were left out.
    pub(super) has_more: bool,
    /// Lines that are no entries.
    pub(super) damaged: u64,
}

/// Returns the places that `settings` name, or that of `only`.
pub(super) fn sources(
    settings: &Settings,
    only: Option<AuditPlace>,
) -> Result<Vec<AuditSource>, AuditCommandError> {
    let file = settings.config.policy.audit.value.clone().map(AuditSource::File);
    let database = || -> Result<_, AuditCommandError> {
        Ok(audit_database::location(&settings.config.http)?.map(AuditSource::Database))
    };
    match only {
        Some(AuditPlace::File) => Ok(vec![file.ok_or(AuditCommandError::NoFile)?]),
        Some(AuditPlace::Database) => Ok(vec![database()?.ok_or(AuditCommandError::NoDatabase)?]),
        None => {
            let both: Vec<_> = file.into_iter().chain(database()?).collect();
            if both.is_empty() { Err(AuditCommandError::NoAudit) } else { Ok(both) }
        }
    }
}

impl AuditSource {
    /// Finds the newest `limit` entries that `query` asks for.
    pub(super) fn find(&self, query: &AuditQuery, limit: usize) -> Result<FoundEntries, AuditCommandError> {
        let mut found = FoundEntries::default();
        match self {
            Self::File(path) => read_files(path, |line| match line.entry() {
                Some(entry) if query.matches(&entry) => {
                    if found.entries.len() == limit {
                        found.entries.pop_front();
                        found.has_more = true;
                    }
                    found.entries.push_back(entry);
                }
                Some(_) => {}
                None => found.damaged += 1,
            })?,
            Self::Database(location) => {
                // From the newest on, so that few rows are read.
                let visit = |entry| {
                    if found.entries.len() == limit {
                        found.has_more = true;
                        return ControlFlow::Break(());
                    }
                    found.entries.push_front(entry);
                    ControlFlow::Continue(())
                };
                block_on(audit_store::find(location, query, visit))?;
            }
        }
        Ok(found)
    }

    /// Gives every record to `verifier`.
    pub(super) fn verify(&self, verifier: &mut ChainVerifier) -> Result<(), AuditCommandError> {
        match self {
            Self::File(path) => Ok(read_files(path, |line| {
                verifier.check(&line.position(), FILE_CHAIN, &line.record());
            })?),
            Self::Database(location) => block_on(audit_store::verify(location, verifier)),
        }
    }
}

fn block_on(work: impl Future<Output = Result<(), AuditStoreError>>) -> Result<(), AuditCommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(AuditCommandError::Runtime)?.block_on(work)?)
}
