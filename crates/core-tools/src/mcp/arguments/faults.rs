//! The faults of a call's arguments.

use serde_json::{Map, Value};
use std::fmt;

/// The faults of a call's arguments, one a line, at most 8 of them; and the call that was meant, if it can be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct InvalidArguments {
    faults: Vec<String>,
    /// The arguments without their faults.
    pub(crate) corrected: Option<Box<Map<String, Value>>>,
    /// The tool that does what was asked for, and its arguments.
    pub(crate) other_tool: Option<Box<(&'static str, Map<String, Value>)>>,
}

impl InvalidArguments {
    /// The error of one fault.
    pub(super) fn of(fault: String) -> Self {
        Self { faults: vec![fault], corrected: None, other_tool: None }
    }
}

/// More faults than this say no more than the first ones.
const MAX_FAULTS: usize = 8;

/// The longest corrected call that is shown, in bytes.
const MAX_CORRECTION_BYTES: usize = 400;

impl fmt::Display for InvalidArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.faults.join("\n"))?;
        if let Some(corrected) = self.corrected.as_deref().and_then(to_short_json) {
            write!(f, "\ncorrected call: {corrected}")?;
        }
        Ok(())
    }
}

/// Returns arguments as JSON, if they are short enough to be read and copied.
pub(crate) fn to_short_json(arguments: &Map<String, Value>) -> Option<String> {
    // Measured before they are written, as they may be of any size.
    fn size(value: &Value) -> usize {
        match value {
            Value::String(text) => text.len() + 2,
            Value::Array(items) => items.iter().map(size).sum::<usize>() + items.len() + 2,
            Value::Object(members) => members.iter().map(|(key, value)| key.len() + 4 + size(value)).sum(),
            _ => 5,
        }
    }
    let bytes: usize = arguments.iter().map(|(key, value)| key.len() + size(value)).sum();
    if bytes > MAX_CORRECTION_BYTES {
        return None;
    }
    // The estimate counts no escapes, which make the JSON longer.
    serde_json::to_string(arguments).ok().filter(|json| json.len() <= 2 * MAX_CORRECTION_BYTES)
}

/// Collects faults while arguments are checked.
#[derive(Debug, Default)]
pub(super) struct ArgumentFaults(Vec<String>);

impl ArgumentFaults {
    pub(super) fn push(&mut self, fault: String) {
        if self.0.len() < MAX_FAULTS {
            self.0.push(fault);
        }
    }

    /// Returns the error, if there are any faults.
    pub(super) fn into_error(self) -> Option<InvalidArguments> {
        let faults = self.0;
        (!faults.is_empty()).then_some(InvalidArguments { faults, corrected: None, other_tool: None })
    }
}
