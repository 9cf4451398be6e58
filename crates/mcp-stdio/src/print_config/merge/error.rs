//! [`MergeError`]: the reasons why a file is left as it is.

/// The reason why an entry cannot be merged into a file without harm.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MergeError {
    /// The file cannot be read as what it should be.
    #[error("it is not valid: {0}")]
    Syntax(String),
    /// A value that should hold others is something else.
    #[error("`{0}` in it is not an object")]
    NotAnObject(String),
    /// The entry that would be replaced has comments.
    #[error("the entry `{0}` in it has comments, which would be lost")]
    Comments(String),
    /// The file writes the entry in a form that is not edited here.
    #[error("`{0}` is written in it in a form that cannot be changed without changing the rest")]
    Form(String),
}
