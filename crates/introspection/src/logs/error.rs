//! [`Error`]: the reasons why logs cannot be read.

/// The reason why logs cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The source does not exist. The message names the logs that do.
    #[error("log file not found: {path}{hint}")]
    NotFound {
        /// The source as the query or the settings name it.
        path: String,
        /// Advice on how to name a log that exists; begins with `; ` or is empty.
        hint: String,
    },
    /// The path, or the folder of the glob, may not be read or does not exist.
    #[error("cannot look for logs at {path}")]
    Path {
        /// The source as the query or the settings name it.
        path: String,
        /// The reason.
        source: workspace::Error,
    },
    /// The glob cannot be parsed.
    #[error("`{glob}` is no glob: {reason}")]
    Glob {
        /// The glob as it was given.
        glob: String,
        /// The reason, in globset's words.
        reason: String,
    },
    /// The value of an argument is invalid in a way that the schema does not express.
    #[error("`{parameter}`: {reason}")]
    Argument {
        /// The name of the argument.
        parameter: &'static str,
        /// The reason, and the values that are allowed.
        reason: String,
    },
    /// The entries that a cursor points to no longer exist: their file was deleted or overwritten.
    #[error("`cursor`: the entries it points to are no longer in {source_name}; call without it")]
    Gone {
        /// The source that the cursor belongs to.
        source_name: String,
    },
    /// The file system reported an error.
    #[error("cannot read {path}")]
    Read {
        /// The path of the file.
        path: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The work was cancelled.
    #[error("cancelled")]
    Cancelled,
}
