//! The place of a secret in a text.

/// A secret in a text: the bytes from `start` to before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SecretSpan {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The word in the mark, such as `github-token`.
    pub(crate) kind: &'static str,
}
