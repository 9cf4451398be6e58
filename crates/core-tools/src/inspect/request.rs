//! What is asked for, and what is answered.

use super::provider::{Found, Missing};
use super::tree::Cuts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What `inspect_state` takes.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InspectState {
    /// `a.b[0]`, `local:FILE/name`
    pub path: String,
    /// Levels
    #[schemars(range(min = 1, max = 10), extend("default" = 3))]
    #[serde(default)]
    pub depth: Option<u32>,
    /// pid:N, port:N, URL, file:
    #[serde(default)]
    pub target: Option<String>,
}

/// What one source was tried for, and why it did not answer.
#[derive(Clone, Debug, Serialize)]
pub struct Tried {
    /// The provider.
    pub provider: &'static str,
    /// What it lacked.
    pub why: String,
}

/// What was found, or how far the path led, or why there was nothing to look into.
#[derive(Clone, Debug, Serialize)]
pub struct Answered {
    /// The value; null where there is none.
    pub value: Value,
    /// Why there is none: `Path not found`, `No inspectable process`, or what failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Where it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// How far the path led.
    #[serde(flatten)]
    pub(super) missing: Option<Place>,
    /// What was asked before, in turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Tried>,
    /// What was left out.
    #[serde(skip_serializing_if = "Cuts::is_empty")]
    pub(super) truncated: Cuts,
    /// How many values were masked.
    #[serde(skip_serializing_if = "is_zero")]
    pub masked: u64,
    /// What to do, or to know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The members of [`Missing`] that stand beside the value.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Place {
    resolved: String,
    failed_at: String,
    keys: Vec<String>,
}

impl Answered {
    pub(super) fn found(found: Found, tried: Vec<Tried>, unrestricted: bool) -> Self {
        let mut notes = found.notes;
        if found.masked > 0 {
            notes.push(match unrestricted {
                true => "secret-like values are masked; ask for the exact path of one to see it".to_owned(),
                false => "secret-like values are masked; your role may not see them".to_owned(),
            });
        }
        if found.cuts.depth + found.cuts.keys + found.cuts.full > 0 {
            notes.push("ask for a longer path, or more depth, to see what was cut".to_owned());
        }
        Self {
            value: found.value,
            error: None,
            source: Some(found.source),
            missing: None,
            tried,
            truncated: found.cuts,
            masked: found.masked,
            notes,
        }
    }

    pub(super) fn missing(missing: Missing, tried: Vec<Tried>) -> Self {
        let Missing { source, resolved, failed_at, keys, note } = missing;
        Self {
            source: Some(source),
            missing: Some(Place { resolved, failed_at, keys }),
            notes: note.into_iter().collect(),
            ..Self::failed("Path not found".to_owned(), tried)
        }
    }

    pub(super) fn failed(error: String, tried: Vec<Tried>) -> Self {
        Self {
            value: Value::Null,
            error: Some(error),
            source: None,
            missing: None,
            tried,
            truncated: Cuts::default(),
            masked: 0,
            notes: Vec::new(),
        }
    }

    pub(super) fn nothing(tried: Vec<Tried>) -> Self {
        let notes = vec![
            "start the app so that it can be inspected: node --inspect=127.0.0.1:0 app.js; deno run --inspect=127.0.0.1:0; \
             or let it write its state as JSON to .app-state.json (STATE_PATH), or serve it (STATE_URL, as Go's expvar)"
                .to_owned(),
        ];
        Self { notes, ..Self::failed("No inspectable process".to_owned(), tried) }
    }

    /// Whether there is no value.
    pub fn is_failed(&self) -> bool {
        self.error.is_some()
    }
}
