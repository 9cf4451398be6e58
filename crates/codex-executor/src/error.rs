//! The error of a connection.

use std::io;

/// The error that ended a connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The requests cannot be read.
    #[error("cannot read the requests of Codex")]
    Read(#[source] io::Error),
    /// A request is longer than any that Codex sends.
    #[error("a request of Codex has more than {limit} bytes")]
    LongRequest {
        /// The limit.
        limit: usize,
    },
}
