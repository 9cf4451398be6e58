//! The places where the audit is, to read it: the file, the database, or both.

use crate::audit_store::{self, AuditStoreError};
use crate::server::audit_database::{self, UnsetVariableError};
use audit_log::{AuditEntry, AuditQuery, ChainVerifier, read_files};
use server_setup::config::Config;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// One place where the audit is.
#[derive(Clone)]
pub(crate) enum AuditSource {
    File(PathBuf),
    Database(String),
}

impl std::fmt::Debug for AuditSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            // Its address may have a password.
            Self::Database(_) => f.write_str("Database"),
        }
    }
}

/// The name of the chain in the file, of which there is one.
pub(crate) const FILE_CHAIN: &str = "file";

/// The entries that a query found.
#[derive(Debug, Default)]
pub(crate) struct FoundEntries {
    /// The oldest first.
    pub(crate) entries: VecDeque<AuditEntry>,
    /// There are older ones, which were left out.
    pub(crate) has_more: bool,
    /// Lines that are no entries.
    pub(crate) damaged: u64,
    /// The time of the oldest entry of the audit, where all of it was read.
    pub(crate) begins: Option<String>,
}

/// The error of an audit that cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuditSourceError {
    #[error(transparent)]
    Read(#[from] audit_log::ReadError),
    #[error(transparent)]
    Database(#[from] AuditStoreError),
    #[error("cannot start the runtime")]
    Runtime(#[source] std::io::Error),
}

impl AuditSource {
    /// Returns the file that `config` names, if it names one.
    pub(crate) fn file(config: &Config) -> Option<Self> {
        config.policy.audit.value.clone().map(Self::File)
    }

    /// Returns the database that `config` names, if it names one.
    ///
    /// # Errors
    /// The variable with its address is not set.
    pub(crate) fn database(config: &Config) -> Result<Option<Self>, UnsetVariableError> {
        Ok(audit_database::location(&config.http)?.map(Self::Database))
    }

    /// Finds the newest `limit` entries that `query` asks for. It blocks until all was read.
    pub(crate) fn find(&self, query: &AuditQuery, limit: usize) -> Result<FoundEntries, AuditSourceError> {
        let mut found = FoundEntries::default();
        match self {
            Self::File(path) => read_files(path, |line| {
                let Some(entry) = line.entry() else {
                    found.damaged += 1;
                    return;
                };
                if found.begins.is_none() {
                    found.begins = Some(entry.time.clone());
                }
                if query.matches(&entry) {
                    if found.entries.len() == limit {
                        found.entries.pop_front();
                        found.has_more = true;
                    }
                    found.entries.push_back(entry);
                }
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
    pub(crate) fn verify(&self, verifier: &mut ChainVerifier) -> Result<(), AuditSourceError> {
        match self {
            Self::File(path) => Ok(read_files(path, |line| {
                verifier.check(&line.position(), FILE_CHAIN, &line.record());
            })?),
            Self::Database(location) => block_on(audit_store::verify(location, verifier)),
        }
    }
}

fn block_on(work: impl Future<Output = Result<(), AuditStoreError>>) -> Result<(), AuditSourceError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(AuditSourceError::Runtime)?.block_on(work)?)
}
