//! The audit in a database: one table, in which each process that writes has a chain of its own.

mod connection;
mod error;
mod read;
mod schema;
mod write;

pub use connection::AuditDatabase;
pub use error::{DatabaseError, WriteError};
pub use write::ChainedEntry;
