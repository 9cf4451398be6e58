//! The error of making a redactor.

/// The reason why no [`Redactor`](crate::Redactor) could be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot prepare redaction of {values} values")]
pub struct Error {
    /// The number of values that were given.
    pub(crate) values: usize,
    pub(crate) source: aho_corasick::BuildError,
}
