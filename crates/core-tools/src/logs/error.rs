//! Why there are no logs.

use crate::workspace;

/// Why there are no logs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such file. The message says which there are.
    #[error("log file not found: {path}{hint}")]
    NotFound {
        /// As it was asked for, or as the settings name it.
        path: String,
        /// What to do.
        hint: String,
    },
    /// A path or glob that leads nowhere that may be read.
    #[error("cannot look for logs at {path}")]
    Path {
        /// Whose path it was.
        path: String,
        /// What is wrong with it.
        source: workspace::Error,
    },
    /// A glob that is none.
    #[error("`{glob}` is no glob: {reason}")]
    Glob {
        /// As it was given.
        glob: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An argument that the schema cannot judge.
    #[error("`{parameter}`: {reason}")]
    Argument {
        /// Its name.
        parameter: &'static str,
        /// What is wrong, and what is expected.
        reason: String,
    },
    /// What a cursor pointed into is gone: deleted, or overwritten.
    #[error("`cursor`: the entries it points to are no longer in {source_name}; call without it")]
    Gone {
        /// The source.
        source_name: String,
    },
    /// The file system failed.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The work was cancelled.
    #[error("cancelled")]
    Cancelled,
}
