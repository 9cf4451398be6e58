//! The audit in a database, SQLite or PostgreSQL, beside or instead of the file.
//!
//! Calls never wait for the database: records go into a queue of bounded length, from which one task writes them in
//! batches. A record that finds the queue full is lost and counted, and the next row says how many were. A batch that may
//! or may not have been written is written again; the key of each row keeps it from being there twice.

#[cfg(feature = "audit-database")]
mod database;
#[cfg(not(feature = "audit-database"))]
mod disabled;
mod error;
#[cfg(feature = "audit-database")]
mod queue;
#[cfg(feature = "audit-database")]
mod row;
#[cfg(feature = "audit-database")]
mod writer;

pub(crate) use error::AuditStoreError;

#[cfg(not(feature = "audit-database"))]
pub(crate) use disabled::{AuditStore, AuditWriter};
#[cfg(feature = "audit-database")]
pub(crate) use queue::AuditStore;
#[cfg(feature = "audit-database")]
pub(crate) use writer::AuditWriter;
