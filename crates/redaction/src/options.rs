//! The settings of a redactor.

/// The settings of a [`Redactor`](crate::Redactor).
#[derive(Clone)]
#[non_exhaustive]
pub struct RedactionOptions {
    /// True if the redactor looks for secrets. True by default. A redactor that does not look for secrets returns every
    /// text unchanged.
    pub enabled: bool,
    /// Exact values that must not leave, such as the values of [`secret_environment`](crate::secret_environment).
    /// Values shorter than [`MIN_VALUE_BYTES`](crate::MIN_VALUE_BYTES) are ignored, because short values occur in
    /// ordinary text. Empty by default.
    pub values: Vec<String>,
}

impl RedactionOptions {
    /// Sets whether the redactor looks at all.
    #[must_use]
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// Sets the exact values that must not leave, in place of the earlier values.
    #[must_use]
    pub fn values(mut self, values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.values = values.into_iter().map(Into::into).collect();
        self
    }
}

impl Default for RedactionOptions {
    fn default() -> Self {
        Self { enabled: true, values: Vec::new() }
    }
}

impl std::fmt::Debug for RedactionOptions {
    /// Says how many values there are, and none of them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedactionOptions")
            .field("enabled", &self.enabled)
            .field("values", &self.values.len())
            .finish()
    }
}
