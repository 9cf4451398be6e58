//! The answers of `inspect_state`.

use super::path::{StatePath, join};
use super::state_value::{PathNotFound, StateValue};
use super::tree::ValueTruncationCounts;
use serde::Serialize;
use serde_json::Value;

/// A provider that had no value, and the reason.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct StateProviderAttempt {
    /// The provider.
    pub provider: &'static str,
    /// The reason why it had none.
    pub why: String,
}

/// The answer to one request: a value, the part of the path that exists, or the reason why no provider had state.
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
    /// The providers that failed before. If there is no value, also the providers that had no state.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<StateProviderAttempt>,
    /// Counts of the parts that were left out.
    #[serde(skip_serializing_if = "ValueTruncationCounts::is_empty")]
    pub(super) truncated: ValueTruncationCounts,
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
    /// The number of all names, where more exist than are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    keys_total: Option<u64>,
}

impl StateResponse {
    /// The answer with a value, which was found after the `failures` of other providers.
    pub(super) fn found(found: StateValue, failures: Vec<StateProviderAttempt>, unrestricted: bool) -> Self {
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
            tried: failures,
            truncated: found.truncation,
            masked: found.masked,
            notes,
        }
    }

    /// The answer for `path`, which leads nowhere.
    pub(super) fn not_found(not_found: PathNotFound, path: &StatePath) -> Self {
        let PathNotFound { source, resolved, failed_at, keys, total, note } = not_found;
        let mut notes: Vec<String> = note.into_iter().collect();
        if let Some(near) = did_you_mean::nearest(&failed_at, keys.iter().map(String::as_str)) {
            let rest = path.segments.iter().skip_while(|name| **name != failed_at).skip(1);
            // The variables of a file have a slash before their names.
            let local = path.file.as_ref().map(|file| format!("local:{file}"));
            let near = match local.filter(|local| resolved.trim_end_matches('/') == local) {
                Some(local) => format!("{local}/{}", join("", near)),
                None => join(&resolved, near),
            };
            let suggestion = rest.fold(near, |path, name| join(&path, name));
            notes.push(format!("did you mean `{suggestion}`?"));
        }
        let keys_total = (total > keys.len() as u64 && keys.len() > 1).then_some(total);
        if let Some(total) = keys_total {
            notes.push(format!("`keys` lists the first {} of {total} names", keys.len()));
        }
        Self {
            source: Some(source),
            not_found: Some(NotFoundFields { resolved, failed_at, keys, keys_total }),
            notes,
            ..Self::failed("Path not found".to_owned(), Vec::new())
        }
    }

    /// The answer for a provider that failed.
    pub(super) fn failed(error: String, tried: Vec<StateProviderAttempt>) -> Self {
        Self {
            value: Value::Null,
            error: Some(error),
            source: None,
            not_found: None,
            tried,
            truncated: ValueTruncationCounts::default(),
            masked: 0,
            notes: Vec::new(),
        }
    }

    /// The answer if no provider had anything to look into. `advice` says what would make it possible.
    pub(super) fn nothing_to_inspect(tried: Vec<StateProviderAttempt>, advice: String) -> Self {
        Self { notes: vec![advice], ..Self::failed("No inspectable process".to_owned(), tried) }
    }

    /// Returns true if there is no value.
    pub fn is_failed(&self) -> bool {
        self.error.is_some()
    }
}
