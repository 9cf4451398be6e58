//! The secret values of a run.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::encodings::add_encodings;
use super::matcher::{MIN_SECRET_BYTES, SecretMatcher};
use super::redactor::StreamRedactor;

/// Values that must never appear in captured output, events, spill files, errors or debug text.
///
/// Each value of at least 6 bytes is found as it is, in base64 and base64url (alone, or anywhere within a longer
/// encoded text), percent-encoded and escaped as in a JSON string, and replaced by `[redacted]`. Shorter values are
/// ignored. `SecretValues` is cheap to clone.
#[derive(Clone, Default)]
pub struct SecretValues {
    matcher: Option<Arc<SecretMatcher>>,
}

impl SecretValues {
    /// Returns a set of these values, without the white space at their ends: a program prints what it has read from a
    /// file without the line end.
    pub fn new<V: AsRef<[u8]>>(values: impl IntoIterator<Item = V>) -> Self {
        let mut forms = Vec::new();
        for value in values {
            // A value from a file has a line end that a program does not print.
            let value = value.as_ref().trim_ascii();
            if value.len() >= MIN_SECRET_BYTES {
                add_encodings(value, &mut forms);
            }
        }
        Self { matcher: (!forms.is_empty()).then(|| Arc::new(SecretMatcher::new(forms))) }
    }

    /// Returns true if there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.matcher.is_none()
    }

    /// Returns `text` with every secret replaced by `[redacted]`.
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(matcher) = &self.matcher else { return Cow::Borrowed(text) };
        if matcher.find(text.as_bytes(), 0).is_none() {
            return Cow::Borrowed(text);
        }
        // The search above is the usual case and allocates nothing.
        let mut hidden = Vec::with_capacity(text.len());
        let mut redactor = self.redactor();
        redactor.push(text.as_bytes(), |bytes| hidden.extend_from_slice(bytes));
        redactor.finish(|bytes| hidden.extend_from_slice(bytes));
        Cow::Owned(String::from_utf8_lossy(&hidden).into_owned())
    }

    /// Returns a redactor for one stream.
    #[doc(hidden)]
    pub fn redactor(&self) -> StreamRedactor {
        StreamRedactor::new(self.matcher.clone())
    }
}

impl fmt::Debug for SecretValues {
    /// Writes nothing about the values, not even their number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValues(..)")
    }
}
