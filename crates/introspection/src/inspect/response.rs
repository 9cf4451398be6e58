//! The answers of `inspect_state`.

use super::finding::{PathNotFound, StateValue};
use super::tree::TruncationCounts;
use serde::Serialize;
use serde_json::Value;

/// A provider that had no value, and the reason.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ProviderAttempt {
    /// The provider.
    pub provider: &'static str,
    /// The reason why it had none.
    pub why: String,
}

/// The answer to one request: a value, how far the path led, or the reason why there was nothing to look into.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct StateResponse {
    /// The value; null where there is none.
    pub value: Value,
    /// The error, if there is no value: `Path not found`, `No inspectable process`, or the message of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The provider that answered, and the file, URL or process that it read: `node: node 123 (node server.js)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The part of the path that exists, if the path leads nowhere.
    #[serde(flatten)]
    pub(super) not_found: Option<NotFoundFields>,
    /// The providers that were asked before, in turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<ProviderAttempt>,
    /// Counts of the parts that were left out.
    #[serde(skip_serializing_if = "TruncationCounts::is_empty")]
    pub(super) truncated: TruncationCounts,
    /// The number of values that were masked.
    #[serde(skip_serializing_if = "is_zero")]
    pub masked: u64,
    /// Advice for the reader.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The fields of [`PathNotFound`] that the answer shows beside the value.
#[derive(Clone, Debug, Serialize)]
pub(super) struct NotFoundFields {
    resolved: String,
    failed_at: String,
    keys: Vec<String>,
}

impl StateResponse {
    /// The answer with a value.
    pub(super) fn found(found: StateValue, tried: Vec<ProviderAttempt>, unrestricted: bool) -> Self {
        let mut notes = found.notes;
        if found.masked > 0 {
            notes.push(match unrestricted {
                true => "secret-like values are masked; ask for the exact path of one to see it".to_owned(),
                false => "secret-like values are masked; your role may not see them".to_owned(),
            });
        }
        if found.truncation.depth + found.truncation.keys + found.truncation.full > 0 {
            notes.push("ask for a longer path, or more depth, to see what was cut".to_owned());
        }
        Self {
            value: found.value,
            error: None,
            source: Some(found.source),
            not_found: None,
            tried,
            truncated: found.truncation,
            masked: found.masked,
            notes,
        }
    }

    /// The answer for a path that leads nowhere.
    pub(super) fn not_found(not_found: PathNotFound, tried: Vec<ProviderAttempt>) -> Self {
        let PathNotFound { source, resolved, failed_at, keys, note } = not_found;
        Self {
            source: Some(source),
            not_found: Some(NotFoundFields { resolved, failed_at, keys }),
            notes: note.into_iter().collect(),
            ..Self::failed("Path not found".to_owned(), tried)
        }
    }

    /// The answer for a provider that failed.
    pub(super) fn failed(error: String, tried: Vec<ProviderAttempt>) -> Self {
        Self {
            value: Value::Null,
            error: Some(error),
            source: None,
            not_found: None,
            tried,
            truncated: TruncationCounts::default(),
            masked: 0,
            notes: Vec::new(),
        }
    }

    /// The answer if no provider had anything to look into.
    pub(super) fn nothing_to_inspect(tried: Vec<ProviderAttempt>) -> Self {
        let notes = vec![
            "start the app so that it can be inspected: node --inspect=127.0.0.1:0 app.js; deno run --inspect=127.0.0.1:0; \
             or let it write its state as JSON to .app-state.json (STATE_PATH), or serve it (STATE_URL, as Go's expvar)"
                .to_owned(),
        ];
        Self { notes, ..Self::failed("No inspectable process".to_owned(), tried) }
    }

    /// Returns true if there is no value.
    pub fn is_failed(&self) -> bool {
        self.error.is_some()
    }
}
