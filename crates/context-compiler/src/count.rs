//! Counting tokens.

/// Counts the tokens that a text is to a model.
pub trait TokenCounter: Send + Sync {
    /// What it counts, such as `o200k_base`.
    fn name(&self) -> &str;

    /// Whether it guesses.
    fn is_estimate(&self) -> bool;

    /// The tokens of `text`. Never more than it has bytes.
    fn count(&self, text: &str) -> usize;
}

/// A guess: a token for each three bytes, rounded up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimate;

impl TokenCounter for Estimate {
    fn name(&self) -> &'static str {
        "estimate"
    }

    fn is_estimate(&self) -> bool {
        true
    }

    fn count(&self, text: &str) -> usize {
        text.len().div_ceil(3)
    }
}
