//! The record of every call: entries in a chain of hashes, the file and the database that hold them, and the query and
//! the verification over both.
#![allow(
    clippy::disallowed_methods,
    reason = "the operator names the files and the database, and no client reaches them"
)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod call;
mod chain;
#[cfg(feature = "database")]
mod database;
mod entry;
mod file;
mod file_reader;
mod level;
mod query;
mod record;
mod targets;
mod time;
mod verify;

pub use call::{CallDecision, Outcome};
pub use chain::{ChainHash, ChainHead};
#[cfg(feature = "database")]
pub use database::{AuditDatabase, ChainedEntry, DatabaseError, WriteError};
pub use entry::{AuditApproval, AuditEntry, AuditEvent};
pub use file::AuditFile;
pub use file_reader::{AuditLine, ReadError, read_files};
pub use level::AuditLevel;
pub use query::{AuditQuery, OutcomeFilter, PatternError};
pub use record::StoredRecord;
pub use targets::{CallTargets, TargetLimits};
pub use time::{TimeError, instant, parse_span, parse_time, timestamp};
pub use verify::{
    ChainFault, ChainFaultKind, ChainSummary, ChainVerifier, Checkpoint, CheckpointError, Verification,
};
