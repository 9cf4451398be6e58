//! The way of the audit into a database, beside or instead of the file. `audit-log` has the table.
//!
//! Calls never wait for the database: records go into a queue of bounded length, from which one task writes them in
//! batches. A record that finds the queue full is lost and counted, and the next row says how many were. A batch that may
//! or may not have been written is written again; the key of each row keeps it from being there twice. The rows of this
//! process are a chain.

#[cfg(not(feature = "audit-database"))]
mod disabled;
mod error;
#[cfg(feature = "audit-database")]
mod queue;
#[cfg(feature = "audit-database")]
mod writer;

#[cfg(feature = "audit-database")]
mod reader;

pub(crate) use error::AuditStoreError;

#[cfg(not(feature = "audit-database"))]
pub(crate) use disabled::{AuditStore, AuditWriter, check, find, verify};
#[cfg(feature = "audit-database")]
pub(crate) use queue::AuditStore;
#[cfg(feature = "audit-database")]
pub(crate) use reader::{check, find, verify};
#[cfg(feature = "audit-database")]
pub(crate) use writer::AuditWriter;
