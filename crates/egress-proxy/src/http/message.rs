//! The common parts of requests and responses: the place where a body ends, and the reasons that a head cannot be used.

use std::io;

/// The place where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFraming {
    Length(u64),
    Chunked,
    /// The body of a response that ends with its connection.
    #[cfg_attr(
        not(feature = "credentials"),
        allow(dead_code, reason = "responses are read inside TLS alone")
    )]
    UntilEnd,
}

/// The reason that a head cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HeadError {
    #[error("the client ended the connection")]
    Closed,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the head has more than {0} bytes")]
    TooLong(usize),
    #[error("{0}")]
    Malformed(&'static str),
}
